"""What may be done once more: what left nothing behind, as the server took all of it back."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from psycopg import errors

from nacre.errors import StoreBusy

Result = TypeVar("Result")

TIMES = 4
"""So often at most; then whoever asked is told that the store is busy."""

_SECONDS = 0.05
_TAKEN_BACK = (errors.DeadlockDetected, errors.SerializationFailure)


def pause(done: int) -> None:
    """Wait before the next time: 50 ms, doubled each time, by chance between half of it and all."""
    time.sleep(_SECONDS * 2**done * random.uniform(0.5, 1))  # noqa: S311 - so that two do not meet again


def repeated(work: Callable[[], Result], wait: Callable[[int], object] = pause) -> Result:
    """What ``work`` comes to; done again where the server took it back to end a deadlock, or for what others wrote.

    ``work`` is a whole transaction. Raises StoreBusy when it was taken back every time, and what it raises else.
    """
    for done in range(TIMES - 1):
        try:
            return work()
        except StoreBusy as error:
            if not isinstance(error.__cause__, _TAKEN_BACK):
                raise
        wait(done)
    return work()
