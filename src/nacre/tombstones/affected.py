"""What tombstones concern, of what is there now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nacre.dedup.supersession import OUTLIVED, outlived
from nacre.home.home import Home
from nacre.storage.turn_rows import shared_identity
from nacre.tombstones.tombstones import Barred
from nacre.values.forgetting import SessionPlace, TurnPlace
from nacre.values.handoff import Handoff
from nacre.values.memory import Memory


@dataclass(frozen=True, slots=True)
class Affected:
    """What tombstones concern, of what is there now.

    ``sessions`` go whole. ``turns`` maps sessions that stay to those of their turns that go. ``memories`` go; those in
    ``changed`` are written anew, ``retired`` among them because what superseded them goes. ``untitled`` are sessions
    whose title goes, ``handoffs`` what is handed over of what goes.
    """

    sessions: tuple[SessionPlace, ...]
    turns: Mapping[SessionPlace, Sequence[int]]
    memories: tuple[Memory, ...]
    changed: tuple[Memory, ...]
    untitled: tuple[SessionPlace, ...]
    handoffs: tuple[Handoff, ...]

    @property
    def retired(self) -> list[Memory]:
        """What would come back with nothing in its place."""
        return [memory for memory in self.changed if memory.retired and memory.retired.reason == OUTLIVED]


def survey(home: Home, barred: Barred) -> Affected:
    """What of this home tombstones concern. Nothing is changed."""
    sessions = home.erasing.sessions()
    gone = [one for one in sessions if barred.has_session(one.id, _parent(one))]
    whole = {one.row for one in gone}
    by_row = {one.row: one for one in sessions}
    turns: dict[int, set[int]] = {}
    for row, session in _turns_barred(home, barred, by_row):
        if session not in whole:
            turns.setdefault(session, set()).add(row)
    emptied = [by_row[row] for row, found in turns.items() if len(found) >= by_row[row].turns]
    memories, changed = _memories_barred(home, barred)
    now = home.now()
    touched = (*gone, *map(by_row.__getitem__, turns))
    return Affected(
        sessions=(*gone, *emptied),
        turns={by_row[row]: sorted(found) for row, found in turns.items() if by_row[row] not in emptied},
        memories=tuple(memories),
        changed=tuple(outlived(home, memories, {memory.id: memory for memory in changed}, now)),
        untitled=tuple(one for one in sessions if one.row not in whole and one.title and barred.has_words(one.title)),
        handoffs=handed_over(home, touched, barred),
    )


def handed_over(home: Home, sessions: Sequence[SessionPlace], barred: Barred) -> tuple[Handoff, ...]:
    """What is handed over of some sessions, and of what is barred.

    A file that does not say its session any more may be of any of its project's.
    """
    ids, projects = {one.id for one in sessions}, {one.project for one in sessions}
    return (
        *(one for one in home.handoffs.everything() if one.session in ids or _is_barred(one, barred)),
        *(one for one in home.handoffs.damaged() if one.project in projects or _is_barred(one, barred)),
    )


def _is_barred(handoff: Handoff, barred: Barred) -> bool:
    """Whether a handoff is forgotten, though its session may not be in the index any more."""
    return (
        barred.has_session(handoff.session)
        or barred.has_words(handoff.content)
        or barred.is_before(handoff.written, handoff.project, handoff.session)
    )


def _parent(session: SessionPlace) -> str | None:
    return f"{session.tool}:{session.parent}" if session.kind == "subagent" and session.parent else None


def _turns_barred(home: Home, barred: Barred, sessions: Mapping[int, SessionPlace]) -> Iterable[tuple[int, int]]:
    if barred.turns:
        for place in home.erasing.turn_places():
            if barred.has_turn(f"{place.tool}:{place.session_id}", place.id, is_shared=is_shared(place)):
                yield place.row, place.session
    slugs = {one.project for one in sessions.values() if one.project}
    for moment, scope in barred.before:
        for row, session in home.erasing.turns_before(moment, barred.projects(scope, sorted(slugs))):
            if sessions[session].id not in barred.allowed:
                yield row, session


def _memories_barred(home: Home, barred: Barred) -> tuple[list[Memory], list[Memory]]:
    gone, changed = [], []
    ids = sorted(home.memories.all_ids())
    for start in range(0, len(ids), 500):
        for memory in home.memories.in_any_state(ids[start : start + 500]):
            left = barred.left_of(memory)
            if left is None:
                gone.append(memory)
            elif left != memory:
                changed.append(left)
    return gone, changed


def is_shared(place: TurnPlace) -> bool:
    """Whether a turn's id means the same turn in any session of its tool."""
    return place.identity == shared_identity(place.tool, place.id)
