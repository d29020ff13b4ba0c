"""What a scrub found, changed, and could not reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """Secrets by place and rule, and how much was changed.

    ``found`` maps a place (``turns``, ``memories``, ``vault``, ``history``, ``files``, or a table) to rules and how
    often each of them found something. ``copies`` are older copies of the database, which a scrub does not look into;
    ``elsewhere`` says in words what may still hold what was taken out here.
    """

    dry_run: bool
    found: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    turns: int = 0
    memories: int = 0
    files: int = 0
    commits: int | None = None
    copies: tuple[Path, ...] = ()
    removed: tuple[Path, ...] = ()
    elsewhere: tuple[str, ...] = ()
    vectors_left: int = 0
    seconds: float = 0.0

    @property
    def total(self) -> int:
        """How many secrets were found in all."""
        return sum(number for rules in self.found.values() for number in rules.values())
