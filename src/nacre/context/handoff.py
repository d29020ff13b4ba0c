"""Handoffs between sessions, written by rules or a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.text import identifiers, one_line, read_resource, shorten, words
from nacre.context import hooks
from nacre.context.build import is_trivial
from nacre.errors import InvalidInputError, NacreError, NotFoundError, UnusableAnswerError
from nacre.home import spending
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.learn import extract as learn_extract
from nacre.learn import ingest, prompts, reading, sentences
from nacre.llm import failures
from nacre.memories import edit
from nacre.operations import operation
from nacre.readers import trust
from nacre.sessions import summary
from nacre.sessions.topics import asks_for_work, is_idle, is_telling, open_ends, outcome, words_of
from nacre.values import models
from nacre.values.memory import SessionFilter
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
    Trust,
    Turn,
)

VERSION = "1"
MOST_TURNS = 50
MOST_CHARACTERS = 8_000
LEAST_TURNS = 4
LEAST_LINES = 3
MOST_WORDS = 500
"""Maximum number of words in a handoff."""

_TURN_CHARACTERS = 1_500
_ENTRY_CHARACTERS = 400
_OUTPUT_TOKENS = 1_500
_MIN_SUPPORTED_SHARE = 0.6
"""Minimum share of an entry's content words that the session must contain."""

_NUMBER = re.compile(r"\d[\d.,:]*")
_SPEAKERS = (Speaker.OWNER, Speaker.AGENT)


class HandoffAnswer(msgspec.Struct):
    """What a model answers: four lists of sentences."""

    working_on: list[str]
    key_findings: list[str]
    open_threads: list[str]
    important_facts: list[str]


def shown_turns(turns: Sequence[Turn]) -> list[Turn]:
    """Return the last trusted turns of the owner and the agent, which a model may read."""
    eligible = [
        reading.shorten_for_regex(turn)
        for turn in turns
        if turn.speaker in _SPEAKERS and sentences.is_content(turn) and turn.trust is Trust.TRUSTED
    ]
    return eligible[-MOST_TURNS:]


def handoff_prompt(
    turns: Sequence[Turn], able: models.Capabilities, seconds: float
) -> models.Prompt | None:
    """Return the prompt for a model to write a handoff, or ``None`` if the session is too short."""
    if (
        len(turns) < LEAST_TURNS
        or sum(len(turn.text.strip().splitlines()) for turn in turns) < LEAST_LINES
    ):
        return None
    latest_lines: list[str] = []
    room = MOST_CHARACTERS
    for turn in reversed(turns):
        words = prompts.as_data(shorten(turn.text.strip(), _TURN_CHARACTERS))
        line = f"{turn.speaker.value}: {words}"
        if latest_lines and len(line) + 1 > room:
            break
        latest_lines.append(line[:room])
        room -= len(line) + 1
    text = "\n".join(latest_lines[::-1])
    return models.Prompt(
        task=Task.HANDOFF,
        system=read_resource(__file__, f"prompts/handoff-{VERSION}.md"),
        text=f"{prompts.frame('session', text)}\n\nWrite the handoff.",
        answer=failures.schema_of(HandoffAnswer),
        name="handoff",
        version=f"handoff/{VERSION}",
        output_tokens=min(_OUTPUT_TOKENS, able.output),
        timeout_seconds=seconds,
    )


def _supports(text: str, text_words: Set[str], entry: str) -> bool:
    names = [*identifiers(entry), *_NUMBER.findall(entry)]
    entry_words = reading.content_words(entry)
    common = len(entry_words & text_words)
    return all(
        name.lower().rstrip(".,:") in text for name in names
    ) and common >= _MIN_SUPPORTED_SHARE * len(entry_words)


def _entries(entries: Sequence[str]) -> Iterator[str]:
    for entry in dict.fromkeys(entries):
        line = one_line(entry).strip(" -*•")
        if line:
            yield shorten(line, _ENTRY_CHARACTERS)


# -- Sessions worth a handoff -------------------------------------------------


