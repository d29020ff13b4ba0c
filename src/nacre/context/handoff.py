"""The handoff that a model writes: what it is asked, and what of its answer the session bears out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from nacre.base.text import identifiers, one_line, shorten, words
from nacre.context import delivery
from nacre.context.build import HandoffRequest, is_trivial
from nacre.context.hooks import read_state
from nacre.errors import AnswerUnusable, InvalidInput, NacreError, NotFound
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.home.spending import model_for, tracing
from nacre.learn.extract import extract
from nacre.learn.ingest import find_session, read_recent, read_session
from nacre.learn.prompts import as_data, framed
from nacre.learn.reading import bounded, changes, content_words, may_be_others, own_words
from nacre.learn.sentences import (
    Utterance,
    is_chosen,
    is_content,
    language_of,
    utterances,
    without_chosen,
)
from nacre.llm.failures import ask, schema_of
from nacre.memories.edit import catch_up
from nacre.readers.trust import Exchange, reached_out
from nacre.sessions.summary import does, is_check
from nacre.sessions.topics import asks_for_work, is_idle, is_telling, open_ends, outcome, words_of
from nacre.values.memory import SessionFilter
from nacre.values.models import Capabilities, Prompt, TraceKind
from nacre.values.session import (
    BY_RULES,
    HANDED_FOR,
    Action,
    Ending,
    Handoff,
    HandoffView,
    Session,
    SessionKind,
    Speaker,
    StoredSession,
    Task,
    ToolCall,
    Trust,
    Turn,
)

VERSION = "1"
MOST_TURNS = 50
MOST_CHARACTERS = 8_000
LEAST_TURNS = 4
LEAST_LINES = 3
MOST_WORDS = 500
"""Seed facts 1.8, all of them."""

_TURN_CHARACTERS = 1_500
_ENTRY_CHARACTERS = 400
_OUTPUT_TOKENS = 1_500
_LEAST_SAID = 0.6
"""Of an entry's content words must have been said in the session."""

_NUMBER = re.compile(r"\d[\d.,:]*")
_SPEAKERS = (Speaker.OWNER, Speaker.AGENT)


class HandoffAnswer(msgspec.Struct):
    """What a model answers: four lists of sentences."""

    working_on: list[str]
    key_findings: list[str]
    open_threads: list[str]
    important_facts: list[str]


_SECTIONS = (
    ("Working on", "working_on"),
    ("Key findings", "key_findings"),
    ("Open threads", "open_threads"),
    ("Important facts", "important_facts"),
)


def shown_turns(turns: Sequence[Turn]) -> list[Turn]:
    """The turns that a model is shown: the last fifty of owner and agent, without what draws on text from outside."""
    sound = [
        bounded(turn)
        for turn in turns
        if turn.speaker in _SPEAKERS and is_content(turn) and turn.trust is Trust.TRUSTED
    ]
    return sound[-MOST_TURNS:]


def handoff_prompt(turns: Sequence[Turn], able: Capabilities, seconds: float) -> Prompt | None:
    """What asks for a handoff; ``None`` where too little was said for one."""
    if (
        len(turns) < LEAST_TURNS
        or sum(len(turn.text.strip().splitlines()) for turn in turns) < LEAST_LINES
    ):
        return None
    text = "\n".join(_last([_line(turn) for turn in turns]))
    return Prompt(
        task=Task.HANDOFF,
        system=_words(),
        text=f"{framed('session', text)}\n\nWrite the handoff.",
        answer=schema_of(HandoffAnswer),
        name="handoff",
        version=f"handoff/{VERSION}",
        output_tokens=min(_OUTPUT_TOKENS, able.output),
        timeout_seconds=seconds,
    )


