"""What a hook answers where no daemon does: by words alone, from the database as it is; nothing is written."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from nacre.context.hook_answers import answer as answer_call
from nacre.home.home import open_to_read
from nacre.settings import load_settings
from nacre.values.context import Occasion, SignalLimits
from nacre.values.hooks import HookCall, HookEvent

PATIENCE_MS = 40
"""So long a lock of the database's is waited for."""


def answer(home: str, call: dict[str, Any]) -> dict[str, Any]:
    """A :class:`nacre.values.hooks.HookAnswer` to a call, as the daemon would send it; empty where there is no home.

    Raises NacreError.
    """
    if not os.path.isdir(home):
        return {}
    limits = SignalLimits(**call["signals"]) if call.get("signals") else None
    event, occasion = HookEvent(call["event"]), Occasion(call["occasion"])
    known = {**call, "event": event, "occasion": occasion, "signals": limits, "alone": True}
    return asdict(answer_call(open_to_read(load_settings(home), patience_ms=PATIENCE_MS), HookCall(**known)))