def has_something(
    session: Session,
    turns: Sequence[Turn],
    spoken: Sequence[sentences.Utterance],
    telling: Sequence[sentences.Utterance],
) -> bool:
    """Return True if a session contains requested, done or unfinished work, or a decision.

    An answered question does not count. ``telling``: the owner's messages with content.
    """
    ended = outcome(turns, spoken)
    return (
        any(map(_is_work, telling))
        or any(
            call.outcome == "ok"
            and (
                reading.is_change(call)
                or bool(call.made)
                or (call.action is Action.RUN and summary.does(call) and not summary.is_check(call))
            )
            for turn in turns
            for call in turn.tool_calls
        )
        or ended.ending in (Ending.STOPPED, Ending.FAILED)
        or bool(open_ends(turns, spoken, ended))
        or bool(learn_extract.extract(session, turns))
    )


def _is_work(utterance: sentences.Utterance) -> bool:
    return any(asks_for_work(statement.text) for statement in utterance.statements)


# -- Handoffs by rules --------------------------------------------------------
# They quote the owner's last messages verbatim.


OWNER_TURNS = 3
OWNER_CHARACTERS = 200
_HEAD = "The owner said last in that session:"


@frozen
class LastWords:
    """A handoff written without a model. ``until``, ``request``: ids of its last turn and request."""

    content: str
    until: str
    request: str


def by_rules(session: Session, turns: Sequence[Turn]) -> LastWords | None:
    """Return the owner's last three messages as a handoff, or ``None`` if there is nothing to hand over.

    Each is cut to 200 characters. Pasted text and messages that only agree ("go on") are left out.
    """
    bounded_turns = [reading.shorten_for_regex(turn) for turn in turns]
    spoken = [
        item
        for item in sentences.utterances(bounded_turns)
        if bounded_turns[item.index].speaker is Speaker.OWNER
        and bounded_turns[item.index].trust is Trust.TRUSTED
    ]
    outside = next(
        (at for at, turn in enumerate(bounded_turns) if trust.reached_out([turn], 0)),
        len(bounded_turns),
    )
    messages = [(item, _without_pasted(item, is_outside=item.index >= outside)) for item in spoken]
    telling = [
        (item, text)
        for item, typed in messages
        if (text := words_of(bounded_turns[item.index], typed)).strip()
        and not (is_idle(text) or is_trivial(text))
    ]
    until = last_turn(turns)
    texts = [
        text
        for item, text in telling
        if is_telling(text)
        and not sentences.language_of(text).summary.onward.match(text)
        and not text.rstrip().endswith((":", "："))  # the pasted text is missing
        # Only the last question may be open.
        and (item is telling[-1][0] or _is_work(item) or not text.rstrip().endswith(("?", "？")))
    ][-OWNER_TURNS:]
    if (
        not texts
        or until is None
        or not has_something(session, bounded_turns, spoken, [item for item, _ in telling])
    ):
        return None
    lines = [f"- {shorten(text, OWNER_CHARACTERS)}" for text in texts]
    return LastWords("\n".join([_HEAD, *lines]), until.id, bounded_turns[telling[-1][0].index].id)


def _without_pasted(utterance: sentences.Utterance, *, is_outside: bool) -> sentences.Utterance:
    text = reading.own_words(
        sentences.without_chosen(utterance.text) if is_outside else utterance.text
    )
    typed = tuple(
        statement
        for statement in utterance.statements
        if text
        and not (
            reading.may_be_others(statement)
            or (is_outside and sentences.is_chosen(utterance, statement))
        )
    )
    return replace(utterance, text=text, statements=typed)


def last_turn(turns: Sequence[Turn]) -> Turn | None:
    """Return the last turn of the owner or agent that has content."""
    spoken = (
        turn for turn in reversed(turns) if sentences.is_content(turn) and turn.speaker in _SPEAKERS
    )
    return next(spoken, None)


# -- Storing handoffs ---------------------------------------------------------
# Rules write a handoff immediately, and a model improves it later. A session has at most one
# undelivered handoff, which later versions replace.


LATE_FOR = timedelta(days=1)
"""Maximum delay of a handoff after the session's end."""

QUIET = timedelta(minutes=2)
"""Time without activity after which a session counts as ended. Before, it might be active in another window."""

_MAX_TURNS = 400
_MAX_SESSIONS = 3


