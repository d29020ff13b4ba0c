"""What a session starts with: the owner's pages, the end of the session before, what was learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from nacre.context.categories import KNOWN_SHARE, Candidate, choose, is_for_every_session, part_of, weight_of, worthiest
from nacre.context.draft import ABOVE, OVER_BUDGET, Draft
from nacre.context.frame import quoted, said, title_tokens
from nacre.context.gate import is_trivial
from nacre.context.handoff import delivery
from nacre.context.told import TURN_CHARACTERS, told_of
from nacre.errors import VaultUnusable
from nacre.extraction.reading import chronology
from nacre.home import projects
from nacre.hosts import marked
from nacre.platform.days import shown_day
from nacre.platform.ids import first_id, to_ms
from nacre.retrieval.memories import Ranking
from nacre.retrieval.ranking import doubts, engine_of
from nacre.text.passages import count_tokens, shorten
from nacre.values import filters
from nacre.values.context import ContextItem, Part
from nacre.values.memory import Expiry, Kind, Memory
from nacre.values.session import Flag, SessionKind, Speaker, Trust, Turn
from nacre.vault.layout import OWN_PAGES

if TYPE_CHECKING:
    from nacre.values.session import StoredSession

STALE_DAYS = 30
"""A session of another month is past."""

_DIGEST_DAYS = 7
_DIGEST = {
    (Kind.TODO,): "an open todo",
    (Kind.DECISION,): "decided lately",
    tuple(kind for kind in Kind if kind not in (Kind.TODO, Kind.DECISION)): "learned lately",
}
_SEED_TURNS = 7
_SESSIONS_LOOKED_AT = 5
_TURNS_LOOKED_AT = 80
_BROWSED = 100
_LATEST = 200
_ALONE_SHARE = 4
"""A hook that looks by itself weighs so many times fewer: more than fit, and within its time."""
_PAGE_CHARACTERS = 8_000
_PROFILE = "profile.md"
_MARK = "nacre:start"
"""Where a text does not hold it, dreams wrote nothing there."""

_UNSAID = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN | Flag.COMMAND


def tell_pages(draft: Draft) -> None:
    """The owner's pages, and the project's."""
    _page(draft, Part.IDENTITY, *sorted(OWN_PAGES, reverse=True))
    _page(draft, Part.PROFILE, _PROFILE)
    if draft.project and draft.wants(Part.PROJECT):
        text = projects.page_text(draft.home, draft.project, own=True)[:_PAGE_CHARACTERS]
        draft.add_page(Part.PROJECT, quoted(text), "the project's page")


def tell_previous(draft: Draft) -> str:
    """Tell where the session before stopped, in this project: its last exchange. Returns what its last turns say."""
    found = _session_before(draft)
    if found is None:
        return ""
    session, turns = found
    if draft.wants(Part.PREVIOUS):
        age = draft.home.clock() - session.ended if session.ended else timedelta()
        if age > timedelta(days=STALE_DAYS):
            draft.leave(Part.PREVIOUS, session.session.id, f"ended {age.days} days ago")
        else:
            _tell_turns(draft, session, _not_handed_over(draft, session, _last_exchange(turns)))
    return " ".join(shorten(turn.text, TURN_CHARACTERS) for turn in turns)


def tell_learned(draft: Draft) -> None:
    """Core, active, preferences, lessons and recent, each within its share of what is left, and what is known.

    A session that is gone on with is told no more of it than what is new.
    """
    now = draft.home.clock()
    found = engine_of(draft.home).browse(_rows(draft), Ranking(now))
    outdated = dict(doubts(draft.home, found))
    candidates: list[Candidate] = []
    for item in found:
        part = part_of(item.memory, now)
        if part is None or not draft.wants(part):
            continue
        reason = draft.reason_against(item.memory) or ("likely to be outdated" if item.memory.id in outdated else "")
        if not (reason or part is Part.CORE or is_for_every_session(item.memory)):
            reason = "it concerns a part of the work alone"
        if not reason and draft.has_begun and not _is_new(item.memory, draft.state.started):
            reason = "it was there when the session began"
        if reason:
            draft.leave(part, item.memory.id, reason, item.memory.subject)
            continue
        score = draft.ranked(item.memory, weight_of(item.memory, now) if part is Part.KNOWN else item.score)
        candidates.append(Candidate(item.memory, part, count_tokens(draft.line(item.memory) + "\n"), score))
    titles = sum(map(title_tokens, {item.part for item in candidates}))
    older = 1.0 if draft.request.parts == (Part.KNOWN,) else KNOWN_SHARE
    chosen = choose(candidates, max(0, draft.left_tokens - titles), older_share=older)
    most = draft.home.settings.whole("context.most_memories")
    before = sum(item.part is Part.RELEVANT for item in draft.items)
    told = worthiest(chosen.kept, max(0, most - before) if most else None)
    for one in chosen.kept:
        if one in told:
            draft.tell(one.part, one.memory, one.score, _REASONS[one.part](one))
        else:
            limit = f"a session starts with {most} memories at most"
            draft.leave(one.part, one.memory.id, limit, one.memory.subject)
    for one in chosen.left:
        draft.leave(one.part, one.memory.id, OVER_BUDGET, one.memory.subject)


def tell_digest(draft: Draft) -> None:
    """Tell open todos, the oldest first, and what was decided and learned in the last seven days, the latest first."""
    home, wanted = draft.home, draft.filter()
    since = home.clock() - timedelta(days=_DIGEST_DAYS)
    for kinds, why in _DIGEST.items():
        rows = home.selection.latest_memories(replace(wanted, kinds=kinds), limit=_LATEST, today=home.today())
        found = home.memories.by_rows(rows)
        memories = [found[row] for row in rows if row in found]
        if kinds == (Kind.TODO,):
            memories.sort(key=lambda todo: (todo.created, todo.id))
        for memory in memories:
            if kinds == (Kind.TODO,) or memory.updated >= since:
                draft.tell(Part.DIGEST, memory, memory.importance / 10, why)


def _is_new(memory: Memory, since_ms: int) -> bool:
    """Whether a memory was stored or changed since a time."""
    return memory.id >= first_id(since_ms) or (to_ms(memory.updated) or 0) > since_ms


def _page(draft: Draft, part: Part, *paths: str) -> None:
    if not draft.wants(part):
        return
    for path in paths:
        try:
            text = draft.home.vault.read(path).decode("utf-8", errors="replace")
        except (OSError, VaultUnusable):
            continue
        own = marked.drop_blocks(text) if _MARK in text else text
        clean = draft.home.redactor.clean(own[:_PAGE_CHARACTERS])
        draft.add_page(part, quoted(clean), f"{path} in the vault")
        return


def _session_before(draft: Draft) -> tuple[StoredSession, list[Turn]] | None:
    """The newest other session of this project in which more was said than hello, and how it ended."""
    if not draft.project:
        return None

    sessions = draft.home.sessions
    wanted = filters.SessionFilter(project=draft.project, kind=SessionKind.MAIN)
    for stored in sessions.newest(wanted, limit=_SESSIONS_LOOKED_AT):
        if stored.session.id == draft.request.session:
            continue
        last = chronology.in_time([one.turn for one in sessions.last_turns(stored.row, _TURNS_LOOKED_AT)])
        turns = [turn for turn in _conclusions(list(filter(_is_talk, last))) if turn.trust is Trust.TRUSTED]
        if any(turn.speaker is Speaker.OWNER and not is_trivial(turn.text) for turn in turns):
            return stored, turns[-_SEED_TURNS:]
    return None


def _conclusions(turns: Sequence[Turn]) -> list[Turn]:
    """What the owner said, and what the agent said last each time: on the way there it only says what it does next."""
    return [
        turn for at, turn in enumerate(turns)
        if turn.speaker is Speaker.OWNER or all(one.speaker is Speaker.OWNER for one in turns[at + 1 : at + 2])
    ]  # fmt: skip


def _last_exchange(turns: Sequence[Turn]) -> list[Turn]:
    """The owner's last turn that says something, and what the agent said last after it."""
    asked = [at for at, turn in enumerate(turns) if turn.speaker is Speaker.OWNER and not is_trivial(turn.text)]
    if not asked:
        return list(turns[-1:])
    answers = [turn for turn in turns[asked[-1] + 1 :] if turn.speaker is Speaker.AGENT]
    return [turns[asked[-1]], *answers[-1:]]


