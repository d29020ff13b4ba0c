"""Whether memory helps, as far as the sessions that were held out can tell."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from nacre.context.hold_out import SHARE, drawn, note_share
from nacre.home.home import Home
from nacre.platform.ids import from_ms, to_ms
from nacre.usefulness.interval import Counts, are_enough, interval, needed_at, rate
from nacre.usefulness.sessions import Counted, count_sessions
from nacre.usefulness.values import Aspect, Comparison, Finding, Usefulness

_SEED = 20_26
"""Asked twice, the same is answered."""


def usefulness(home: Home) -> Usefulness:
    """Compare the sessions that were held out with those that were told something."""
    now = to_ms(home.clock()) or 0
    if not home.database.unwritable:
        note_share(home.settings, now)
    draw, share = drawn(home.settings.home), home.settings.number(SHARE)
    used = [(since, one) for since, one in draw.shares if one > 0]
    if not used:
        return Usefulness(share)
    compared = used[-1][1]
    found = list(count_sessions(home, draw, compared))
    sessions = [one for one in found if one]
    since = from_ms(next(since for since, one in used if one == compared))
    held_out = sum(one.is_held_out for one in sessions)
    return Usefulness(
        share, compared, since, len(sessions) - held_out, held_out, len(found) - len(sessions), needed_at(compared),
        compare(sessions, Random(_SEED)),  # noqa: S311 - the same each time
    )  # fmt: skip


def compare(sessions: Sequence[Counted], random: Random) -> tuple[Comparison, ...]:
    """Compare those held out with the others, in each aspect."""
    return tuple(_compared(aspect, sessions, random) for aspect in Aspect)


def _compared(aspect: Aspect, sessions: Sequence[Counted], random: Random) -> Comparison:
    told, held_out = (
        [one.counts[aspect] for one in sessions if one.is_held_out is group and one.counts[aspect][1]]
        for group in (False, True)
    )
    if not are_enough(told, held_out):
        return Comparison(aspect, Finding.TOO_FEW, len(told), len(held_out))
    return _measured(aspect, told, held_out, random)


def _measured(aspect: Aspect, told: Counts, held_out: Counts, random: Random) -> Comparison:
    with_memory, without = rate(told), rate(held_out)
    low, high = interval(told, held_out, random)
    finding = Finding.LESS_WITH_MEMORY if low > 0 else Finding.MORE_WITH_MEMORY if high < 0 else Finding.UNCLEAR
    return Comparison(
        aspect, finding, len(told), len(held_out), with_memory, without, without - with_memory, low, high
    )  # fmt: skip
