"""Sign bits of passages, which a server compares by pgvector: a row a passage, which a trigger keeps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nacre.storage.postgres.database import PostgresDatabase

_NEAREST = """
SELECT passage FROM signs WHERE tenant = ? AND length(bits) = {size}
ORDER BY CAST(bits AS bit({size})) <~> CAST(? AS bit({size})) LIMIT ?
"""
"""It names the tenant, so that a graph of one tenant's passages can be used (decision 25)."""


class ServerWalk:
    """Implements :class:`~nacre.storage.search.quantised.Walk`."""

    def __init__(self, database: PostgresDatabase, bits: NDArray[np.uint64]) -> None:
        digits = "".join(map(str, np.unpackbits(bits.view(np.uint8)).tolist()))
        self._db = database
        self._statement = _NEAREST.format(size=len(digits))
        self._values = database.tenant, digits
        self._seen: set[int] = set()

    def next(self, count: int) -> list[int]:
        """So many rows beyond those that were given."""
        found = [row for (row,) in self._db.rows(self._statement, (*self._values, len(self._seen) + count))]
        fresh = [row for row in found if row not in self._seen]
        self._seen.update(fresh)
        return fresh
