"""The vector lane's ticket: a question embedded, and the vectors to compare it with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nacre.retrieval.confidence import Sureness, sureness_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nacre.storage.search.vectors import VectorsOf


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A unit vector, and the store its cosines come from."""

    value: NDArray[np.float32]
    vectors: VectorsOf

    def sureness(self, kind: str) -> Sureness:
        """How sure a hit among ``turns`` or ``memories`` is by these vectors."""
        return sureness_of(kind, self.vectors.model(), self.vectors.seen())
