"""What is added to a context: what was handed over, what other sessions learned just now, a reminder.

An addition looks at what is asked for and at the session's state, and answers with items of its part and the state as
it is once they were told. It only reads, waits for no lock, and is light: hooks without the daemon run it, too.
"""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from nacre.base.ids import bytes_hash, first_id, to_ms
from nacre.base.request import Request
from nacre.base.text import STOP_WORDS, count_tokens, harmless, is_unspaced, shorten, stem
from nacre.base.text import words as text_words
from nacre.base.times import shown_day, shown_minute
from nacre.context import delivery, hooks
from nacre.context.categories import (
    ABOVE,
    ELSEWHERE,
    KNOWN_SHARE,
    OVER_BUDGET,
    SAID,
    SHARES,
    TURN_CHARACTERS,
    Candidate,
    Draft,
    Told,
    choose,
    frame_tokens,
    framed,
    is_for_every_session,
    line_of,
    part_of,
    quoted,
    said,
    title_tokens,
    told_of,
    weight_of,
    worthiest,
)
from nacre.context.hooks import just_ended, read_state
from nacre.errors import EditConflict, InvalidInput, VaultUnusable
from nacre.home import change
from nacre.home.change import Change, page_path
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.hosts import files
from nacre.learn import reading
from nacre.memories import projects
from nacre.memories.edit import catch_up
from nacre.memories.projects import known_project
from nacre.recall import recall
from nacre.recall.lanes import Ranking
from nacre.recall.ranking import doubts, engine_of, projects_named, ranked_by_words
from nacre.values import memory as filters
from nacre.values.context import (
    HELD_OUT,
    LOOKED_FOR,
    ContextBlock,
    ContextItem,
    ContextRequest,
    HookAnswer,
    HookCall,
    HookEvent,
    LeftOut,
    Moment,
    Occasion,
    Part,
    SessionState,
)
from nacre.values.memory import Expiry, Intent, Kind, Memory
from nacre.values.recall import Lane, LaneState, Mode, RecallQuery
from nacre.values.session import BY_RULES, Flag, Handoff, SessionKind, Speaker, Trust, Turn
from nacre.vault.files import OWN_PAGES

if TYPE_CHECKING:
    from nacre.values.session import StoredSession

_ALWAYS = frozenset(Moment)
_WITH_PROMPTS = frozenset({Moment.PROMPT})
_FORGOT = frozenset({Occasion.COMPACT, Occasion.CLEAR})
"""After these a session has nothing of its own in sight any more, also where it keeps its name."""

