"""What is added to a context: what was handed over, what other sessions learned just now, a reminder."""

from __future__ import annotations

from dataclasses import replace

from nacre.app import signals
from nacre.app.contexts import handed, nudging
from nacre.app.contexts.additions import Added, Addition, Asked
from nacre.app.contexts.session_state import just_ended
from nacre.model.context import ContextItem, LeftOut, Moment, Occasion, Part, SessionState
from nacre.model.memory import Memory
from nacre.recall.context.framing import line_of, quoted
from nacre.text import count_tokens, harmless, shorten

_ALWAYS = frozenset(Moment)
_WITH_PROMPTS = frozenset({Moment.PROMPT})
_FORGOT = frozenset({Occasion.COMPACT, Occasion.CLEAR})
"""After these a session has nothing of its own in sight any more, also where it keeps its name."""

_SESSION_CHARACTERS = 80


def _handed_over(asked: Asked) -> Added:
    """What the last sessions handed over to this one, each to one session alone; late where it comes with a prompt."""
    context, request, state = asked.context, asked.request, asked.state
    is_start = request.moment is Moment.START
    if not is_start and (state.handed or not request.session):
        return Added()
    is_late = not is_start and state.started > 0
    if not is_late and request.occasion is not Occasion.RESUME:  # where its start was missed, this is it
        state = replace(state, started=_now_ms(asked), handed=False)
    items, left = [], []
    for memory in handed.due(context, asked.project, request.session, own=request.occasion in _FORGOT):
        if memory.id in state.given:
            continue
        is_due = handed.is_late(memory, state.started) or handed.is_held(context, memory, request.session)
        if is_late and not is_due:
            continue
        if handed.claim(context, memory, request.session):
            items.append(_handoff(memory))
        else:
            left.append(LeftOut(Part.HANDOFF, memory.id, "another session is given it"))
    return Added(
        tuple(items), tuple(left), replace(state, handed=state.handed or bool(items)),
        lambda item: handed.let_go(context, str(item.ref), request.session),
    )  # fmt: skip


def _handoff(memory: Memory) -> ContextItem:
    session = shorten(harmless(memory.source.session or "somewhere"), _SESSION_CHARACTERS)
    origin = f"{session}, {memory.updated:%Y-%m-%d %H:%M} UTC"
    text = "\n".join([f"From {origin}:", *quoted(memory.content)])
    why = f"handed over by {origin}"
    return ContextItem(Part.HANDOFF, text, count_tokens(text), memory.id, memory.updated, why=why)


def _heard(asked: Asked) -> Added:
    """What other sessions stored just now that matters here; a session listens from its first context on."""
    context, request = asked.context, asked.request
    if not request.session:
        return Added()
    state = _noted(asked, request.session)
    if request.moment is Moment.START:
        return Added(state=signals.begun(context, state))
    due = signals.due(context, state, asked.project)
    told = [memory for _, memory in due.memories if "prompt" not in memory.suppressed_contexts]
    after = signals.begun(context, due.given(state, len(due.memories), len(told), _now_ms(asked)))
    return Added(tuple(map(_signal, told)), state=after)


def _noted(asked: Asked, session: str) -> SessionState:
    """The state with who the session is and where, and which ones it goes on from, where it begins."""
    now, folder, state = _now_ms(asked), asked.request.folder or "", asked.state
    after = state.after
    if asked.request.moment is Moment.START or not state.name:
        after = tuple(dict.fromkeys((*after, *just_ended(asked.context.settings.home, session, folder, now))))
    return replace(state, name=session, folder=folder, seen=now, ended=0, after=after)


def _signal(memory: Memory) -> ContextItem:
    text = line_of(memory)
    why = "stored by another session just now"
    return ContextItem(Part.SIGNALS, text, count_tokens(text), memory.id, memory.updated, why=why)


def _reminded(asked: Asked) -> Added:
    """A reminder that something may be worth storing."""
    state = nudging.counted(asked.context, asked.state, asked.request.session, asked.project)
    if not nudging.is_due(state):
        return Added(state=state)
    why = f"nothing stored in {nudging.TURNS} turns"
    item = ContextItem(Part.NUDGE, nudging.TEXT, count_tokens(nudging.TEXT), why=why)
    return Added((item,), state=nudging.nudged(state))


def _now_ms(asked: Asked) -> int:
    return int(asked.context.clock().timestamp() * 1000)


ADDITIONS: tuple[Addition, ...] = (
    Addition(Part.HANDOFF, _ALWAYS, _handed_over),
    Addition(Part.SIGNALS, _ALWAYS, _heard),
    Addition(Part.NUDGE, _WITH_PROMPTS, _reminded),
)
"""In the order in which they are asked."""
