"""What the cosines of an embedding model mean: all numbers that belong to one model, from ``calibration.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Calibration:
    """Cosines of one model.

    A question and a passage: ``unrelated`` is what chance alone gives, ``related`` a plain restatement. Two statements:
    from ``same`` on, where nothing sets them apart, they say the same; at ``alike`` the same share of known repetitions
    and of known distinct pairs falls on each side; from ``link`` on a link is worth making. From ``ask`` on a language
    model is asked what the two are to each other, from ``ask_more`` on where much is to be asked. A reply from ``used``
    on holds a memory; what an agent stored from ``corrected`` on says it anew.
    """

    unrelated: float
    related: float
    same: float
    alike: float
    link: float
    used: float
    corrected: float
    ask: float = 0.72
    ask_more: float = 0.62

    def meaning(self, cosine: float) -> float:
        """The cosine of a question and a passage on one scale for all models: ``unrelated`` is 0, ``related`` 1."""
        return (cosine - self.unrelated) / (self.related - self.unrelated)


@cache
def calibration_of(model: str | None) -> Calibration:
    """The calibration of a model by the name of its vectors; that of ``unknown`` where nobody measured it."""
    tables = tomllib.loads((files(__package__) / "calibration.toml").read_text(encoding="utf-8"))
    return Calibration(**tables[model if model in tables else _UNKNOWN])
