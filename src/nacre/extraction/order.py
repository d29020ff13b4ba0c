"""In which order sessions are read that wait, and where in each of them reading goes on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from nacre.values.session import Speaker, StoredTurn, Turn, Unlearned

BLOCK = 24
"""So many sessions, the latest that wait, are read in the order in which they were held, before any older ones."""


def latest_first(waiting: Sequence[Unlearned]) -> list[Sequence[Unlearned]]:
    """Blocks of sessions, those held last first: a writer may take only so much a day. Within a block they go in the
    order of time, so that what a later session changes or ends is known when it is read.
    """
    return [waiting[max(0, end - BLOCK) : end] for end in range(len(waiting), 0, -BLOCK)]


def each_of(blocks: Sequence[Sequence[Unlearned]]) -> Iterator[tuple[Unlearned, Sequence[Unlearned]]]:
    """Each session, with those that follow it in its block."""
    return ((one, block[at + 1 :]) for block in blocks for at, one in enumerate(block))


def placed(one: Unlearned, turns: Sequence[StoredTurn]) -> Unlearned:
    """The same, counted by places among a session's turns: where a file took some back, numbers are missing."""
    numbers = [item.seq for item in turns]
    begin, end = bisect_left(numbers, one.begin), bisect_left(numbers, one.end)
    return one._replace(
        begin=begin, end=end, unwritten=None if one.unwritten is None else bisect_left(numbers, one.unwritten)
    )


def last_of_owner(turns: Sequence[Turn]) -> int:
    """The place of the owner's last turn; -1 without one."""
    return max((at for at, turn in enumerate(turns) if turn.speaker is Speaker.OWNER and turn.text.strip()), default=-1)
