"""What is added to a context: what was handed over, what other sessions learned just now, a reminder."""

from __future__ import annotations

from dataclasses import replace

from nacre.context import nudges, signals
from nacre.context.additions import Added, Addition, Recipient
from nacre.context.frame import line_of, quoted
from nacre.context.handoff import delivery
from nacre.context.session_state import just_ended
from nacre.text.passages import count_tokens, harmless, shorten
from nacre.values.context import ContextItem, LeftOut, Moment, Occasion, Part, SessionState
from nacre.values.handoff import Handoff
from nacre.values.memory import Memory

_ALWAYS = frozenset(Moment)
_WITH_PROMPTS = frozenset({Moment.PROMPT})
_FORGOT = frozenset({Occasion.COMPACT, Occasion.CLEAR})
"""After these a session has nothing of its own in sight any more, also where it keeps its name."""

_SESSION_CHARACTERS = 80


def _handed_over(asked: Recipient) -> Added:
    """What the last sessions handed over to this one, each to one session alone; late where it comes with a prompt."""
    context, request, state = asked.home, asked.request, asked.state
    is_start = request.moment is Moment.START
    if not is_start and (state.handed or not request.session):
        return Added()
    is_late = not is_start and state.started > 0
    if not is_late and request.occasion is not Occasion.RESUME:  # where its start was missed, this is it
        state = replace(state, started=_now_ms(asked), handed=False)
    items, left = [], []
    for handoff in delivery.due(context, asked.project, request.session, own=request.occasion in _FORGOT):
        if handoff.id in state.given:
            continue
        is_due = delivery.is_late(handoff, state.started) or delivery.is_held(context, handoff, request.session)
        if is_late and not is_due:
            continue
        if delivery.claim(context, handoff, request.session):
            items.append(_handoff(handoff))
        else:
            left.append(LeftOut(Part.HANDOFF, handoff.id, "another session is given it"))
    return Added(
        tuple(items), tuple(left), replace(state, handed=state.handed or bool(items)),
        lambda item: delivery.let_go(context, str(item.ref), request.session),
    )  # fmt: skip


def _handoff(handoff: Handoff) -> ContextItem:
    origin = f"{shorten(harmless(handoff.session), _SESSION_CHARACTERS)}, {handoff.written:%Y-%m-%d %H:%M} UTC"
    text = "\n".join([f"From {origin}:", *quoted(handoff.content)])
    why = f"handed over by {origin}"
    return ContextItem(Part.HANDOFF, text, count_tokens(text), handoff.id, handoff.written, why=why)


def _heard(asked: Recipient) -> Added:
    """What other sessions stored just now that matters here; a session listens from its first context on."""
    context, request = asked.home, asked.request
    if not request.session:
        return Added()
    state = _noted(asked, request.session)
    if request.moment is Moment.START:
        return Added(state=signals.begun(context, state))
    due = signals.due(context, state, asked.project)
    told = [memory for _, memory in due.memories if "prompt" not in memory.suppressed_contexts]
    after = signals.begun(context, due.given(state, len(due.memories), len(told), _now_ms(asked)))
    return Added(tuple(map(_signal, told)), state=after)


def _noted(asked: Recipient, session: str) -> SessionState:
    """The state with who the session is and where, and which ones it goes on from, where it begins."""
    now, folder, state = _now_ms(asked), asked.request.folder or "", asked.state
    after = state.after
    if asked.request.moment is Moment.START or not state.name:
        after = tuple(dict.fromkeys((*after, *just_ended(asked.home.settings.home, session, folder, now))))
    return replace(state, name=session, folder=folder, seen=now, ended=0, after=after)


def _signal(memory: Memory) -> ContextItem:
    text = line_of(memory)
    why = "stored by another session just now"
    return ContextItem(Part.SIGNALS, text, count_tokens(text), memory.id, memory.updated, why=why)


def _reminded(asked: Recipient) -> Added:
    """A reminder that something may be worth storing."""
    state = nudges.counted(asked.home, asked.state, asked.request.session, asked.project)
    if not nudges.is_due(state):
        return Added(state=state)
    why = f"nothing stored in {nudges.TURNS} turns"
    item = ContextItem(Part.NUDGE, nudges.TEXT, count_tokens(nudges.TEXT), why=why)
    return Added((item,), state=nudges.nudged(state))


def _now_ms(asked: Recipient) -> int:
    return int(asked.home.clock().timestamp() * 1000)


ADDITIONS: tuple[Addition, ...] = (
    Addition(Part.HANDOFF, _ALWAYS, _handed_over),
    Addition(Part.SIGNALS, _ALWAYS, _heard),
    Addition(Part.NUDGE, _WITH_PROMPTS, _reminded),
)
"""In the order in which they are asked."""
