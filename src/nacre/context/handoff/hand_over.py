"""Hand a session over to the next one of its project: at once without a model, better once a model was asked.

A handoff is a memory: an event of importance 9, tagged ``handoff`` and ``session``. A session has one at most that
nobody was given yet; what is said later, and what a model makes of it, takes its place in one transaction: there is
always one of them, and never two.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from nacre.context.gate import is_trivial
from nacre.context.handoff import delivery
from nacre.context.handoff.by_model import HandoffAnswer, borne_out, handoff_prompt, shown_turns
from nacre.context.handoff.by_rules import Handoff, by_rules, last_turn
from nacre.context.handoff.delivery import BY_RULES
from nacre.errors import AnswerUnusable
from nacre.history.undo import UNDO
from nacre.home.home import Home
from nacre.home.operations import subject_of
from nacre.home.redaction import redacted
from nacre.llm.answers import ask
from nacre.memories.scan import catch_up
from nacre.memories.store import retire
from nacre.spending.models import model_for
from nacre.spending.tracing import tracing
from nacre.values.filters import SessionFilter
from nacre.values.handoff import HANDED_FOR
from nacre.values.memory import HANDOFF_TAGS, Confidence, Expiry, Kind, Memory, Source
from nacre.values.model_calls import Task
from nacre.values.session import SessionKind, Speaker, StoredSession, Turn
from nacre.values.trace import TraceKind

HAND_OVER = "handoff"
"""What the ledger calls it."""

IMPORTANCE = 9
LATE_FOR = timedelta(days=1)
"""A session that ended longer ago is not handed over late (seed facts 1.8)."""

QUIET = timedelta(minutes=2)
"""So long it must have been silent: who still talks in another window has not ended."""

KEPT_FOR = HANDED_FOR
"""So long a handoff that was given is kept among the retired; what it said is in the history then."""

_MOST_TURNS = 400
_MOST_DROPPED = 50
_NEWEST = 3


def hand_over(home: Home, session: StoredSession, words: str | None = None) -> Memory | None:
    """Store what a session hands over, as far as it was read, without a model; the memory, if anything is new.

    ``words`` are those of whoever runs nacre, instead of what the owner said last. ``None`` for a session in which
    nobody works (sub-agents, scheduled runs, heartbeats), of no project, which only said hello, or of which nothing was
    said since it was handed over. What was written better stays until the owner says more. Raises what writing raises.
    """
    if session.session.kind is not SessionKind.MAIN or not session.project:
        return None
    turns = _turns(home, session)
    made = by_rules(session.session, turns, is_trivial)
    if made is None and not words:
        return None
    with home.change(HAND_OVER, why=f"where {session.session.id} stands") as change:
        catch_up(home)
        before = _of_session(home, session.session.id)
        active = next((one for one in before if not (one.retired or one.superseded_by)), None)
        if made and not words:
            if any(_told(one).get("until") == made.until for one in before):
                return None
            if active and _told(active).get("by") != BY_RULES and _told(active).get("asked") == made.asked:
                return active
        memory = redacted(home.redactor, _memory(home, session, turns, _Written.of(home, made, words), active))
        change.describe(subject=memory.subject)
        with change.transaction():
            change.put([memory])
        return memory


def improve(home: Home, session: StoredSession, *, background: bool = True) -> Memory | None:
    """Have a model write what a session hands over, where one is set for that; the memory as it is now.

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
    with home.change(HAND_OVER, why="a model wrote it") as change:
        catch_up(home)
        present = home.memories.find(before.id)
        if present is None or present.retired or present.content != before.content:
            return None
        told = {**_told(present), "until": last.id, "at": _time_of(last, home), "by": by}
        better = replace(present, content=text, updated=home.now(), extra={**present.extra, HAND_OVER: told})
        better = redacted(home.redactor, better)
        change.describe(subject=better.subject)
        with change.transaction():
            change.put([better])
        return better


def hand_over_late(home: Home, project: str, *, before: datetime, but: str) -> Memory | None:
    """Store what the last session of a project hands over, where it ended before a time and nobody said so.

    ``but`` is the session that begins.
    """
    wanted = SessionFilter(project=project, kind=SessionKind.MAIN)
    for session in home.sessions.newest(wanted, limit=_NEWEST):
        if session.session.id == but or session.ended is None or session.ended > before - QUIET:
            continue
        return hand_over(home, session) if before - session.ended <= LATE_FOR else None
    return None


