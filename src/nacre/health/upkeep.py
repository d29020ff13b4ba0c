"""How memories age: when they were last used, which todos and which kinds lie idle, what a dream would end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from nacre.dream import rules
from nacre.dream.brought_back import may_end
from nacre.dream.plan import usage_of
from nacre.dream.values import DreamAction, Step
from nacre.home.home import Home
from nacre.platform.days import shown_day
from nacre.storage.usage import Idle
from nacre.text.passages import shorten
from nacre.values.memory import Kind
from nacre.values.reports import OK, WARNING, Check

_SPANS = ((7, "within a week"), (31, "within a month"), (92, "within a quarter"), (183, "within half a year"))
_LONGER = "longer ago"

_STALE_TODO = timedelta(days=30)
"""From then on an open todo is stale that nobody says again or asks for (seed facts 1.11)."""

IDLE_DAYS = {
    Kind.FACT: (180, 365), Kind.RELATIONSHIP: (365, 730), Kind.PREFERENCE: (365, 730), Kind.DECISION: (90, 180),
    Kind.LESSON: (60, 120), Kind.EVENT: (30, 90),
}  # fmt: skip
"""Days for which memories of a kind count as used lately, and from which on they count as unused.

Those of agent-knowledge (seed facts 2.6): facts are its projects, relationships and preferences its people, lessons its
workflows, events its notes. Todos are stale sooner.
"""

_MANY_ENDING = 50
_MANY_ACTIVE = 10_000
_MOST_NAMED = 3
_SUBJECT = 40
_ID_SHOWN = 8


def upkeep(home: Home) -> Iterator[Check]:
    """How memories age; nothing where there is nothing to say. Call it when usage is folded."""
    now = home.now()
    idle = home.usage.idle(now)
    yield from _recency(idle)
    yield from _stale_todos(home.usage.idle_todos(now - _STALE_TODO))
    yield from _unused(idle)
    near = home.memories.in_any_state(home.usage.may_end(now, rules.bounds(home.settings)))
    ending = rules.ending(may_end(home, near), usage_of(home, near), now, home.settings) if near else []
    yield from _dream(home, ending, sum(one.count for one in idle))


def _recency(idle: Sequence[Idle]) -> Iterator[Check]:
    spans: Counter[str] = Counter()
    for one in idle:
        spans[_span(one.begun)] += one.count
    told = [f"{spans[name]:,} {name}" for name in (*(name for _, name in _SPANS), _LONGER) if spans[name]]
    if any(name != _SPANS[0][1] for name in spans):
        yield Check("recency", OK, f"last said or recalled: {', '.join(told)}")


def _span(days: int) -> str:
    return next((name for most, name in _SPANS if days <= most), _LONGER)


def _stale_todos(stale: Sequence[tuple[str, str, datetime]]) -> Iterator[Check]:
    if stale:
        named = "; ".join(
            f"{shorten(subject, _SUBJECT)} ({memory[-_ID_SHOWN:]}, {shown_day(last)})"
            for memory, subject, last in stale[:_MOST_NAMED]
        )
        more = f"; and {len(stale) - _MOST_NAMED:,} more" if len(stale) > _MOST_NAMED else ""
        told = f"{len(stale):,} open, neither said nor recalled for {_STALE_TODO.days} days: {named}{more}"
        yield Check("todos", WARNING, told, f"nacre retire {stale[0][0][-_ID_SHOWN:]}, if it is done or dropped")


def _unused(idle: Sequence[Idle]) -> Iterator[Check]:
    told, lately = [], 0
    for kind, (recent, since) in IDLE_DAYS.items():
        of_kind = [one for one in idle if one.kind is kind]
        lately += sum(one.count for one in of_kind if one.days < recent)
        every = sum(one.count for one in of_kind)
        if unused := sum(one.count for one in of_kind if one.days >= since):
            told.append(f"{unused:,} of {every:,} {kind}{'' if every == 1 else 's'} ({since} days)")
    if told:
        yield Check("unused", OK, f"neither said nor recalled for long: {', '.join(told)}; used lately: {lately:,}")


def _dream(home: Home, ending: Sequence[Step], active: int) -> Iterator[Check]:
    """What a dream would end, and a hint to have one where that is much and no daemon has it at night.

    Much is what the seed runs by itself for (seed facts 1.4), but for the size of the database: here sessions fill it.
    """
    if not ending:
        return
    over = sum(one.action is DreamAction.EXPIRE for one in ending)
    parts = {"over": over, "never asked for": len(ending) - over}
    told = " and ".join(f"{number:,} {name}" for name, number in parts.items() if number)
    if home.settings.flag("dream.at_night"):
        yield Check("dream", OK, f"{told}: the daemon's dreams end them, some a night")
    elif len(ending) > _MANY_ENDING or active > _MANY_ACTIVE:
        ready = f"{len(ending):,} {'memory is' if len(ending) == 1 else 'memories are'} ready to be tidied: {told}"
        yield Check("dream", WARNING, ready, "nacre dream shows them and asks; nothing is deleted")
    else:
        yield Check("dream", OK, f"{told}: nacre dream --dry-run shows them")