def _is_talk(turn: Turn) -> bool:
    is_plain = bool(turn.text.strip()) and not turn.flags & _UNSAID
    return is_plain and turn.speaker in (Speaker.OWNER, Speaker.AGENT)


def _not_handed_over(draft: Draft, session: StoredSession, turns: Sequence[Turn]) -> list[Turn]:
    """The turns of which what the session handed over, if that is told here, does not tell."""
    mine = [one for one in draft.home.handoffs.waiting(draft.project or "") if one.session == session.session.id]
    known = {turn for one in mine if draft.has_told(one.id) for turn in delivery.covered(one, turns)}
    for turn in turns:
        if turn.id in known:
            draft.leave(Part.PREVIOUS, f"{session.session.id}#{turn.id}", ABOVE)
    return [turn for turn in turns if turn.id not in known]


def _tell_turns(draft: Draft, session: StoredSession, turns: Sequence[Turn]) -> None:
    """As many of the last turns as there is room for, in their order."""
    room = draft.room(Part.PREVIOUS)
    kept: list[tuple[ContextItem, str]] = []
    for turn in reversed(turns):
        text = told_of(draft.home, session.row, turn)
        if not text:
            continue
        line = said(turn.speaker.value, text, TURN_CHARACTERS, turn.time or session.ended)
        room -= count_tokens(line + "\n")
        ref = f"{session.session.id}#{turn.id}"
        if room < 0:
            draft.leave(Part.PREVIOUS, ref, OVER_BUDGET)
            continue
        why = f"the end of {session.session.id}"
        item = ContextItem(Part.PREVIOUS, line, count_tokens(line), ref, turn.time, why=why)
        kept.append((item, shorten(text, TURN_CHARACTERS)))
    for item, words in reversed(kept):
        draft.add(item, words)


