"""The time limit of hooks in these tests, which is long because they do not test speed.

``python -m benchmarks hooks`` measures the speed. ``HOSTS_HOOK_MS=138`` applies the real limit here, too.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_SECONDS = 0.5
_BUSY = 0.5

HOOK_MS = os.environ.get("HOSTS_HOOK_MS", "2400")
"""The time limit of hooks; 138 on a user's machine. Codex kills a hook at a session's end after 3 s."""


def is_busy() -> bool:
    """Return True if other processes use more than half of all processors."""
    idle, everything = _ticks()
    time.sleep(_SECONDS)
    idle_then, everything_then = _ticks()
    return 1 - (idle_then - idle) / max(1, everything_then - everything) > _BUSY


def _ticks() -> tuple[int, int]:
    """Return the idle and total processor ticks since the system started."""
    ticks = [
        int(word)
        for word in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]
    ]
    return ticks[3] + ticks[4], sum(ticks)
