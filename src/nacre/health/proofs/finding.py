"""What a proof finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nacre.errors import NacreError, StoreUnusable
from nacre.home.home import Home
from nacre.text.passages import shorten

WARNING, FAILURE = "warning", "failure"
REBUILD = "nacre db rebuild; the vault has every memory"

Mend = Callable[[Home], object]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be: how bad it is, a sentence, the command that repairs it.

    ``mend`` does what ``repair`` says, where that cannot lose anything.
    """

    severity: str
    sentence: str
    repair: str
    mend: Mend | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """One part of the home: what was looked at, in words, and what was found."""

    area: str
    looked: str
    findings: list[Finding] = field(default_factory=list)


def told_of(error: Exception) -> NacreError:
    """An error as it is told where rows are read that may be damaged."""
    if isinstance(error, NacreError):
        return error
    told = f"{type(error).__name__}{f': {error}' if str(error) else ''}"
    return StoreUnusable(f"the database holds what cannot be read ({shorten(told, 200)})", hint=REBUILD)


def deep_repair() -> str:
    """The command that mends what can be mended without a question."""
    return "nacre doctor --deep --repair"
