"""What a hook of a host is answered, whichever host it is."""

from __future__ import annotations

from dataclasses import replace

from nacre.context import before_tool, nudges
from nacre.context.build import build, is_held_out
from nacre.context.frame import framed
from nacre.context.session_state import read_state
from nacre.home.home import Home
from nacre.text.passages import count_tokens
from nacre.values.context import HELD_OUT, ContextRequest, Moment, Occasion, Part, SessionState
from nacre.values.hooks import HookAnswer, HookCall, HookEvent

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
        return HookAnswer(state=replace(known, name=call.session, folder=call.folder or "", ended=now))
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
            return HookAnswer(chores=(STARTED,), state=SessionState(owed=occasion) if is_missed else None)
    asked = ContextRequest(
        moment, occasion, call.prompt, call.folder, call.session or None, call.budget_tokens,
        alone=call.alone, signals=call.signals,
    )  # fmt: skip
    block = build(home, asked)
    chores = (STARTED,) if moment is Moment.START and call.session else ()
    return HookAnswer(block.text, block.tokens, chores, block.state, held_out=block.gate == HELD_OUT)


def _during_turn(home: Home, call: HookCall) -> HookAnswer:
    """A rule for what a tool is about to do, or what is asked as a turn ends."""
    if not call.is_apart and is_held_out(home, call.session):
        return HookAnswer(held_out=True)
    return before_tool.answer(home, call) if call.event is HookEvent.TOOL else _asked(home, call)


def _asked(home: Home, call: HookCall) -> HookAnswer:
    """Ask the agent for proposals, once a session, where the owner wants that."""
    if call.is_apart or call.goes_on or not call.session or not nudges.is_asked_for_proposals(home, call.host):
        return HookAnswer()
    state = read_state(home.settings.home, call.session)
    if not nudges.is_to_propose(home, state):
        return HookAnswer()
    text = framed([(Part.NUDGE, [nudges.PROPOSE])])
    return HookAnswer(text, count_tokens(text), state=nudges.asked_to_propose(state))