def borne_out(answer: HandoffAnswer, turns: Sequence[Turn]) -> str:
    """An answer as it is kept: without entries that the session does not show, within 500 words; perhaps empty."""
    ground = _Ground(turns)
    left = MOST_WORDS
    told: list[str] = []
    for title, name in _SECTIONS:
        kept = []
        for entry in _entries(getattr(answer, name)):
            size = len(words(entry))
            if size <= left and ground.bears(entry):
                kept.append(f"- {entry}")
                left -= size
        if kept:
            told.append("\n".join([f"{title}:", *kept]))
    return "\n\n".join(told)


class _Ground:
    """What was said, to hold entries against."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._text = " ".join(turn.text for turn in turns).lower()
        self._words = frozenset[str]().union(
            *(content_words(turn.text, language_of(turn.text)) for turn in turns)
        )

    def bears(self, entry: str) -> bool:
        """Whether its names and numbers were said, and most of its words."""
        named = [*identifiers(entry), *_NUMBER.findall(entry)]
        if not all(one.lower().rstrip(".,:") in self._text for one in named):
            return False
        wanted = content_words(entry, language_of(entry))
        return not wanted or len(wanted & self._words) >= _LEAST_SAID * len(wanted)


def _entries(told: Sequence[str]) -> Iterator[str]:
    for entry in dict.fromkeys(told):
        line = one_line(entry).strip(" -*•")
        if line:
            yield shorten(line, _ENTRY_CHARACTERS)


def _line(turn: Turn) -> str:
    return f"{turn.speaker.value}: {as_data(shorten(turn.text.strip(), _TURN_CHARACTERS))}"


def _last(lines: Sequence[str]) -> list[str]:
    """The last of some lines, as many as there is room for; at least one."""
    kept: list[str] = []
    room = MOST_CHARACTERS
    for line in reversed(lines):
        if kept and len(line) + 1 > room:
            break
        kept.append(line[:room])
        room -= len(line) + 1
    return kept[::-1]


@cache
def _words() -> str:
    return (files(__package__) / "prompts" / f"handoff-{VERSION}.md").read_text(encoding="utf-8")


# ----------------------------------------------------------------------------
# Whether a session leaves anything that the next one should know.


def has_something(
    session: Session,
    turns: Sequence[Turn],
    spoken: Sequence[Utterance],
    telling: Sequence[Utterance],
) -> bool:
    """Whether something was asked to be done, changed, left open or decided; not where the owner only had something
    looked up, and was told. ``telling`` are those of the owner's messages that are no nods.
    """
    return (
        any(map(_is_work, telling))
        or any(_works(call) for turn in turns for call in turn.tool_calls)
        or _is_open(turns, spoken)
        or bool(extract(session, turns))
    )


def _is_work(utterance: Utterance) -> bool:
    """Whether a message says more than a question, a nod, or what is to be looked at."""
    return any(asks_for_work(statement.text) for statement in utterance.statements)


def _works(call: ToolCall) -> bool:
    """Whether a call changed a file, made something, or did more than look and check."""
    if call.outcome != "ok":
        return False
    return (
        changes(call)
        or bool(call.made)
        or (call.action is Action.RUN and does(call) and not is_check(call))
    )


def _is_open(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> bool:
    ended = outcome(turns, spoken)
    return ended.ending in (Ending.STOPPED, Ending.FAILED) or bool(open_ends(turns, spoken, ended))


# ----------------------------------------------------------------------------
# The handoff that needs no model: what the owner said last, in their own words (seed facts 1.8).


OWNER_TURNS = 5
OWNER_CHARACTERS = 200
_HEAD = "The owner said last in that session:"


@dataclass(frozen=True, slots=True)
class LastWords:
    """``content`` is what is handed over, ``until`` the id of the last turn that it knows of, ``asked`` that of the
    last one in which the owner wanted something."""

    content: str
    until: str
    asked: str


def by_rules(
    session: Session, turns: Sequence[Turn], is_nod: Callable[[str], bool] = is_idle
) -> LastWords | None:
    """What a session hands over: the owner's last five turns, 200 characters each, without what they pasted and without
    nods ("go on").

    ``None`` where there is nothing to hand over: nobody spoke, or only to say hello, or to have something looked up.
    ``is_nod`` knows more words that ask for nothing.
    """
    shown = [bounded(turn) for turn in turns]
    sound = [one for one in utterances(shown) if _is_sound(shown[one.index])]
    outside = next((at for at, turn in enumerate(shown) if reached_out([turn], 0)), len(shown))
    said = [
        (one, words_of(shown[one.index], _own(one, is_outside=one.index >= outside)))
        for one in sound
    ]
    kept = [
        (one, text) for one, text in said if text.strip() and not (is_idle(text) or is_nod(text))
    ]
    until = last_turn(turns)
    told = [text for _, text in kept if _tells(text)][-OWNER_TURNS:]
    if (
        not told
        or until is None
        or not has_something(session, shown, sound, [one for one, _ in kept])
    ):
        return None
    lines = [f"- {shorten(text, OWNER_CHARACTERS)}" for text in told]
    return LastWords("\n".join([_HEAD, *lines]), until.id, shown[kept[-1][0].index].id)


def _own(utterance: Utterance, *, is_outside: bool) -> Utterance:
    """A message without what is pasted, what may only be shown, and what was chosen in the agent's words once the
    session had read text from ``outside``."""
    text = own_words(without_chosen(utterance.text) if is_outside else utterance.text)
    typed = tuple(
        statement
        for statement in utterance.statements
        if text
        and not (may_be_others(statement) or (is_outside and is_chosen(utterance, statement)))
    )
    return replace(utterance, text=text, statements=typed)


def _tells(text: str) -> bool:
    """Whether a message says something by itself."""
    return is_telling(text) and not language_of(text).summary.onward.match(text)


def last_turn(turns: Sequence[Turn]) -> Turn | None:
    """The last thing that owner or agent said."""
    spoken = (
        turn
        for turn in reversed(turns)
        if is_content(turn) and turn.speaker in (Speaker.OWNER, Speaker.AGENT)
    )
    return next(spoken, None)


def _is_sound(turn: Turn) -> bool:
    """Whether it is the owner who speaks, and nothing from outside: what an agent declined to do is not handed over."""
    return turn.speaker is Speaker.OWNER and turn.trust is Trust.TRUSTED


# ----------------------------------------------------------------------------
# Hand a session over to the next one of its project: at once without a model, better once a model was
# asked.
#
# A session has one handoff at most that nobody was given yet; what is said later, and what a model
# makes of it, takes its
# place in one write: there is always one of them, and never two.


LATE_FOR = timedelta(days=1)
"""A session that ended longer ago is not handed over late (seed facts 1.8)."""

QUIET = timedelta(minutes=2)
"""So long it must have been silent: who still talks in another window has not ended."""

_MOST_TURNS = 400
_NEWEST = 3
_IN_WORDS = (Speaker.AGENT, Speaker.OWNER)


def hand_over(home: Home, session: StoredSession, words: str | None = None) -> Handoff | None:
    """Store what a session hands over, as far as it was read, without a model; the handoff, if anything is new.

    ``words`` are those of whoever runs nacre, instead of what the owner said last. ``None`` for a session in which
    nobody works (sub-agents, scheduled runs, heartbeats), of no project, which only said hello, or of which nothing was
    said since it was handed over. What was written better stays until the owner says more. Raises what writing raises.
    """
    if session.session.kind is not SessionKind.MAIN or not session.project:
        return None
    turns = _turns(home, session)
    told = by_rules(session.session, turns, is_trivial)
    content, by = (
        (words, home.actor.speaker.value) if words else (told.content if told else "", BY_RULES)
    )
    if not content:
        return None
    now, last, asked = home.now(), last_turn(turns), told.asked if told else ""
    with home.vault_lock:
        if not home.sessions.find(session.session.id):  # forgotten meanwhile
            return None
        before = home.handoffs.of_session(session.session.id)
        told_already = {handoff for handoff, _ in delivery.delivered(home)}
        waiting = next((one for one in before if not (one.given or one.id in told_already)), None)
        if told and not words:
            if any(one.until == told.until for one in before):
                return None
            if waiting and waiting.by != BY_RULES and waiting.asked == asked:
                return waiting
        made = Handoff(
            waiting.id if waiting else home.ids(),
            waiting.project if waiting else session.project,
            session.session.id,
            home.redactor.clean(content),
            by,
            now,
            _time_of(last, now),
            last.id if last else "",
            asked,
        )
        home.handoffs.write(made)
        return made


def improve(home: Home, session: StoredSession, *, background: bool = True) -> Handoff | None:
    """Have a model write what a session hands over, where one is set for that; the handoff as it is now.

    ``None`` where no model may be asked, where there is nothing to improve, or where the session does not bear out what
    the model wrote: what the rules stored stays. No lock is held while the model answers; what was given to another
    session meanwhile, or changed, is left alone. Raises what a model's call raises.
    """
    turns = _turns(home, session)
    last = last_turn(turns)
    before = _to_improve(home, session, last.id) if last else None
    if before is None or last is None:
        return None
    written = _ask(home, turns, session.session.id, background=background)
    if not written:
        return None
    text, by = written
    with home.vault_lock:
        if home.handoffs.find(before.id) != before:
            return None
        now = home.now()
        better = replace(
            before,
            content=home.redactor.clean(text),
            by=by,
            written=now,
            said=_time_of(last, now),
            until=last.id,
        )
        home.handoffs.write(better)
        return better


def hand_over_late(home: Home, project: str, *, before: datetime, but: str) -> Handoff | None:
    """Store what the last session of a project hands over, where it ended before a time and nobody said so.

    ``but`` is the session that begins.
    """
    wanted = SessionFilter(project=project, kind=SessionKind.MAIN)
    for session in home.sessions.newest(wanted, limit=_NEWEST):
        if session.session.id == but or session.ended is None or session.ended > before - QUIET:
            continue
        return hand_over(home, session) if before - session.ended <= LATE_FOR else None
    return None


def put_away(home: Home) -> None:
    """Put away the handoffs that reached another session, and delete those that are a week old."""
    delivered = list(delivery.delivered(home))
    before = home.now() - HANDED_FOR
    every = (*home.handoffs.everything(), *home.handoffs.damaged())
    if not delivered and all(one.written >= before for one in every):
        return
    with home.vault_lock:
        for handoff_id, session in delivered:
            found = home.handoffs.find(handoff_id)
            if found and found.given != session:
                home.handoffs.write(replace(found, given=session))
            delivery.forget_claim(home, handoff_id)
        for one in (*home.handoffs.everything(), *home.handoffs.damaged()):
            if one.written < before:
                home.handoffs.remove(one)
                delivery.forget_claim(home, one.id)


def latest(home: Home, project: str | None) -> Handoff | None:
    """The latest handoff of a project that waits for a session, or, where none does, that one was given."""
    since = home.now() - HANDED_FOR
    found = home.handoffs.of_project(project) if project else []
    return next((one for one in found if one.written >= since), None)


def _turns(home: Home, session: StoredSession) -> list[Turn]:
    return [item.turn for item in home.sessions.last_turns(session.row, _MOST_TURNS)]


def _ask(
    home: Home, turns: list[Turn], session: str, *, background: bool
) -> tuple[str, str] | None:
    """What a model writes, as far as the session bears it out, and the model's name."""
    shown = shown_turns(turns)
    model = model_for(home, Task.HANDOFF, background=background)
    if model is None:
        return None
    with closing(model), tracing(home, TraceKind.HANDOFF, f"handoff of {session}") as run:
        prompt = handoff_prompt(
            shown, model.capabilities, home.settings.number("models.timeout_seconds")
        )
        if prompt is None:
            return None
        try:
            text = borne_out(ask(model, prompt, HandoffAnswer), shown)
        except AnswerUnusable as error:
            run.outcome = error.message
            return None
        run.outcome = "taken" if text else "nothing of it was said"
        return (text, model.name) if text else None


