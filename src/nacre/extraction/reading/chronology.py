"""Puts the turns of a session in the order in which they were said."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from nacre.values.session import Turn

_BACK = timedelta(minutes=1)
"""Clocks and tools that write side by side step back by less within a stretch of talk."""


def in_time(turns: Sequence[Turn]) -> list[Turn]:
    """Turns with each stretch of talk where its time says.

    A session of several files, of which the later one is read first, is stored in the order in which it was read.
    """
    stretches: list[tuple[datetime, list[Turn]]] = []
    latest = datetime.min.replace(tzinfo=UTC)
    for turn in turns:
        time = turn.time or latest
        if not stretches or time + _BACK < latest:
            stretches.append((time, []))
            latest = time
        stretches[-1][1].append(turn)
        latest = max(latest, time)
    return [turn for _, stretch in sorted(stretches, key=lambda one: one[0]) for turn in stretch]
