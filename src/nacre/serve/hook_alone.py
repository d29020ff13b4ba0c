"""The read-only answer that a hook computes if no daemon is running."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from nacre.context import build
from nacre.home import home as home_home
from nacre.settings import load_settings
from nacre.values import context

PATIENCE_MS = 40
"""Maximum wait for a database lock, in milliseconds."""


def answer_alone(home: str, call: dict[str, Any]) -> dict[str, Any]:
    """Answer a hook call without a daemon. Return the fields of a
    :class:`nacre.values.context.HookAnswer`, or none if there is no home.
    """
    if not os.path.isdir(home):
        return {}
    limits = call.get("signals") or {}
    fields = {
        **call,
        "event": context.HookEvent(call["event"]),
        "occasion": context.Occasion(call["occasion"]),
        "signals": context.SignalLimits(
            **{
                name: limits[name]
                for name in context.SignalLimits.__annotations__
                if name in limits
            }
        ),
        "alone": True,
    }
    opened = home_home.open_to_read(load_settings(home), patience_ms=PATIENCE_MS)
    return asdict(build.answer(opened, context.HookCall(**fields)))
