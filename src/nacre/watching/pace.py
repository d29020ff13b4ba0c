"""When the watcher does what: soon after a change, seldom otherwise, and never more than it is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

HOT_SECONDS = 2.0
POLLED_SECONDS = 1.0
MOST_POLLED_SECONDS = 10.0
BEAT_SECONDS = 60.0
SOON_SECONDS = 3.0
FORGIVE_SECONDS = 3_600.0
RETRY_SECONDS = 5.0
MOST_RETRY_SECONDS = 300.0

SHARE = 100
"""A look at everything is followed by a pause so many times as long: it takes 1 % of a core at most."""

HINTED_SHARE = 20
"""The same where a change hints that there is something new."""

QUIET_SECONDS = 3.0
"""A round of learning waits until so long nothing was written, …"""

PATIENCE_SECONDS = 15.0
"""… but not longer than this."""

PAUSE_SECONDS = 10.0
"""Between two rounds there is so much time, at least, and twice what the last one took."""

_IDLE_SHARE = 30
_JUMP_SECONDS = 10.0
_EVERY = {"hot": HOT_SECONDS, "beat": BEAT_SECONDS, "forgive": FORGIVE_SECONDS}


@dataclass
class Pace:
    """Times of a clock that never jumps, in seconds; ``started`` is the present, ``interval`` the usual time between
    two looks at everything."""

    started: float
    interval: float = 120.0
    last_used: float = 0.0
    _due: dict[str, float] = field(default_factory=dict)
    _unlearned_since: float = math.inf
    _last_read: float = 0.0
    _rounds_from: float = 0.0
    _round_began: float = 0.0
    _look_cost: float = 0.0
    _looked: float = -math.inf
    _retry_seconds: float = RETRY_SECONDS
    _beaten: float = -math.inf
    _offset: float | None = None

    def __post_init__(self) -> None:
        self._due = {
            "look": self.started, "hot": self.started, "beat": self.started + BEAT_SECONDS, "retry": 0.0,
            "forgive": self.started + FORGIVE_SECONDS,
        }  # fmt: skip
        self._unlearned_since = self._last_read = self.started

    def is_time(self, what: str, now: float) -> bool:
        """Whether it is time for ``look``, ``hot``, ``beat``, ``forgive`` or ``retry``."""
        return now >= self._due[what]

    def next_due(self, now: float) -> float:
        """Seconds until something is due; never quite none."""
        soonest = min(self._due[name] for name in ("look", "hot", "beat"))
        return max(0.01, soonest - now)

    def again(self, what: str, now: float, *, polling: bool = False) -> None:
        """It was done."""
        self._beaten = now if what == "beat" else self._beaten
        self._due[what] = now + (POLLED_SECONDS if polling and what == "hot" else _EVERY[what])

    def beat_soon(self) -> None:
        """There is something new to say, which may wait for a moment."""
        self._due["beat"] = min(self._due["beat"], self._beaten + SOON_SECONDS)

    def looked(self, began: float, now: float, *, polling: bool) -> None:
        """Everything was looked at."""
        self._look_cost, self._looked = now - began, now
        usual = self._polled(now) if polling else self.interval
        share = HINTED_SHARE if polling else SHARE
        self._due["look"] = now + max(usual, share * self._look_cost)

    def _polled(self, now: float) -> float:
        """Every second while agents are at work, ever more seldom when nothing comes."""
        return min(MOST_POLLED_SECONDS, max(POLLED_SECONDS, (now - self._last_read) / _IDLE_SHARE))

    def look_soon(self, now: float) -> None:
        """A hint says that there is something new."""
        earliest = max(now + 0.1, self._looked + max(1.0, HINTED_SHARE * self._look_cost))
        self._due["look"] = min(self._due["look"], earliest)

    def look_later(self, now: float) -> None:
        """There is no use in a look now."""
        self._due["look"] = now + PAUSE_SECONDS

    def notice_jump(self, offset: float, now: float) -> None:
        """``offset`` is how far the wall clock is from this one: where that changes, the machine slept, or somebody
        set the clock. What happened meanwhile nobody told."""
        if self._offset is not None and abs(offset - self._offset) > _JUMP_SECONDS:
            self._due["look"] = now
        self._offset = offset

    def has_read(self, now: float) -> None:
        """Turns were read, which may teach something."""
        self._last_read = now
        self._unlearned_since = min(self._unlearned_since, now)

    def learn_soon(self, now: float) -> None:
        """Something else waits for a round."""
        self._unlearned_since = min(self._unlearned_since, now - PATIENCE_SECONDS)

    def is_time_to_learn(self, now: float) -> bool:
        """Whether a round should begin."""
        if now < self._rounds_from or self._unlearned_since == math.inf:
            return False
        return now - self._last_read >= QUIET_SECONDS or now - self._unlearned_since >= PATIENCE_SECONDS

    def begin_round(self, now: float) -> None:
        """A round begins."""
        self._round_began = now
        self._unlearned_since = math.inf

    def learned(self, now: float, *, more: bool) -> None:
        """A round ended well; ``more`` waits for the next one."""
        self._rounds_from = now + max(PAUSE_SECONDS, 2 * (now - self._round_began))
        self._retry_seconds = RETRY_SECONDS
        if more:
            self.learn_soon(now)

    def went_well(self) -> None:
        """Reading went well."""
        self._retry_seconds = RETRY_SECONDS

    def failed(self, now: float) -> None:
        """Something failed: reading and rounds wait, longer each time."""
        self._due["retry"] = self._rounds_from = now + self._retry_seconds
        self._unlearned_since = min(self._unlearned_since, now)
        self._retry_seconds = min(2 * self._retry_seconds, MOST_RETRY_SECONDS)