def retire_given(home: Home) -> list[Memory]:
    """Retire the handoffs that reached another session, and those that nobody is given any more for their age."""
    retired: list[Memory] = []
    for memory_id, session in list(delivery.delivered(home)):
        memory = home.memories.find(memory_id)
        if memory and not (memory.retired or memory.superseded_by):
            retired += retire(home, [memory_id], f"handed over to {session}")
        delivery.forget_claim(home, memory_id)
    stale = home.memories.stale_handoffs(home.now() - HANDED_FOR)
    if stale:
        retired += retire(home, stale, "no session began in time to be given it")
    drop_former(home)
    return retired


def drop_former(home: Home) -> int:
    """Take away what was retired more than a week ago, in one operation, which can be undone; returns how many.

    What an undo brought back stays: a person wanted it.
    """
    before = home.now() - KEPT_FOR
    if not home.memories.former_handoffs(before):
        return 0
    with home.change(HAND_OVER, why="it was handed over long ago") as change:
        catch_up(home)
        former = home.memories.in_any_state(home.memories.former_handoffs(before))
        going = [one for one in former if not _was_brought_back(home, one)][:_MOST_DROPPED]
        if going:
            change.describe(subject=subject_of(going))
            with change.transaction():
                for one in going:
                    change.remove(one)
        return len(going)


def _was_brought_back(home: Home, memory: Memory) -> bool:
    last = home.journal.operations(memory=memory.id, limit=1)
    return bool(last) and last[0].action == UNDO


def latest(home: Home, project: str | None) -> Memory | None:
    """The latest handoff of a project that waits for a session, or, where none does, that one was given."""
    if not project:
        return None
    since = home.now() - HANDED_FOR
    waiting = home.memories.handoffs(project, since)
    return next(iter(waiting or home.memories.handoffs(project, since, in_any_state=True)), None)


@dataclass(frozen=True, slots=True)
class _Written:
    """What is handed over: the words, whose they are, who wrote them, and the owner's turn that they know of last."""

    content: str
    speaker: Speaker
    by: str
    asked: str

    @classmethod
    def of(cls, home: Home, made: Handoff | None, words: str | None) -> _Written:
        asked = made.asked if made else ""
        if words:
            speaker = home.actor.speaker
            return cls(words, speaker, speaker.value, asked)
        return cls(made.content if made else "", Speaker.SYSTEM, BY_RULES, asked)


def _turns(home: Home, session: StoredSession) -> list[Turn]:
    return [item.turn for item in home.sessions.last_turns(session.row, _MOST_TURNS)]


def _memory(
    home: Home, session: StoredSession, turns: list[Turn], written: _Written, before: Memory | None
) -> Memory:  # fmt: skip
    """A new handoff, or the one before it with other words.

    What nacre wrote is nobody's word: ``system``, ``inferred``. It names its session and none of its turns: what these
    teach is still to be learned.
    """
    now = home.now()
    last = last_turn(turns)
    subject = f"session handoff {_ended(last, now):%Y-%m-%d %H:%M}"
    told = {
        "until": last.id if last else "", "asked": written.asked, "at": _time_of(last, home), "by": written.by,
    }  # fmt: skip
    if before:
        return replace(
            before, content=written.content, speaker=written.speaker, updated=now,
            extra={**before.extra, HAND_OVER: told},
        )  # fmt: skip
    return Memory(
        id=home.ids(), kind=Kind.EVENT, subject=subject, content=written.content,
        created=now, updated=now, importance=IMPORTANCE, expiry=Expiry.TEMPORARY, project=session.project,
        tags=tuple(sorted(HANDOFF_TAGS)), speaker=written.speaker, confidence=Confidence.INFERRED,
        source=Source(session.session.id), extra={HAND_OVER: told},
    )  # fmt: skip


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


def _to_improve(home: Home, session: StoredSession, last: str) -> Memory | None:
    """The handoff of a session that waits, as the rules wrote it, or a model when less was said."""
    for one in _of_session(home, session.session.id):
        told = _told(one)
        is_open = not (one.retired or one.superseded_by) and told.get("by") not in (Speaker.AGENT, Speaker.OWNER)
        if is_open and (told.get("by") == BY_RULES or told.get("until") != last):
            return one
    return None


def _of_session(home: Home, session: str) -> list[Memory]:
    known = {one.id for one in home.memories.known_of(session)}
    found = home.memories.in_any_state(sorted(known))
    return sorted((one for one in found if one.is_handoff), key=lambda one: one.updated, reverse=True)


def _told(memory: Memory) -> dict[str, object]:
    told = memory.extra.get(HAND_OVER)
    return told if isinstance(told, dict) else {}


def _time_of(turn: Turn | None, home: Home) -> str:
    return _ended(turn, home.now()).isoformat()


def _ended(last: Turn | None, now: datetime) -> datetime:
    return last.time if last and last.time else now
