"""How long hooks may take here: long, as whether nacre is right is no matter of time.

``python -m benchmarks hooks`` measures how quick hooks are; ``HOSTS_HOOK_MS=138`` has them be so here, too.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_SECONDS = 0.5
_BUSY = 0.5

HOOK_MS = os.environ.get("HOSTS_HOOK_MS", "3000")
"""So many milliseconds; 138 is what hooks have on a user's machine."""


def is_busy() -> bool:
    """Whether others keep more than half of all processors busy, while nothing of ours runs."""
    idle, everything = _ticks()
    time.sleep(_SECONDS)
    idle_then, everything_then = _ticks()
    return 1 - (idle_then - idle) / max(1, everything_then - everything) > _BUSY


def _ticks() -> tuple[int, int]:
    """How long all processors were idle, and altogether, since the system started; in ticks."""
    ticks = [
        int(word)
        for word in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]
    ]
    return ticks[3] + ticks[4], sum(ticks)
