"""How long hooks may take here: as long as on a user's machine, unless others keep this one busy."""

from __future__ import annotations

import os
import time
from pathlib import Path

_SECONDS = 0.5
_BUSY = 0.5
_SLACK_MS = "3000"

GIVEN = os.environ.get("HOSTS_HOOK_MS")
"""The one knob: so many milliseconds; 138 is what hooks have. Without it a busy machine is given more, and says so."""


def hook_ms() -> str:
    """What hooks may take, in milliseconds; empty for what they have anyway.

    A hook that looks by itself needs 100 ms of a processor, of the 138 that it has: where others leave it less than
    that, nothing is proved by its being late. ``python -m benchmarks hooks`` measures how quick hooks are.
    """
    if GIVEN is not None:
        return GIVEN
    return _SLACK_MS if _busy_share() > _BUSY else ""


def _busy_share() -> float:
    """How much of all processors others take, while nothing of ours runs."""
    idle, everything = _ticks()
    time.sleep(_SECONDS)
    idle_then, everything_then = _ticks()
    return 1 - (idle_then - idle) / max(1, everything_then - everything)


def _ticks() -> tuple[int, int]:
    """How long all processors were idle, and altogether, since the system started; in ticks."""
    ticks = [int(word) for word in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)
