"""Cosines that mean the same for every embedding model."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec


@dataclass(frozen=True, slots=True)
class Calibration:
    """Cosines of one model.

    From ``same`` on two texts that nothing sets apart say the same; at ``alike`` the same share of known repetitions
    and of known distinct pairs falls on each side; from ``link`` on a link between two texts is worth making.
    """

    same: float
    alike: float
    link: float


def calibration_of(model: str | None) -> Calibration:
    """The calibration of a model; one that nobody measured gets the cosines of the seed's model (seed facts 1.3)."""
    known = _calibrations()
    return known.get(model or "", known["unknown"])


@cache
def _calibrations() -> dict[str, Calibration]:
    table = tomllib.loads((files(__package__) / "calibration.toml").read_text(encoding="utf-8"))
    return msgspec.convert(table, dict[str, Calibration])