_SESSION_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Recipient:
    """For whom something is added; ``reason_against`` and ``knows`` say what it is not to be told."""

    home: Home
    request: ContextRequest
    state: SessionState
    project: str | None
    reason_against: Callable[[Memory], str]
    knows: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Added:
    """What is to be told. ``state`` is true once all of ``items`` were told; what does not fit is not counted, and
    ``declined`` hears of it."""

    items: tuple[ContextItem, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    state: SessionState | None = None
    declined: Callable[[ContextItem], object] = lambda _: None


@dataclass(frozen=True, slots=True)
class Addition:
    """Something that is added to a part, at some moments."""

    part: Part
    moments: frozenset[Moment]
    find: Callable[[Recipient], Added]


def _handed_over(asked: Recipient) -> Added:
    """What the last sessions handed over to this one, each to one session alone; late where it comes with a prompt."""
    context, request, state = asked.home, asked.request, asked.state
    is_start = request.moment is Moment.START
    if not is_start and (state.handed or not request.session):
        return Added()
    is_late = not is_start and state.started > 0
    if (
        not is_late and request.occasion is not Occasion.RESUME
    ):  # where its start was missed, this is it
        state = replace(state, started=_now_ms(asked), handed=False)
    items, left, told = [], [], Told()
    for handoff in delivery.due(
        context, asked.project, request.session, own=request.occasion in _FORGOT
    ):
        if handoff.id in state.given:
            continue
        is_due = delivery.is_late(handoff, state.started) or delivery.is_held(
            context, handoff, request.session
        )
        if is_late and not is_due:
            continue
        if not delivery.claim(context, handoff, request.session):
            left.append(LeftOut(Part.HANDOFF, handoff.id, "another session is given it"))
            continue
        news = _news(handoff, lambda line: asked.knows(line) or told.says(line))
        if news:
            items.append(_handoff(handoff, news))
            told.add("\n".join(news))
        else:
            left.append(LeftOut(Part.HANDOFF, handoff.id, SAID))
    return Added(
        tuple(items),
        tuple(left),
        replace(state, handed=state.handed or bool(items)),
        lambda item: delivery.let_go(context, str(item.ref), request.session),
    )


def _news(handoff: Handoff, is_told: Callable[[str], bool]) -> list[str]:
    """The lines of a handoff that say something new, with the headings that a writer gave them."""
    lines = [line for line in handoff.content.splitlines() if line.strip()]
    is_headed = handoff.by != BY_RULES
    news = [line for line in lines if (is_headed and line.endswith(":")) or not is_told(line)]
    return news if any(not line.endswith(":") for line in news) else []


def _handoff(handoff: Handoff, news: Sequence[str]) -> ContextItem:
    origin = f"{shorten(harmless(handoff.session), _SESSION_CHARACTERS)}, {shown_minute(handoff.written)}"
    by = ", in an agent's own words" if handoff.by == Speaker.AGENT.value else ""
    text = "\n".join([f"From {origin}{by}:", *quoted("\n".join(news))])
    why = f"handed over by {origin}"
    return ContextItem(Part.HANDOFF, text, count_tokens(text), handoff.id, handoff.written, why=why)


def _heard(asked: Recipient) -> Added:
    """What other sessions stored just now that matters here; a session listens from its first context on."""
    context, request = asked.home, asked.request
    if not request.session:
        return Added()
    state = _noted(asked, request.session)
    if request.moment is Moment.START:
        return Added(state=hooks.begun(context, state))
    limits = hooks.limits_of(context.settings, request.signals)
    due = hooks.due(context, state, asked.project, limits)
    told = [memory for _, memory in due.memories if not asked.reason_against(memory)]
    after = hooks.begun(context, due.given(state, len(due.memories), len(told), _now_ms(asked)))
    return Added(tuple(map(_signal, told)), state=after)


def _noted(asked: Recipient, session: str) -> SessionState:
    """The state with who the session is and where, and which ones it goes on from, where it begins."""
    now, folder, state = _now_ms(asked), asked.request.folder or "", asked.state
    after = state.after
    if asked.request.moment is Moment.START or not state.name:
        after = tuple(
            dict.fromkeys((*after, *just_ended(asked.home.settings.home, session, folder, now)))
        )
    return replace(state, name=session, folder=folder, seen=now, ended=0, after=after)


def _signal(memory: Memory) -> ContextItem:
    text = line_of(memory)
    why = "stored by another session just now"
    return ContextItem(Part.SIGNALS, text, count_tokens(text), memory.id, memory.updated, why=why)


def _reminded(asked: Recipient) -> Added:
    """A reminder that something may be worth storing."""
    state = hooks.counted(asked.home, asked.state, asked.request.session, asked.project)
    if not hooks.is_due(state):
        return Added(state=state)
    why = f"nothing stored in {hooks.TURNS} turns"
    item = ContextItem(Part.NUDGE, hooks.TEXT, count_tokens(hooks.TEXT), why=why)
    return Added((item,), state=hooks.nudged(state))


def _now_ms(asked: Recipient) -> int:
    return int(asked.home.clock().timestamp() * 1000)


ADDITIONS: tuple[Addition, ...] = (
    Addition(Part.HANDOFF, _ALWAYS, _handed_over),
    Addition(Part.SIGNALS, _ALWAYS, _heard),
    Addition(Part.NUDGE, _WITH_PROMPTS, _reminded),
)
"""In the order in which they are asked."""


# ----------------------------------------------------------------------------
# The gate: whether a prompt is worth looking for anything, and what is looked for.


QUERY_CHARACTERS = 2_000
_PROMPT_CHARACTERS = 20_000
SEED_CHARACTERS = 400
"""Of the last turns of the session before, which say what a new one is likely to go on with (seed facts 1.8)."""

HEARD, HEARD_CHARACTERS = 5, 200
"""The last prompts of a session that are kept, and how much of each (seed facts 1.8)."""

_SAME = 0.85
"""Two prompts whose words overlap so far (Jaccard) ask the same (seed facts 1.8)."""

_POINTS_BACK_WORDS = 8
_POINTS_BACK = re.compile(
    r"^\W*(?:and|but|so|or)?\s*(?:why|how so|how come|what about|how about|and|also"
    r"|the (?:other|same|first|second|last) one"
    r"|(?:for|with|in|on) (?:that|this|it|them|those)|und|warum|wieso|et|pourquoi|y|por qué)\b"
    r"|\b(?:it|that|this|those|them|there)\b\W*$|^(?:那|还有|为什么|这个|那个|它)",
    re.IGNORECASE,
)
"""How a short prompt begins or ends that means what was spoken of before."""

_COMMAND = re.compile(r"\s*(?:/[\w:.-]+(?=\s|$)|!\s*\w)")
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_TRACE = re.compile(
    r"^\s*(?:at\s+[\w.$<>]+[\s(]|File \"|Traceback\b|Caused by:|\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|[-+]{3}\s|@@"
    r"|[+-]\s{2,}|[{}\[\]<>|$%]|\w*(?:Error|Exception|Warning):"
    r"|(?:npm|yarn|pip|error|warn|info|debug|fatal)\b[\w\[\] .!]*(?:ERR|:)|[\w./\\-]+:\d+(?::\d+)?:?\s)"
)
"""How lines begin that a program wrote: traces, logs, diffs, markup."""

_LETTER = re.compile(r"[^\W\d_]")

_MAY_BE_SECRET = re.compile(
    r"[=@]|://|\d\S{7}|\S{7}\d|[A-Za-z0-9+/_-]{20}|passw|passphrase|passcode|contraseña|mot de passe|secret|token"
    r"|credential|bearer|key\b|\bpwd\b|\bpin\b|private|密码|口令|密钥",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PromptQuery:
    """What is looked for with a prompt; nothing where ``query`` is empty, and ``why`` says why."""

    query: str = ""
    why: str = ""


def asked_by(prompt: str, before: str = "", heard: Sequence[str] = ()) -> PromptQuery:
    """What a prompt asks for; ``before`` is what was looked for last in its session, ``heard`` are its last prompts.

    Commands of the host ask for nothing; what was pasted (fences, traces, diffs) is not what the person said. A short
    prompt that points back is looked for together with the one before.
    """
    if _COMMAND.match(prompt):
        return PromptQuery(why="a command of the host")
    said = prose(prompt)
    if not said:
        return PromptQuery(why="nothing but pasted text" if prompt.strip() else "empty")
    if is_trivial(said):
        return PromptQuery(why="nothing in it to look for")
    if heard and len(said.split()) <= _POINTS_BACK_WORDS and _POINTS_BACK.search(said):
        said = f"{said}\n{heard[-1]}"
    if before and _is_same(said, before):
        return PromptQuery(why="asked just now")
    return PromptQuery(said)


def prose(prompt: str) -> str:
    """What a person typed themselves, as far as it can be told, line by line, cut to what a search takes."""
    lines = (
        line.strip()
        for line in _FENCED.sub("\n", prompt[:_PROMPT_CHARACTERS]).splitlines()
        if not _TRACE.match(line)
    )
    return "\n".join(line for line in lines if line)[:QUERY_CHARACTERS]


def is_trivial(said: str) -> bool:
    """Whether a prompt only greets, thanks, nods or says to go on; or holds no word at all."""
    if not _LETTER.search(said):
        return True
    plain, phrases = _trivial()
    rest = (
        " ".join(text_words(said))
        if said.isascii()
        else " ".join(re.findall(r"[^\W_]+", said.lower()))
    )
    for phrase in phrases:
        if is_unspaced(phrase):
            continue
        rest = re.sub(rf"\b{re.escape(phrase)}\b", " ", rest)
    return all(
        word in plain or (is_unspaced(word) and not _without(word, phrases))
        for word in rest.split()
    )


def is_plain(text: str) -> bool:
    """Whether a prompt surely holds no secret: most do, and none needs more than a look at it to be told."""
    return not _MAY_BE_SECRET.search(text)


def after_hearing(heard: Sequence[str], prompt: str) -> tuple[str, ...]:
    """The last prompts of a session, with one more; those that say nothing are not kept."""
    said = prose(prompt)[:HEARD_CHARACTERS]
    return (*heard, said)[-HEARD:] if said and not is_trivial(said) else tuple(heard)


def _without(run: str, phrases: Sequence[str]) -> str:
    """What is left of a run of characters without the phrases, the longest first."""
    for phrase in phrases:
        run = run.replace(phrase, "")
    return run


@cache
def _trivial() -> tuple[frozenset[str], tuple[str, ...]]:
    """Single words, and phrases, the longest first."""
    tables = tomllib.loads(Path(__file__).with_name("trivial.toml").read_text(encoding="utf-8"))
    plain = frozenset(word for table in tables.values() for word in table.get("words", "").split())
    phrases = sorted(
        {phrase for table in tables.values() for phrase in table.get("phrases", [])},
        key=len,
        reverse=True,
    )
    return plain, tuple(phrases)


def _is_same(asked: str, before: str) -> bool:
    """Whether nearly the same is asked again, or nothing that was not asked before."""
    mine, theirs = set(text_words(asked)), set(text_words(before))
    return mine - STOP_WORDS <= theirs or len(mine & theirs) / len(mine | theirs) > _SAME


# ----------------------------------------------------------------------------
# What a session starts with: the owner's pages, the end of the session before, what was learned.


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
        text = change.page_text(draft.home, draft.project, own=True)[:_PAGE_CHARACTERS]
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
        reason = draft.reason_against(item.memory) or (
            "likely to be outdated" if item.memory.id in outdated else ""
        )
        if not (reason or part is Part.CORE or is_for_every_session(item.memory)):
            reason = "it concerns a part of the work alone"
        if not reason and draft.has_begun and not _is_new(item.memory, draft.state.started):
            reason = "it was there when the session began"
        if reason:
            draft.leave(part, item.memory.id, reason, item.memory.subject)
            continue
        score = draft.ranked(
            item.memory, weight_of(item.memory, now) if part is Part.KNOWN else item.score
        )
        candidates.append(
            Candidate(item.memory, part, count_tokens(draft.line(item.memory) + "\n"), score)
        )
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
        rows = home.selection.latest_memories(
            replace(wanted, kinds=kinds), limit=_LATEST, today=home.today()
        )
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
        own = files.drop_blocks(text) if _MARK in text else text
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
        last = reading.in_time(
            [one.turn for one in sessions.last_turns(stored.row, _TURNS_LOOKED_AT)]
        )
        turns = [
            turn
            for turn in _conclusions(list(filter(_is_talk, last)))
            if turn.trust is Trust.TRUSTED
        ]
        if any(turn.speaker is Speaker.OWNER and not is_trivial(turn.text) for turn in turns):
            return stored, turns[-_SEED_TURNS:]
    return None


def _conclusions(turns: Sequence[Turn]) -> list[Turn]:
    """What the owner said, and what the agent said last each time: on the way there it only says what it does next."""
    return [
        turn
        for at, turn in enumerate(turns)
        if turn.speaker is Speaker.OWNER
        or all(turn.speaker is Speaker.OWNER for turn in turns[at + 1 : at + 2])
    ]


def _last_exchange(turns: Sequence[Turn]) -> list[Turn]:
    """The owner's last turn that says something, and what the agent said last after it."""
    asked = [
        at
        for at, turn in enumerate(turns)
        if turn.speaker is Speaker.OWNER and not is_trivial(turn.text)
    ]
    if not asked:
        return list(turns[-1:])
    answers = [turn for turn in turns[asked[-1] + 1 :] if turn.speaker is Speaker.AGENT]
    return [turns[asked[-1]], *answers[-1:]]


def _is_talk(turn: Turn) -> bool:
    is_plain = bool(turn.text.strip()) and not turn.flags & _UNSAID
    return is_plain and turn.speaker in (Speaker.OWNER, Speaker.AGENT)


def _not_handed_over(draft: Draft, session: StoredSession, turns: Sequence[Turn]) -> list[Turn]:
    """The turns of which what the session handed over, if that is told here, does not tell."""
    mine = [
        one
        for one in draft.home.handoffs.waiting(draft.project or "")
        if one.session == session.session.id
    ]
    known = {
        turn for one in mine if draft.has_told(one.id) for turn in delivery.covered(one, turns)
    }
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
    rows = [
        row for sort in sorts for row in selection.browse_memories(sort, limit=browsed, today=today)
    ]
    return list(
        dict.fromkeys([*rows, *selection.latest_memories(wanted, limit=latest, today=today)])
    )


_REASONS: dict[Part, Callable[[Candidate], str]] = {
    Part.CORE: lambda _: "core",
    Part.ACTIVE: lambda _: "an open todo",
    Part.PREFERENCES: lambda item: (
        f"a {item.memory.kind.value}, importance {item.memory.importance}"
    ),
    Part.LESSONS: lambda item: f"a lesson, importance {item.memory.importance}",
    Part.RECENT: lambda item: (
        f"changed {shown_day(item.updated)}, importance {item.memory.importance}"
    ),
    Part.KNOWN: lambda item: f"older, importance {item.memory.importance}",
}


# ----------------------------------------------------------------------------
# Build a context: what is worth telling, within a budget, each thing once a session. Nothing is
# written.


_PROMPT_HITS = 8
_START_HITS, _AFTER_PREVIOUS_HITS = 3, 1
"""How many hits are told for a first prompt, and for the end of the session before where no prompt is known: of the
second and third of these, 5 of 16 were worth telling (docs/context.md)."""

_MOST_TRIGGERED = 3
_LEAST_SEED_WORDS = 5
"""A first prompt of fewer words says too little of what a session is going to be about (seed facts 1.8)."""


def build(home: Home, request: ContextRequest) -> ContextBlock:
    """The context of a session's start, or of a prompt; empty where nothing is worth telling.

    Only what is trusted is told, and nothing that counts as use. What the session was given is for whoever delivers the
    text to keep. After a compaction or a reset of the session what was given before is gone from the agent's sight, and
    may be given again.
    """
    started = time.perf_counter()
    before = read_state(home.settings.home, request.session)
    state = replace(before, held_out=False)
    if request.moment is Moment.START:
        state = replace(state, owed="")
        if request.occasion is not Occasion.RESUME:
            state = replace(state, given=(), asked="")
    if is_held_out(home, request.session):
        return _untold(home, state, before, started)
    budget = (
        request.budget_tokens
        if request.budget_tokens is not None
        else _budget(home, request.moment)
    )
    project = project_of_folder(home, Path(request.folder)) if request.folder else None
    draft = Draft(home, request, state, project, budget - frame_tokens())
    if draft.budget_tokens > 0:
        (tell_start if request.moment is Moment.START else _prompt)(draft)
    text = draft.text()
    said = (one.ref for one in draft.left_out if one.why is SAID and one.ref)
    after = draft.state.with_given((*(item.ref for item in draft.items if item.ref), *said))
    return ContextBlock(
        text,
        tuple(draft.items),
        tuple(draft.left_out),
        draft.lanes,
        draft.gate,
        project,
        count_tokens(text),
        (time.perf_counter() - started) * 1000,
        after if request.session and after != before else None,
    )


def is_held_out(home: Home, session: str | None) -> bool:
    """Whether a session is one of those that are told nothing (:mod:`nacre.context.hooks`)."""
    return bool(
        session and home.settings.number("usefulness.hold_out") > 0 and hooks.takes(home, session)
    )


def _untold(home: Home, state: SessionState, before: SessionState, began: float) -> ContextBlock:
    """Nothing, as the session is held out. It is noted when it began: what it is does not change."""
    after = replace(state, started=state.started or to_ms(home.clock()) or 0, held_out=True)
    took = (time.perf_counter() - began) * 1000
    return ContextBlock(gate=HELD_OUT, took_ms=took, state=after if after != before else None)


def _budget(home: Home, moment: Moment) -> int:
    name = "context.budget_tokens" if moment is Moment.START else "context.prompt_tokens"
    return int(home.settings[name])


def tell_start(draft: Draft) -> None:
    """Who it is about, where the last session ended, what fits the prompt, and what was learned.

    A session that is gone on with has the pages and the end of the one before still in sight.
    """
    if not draft.has_begun:
        tell_pages(draft)
    _add(draft, Moment.START)
    previous = "" if draft.has_begun else tell_previous(draft)
    _relevant(draft, previous)
    if Part.DIGEST in draft.request.parts:
        tell_digest(draft)
    tell_learned(draft)


def _relevant(draft: Draft, previous: str) -> None:
    """What fits the prompt, where it comes with the start, else how the last session ended (seed facts 1.8)."""
    if not draft.wants(Part.RELEVANT):
        return
    prompt = asked_by(draft.request.prompt).query
    most = _START_HITS
    if len(prompt.split()) < _LEAST_SEED_WORDS and prompt.isascii():
        prompt = f"{prompt}\n{previous[-SEED_CHARACTERS:]}".strip()
        most = _AFTER_PREVIOUS_HITS
    if prompt:
        _tell_hits(draft, prompt, most, draft.room(Part.RELEVANT))


def _prompt(draft: Draft) -> None:
    """What fits a prompt, and was not given yet."""
    if draft.wants(Part.RELEVANT):
        state = draft.state
        asked = asked_by(draft.request.prompt, state.asked, state.heard)
        draft.gate = asked.why or LOOKED_FOR
        heard = _without_secrets(draft, prose(draft.request.prompt))
        draft.state = replace(state, heard=after_hearing(state.heard, heard))
        if asked.query:
            draft.state = replace(draft.state, asked=_without_secrets(draft, asked.query))
            _look_about(draft, asked.query)
            _tell_triggered(draft, prose(draft.request.prompt))
            _tell_hits(draft, asked.query, _PROMPT_HITS, draft.left_tokens)
    _add(draft, Moment.PROMPT)


def _without_secrets(draft: Draft, prompt: str) -> str:
    """A prompt as it may be kept. Who looks alone has no time for the rules: then one that may hold a secret is not."""
    if draft.request.alone:
        patterns, _, kinds = draft.home.settings.redaction
        has_own_rules = bool(patterns or kinds)
        return prompt if is_plain(prompt) and not has_own_rules else ""
    return draft.home.redactor.clean(prompt)


def _tell_triggered(draft: Draft, prompt: str) -> None:
    """Memories one of whose triggers the prompt says, the most important first, before what is found by its meaning."""
    home = draft.home
    rows = home.selection.with_triggers(draft.filter(), today=home.today())
    if not rows:
        return
    said = _stems(prompt)
    found = home.memories.by_rows(rows)
    fired = [
        (found[row], trigger)
        for row in rows
        if row in found and (trigger := _fired(found[row], said))
    ]
    for memory, trigger in fired[:_MOST_TRIGGERED]:
        draft.tell(Part.RELEVANT, memory, 1.0, f"the prompt says “{trigger}”")


def _fired(memory: Memory, said: str) -> str:
    """The first trigger that is said, whole words of it in their order; endings may differ."""
    return next(
        (trigger for trigger in memory.triggers if trigger.strip() and _stems(trigger) in said), ""
    )


def _stems(text: str) -> str:
    return f" {' '.join(map(stem, text_words(text)))} "


def _look_about(draft: Draft, query: str) -> None:
    """In a folder of no known project a prompt is about the projects that it names."""
    if draft.project or not draft.request.folder:
        return
    draft.named = projects_named(draft.home, query)
    if not draft.named and draft.home.memories.projects():
        draft.leave(Part.RELEVANT, None, ELSEWHERE)


def _add(draft: Draft, moment: Moment) -> None:
    """What others have to tell. Where not all of it fits, the session is not taken to have been told any of it."""
    for addition in ADDITIONS:
        if moment not in addition.moments or not draft.wants(addition.part):
            continue
        asked = Recipient(
            draft.home, draft.request, draft.state, draft.project, draft.reason_against, draft.knows
        )
        added = addition.find(asked)
        draft.left_out += added.left_out
        too_much = [
            item for item in added.items if not (draft.has_told(item.ref) or draft.add(item))
        ]
        for item in too_much:
            added.declined(item)
        if added.state is not None and not too_much:
            draft.state = added.state


def _tell_hits(draft: Draft, query: str, limit: int, room: int) -> None:
    asked = RecallQuery(
        query,
        filter=draft.filter(),
        limit=limit,
        update=False,
        co_recall=False,
        is_prompt=True,
        confident=True,
        turns=0,
    )
    found = (_by_words if draft.request.alone else _by_all_lanes)(draft, asked)
    end = draft.left_tokens - room
    found = [(memory, draft.ranked(memory, score), sure) for memory, score, sure in found]
    for memory, score, sure in sorted(found, key=lambda one: -one[1]):
        if draft.left_tokens <= end:
            draft.leave(Part.RELEVANT, memory.id, OVER_BUDGET, memory.subject)
            continue
        draft.tell(
            Part.RELEVANT, memory, score, f"{sure:.2f} sure to fit" if sure is not None else "fits"
        )


_Found = list[tuple[Memory, float, float | None]]
"""Memories with their scores and how sure they are to fit."""


def _by_all_lanes(draft: Draft, asked: RecallQuery) -> _Found:
    result = recall.recall(draft.home, asked)
    draft.lanes = result.lanes
    draft.spaces = {hit.memory.id: hit.space for hit in result.hits if hit.space}
    return [(hit.memory, hit.score, hit.components.get("sure")) for hit in result.hits]


def _by_words(draft: Draft, asked: RecallQuery) -> _Found:
    draft.lanes = (Lane("lexical", LaneState.RAN), Lane("vector", LaneState.SKIPPED))
    hits = ranked_by_words(draft.home, replace(asked, mode=Mode.LEXICAL))
    return [(hit.memory, hit.score, hit.confidence) for hit in hits]


# ----------------------------------------------------------------------------
# Pages that the owner writes: who agents work for, how the owner wants things done, and what a
# project is about.


PAGES = (Part.IDENTITY.value, Part.PROFILE.value, Part.PROJECT.value)
_MOST_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class OwnPage:
    """A page: where it lies in the vault, and its text, empty where there is none. Of its ``tokens`` a session that
    starts is told ``told_tokens`` at most, and what the sections before it leave.

    ``etag`` is another one whenever the file is, and empty where there is none. ``text`` is the whole file: a project's
    page begins with its front matter; what is written without one leaves that as it is.
    """

    name: str
    path: str
    text: str = ""
    told_tokens: int = 0
    etag: str = ""

    @property
    def tokens(self) -> int:
        """Of the whole page."""
        return count_tokens(self.text)


def own_page(home: Home, name: str, project: str | None = None) -> OwnPage:
    """A page as it is, without secrets. Raises InvalidInput, NotFound, VaultUnusable."""
    return _as_shown(home, name, _slug(home, name, project))


def write_own_page(
    home: Home, name: str, text: str, project: str | None = None, *, expected: str | None = None
) -> OwnPage:
    """Write a page, without secrets, in the place of what it said; an empty text takes it away, unless a project's.

    ``nacre undo`` brings back what it said. With ``expected``, it is written over the page of that etag alone. Raises
    InvalidInput, NotFound, EditConflict, VaultUnusable, and what writing raises.
    """
    words, slug = home.redactor.clean(text).strip(), _slug(home, name, project)
    if len(words) > _MOST_CHARACTERS:
        raise InvalidInput(
            f"a page has {_MOST_CHARACTERS:,} characters at most",
            hint="store memories for the rest",
        )
    if slug and not words:
        raise InvalidInput(
            "the page of a project is not taken away", hint="nacre project merge makes two into one"
        )
    with home.change("page", subject=slug or name) as change:
        path, data = _read(home, name, slug)
        if expected not in (None, _etag(data)):
            raise EditConflict(
                f"{path} was changed meanwhile", hint="read it again; nothing was written"
            )
        with change.transaction():
            if slug:
                before = projects.page_of(home, slug)
                projects.write(change, projects.edited(home, slug, before, f"{words}\n"), before)
            else:
                _write(change, path, f"{words}\n" if words else None, data)
    return _as_shown(home, name, slug)


def _write(change: Change, path: str, document: str | None, data: bytes | None) -> None:
    base = bytes_hash(data) if data is not None else None
    if document is not None or data is not None:
        change.intend([Intent("write" if document else "remove", path, document, base)])


def _as_shown(home: Home, name: str, slug: str | None) -> OwnPage:
    path, data = _read(home, name, slug)
    text = home.redactor.clean((data or b"").decode("utf-8", errors="replace")).strip()
    told = int(SHARES[Part(name)] * home.settings.whole("context.budget_tokens"))
    return OwnPage(name, path, text, told, _etag(data))


def _slug(home: Home, name: str, project: str | None) -> str | None:
    if name not in PAGES:
        raise InvalidInput(f"there is no page {name!r}", hint=f"one of: {', '.join(PAGES)}")
    if (name == Part.PROJECT) != bool(project):
        raise InvalidInput(
            "the page of a project needs its name, the others have none", hint="nacre project list"
        )
    if not project:
        return None
    catch_up(home)
    return known_project(home, project)


def _etag(data: bytes | None) -> str:
    return "" if data is None else bytes_hash(data).hex()


def _read(home: Home, name: str, slug: str | None) -> tuple[str, bytes | None]:
    """Where a page lies, and what is there."""
    paths = {
        Part.IDENTITY.value: sorted(OWN_PAGES, reverse=True),
        Part.PROJECT.value: [page_path(slug or "")],
    }
    places = paths.get(name, ["profile.md"])
    for path in places:
        if home.vault.exists(path):
            return path, home.vault.read(path)
    return places[0], None


# ----------------------------------------------------------------------------
# A context for whoever asks for one outside of a hook: what was edited by hand counts at once.


_PATIENCE_SECONDS = 0.2


def context_for(home: Home, request: ContextRequest) -> ContextBlock:
    """As :func:`nacre.context.build.build`, after a look at what a person changed in the vault.

    Hooks do without the look: it may wait for whoever writes.
    """
    if not request.alone:
        catch_up(home, _PATIENCE_SECONDS)
    return build(home, request)


# ----------------------------------------------------------------------------
# Requests for what agents are given, beside :class:`nacre.values.context.ContextRequest`.


PageName = Annotated[Literal["identity", "profile", "project"], Meta(description="Which page.")]


class HandoffRequest(Request, frozen=True, kw_only=True):
    """The latest handoff of a folder's project; with ``store`` a session is handed over now."""

    folder: Annotated[str | None, Meta(description="Where the agent works: tells the project.")] = (
        None
    )
    store: Annotated[bool, Meta(description="Hand the session over now.")] = False
    session: Annotated[
        str | None,
        Meta(description="As <tool>:<id>; by default the agent's own, else the last one there."),
    ] = None
    words: Annotated[
        str | None, Meta(description="In these words, else in what was said last.")
    ] = None


class GivenRequest(Request, frozen=True, kw_only=True):
    """What a host's session was given, once its agent has it."""

    session: Annotated[str, Meta(description="The host's session, as <tool>:<id>.")]
    state: Annotated[
        SessionState | None, Meta(description="The state of the context that was given.")
    ] = None


class OwnPageRequest(Request, frozen=True, kw_only=True):
    """A page of the owner's, or of a project."""

    name: PageName
    project: Annotated[
        str | None, Meta(description="Whose page, where it is that of a project.")
    ] = None


class WritePageRequest(OwnPageRequest, frozen=True, kw_only=True):
    """Write a page of the owner's, or of a project."""

    text: Annotated[
        str,
        Meta(
            description="The whole page; empty: it is taken away, unless a project's.",
            max_length=200_000,
        ),
    ]
    expected: Annotated[
        str | None,
        Meta(
            description="The etag under which it was read: where it is another page by now, nothing is written."
        ),
    ] = None


# ----------------------------------------------------------------------------
# What is answered to requests about the owner's pages and what sessions were given; see
# :mod:`nacre.serve.catalogue`.


def own_page_answers(home: Home, request: OwnPageRequest) -> OwnPage:
    """A page of the owner's or of a project, without secrets. Raises InvalidInput, NotFound, VaultUnusable."""
    return own_page(home, request.name, request.project)


def write_own_page_answers(home: Home, request: WritePageRequest) -> OwnPage:
    """Write a page in the place of what it said. Raises InvalidInput, NotFound, EditConflict, VaultUnusable."""
    return write_own_page(
        home, request.name, request.text, request.project, expected=request.expected
    )


def note_given(home: Home, request: GivenRequest) -> None:
    """Keep what a host's session was given, once its agent has it."""
    hooks.write_state(home.settings.home, request.session, request.state)


# ----------------------------------------------------------------------------
# What a hook of a host is answered, whichever host it is.


STARTED = "session-start"
"""The chore that follows a start: what was handed over is retired, what ended unseen is handed over late."""

_TOLD_WITH_PROMPTS = frozenset({"gemini-cli"})
"""Hosts that lose, when they resume a session, a prompt which begins with what was told at its start: they are told
with the first prompt, behind it."""

_MOMENTS = {HookEvent.SESSION_START: Moment.START, HookEvent.PROMPT: Moment.PROMPT}


def answer(home: Home, call: HookCall) -> HookAnswer:
    """The context of a session's start or a prompt, a rule for what a tool is about to do, or what the agent is asked
    as a turn ends; nothing for the rest, and for sessions nobody talks in.

    A start that is owed is told with the prompt: that of a host which takes it there alone, and that of a hook which
    had no answer in time.
    """
    moment = _MOMENTS.get(call.event)
    if call.event is HookEvent.SESSION_END and call.session and not call.is_apart:
        now = int(home.clock().timestamp() * 1000)
        known = read_state(home.settings.home, call.session)
        return HookAnswer(
            state=replace(known, name=call.session, folder=call.folder or "", ended=now)
        )
    if call.event in (HookEvent.TURN_END, HookEvent.TOOL):
        return _during_turn(home, call)
    if moment is None or call.is_apart:
        return HookAnswer()
    occasion = call.occasion
    if call.session:
        state = read_state(home.settings.home, call.session)
        if moment is Moment.PROMPT and state.owed in tuple(Occasion):
            moment, occasion = Moment.START, Occasion(state.owed)
        elif call.host in _TOLD_WITH_PROMPTS and moment is Moment.START:
            is_missed = occasion is not Occasion.RESUME or not state.started
            return HookAnswer(
                chores=(STARTED,), state=SessionState(owed=occasion) if is_missed else None
            )
    asked = ContextRequest(
        moment,
        occasion,
        call.prompt,
        call.folder,
        call.session or None,
        call.budget_tokens,
        alone=call.alone,
        signals=call.signals,
    )
    block = build(home, asked)
    chores = (STARTED,) if moment is Moment.START and call.session else ()
    return HookAnswer(
        block.text, block.tokens, chores, block.state, held_out=block.gate == HELD_OUT
    )


def _during_turn(home: Home, call: HookCall) -> HookAnswer:
    """A rule for what a tool is about to do, or what is asked as a turn ends."""
    if not call.is_apart and is_held_out(home, call.session):
        return HookAnswer(held_out=True)
    return hooks.answer(home, call) if call.event is HookEvent.TOOL else _asked(home, call)


def _asked(home: Home, call: HookCall) -> HookAnswer:
    """Ask the agent for proposals, once a session, where the owner wants that."""
    if (
        call.is_apart
        or call.goes_on
        or not call.session
        or not hooks.is_asked_for_proposals(home, call.host)
    ):
        return HookAnswer()
    state = read_state(home.settings.home, call.session)
    if not hooks.is_to_propose(home, state):
        return HookAnswer()
    text = framed([(Part.NUDGE, [hooks.PROPOSE])])
    return HookAnswer(text, count_tokens(text), state=hooks.asked_to_propose(state))