def _to_improve(home: Home, session: StoredSession, last: str) -> Handoff | None:
    """The handoff of a session that waits, as the rules wrote it, or a model when less was said."""
    for one in home.handoffs.of_session(session.session.id):
        if not one.given and one.by not in _IN_WORDS and (one.by == BY_RULES or one.until != last):
            return one
    return None


def _time_of(turn: Turn | None, now: datetime) -> datetime:
    return turn.time if turn and turn.time else now


# ----------------------------------------------------------------------------
# What a person or an agent asks of handoffs: which one waits here, and store one now.


NOTHING = (
    "that session leaves nothing to hand over: nothing was asked to be done, changed, decided or left open; "
    'words of your own always count: nacre handoff --store "…"'
)


def handoff(home: Home, request: HandoffRequest) -> HandoffView:
    """The latest handoff of a project; with ``store`` it is made anew. Raises NotFound, InvalidInput."""
    catch_up(home)
    if request.store:
        return _store(home, request)
    project = project_of_folder(home, Path(request.folder)) if request.folder else None
    found = latest(home, project)
    return HandoffView(project, found, found is not None and not found.given)


def _store(home: Home, request: HandoffRequest) -> HandoffView:
    session = _session(home, request)
    words = (request.words or "").strip() or None
    if words and home.actor.is_agent and _is_from_outside(home, session, words):
        raise InvalidInput(
            "these are words of a page, a mail or a file that the session read, which tells other sessions nothing",
            hint="say in words of your own what is left to do",
        )
    made = hand_over(home, session, words)
    note = None
    if made and not request.words:
        try:
            made = improve(home, session, background=False) or made
        except NacreError as error:
            note = f"no model wrote it: {error.message}"
    found = made or latest(home, session.project)
    is_known = found is not None and found.session == session.session.id
    if session.project and not (made or request.words or is_known):
        note = NOTHING
    is_waiting = found is not None and not found.given
    return HandoffView(session.project, found, is_waiting, made is not None, note)


