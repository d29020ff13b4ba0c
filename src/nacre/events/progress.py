"""How far what the daemon does is, as events: few a second, however often it is told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nacre.events.bus import Bus
from nacre.values.reports import Progress

if TYPE_CHECKING:
    from nacre.watching.watcher import WatchEvent

LEAST_SECONDS = 0.2
"""Between two events of a task."""

_TOLD = ("read", "learned", "problem")


@contextmanager
def published(bus: Bus, task: str) -> Iterator[Callable[[Progress], None]]:
    """What takes the progress of a task while the block runs; that it ended is an event where any was."""
    last: Progress | None = None
    due = 0.0

    def publish(progress: Progress) -> None:
        nonlocal last, due
        is_new = last is None or progress.stage != last.stage
        last = progress
        now = time.monotonic()
        if is_new or now >= due:
            due = now + LEAST_SECONDS
            _publish(bus, task, progress, ended=False)

    try:
        yield publish
    finally:
        if last:
            _publish(bus, task, last, ended=True)


def publish_watched(bus: Bus, event: WatchEvent) -> None:
    """What the watcher in the daemon read and learned, and what it could not read."""
    if event.kind in _TOLD:
        done = event.turns if event.kind == "read" else event.memories
        text = event.note or ", ".join(event.tools)
        bus.publish("progress", task="watch", stage=event.kind, text=text, done=done, total=None, ended=True)


def _publish(bus: Bus, task: str, progress: Progress, *, ended: bool) -> None:
    bus.publish(
        "progress", task=task, stage=progress.stage, text=progress.note, done=progress.done, total=progress.total,
        ended=ended,
    )  # fmt: skip
