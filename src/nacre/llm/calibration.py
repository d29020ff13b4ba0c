"""Calibration: the meaning of an embedding model's cosines."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nacre.base.frozen import frozen
from nacre.base.lazy import Module

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = Module("numpy")

# -- Calibration of cosines ----------------------------------------------------


_UNKNOWN = "unknown"
_BUNDLED = "minilm-l6-v2-int8"
_BUNDLED_SEES = (0.0563, 0.7256)
"""Mean cosines of the bundled model for the probes."""

Seen = tuple[float, float]
"""Mean cosines of the probe questions with unrelated passages and with their own passages."""


@frozen
class Calibration:
    """Cosine thresholds of an embedding model.

    Between a question and a passage, ``unrelated`` is chance and ``related`` is a plain restatement. Between two
    statements, ``link`` is the minimum for a link, and ``same`` for possible equality. A language model compares
    statements from ``ask``, or from ``ask_more`` if many comparisons are affordable. A reply uses a memory from
    ``used``. A memory stored by an agent repeats a correction from ``corrected``.

    ``reads_unspaced`` means that the model handles scripts without spaces. It is True for unmeasured models.
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
        """Return a question-passage cosine on a scale for all models: ``unrelated`` is 0 and ``related`` is 1."""
        return (cosine - self.unrelated) / (self.related - self.unrelated)


def is_measured(model: str) -> bool:
    """Return True if ``calibration.toml`` lists the model."""
    return model in _tables()


@cache
def probes() -> tuple[tuple[str, str], ...]:
    """Return questions, each with the only passage that answers it."""
    written = tomllib.loads(Path(__file__).with_name("probes.toml").read_text(encoding="utf-8"))
    return tuple((question, passage) for question, passage in written["pairs"])


def seen_by(questions: NDArray[np.float32], passages: NDArray[np.float32]) -> Seen:
    """Return the mean cosines of the probes, given their unit vectors."""
    cosines = questions @ passages.T
    own = float(cosines.trace()) / len(cosines)
    unrelated = (float(cosines.sum()) - float(cosines.trace())) / (cosines.size - len(cosines))
    return unrelated, own


@cache
def calibration_of(model: str | None, seen: Seen | None = None) -> Calibration:
    """Return a model's calibration. ``model`` is the name of its vectors.

    An unmeasured model gets the bundled model's values, scaled by its cosines for the probes. Without these cosines, it
    gets the table ``unknown``.
    """
    tables = _tables()
    if model in tables:
        return Calibration(**tables[model])
    if seen is None or not -1 < seen[0] < seen[1] < 1:
        return Calibration(**tables[_UNKNOWN])
    cosines = {
        name: value for name, value in tables[_BUNDLED].items() if not isinstance(value, bool)
    }
    moved: dict[str, Any] = {name: _scaled(value, seen) for name, value in cosines.items()}
    return Calibration(**moved)


def _scaled(cosine: float, seen: Seen) -> float:
    """Scale a cosine of the bundled model to a model with the given probe cosines. 1 stays 1."""
    (chance, restated), (own_chance, own_restated) = seen, _BUNDLED_SEES
    if cosine <= own_restated:
        return chance + (cosine - own_chance) * (restated - chance) / (own_restated - own_chance)
    return restated + (cosine - own_restated) * (1 - restated) / (1 - own_restated)


@cache
def _tables() -> dict[str, dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = tomllib.loads(
        Path(__file__).with_name("calibration.toml").read_text("utf-8")
    )
    return tables
