"""Puts the turns of a session in the order in which they were said."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from nacre.values.session import Turn

_NEVER = datetime.min.replace(tzinfo=UTC)


def in_time(turns: Sequence[Turn]) -> list[Turn]:
    """Turns by their times; one without a time stays behind the one before it.

    A session of several files, of which the later one is read first, is stored in the order in which it was read.
    """
    times: list[datetime] = []
    for turn in turns:
        times.append(turn.time or (times[-1] if times else _NEVER))
    return [turns[at] for at in sorted(range(len(turns)), key=lambda at: times[at])]
