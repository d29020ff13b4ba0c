"""The digest: what is open, and what was decided and learned in the last days, in 8,000 bytes at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from nacre.context.draft import Draft
from nacre.context.frame import line_of
from nacre.context.requests import DAYS, DigestRequest
from nacre.home.home import Home
from nacre.home.location import with_dependencies
from nacre.memories.scan import catch_up
from nacre.text.passages import harmless, one_line, shorten
from nacre.values.context import Part
from nacre.values.handoff import BY_RULES, HANDED_FOR
from nacre.values.memory import Kind, Memory
from nacre.values.recall import Filter
from nacre.views import Digest

MOST_BYTES = 8_000
_OPEN_THREADS = "Open threads:"
_LINE_CHARACTERS = 320
_MOST = 200
_RESERVED_BYTES = 60
"""For the last line, which says how much more there is."""

_LEARNED = tuple(kind for kind in Kind if kind not in (Kind.TODO, Kind.DECISION))


def digest(home: Home, asked: DigestRequest) -> Digest:
    """Open todos, the oldest first, open threads of handoffs that wait, decisions, and what else was learned.

    Only what somebody answers for and what holds. A section takes half of the room that is left at most, and leaves the
    rest to those below it.
    """
    catch_up(home)
    since = home.now() - timedelta(days=asked.days)
    wanted = Filter((asked.project,) if asked.project else (), trusted=True, settled=True)
    wanted = with_dependencies(home, wanted)
    todos, decisions, learned = _gathered(home, wanted, since)
    threads = tuple(_threads(home, asked.project)) if asked.project else ()
    sections = (
        ("Open, the oldest first", [line_of(one, _LINE_CHARACTERS) for one in todos]),
        ("Left open by the last session", [f"- {one}" for one in threads]),
        (f"Decided in the last {asked.days} days", [line_of(one, _LINE_CHARACTERS) for one in decisions]),
        (f"Learned in the last {asked.days} days", [line_of(one, _LINE_CHARACTERS) for one in learned]),
    )
    text, left = _told(sections)
    return Digest(since, tuple(todos), threads, tuple(decisions), tuple(learned), text, left)


def tell_digest(draft: Draft) -> None:
    """Tell the last seven days, as far as there is room; whatever asks for this part has nothing of it told twice."""
    since = draft.home.clock() - timedelta(days=DAYS)
    todos, decisions, learned = _gathered(draft.home, draft.filter(), since)
    for why, memories in (("an open todo", todos), ("decided lately", decisions), ("learned lately", learned)):
        for memory in memories:
            draft.tell(Part.DIGEST, memory, memory.importance / 10, why)


def _gathered(home: Home, wanted: Filter, since: datetime) -> tuple[list[Memory], list[Memory], list[Memory]]:
    """Open todos, the oldest first, and what was decided and learned since then, the latest first."""
    todos = _latest(home, replace(wanted, kinds=(Kind.TODO,)))
    decisions = _latest(home, replace(wanted, kinds=(Kind.DECISION,)), since)
    learned = _latest(home, replace(wanted, kinds=_LEARNED), since)
    return sorted(todos, key=_promised), decisions, learned


def _latest(home: Home, wanted: Filter, since: datetime | None = None) -> list[Memory]:
    """What changed last, first: since then, where that is asked for."""
    rows = home.selection.latest_memories(wanted, limit=_MOST, today=home.now().date())
    found = home.memories.by_rows(rows)
    held = (found[row] for row in rows if row in found)
    return [one for one in held if since is None or one.updated >= since]


def _promised(todo: Memory) -> tuple[datetime, str]:
    return todo.created, todo.id


def _threads(home: Home, project: str) -> Iterator[str]:
    """What the last handoff that waits and that a writer wrote calls open."""
    written = (one for one in home.handoffs.waiting(project) if one.by != BY_RULES)
    last = next((one for one in written if home.now() - one.written <= HANDED_FOR), None)
    lines = last.content.splitlines() if last else []
    if _OPEN_THREADS in lines:
        for line in lines[lines.index(_OPEN_THREADS) + 1 :]:
            if not line.startswith("- "):
                return
            yield one_line(harmless(shorten(home.redactor.clean(line[2:]), _LINE_CHARACTERS)))


def _told(sections: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, int]:
    """The sections that say something, and how many lines were left out."""
    room, left, told = MOST_BYTES - _RESERVED_BYTES, 0, []
    full = [one for one in sections if one[1]]
    for number, (title, lines) in enumerate(full, 1):
        share = room if number == len(full) else room // 2
        kept: list[str] = [f"## {title}"]
        for line in lines:
            if _size([*kept, line]) > share:
                break
            kept.append(line)
        left += len(lines) - (len(kept) - 1)
        if len(kept) > 1:
            told.append("\n".join(kept))
            room -= _size(kept) + 1
    more = [f"({left:,} more: nacre list)"] if left else []
    return "\n\n".join([*told, *more]), left


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)