def _is_from_outside(home: Home, session: StoredSession, words: str) -> bool:
    """Whether words draw on what the session heard from outside, as far as it was read."""
    read = home.sessions.cursor(session.file) if session.file else None
    return (
        read is not None
        and Exchange(read[1].carry.get("exchange")).trust_of(words) is Trust.UNTRUSTED
    )


def _is_of(home: Home, session: StoredSession, folder: str | None) -> bool:
    """Whether a session is of the project that a folder belongs to, where it belongs to one."""
    project = project_of_folder(home, Path(folder)) if folder else None
    return project in (None, session.project)


def _session(home: Home, request: HandoffRequest) -> StoredSession:
    own = home.settings.session  # in an agent's shell
    if own and not request.session and not read_state(home.settings.home, own).ended:
        found = read_session(home, own)
        if found and _is_of(home, found, request.folder):
            return found
    if request.session:
        found = read_session(home, request.session)
        if found is None:
            raise NotFound(
                f"no session is called {request.session!r}", hint="nacre sessions lists them"
            )
        if own and home.actor.is_agent and found.session.id != own:
            raise InvalidInput("an agent hands over its own session", hint="leave --session out")
        return found
    read_recent(home)
    project = project_of_folder(home, Path(request.folder)) if request.folder else None
    newest = (
        home.sessions.newest(SessionFilter(project=project, kind=SessionKind.MAIN), limit=1)
        if project
        else []
    )
    if not newest:
        raise NotFound(
            "no session of this project was read yet",
            hint="nacre ingest reads them; --session names one",
        )
    return find_session(home, newest[0].session.id) or newest[0]
