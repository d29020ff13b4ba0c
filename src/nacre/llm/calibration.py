"""Calibration of an embedding model's cosine similarities."""

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

_UNKNOWN = "unknown"
_BUNDLED = "minilm-l6-v2-int8"
_BUNDLED_SEES = (0.0563, 0.7256)
"""The bundled model's mean cosines for the probes."""

MeanCosines = tuple[float, float]
"""Mean cosine of questions with unrelated passages, and with the passages that answer them."""


@frozen
class Calibration:
    """The cosine thresholds of an embedding model.

    ``unrelated``, ``related``: the typical cosines of a question with an unrelated text and with a
    text that restates it. ``reads_unspaced``: True if the model understands scripts without spaces.

    The others are minimum cosines: ``link`` for two statements on the same subject, ``same`` if
    they might mean the same, ``ask`` for asking a language model about it (``ask_more`` if it can
    compare many statements), ``used`` for a reply that uses a memory, and ``corrected`` for an
    agent's memory that repeats a correction.
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
        """Scale a cosine so that 0 is typical of unrelated texts, and 1 of related ones."""
        return (cosine - self.unrelated) / (self.related - self.unrelated)


def is_measured(model: str) -> bool:
    """Return True if the model's thresholds are listed in ``calibration.toml``."""
    return model in _tables()


@cache
def probes() -> tuple[tuple[str, str], ...]:
    """Return the calibration questions, each with the passage that answers it."""
    written = tomllib.loads(Path(__file__).with_name("probes.toml").read_text(encoding="utf-8"))
    return tuple((question, passage) for question, passage in written["pairs"])


def seen_by(questions: NDArray[np.float32], passages: NDArray[np.float32]) -> MeanCosines:
    """Return the mean cosines of questions with unrelated passages and with their own passages.

    All rows are unit vectors. Each row of ``passages`` answers the same row of ``questions``.
    """
    cosines = questions @ passages.T
    own = float(cosines.trace()) / len(cosines)
    unrelated = (float(cosines.sum()) - float(cosines.trace())) / (cosines.size - len(cosines))
    return unrelated, own


@cache
def calibration_of(model: str | None, cosines: MeanCosines | None = None) -> Calibration:
    """Return a model's thresholds.

    For an unknown model, they are estimated from ``cosines``, the result of :func:`seen_by`, or are
    the defaults.
    """
    tables = _tables()
    if model in tables:
        return Calibration(**tables[model])
    if cosines is None or not -1 < cosines[0] < cosines[1] < 1:
        return Calibration(**tables[_UNKNOWN])
    thresholds: dict[str, Any] = {
        name: _scaled(value, cosines)
        for name, value in tables[_BUNDLED].items()
        if not isinstance(value, bool)
    }
    return Calibration(**thresholds)


def _scaled(cosine: float, cosines: MeanCosines) -> float:
    (chance, restated), (own_chance, own_restated) = cosines, _BUNDLED_SEES
    if cosine <= own_restated:
        return chance + (cosine - own_chance) * (restated - chance) / (own_restated - own_chance)
    return restated + (cosine - own_restated) * (1 - restated) / (1 - own_restated)


@cache
def _tables() -> dict[str, dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = tomllib.loads(
        Path(__file__).with_name("calibration.toml").read_text("utf-8")
    )
    return tables
