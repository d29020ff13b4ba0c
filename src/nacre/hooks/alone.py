"""What a hook answers where no daemon does: by words alone, from the database as it is; nothing is written."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from nacre.app.context import open_context
from nacre.app.contexts.building import build
from nacre.model.context import ContextRequest, Moment
from nacre.model.hooking import HookCall, HookEvent
from nacre.settings import load_settings


def answer(home: str, call: dict[str, Any]) -> str:
    """The context for a call of a hook; empty where there is none, or no home."""
    asked = msgspec.convert(call, HookCall)
    if asked.event not in (HookEvent.SESSION_START, HookEvent.PROMPT) or not os.path.isdir(home):
        return ""
    moment = Moment.START if asked.event is HookEvent.SESSION_START else Moment.PROMPT
    session = f"{asked.host}:{asked.session}" if asked.session else None
    request = ContextRequest(moment, asked.occasion, asked.prompt, asked.folder, session, alone=True)
    return build(open_context(load_settings(home)), request).text
