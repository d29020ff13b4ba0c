"""Once a day known memories are held against what was said later, in whatever session: does each still hold?

Beside a session stand a few of the memories that it touches, and a reader overlooks some of these. Here each memory has
its own evidence, found by its own words. What a writer finds ends and changes nothing: it waits in review, and the
memory is told with it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

from nacre.extraction.amending import doubt
from nacre.extraction.by_model.later import MOST_MEMORIES, Doubt, Held, Saying
from nacre.extraction.by_model.prompts import room_for
from nacre.extraction.coverage import is_agreed, is_quiet, may_be_shown
from nacre.extraction.known import touched
from nacre.extraction.reading.speech import is_content
from nacre.home.home import Home
from nacre.retrieval.recall import search_sessions
from nacre.text.excerpt import excerpt
from nacre.text.passages import count_tokens, words
from nacre.values.filters import SessionFilter
from nacre.values.memory import Kind, Memory
from nacre.values.model_calls import Capabilities
from nacre.values.recall import Filter, Mode, RecallQuery
from nacre.values.session import Speaker, Trust, Turn

_LOOKED, _LAST_DAY = "looked later", "looked later on"
_A_DAY = timedelta(days=1)
_NEVER = datetime.min.replace(tzinfo=UTC)
_LATEST = 50
"""Sessions of a project among which those that go on are looked for."""

_WHO = (Speaker.OWNER, Speaker.AGENT)
_LOOKED_AT = 60
_BESIDE = 25
"""Tokens beside each text: its number, its day, its speaker."""

_ASKED, _SAYINGS, _CHARACTERS = 1_000, 12, 500


def due(home: Home, writer: str, able: Capabilities) -> list[Held]:
    """The next memories to hold against what was said since they were said, or were held last: of projects with
    sessions a day later, as many as have room in a window. Among them are some about which nothing was said: there is
    nothing to ask of them.
    """
    looked = _looked(home)
    active = [one for one in home.memories.everything() if one.is_active]
    last = {project: _over_until(home, project) for project in {one.project for one in active} if project}
    later = (one for one in active if _since(one, looked) + _A_DAY < last.get(one.project or "", _NEVER))
    waiting = _holdable(home, later, writer)
    found: list[Held] = []
    room = room_for(able, able.output)
    for memory in sorted(waiting, key=lambda one: (looked.get(one.id, ""), one.last_said, one.id))[:_LOOKED_AT]:
        until = last[memory.project or ""]
        said = _said_between(home, memory, _since(memory, looked), until, writer)
        room -= count_tokens("\n".join([memory.content, *(one.text for one in said)])) + _BESIDE * (1 + len(said))
        if room < 0 and found:
            break
        found.append(Held(memory, said, until.isoformat()))
        if sum(bool(one.sayings) for one in found) >= MOST_MEMORIES:
            break
    return found


def touched_by(home: Home, held: Sequence[Held], found: Sequence[Doubt], writer: str) -> list[Held]:
    """The memories nearest to what no longer holds of others, each beside what showed that."""
    seen = {one.memory.id for one in held}
    near: list[Held] = []
    for project in dict.fromkeys(one.memory.project for one in found):
        own = [one for one in found if one.memory.project == project]
        said = sorted({saying for one in own for saying in one.shown}, key=lambda one: one.at)
        others = (one for one in touched(home, project, writer, [one.clause for one in own]) if one.id not in seen)
        for memory in _holdable(home, (one for one in others if one.project == project), writer):
            later = tuple(one for one in said if one.at > memory.last_said)
            near += [Held(memory, later)] if later else []
    return near


def _holdable(home: Home, memories: Iterable[Memory], writer: str) -> list[Memory]:
    """Those that somebody answers for and that are in no doubt yet, where a writer may be shown them. What happened
    stays true.
    """
    doubted = home.memories.stale()
    return [
        one for one in memories
        if one.is_vouched and one.kind is not Kind.EVENT and one.id not in doubted and may_be_shown(home, one, writer)
    ]  # fmt: skip


def days_to_look(home: Home, days: Collection[date]) -> list[date]:
    """Those of some days with sessions for which no memories were held against what was said later yet."""
    last = home.usage.value(_LAST_DAY)
    return sorted(day for day in days if day.isoformat() != last)


def note(home: Home, day: date, held: Sequence[Held], found: Sequence[Doubt]) -> int:
    """Have doubts wait in review, and what was held not be held again until more is said; returns how many there are
    now.
    """
    with home.vault_lock, home.database.transaction():
        count = sum(doubt(home, one.memory, one.why, [said.session for said in one.shown]) for one in found)
        looked = {**_looked(home), **{one.memory.id: one.until for one in held}}
        home.usage.set_value(_LOOKED, json.dumps({one: at for one, at in looked.items() if home.memories.find(one)}))
        home.usage.set_value(_LAST_DAY, day.isoformat())
    return count


def _since(memory: Memory, looked: Mapping[str, str]) -> datetime:
    """From when on what is said is new to a memory."""
    at = looked.get(memory.id)
    return max(memory.last_said, datetime.fromisoformat(at)) if at else memory.last_said


def _over_until(home: Home, project: str) -> datetime:
    """When the last session of a project ended, or the first one began that goes on: what is said in that has its turn
    when it is over.
    """
    newest = home.sessions.newest(SessionFilter(project=project), limit=_LATEST)
    over = [one.ended for one in newest if one.ended and is_quiet(home, one)]
    begun = [one.session.started or one.ended for one in newest if not is_quiet(home, one)]
    return min([max(over, default=_NEVER), *(one for one in begun if one)])


def _looked(home: Home) -> Mapping[str, str]:
    """Until when each memory was held against what was said, by id."""
    return dict(json.loads(home.usage.value(_LOOKED) or "{}"))


def _said_between(
    home: Home, memory: Memory, since: datetime, until: datetime, writer: str
) -> tuple[Saying, ...]:  # fmt: skip
    """The turns between two times that have most of a memory's words, in the order of time: of sessions that a writer
    may be shown, and that are not the memory's own, which was read to its end when it was written.
    """
    wanted = Filter(projects=(memory.project or "",), strict=True, since=since)
    text = memory.content[:_ASKED]
    asked = RecallQuery(text, filter=wanted, mode=Mode.LEXICAL, limit=_LOOKED_AT, update=False, boost=False)

    def is_later(turn: Turn) -> bool:
        is_said = turn.speaker in _WHO and turn.trust is Trust.TRUSTED and is_content(turn)
        return is_said and turn.time is not None and since < turn.time <= until

    terms = words(memory.content)
    hits = search_sessions(home, asked, admits=is_later, exact=False).turns
    own = {memory.source.session, *(one.session for one in memory.confirmed)}
    shown = {one for one in {hit.session.id for hit in hits} - own if _may_be_read(home, one, writer)}
    found = [
        Saying(hit.turn.time or since, hit.turn.speaker, excerpt(hit.turn.text, terms, _CHARACTERS), hit.session.id)
        for hit in hits if hit.session.id in shown
    ]  # fmt: skip
    return tuple(sorted(found[:_SAYINGS], key=lambda one: one.at))


def _may_be_read(home: Home, session: str, writer: str) -> bool:
    """Whether all of a session may be shown to a writer, and it is over."""
    found = home.sessions.find(session)
    return bool(found) and all(is_agreed(home.settings, one, writer) and is_quiet(home, one) for one in found)
