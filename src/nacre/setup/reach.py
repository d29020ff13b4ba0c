"""What is in reach of a home, in numbers: what is remembered, what waits, and what a writer would take."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.home.home import Home
from nacre.setup.foreseeing import Foreseen, foreseen
from nacre.setup.found_writers import FoundWriter, best_writer, found_writers
from nacre.setup.writer import WriterStatus, status
from nacre.text.passages import shorten

_LIKELIEST = 2
_SHOWN = 90
"""Of so many candidates so many characters are told."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Memories that hold, how many a later one ``replaced``, candidates that wait for the owner with the ``likeliest``
    of them, and what can be searched.

    Where nobody writes, ``found`` is the best one on this machine that could, and ``foreseen`` what it would take.
    """

    memories: int
    replaced: int
    candidates: int
    likeliest: tuple[str, ...]
    sessions: int
    turns: int
    writer: WriterStatus
    found: FoundWriter | None = None
    foreseen: Foreseen | None = None


def reach(home: Home) -> Reach:
    """What is in reach of a home."""
    counts, sessions, writer = home.memories.counts(), home.sessions.counts(), status(home)
    found = best_writer(found_writers(home.settings)) if writer.state == "off" else None
    return Reach(
        sum(counts.values()) - counts["superseded"] - counts["retired"], counts["superseded"],
        home.candidates.count(),
        tuple(shorten(" ".join(one.memory.content.split()), _SHOWN) for one in home.candidates.waiting()[:_LIKELIEST]),
        sum(int(row[1]) for row in sessions), sum(int(row[2] or 0) for row in sessions), writer, found,
        foreseen(home) if found else None,
    )  # fmt: skip
