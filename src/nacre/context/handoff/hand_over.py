"""Hand a session over to the next one of its project: at once without a model, better once a model was asked.

A session has one handoff at most that nobody was given yet; what is said later, and what a model makes of it, takes its
place in one write: there is always one of them, and never two.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta

from nacre.context.gate import is_trivial
from nacre.context.handoff import delivery
from nacre.context.handoff.by_model import HandoffAnswer, borne_out, handoff_prompt, shown_turns
from nacre.context.handoff.by_rules import by_rules, last_turn
from nacre.errors import AnswerUnusable
from nacre.home.home import Home
from nacre.llm.answers import ask
from nacre.spending.models import model_for
from nacre.spending.tracing import tracing
from nacre.values.filters import SessionFilter
from nacre.values.handoff import BY_RULES, HANDED_FOR, Handoff
from nacre.values.model_calls import Task
from nacre.values.session import SessionKind, Speaker, StoredSession, Turn
from nacre.values.trace import TraceKind

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
    content, by = (words, home.actor.speaker.value) if words else (told.content if told else "", BY_RULES)
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
            waiting.id if waiting else home.ids(), waiting.project if waiting else session.project, session.session.id,
            home.redactor.clean(content), by, now, _time_of(last, now), last.id if last else "", asked,
        )  # fmt: skip
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
            before, content=home.redactor.clean(text), by=by, written=now, said=_time_of(last, now), until=last.id
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


def _ask(home: Home, turns: list[Turn], session: str, *, background: bool) -> tuple[str, str] | None:
    """What a model writes, as far as the session bears it out, and the model's name."""
    shown = shown_turns(turns)
    model = model_for(home, Task.HANDOFF, background=background)
    if model is None:
        return None
    with closing(model), tracing(home, TraceKind.HANDOFF, f"handoff of {session}") as run:
        prompt = handoff_prompt(shown, model.capabilities, home.settings.number("models.timeout_seconds"))
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
