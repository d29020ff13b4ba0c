"""The versions of hosts that were driven for real, as proven.toml lists them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Proven:
    """The version of a host that CI drives, and the newest that there was ``on`` a day."""

    pinned: str
    newest: str
    on: date

    @property
    def versions(self) -> tuple[str, ...]:
        """Both, or the one that is both."""
        return tuple(dict.fromkeys((self.pinned, self.newest)))


@cache
def proven_versions() -> Mapping[str, Proven]:
    """What was driven, by the name of the host."""
    tables = tomllib.loads((files(__package__) / "proven.toml").read_text(encoding="utf-8"))
    return {name: Proven(**table) for name, table in tables.items()}
