"""How much memory the daemon takes, and how it gives back what it needs no more: glibc keeps what is freed."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress

_M_ARENA_MAX = -8
_ARENAS = 2


def share_arenas() -> None:
    """Let threads share two pools of memory, where the system's own way is many a core. To be called first."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Give what was freed back to the system, where it would be kept."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def memory_mb() -> float | None:
    """How much memory this process takes now, or, where the system does not tell that simply, took at most."""
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as told:
        return round(int(told.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - Windows has no such module

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return round(peak / 1e6 if sys.platform == "darwin" else peak / 1e3, 1)
    return None
