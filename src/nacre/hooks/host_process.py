"""What a process that a host starts is given: an object on its standard input, and so much time since it began."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import Any

WITHIN_VARIABLE = "NACRE_HOOK_MS"
"""Gives hooks a longer time, where nothing on their command line does: on slow machines, or those busy with tests."""

_MOST_INPUT = 2_000_000


def read_input() -> dict[str, Any]:
    """What the host hands over; an empty object where that is nothing of the kind.

    A host that keeps its end open is not waited for once an object is whole.
    """
    data = bytearray()
    while len(data) <= _MOST_INPUT and not os.isatty(0):
        chunk = os.read(0, 65_536)
        data += chunk
        if not chunk or chunk.rstrip().endswith(b"}"):
            with suppress(ValueError, RecursionError):
                given = json.loads(data.decode("utf-8-sig", "replace"))
                return given if isinstance(given, dict) else {}
        if not chunk:
            break
    return {}


def age() -> float:
    """For how many seconds this process has run; on systems that do not tell, what Python's start takes."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.03
    return max(0.0, age)
