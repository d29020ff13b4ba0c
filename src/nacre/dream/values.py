"""Dreams: what a plan holds, and what became of it."""

from __future__ import annotations

from enum import StrEnum

from nacre.platform.fast_dataclass import dataclass


class DreamAction(StrEnum):
    """What a dream does to memories.

    ``expire``: what was meant for a while is over. ``forget``: what was never asked for goes. ``merge``: what says the
    same goes into the one that stays. All of them retire; nothing is deleted. ``unlink``: a link that leads nowhere is
    dropped; nothing ends.
    """

    EXPIRE = "expire"
    FORGET = "forget"
    MERGE = "merge"
    UNLINK = "unlink"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a dream would do: the ids of the memories that end, the one that stays in their place, if any,
    what it is about, and why. ``links`` are the ends of links that the one that stays loses."""

    action: DreamAction
    ends: tuple[str, ...]
    into: str | None
    subject: str
    why: str
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DreamPlan:
    """What a dream would do, of ``seen`` active memories; ``put_off`` is more than one night ends (``most``)."""

    steps: tuple[Step, ...]
    put_off: tuple[Step, ...] = ()
    seen: int = 0
    most: int = 0
    project: str | None = None

    @property
    def ending(self) -> int:
        """How many memories end."""
        return sum(len(step.ends) for step in self.steps)

    @property
    def dropped(self) -> int:
        """How many ends of links are dropped."""
        return sum(len(step.links) for step in self.steps)


@dataclass(frozen=True, slots=True)
class DreamReport:
    """What was planned, the operation that did it (``None``: nothing was done), and the diary's path in the vault.

    ``left`` are steps that were not done, each with the reason. ``is_first``: a home's first dream, which only plans.
    """

    plan: DreamPlan
    operation: str | None = None
    diary: str | None = None
    left: tuple[tuple[Step, str], ...] = ()
    is_first: bool = False