def hand_over(home: Home, session: StoredSession, words: str | None = None) -> Handoff | None:
    """Store and return a handoff with ``words``, by default the owner's last messages.

    Return ``None`` if the session is automated, has no project or no work to hand over, or has not
    changed since the last handoff. A handoff by a model is kept until the owner makes a new
    request. Raises StoreBusyError or UnusableStoreError.
    """
    if session.session.kind is not SessionKind.MAIN or not session.project:
        return None
    turns = _turns(home, session)
    last_words = by_rules(session.session, turns)
    content, by = (
        (words, home.actor.speaker.value)
        if words
        else (last_words.content if last_words else "", BY_RULES)
    )
    if not content:
        return None
    now, last, request_id = home.now(), last_turn(turns), last_words.request if last_words else ""
    with home.vault_lock:
        if not home.sessions.find(session.session.id):  # the session was forgotten in the meantime
            return None
        before = home.handoffs.of_session(session.session.id)
        delivered = {handoff for handoff, _ in hooks.iter_delivered(home)}
        pending = next((item for item in before if not (item.given or item.id in delivered)), None)
        if last_words and not words:
            if any(item.until == last_words.until for item in before):
                return None
            if pending and pending.by != BY_RULES and pending.asked == request_id:
                return pending
        new_handoff = Handoff(
            pending.id if pending else home.ids(),
            pending.project if pending else session.project,
            session.session.id,
            home.redactor.clean(content),
            by,
            now,
            _time_of(last, now),
            last.id if last else "",
            request_id,
        )
        home.handoffs.write(new_handoff)
        return new_handoff


def improve(home: Home, session: StoredSession, *, background: bool = True) -> Handoff | None:
    """Let a model rewrite a session's handoff, and return the new one.

    Return ``None`` and keep the old one if there is no model, if it is up to date, if it was
    delivered or changed meanwhile, or if the session does not support the new text. Raises the
    model's errors.
    """
    turns = _turns(home, session)
    last = last_turn(turns)
    before = next(
        (
            item
            for item in home.handoffs.of_session(session.session.id)
            if not item.given
            and item.by not in _SPEAKERS
            and (item.by == BY_RULES or (last and item.until != last.id))
        ),
        None,
    )
    if before is None or last is None:
        return None
    answer = _ask(home, turns, background=background)
    if not answer:
        return None
    text, by = answer
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
    """Store a handoff for a project's last session if nacre was not notified of its end.

    That session must have ended before ``before``. ``but`` is the current one, which is skipped.
    """
    criteria = SessionFilter(project=project, kind=SessionKind.MAIN)
    for session in home.sessions.newest(criteria, limit=_MAX_SESSIONS):
        if session.session.id == but or session.ended is None or session.ended > before - QUIET:
            continue
        return hand_over(home, session) if before - session.ended <= LATE_FOR else None
    return None


def put_away(home: Home) -> None:
    """Record the handoffs that were delivered, and delete those older than ``HANDED_FOR``."""
    delivered = list(hooks.iter_delivered(home))
    before = home.now() - HANDED_FOR
    handoffs = (*home.handoffs.everything(), *home.handoffs.damaged())
    if not delivered and all(item.written >= before for item in handoffs):
        return
    with home.vault_lock:
        for handoff_id, session in delivered:
            delivered_handoff = home.handoffs.find(handoff_id)
            if delivered_handoff and delivered_handoff.given != session:
                home.handoffs.write(replace(delivered_handoff, given=session))
            hooks.forget_claim(home, handoff_id)
        for item in handoffs:
            if item.written < before:
                home.handoffs.remove(item)
                hooks.forget_claim(home, item.id)


def latest(home: Home, project: str | None) -> Handoff | None:
    """Return a project's latest undelivered handoff, or else its latest delivered one."""
    since = home.now() - HANDED_FOR
    handoffs = home.handoffs.of_project(project) if project else []
    return next((item for item in handoffs if item.written >= since), None)


def _turns(home: Home, session: StoredSession) -> list[Turn]:
    return [item.turn for item in home.sessions.last_turns(session.row, _MAX_TURNS)]


