"""Answers of the last half minute: an agent often asks the same twice in one exchange."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

SECONDS = 30.0
_MOST = 64


class Kept(Generic[T]):
    """Values by key, each for 30 seconds; ``clock`` counts them. The key says all that the value depends on."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._values: dict[Hashable, tuple[float, T]] = {}

    def get(self, key: Hashable) -> T | None:
        """The value, if it is there and young enough."""
        found = self._values.get(key)
        return found[1] if found and self._clock() - found[0] < SECONDS else None

    def put(self, key: Hashable, value: T) -> None:
        """Keep a value; the oldest one goes where there are too many."""
        self._values.pop(key, None)
        self._values[key] = (self._clock(), value)
        if len(self._values) > _MOST:
            del self._values[next(iter(self._values))]
