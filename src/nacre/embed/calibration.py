"""What the cosines of an embedding model mean: all numbers that belong to one model, from ``calibration.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_UNKNOWN = "unknown"
_BUNDLED = "minilm-l6-v2-int8"
_BUNDLED_SEES = (0.0563, 0.7256)
"""How the bundled model sees the probes."""

Seen = tuple[float, float]
"""The mean cosine of the probes' questions to passages of others, and to their own."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Cosines of one model.

    A question and a passage: ``unrelated`` is what chance alone gives, ``related`` a plain restatement. Two statements:
    from ``link`` on a link is worth making, from ``same`` on they may say the same. From ``ask`` on a language model is
    asked what the two are to each other, from ``ask_more`` on where much is to be asked. A reply from ``used`` on holds
    a memory; what an agent stored from ``corrected`` on says it anew.

    ``reads_unspaced``: the model reads scripts without spaces. Of one that nobody measured it is taken to be so.
    """

    unrelated: float
    related: float
    link: float
    same: float
    used: float
    corrected: float
    ask: float = 0.72
    ask_more: float = 0.62
    reads_unspaced: bool = True

    def meaning(self, cosine: float) -> float:
        """The cosine of a question and a passage on one scale for all models: ``unrelated`` is 0, ``related`` 1."""
        return (cosine - self.unrelated) / (self.related - self.unrelated)


def is_measured(model: str) -> bool:
    """Whether a model has a table."""
    return model in _tables()


@cache
def probes() -> tuple[tuple[str, str], ...]:
    """Questions, each with a passage that answers it and none of the others."""
    written = tomllib.loads(Path(__file__).with_name("probes.toml").read_text(encoding="utf-8"))
    return tuple((question, passage) for question, passage in written["pairs"])


def seen_by(questions: NDArray[np.float32], passages: NDArray[np.float32]) -> Seen:
    """How a model sees the probes, by their unit vectors."""
    cosines = questions @ passages.T
    own = float(cosines.trace()) / len(cosines)
    others = (float(cosines.sum()) - float(cosines.trace())) / (cosines.size - len(cosines))
    return others, own


@cache
def calibration_of(model: str | None, seen: Seen | None = None) -> Calibration:
    """The calibration of a model by the name of its vectors.

    Of one that nobody measured, by how it sees the probes: the bundled model's numbers, moved to where that model sees
    them. Without that, the table ``unknown``.
    """
    tables = _tables()
    if model in tables:
        return Calibration(**tables[model])
    if seen is None or not -1 < seen[0] < seen[1] < 1:
        return Calibration(**tables[_UNKNOWN])
    cosines = {name: value for name, value in tables[_BUNDLED].items() if not isinstance(value, bool)}
    moved: dict[str, Any] = {name: _moved(value, seen) for name, value in cosines.items()}
    return Calibration(**moved)


def _moved(cosine: float, seen: Seen) -> float:
    """A cosine of the bundled model as one of a model that sees the probes so; 1 stays 1."""
    (chance, restated), (own_chance, own_restated) = seen, _BUNDLED_SEES
    if cosine <= own_restated:
        return chance + (cosine - own_chance) * (restated - chance) / (own_restated - own_chance)
    return restated + (cosine - own_restated) * (1 - restated) / (1 - own_restated)


@cache
def _tables() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("calibration.toml").read_text("utf-8"))
    return found
