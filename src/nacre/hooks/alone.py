"""What a hook answers where no daemon does: by words alone, from the database as it is; nothing is written."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import msgspec

from nacre.app import hooking
from nacre.app.context import open_context
from nacre.model.hooking import HookCall, HookEvent
from nacre.settings import load_settings


def answer(home: str, call: dict[str, Any]) -> str:
    """The context for a call of a hook; empty where there is none, or no home."""
    asked = msgspec.convert(call, HookCall)
    if asked.event not in (HookEvent.SESSION_START, HookEvent.PROMPT) or not os.path.isdir(home):
        return ""
    return hooking.answer(open_context(load_settings(home)), replace(asked, alone=True)).context
