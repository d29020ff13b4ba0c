"""What is added to a context: what was handed over, what other sessions learned just now, a reminder.

An addition looks at what is asked for and at the session's state, and answers with items of its part and the state as
it is once they were told. It only reads, waits for no lock, and is light: hooks without the daemon run it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nacre.context import nudges, signals
from nacre.context.draft import SAID
from nacre.context.frame import line_of, quoted
from nacre.context.handoff import delivery
from nacre.context.session_state import just_ended
from nacre.context.told import Told
from nacre.home.home import Home
from nacre.platform.days import shown_minute
from nacre.text.passages import count_tokens, harmless, shorten
from nacre.values.context import ContextItem, ContextRequest, LeftOut, Moment, Occasion, Part, SessionState
from nacre.values.handoff import BY_RULES, Handoff
from nacre.values.memory import Memory
from nacre.values.session import Speaker

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
    if not is_late and request.occasion is not Occasion.RESUME:  # where its start was missed, this is it
        state = replace(state, started=_now_ms(asked), handed=False)
    items, left, told = [], [], Told()
    for handoff in delivery.due(context, asked.project, request.session, own=request.occasion in _FORGOT):
        if handoff.id in state.given:
            continue
        is_due = delivery.is_late(handoff, state.started) or delivery.is_held(context, handoff, request.session)
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
        tuple(items), tuple(left), replace(state, handed=state.handed or bool(items)),
        lambda item: delivery.let_go(context, str(item.ref), request.session),
    )  # fmt: skip


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
        return Added(state=signals.begun(context, state))
    limits = signals.limits_of(context.settings, request.signals)
    due = signals.due(context, state, asked.project, limits)
    told = [memory for _, memory in due.memories if not asked.reason_against(memory)]
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