def _ask(home: Home, turns: list[Turn], *, background: bool) -> tuple[str, str] | None:
    model_turns = shown_turns(turns)
    model = spending.model_for(home, Task.HANDOFF, background=background)
    if model is None:
        return None
    with closing(model):
        prompt = handoff_prompt(
            model_turns, model.capabilities, home.settings.number("models.timeout_seconds")
        )
        if prompt is None:
            return None
        try:
            answer = failures.ask(model, prompt, HandoffAnswer)
            text = " ".join(turn.text for turn in model_turns).lower()
            text_words = {word for turn in model_turns for word in reading.content_words(turn.text)}
            words_left = MOST_WORDS
            sections = []
            for name in HandoffAnswer.__struct_fields__:
                supported = []
                for entry in _entries(getattr(answer, name)):
                    size = len(words(entry))
                    if size <= words_left and _supports(text, text_words, entry):
                        supported.append(f"- {entry}")
                        words_left -= size
                if supported:
                    title = name.replace("_", " ").capitalize()
                    sections.append("\n".join([f"{title}:", *supported]))
        except UnusableAnswerError:
            return None
        return ("\n\n".join(sections), model.name) if sections else None


def _time_of(turn: Turn | None, now: datetime) -> datetime:
    return turn.time if turn and turn.time else now


# -- The ``handoff`` operation ------------------------------------------------


NOTHING = (
    "that session leaves nothing to hand over: no request, change, decision or open work. "
    'To write a handoff yourself: nacre context --handoff --store "…"'
)


@operation("handoff", writes=True, http=False)
def handoff(
    home: Home,
    *,
    folder: Annotated[
        str | None, bounds("The agent's working folder, which determines the project.")
    ] = None,
    store: Annotated[bool, bounds("Hand over the session now.")] = False,
    session: Annotated[
        str | None,
        bounds("As <tool>:<id>; default: the agent's own, else the folder's last."),
    ] = None,
    words: Annotated[str | None, bounds("The text; default: the owner's last messages.")] = None,
) -> HandoffView:
    """Return a project's latest handoff. With ``store``, make a new one. Raises NotFoundError, InvalidInputError."""
    edit.catch_up(home)
    if store:
        stored = _session(home, session, folder)
        words = (words or "").strip() or None
        if words and home.actor.is_agent and _is_from_outside(home, stored, words):
            raise InvalidInputError(
                "these words come from external text that the session read, and cannot be handed over",
                hint="describe the remaining work in your own words",
            )
        new_handoff = hand_over(home, stored, words)
        note = None
        if new_handoff and not words:
            try:
                new_handoff = improve(home, stored, background=False) or new_handoff
            except NacreError as error:
                note = f"no model wrote it: {error.message}"
        current = new_handoff or latest(home, stored.project)
        is_known = current is not None and current.session == stored.session.id
        if stored.project and not (new_handoff or words or is_known):
            note = NOTHING
        is_waiting = current is not None and not current.given
        return HandoffView(stored.project, current, is_waiting, new_handoff is not None, note)
    project = project_of_folder(home, folder)
    current = latest(home, project)
    return HandoffView(project, current, current is not None and not current.given)


def _is_from_outside(home: Home, session: StoredSession, words: str) -> bool:
    cursor = home.sessions.cursor(session.file) if session.file else None
    return (
        cursor is not None
        and trust.Exchange(cursor[1].carry.get("exchange")).trust_of(words) is Trust.UNTRUSTED
    )


def _session(home: Home, reference: str | None, folder: str | None) -> StoredSession:
    own = home.settings.session  # in an agent's shell
    if own and not reference and not hooks.read_state(home.settings.home, own).ended:
        session = ingest.read_session(home, own)
        project = project_of_folder(home, folder)
        if session and project in (None, session.project):
            return session
    if reference:
        session = ingest.read_session(home, reference)
        if session is None:
            raise NotFoundError(
                f"there is no session {reference!r}", hint="nacre sessions lists them"
            )
        if own and home.actor.is_agent and session.session.id != own:
            raise InvalidInputError(
                "an agent can only hand over its own session", hint="leave --session out"
            )
        return session
    ingest.read_recent(home)
    project = project_of_folder(home, folder)
    newest = (
        home.sessions.newest(SessionFilter(project=project, kind=SessionKind.MAIN), limit=1)
        if project
        else []
    )
    if not newest:
        raise NotFoundError(
            "no session of this project is known", hint="run nacre ingest, or give --session"
        )
    return ingest.find_session(home, newest[0].session.id) or newest[0]
