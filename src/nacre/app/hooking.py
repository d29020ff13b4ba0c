"""What a hook of a host is answered, whichever host it is."""

from __future__ import annotations

from nacre.app.context import Context
from nacre.app.contexts.building import build
from nacre.model.context import ContextRequest, Moment
from nacre.model.hooking import HookAnswer, HookCall, HookEvent

STARTED = "session-start"
"""The chore that follows a start: what was handed over is retired, what ended unseen is handed over late."""

_MOMENTS = {HookEvent.SESSION_START: Moment.START, HookEvent.PROMPT: Moment.PROMPT}


def answer(context: Context, call: HookCall) -> HookAnswer:
    """The context of a session's start or a prompt; nothing for the rest, and for sessions nobody talks in."""
    moment = _MOMENTS.get(call.event)
    if moment is None or call.is_apart:
        return HookAnswer()
    asked = ContextRequest(
        moment, call.occasion, call.prompt, call.folder, call.session or None, alone=call.alone
    )  # fmt: skip
    block = build(context, asked)
    chores = (STARTED,) if moment is Moment.START and call.session else ()
    return HookAnswer(block.text, block.tokens, chores, block.state)