def _rows(draft: Draft) -> list[int]:
    """Memories that may be told: of each sort those that matter most, and what changed last."""
    selection, wanted, today = draft.home.selection, draft.filter(), draft.home.today()
    sorts = (
        replace(wanted, expiry=(Expiry.CORE,)),
        replace(wanted, kinds=(Kind.TODO,)),
        replace(wanted, kinds=(Kind.PREFERENCE, Kind.DECISION)),
        replace(wanted, kinds=(Kind.LESSON,)),
        wanted,
    )
    share = _ALONE_SHARE if draft.request.alone else 1
    browsed, latest = _BROWSED // share, _LATEST // share
    rows = [row for sort in sorts for row in selection.browse_memories(sort, limit=browsed, today=today)]
    return list(dict.fromkeys([*rows, *selection.latest_memories(wanted, limit=latest, today=today)]))


_REASONS: dict[Part, Callable[[Candidate], str]] = {
    Part.CORE: lambda _: "core",
    Part.ACTIVE: lambda _: "an open todo",
    Part.PREFERENCES: lambda item: f"a {item.memory.kind.value}, importance {item.memory.importance}",
    Part.LESSONS: lambda item: f"a lesson, importance {item.memory.importance}",
    Part.RECENT: lambda item: f"changed {shown_day(item.updated)}, importance {item.memory.importance}",
    Part.KNOWN: lambda item: f"older, importance {item.memory.importance}",
}
