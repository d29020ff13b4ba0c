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

# -- Calibration of cosines ----------------------------------------------------


_UNKNOWN = "unknown"
_BUNDLED = "minilm-l6-v2-int8"
_BUNDLED_SEES = (0.0563, 0.7256)
"""The bundled model's mean cosines for the probes."""

Seen = tuple[float, float]
"""Mean cosine of questions with unrelated passages, and with the passages that answer them."""


@frozen
class Calibration:
    """The cosine thresholds of an embedding model.

    ``unrelated``: typical cosine of a question and an unrelated text. ``related``: typical cosine
    of a question and a text that restates the question.

    The other cosines are minimums. ``link``: for statements about the same subject. ``same``: for
    statements that might mean the same. ``ask``: for statements that a language model compares.
    ``ask_more``: replacement for ``ask`` if the model can compare many statements. ``used``: for a
    reply that uses a memory. ``corrected``: for an agent's memory that repeats a correction.

    ``reads_unspaced``: True if the model understands scripts without spaces.
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
        """Convert the cosine of a question and a passage to a scale from 0 (unrelated) to 1 (related)."""
        return (cosine - self.unrelated) / (self.related - self.unrelated)


def is_measured(model: str) -> bool:
    """Return True if ``calibration.toml`` lists the model."""
    return model in _tables()


@cache
def probes() -> tuple[tuple[str, str], ...]:
    """Return the calibration questions, each with the only passage that answers the question."""
    written = tomllib.loads(Path(__file__).with_name("probes.toml").read_text(encoding="utf-8"))
    return tuple((question, passage) for question, passage in written["pairs"])


def seen_by(questions: NDArray[np.float32], passages: NDArray[np.float32]) -> Seen:
    """Return the mean cosine of questions with other passages, and with their own passages.

    The rows are unit vectors.
    """
    cosines = questions @ passages.T
    own = float(cosines.trace()) / len(cosines)
    unrelated = (float(cosines.sum()) - float(cosines.trace())) / (cosines.size - len(cosines))
    return unrelated, own


@cache
def calibration_of(model: str | None, seen: Seen | None = None) -> Calibration:
    """Return the thresholds of a model.

    The thresholds of an unknown model are estimated from ``seen``, the result of :func:`seen_by`.
    Without ``seen``, default thresholds are used.
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
    """Convert a threshold of the bundled model to a model whose mean cosines are ``seen``."""
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
