"""Progress on a terminal; silence elsewhere."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nacre.cli.paper import PIPED_WIDTH, cells, cut, printable
from nacre.values.reports import OnProgress

if TYPE_CHECKING:
    from nacre.cli.run import Run
    from nacre.values.reports import Progress

_BAR = 24
_LEAST_SECONDS = 0.1
"""Between two looks of a line."""

_STAGES = {
    "reading": "Reading transcripts",
    "learning": "Learning from them",
    "archiving": "Archiving; text is searchable",
    "verifying": "Verifying the archive",
    "asking": "Asking",
    "scrubbing": "Looking through what is stored",
    "redacting": "Redacting",
    "scanning": "Scanning",
    "exporting": "Writing the export",
    "importing": "Importing",
    "backup": "Backing up",
    "documents": "Carrying documents",
    "rows": "Carrying rows",
    "words": "Indexing",
    "questions": "Comparing answers",
    "restoring": "Restoring",
    "code": "Reading code",
    "linking": "Finding who calls what",
    "claims": "Telling claims, Ctrl-C is fine",
    "judging": "Judging",
    "proving": "Reading transcripts again",
    "tenants": "Making tenants, Ctrl-C is fine",
    "filling": "Filling them",
    "measuring": "Having them asked",
    "hot": "Having one asked more than the others",
    "deleting": "Deleting the tenants",
    "weighing": "Weighing tenants",
    "vectors": "Making vectors, Ctrl-C is fine",
}


@contextlib.contextmanager
def waiting(run: Run, told: str) -> Iterator[None]:
    """What is waited for, and how long already, on a terminal while the block runs."""
    if run.as_json or not sys.stderr.isatty():
        yield
        return

    line = _Line()
    over = threading.Event()
    started = time.monotonic()

    def tick() -> None:
        while not over.wait(_LEAST_SECONDS):
            line.show(f"{told} {_clock(time.monotonic() - started)}")

    ticking = threading.Thread(target=tick, daemon=True, name="nacre-waiting")
    ticking.start()
    try:
        yield
    finally:
        over.set()
        ticking.join()
        line.clear()


@contextlib.contextmanager
def shown(run: Run) -> Iterator[OnProgress | None]:
    """A bar on standard error while the block runs; ``None`` where nobody watches."""
    if run.as_json or not sys.stderr.isatty():
        yield None
        return

    line, bars = _Line(), _Bars()

    def show(progress: Progress) -> None:
        if progress.total:
            line.show(bars.of(progress, time.monotonic()))

    try:
        yield show
    finally:
        line.clear()


@dataclass
class _Line:
    """The last line of a terminal, written over and over, and gone in the end."""

    _shown: str = ""
    _next: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def show(self, text: str) -> None:
        """Have the line say this, unless it changed just now."""
        with self._lock:
            now = time.monotonic()
            if now < self._next:
                return
            self._next = now + _LEAST_SECONDS
            columns = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns - 1
            self._write(cut(printable(text), columns))

    def clear(self) -> None:
        """Leave nothing of it."""
        with self._lock:
            self._write("")

    def _write(self, text: str) -> None:
        blank = " " * (cells(self._shown) - cells(text))
        if text or self._shown:
            back = "\r" if text else f"\r{blank}\r"
            with contextlib.suppress(OSError):
                sys.stderr.write(f"{back}{text}{blank if text else ''}")
                sys.stderr.flush()
        self._shown = text


@dataclass
class _Bars:
    """How far the stage that runs is, and about how long it goes on."""

    _stage: str = ""
    _started: float = 0.0
    _at_start: int = 0

    def of(self, progress: Progress, now: float) -> str:
        """A bar in a line."""
        if progress.stage != self._stage:
            self._stage, self._started, self._at_start = progress.stage, now, progress.done
        share = min(1.0, progress.done / progress.total)
        full = round(share * _BAR)
        done = progress.done - self._at_start
        left = (now - self._started) * (progress.total - progress.done) / done if done > 0 else None
        words = (
            _STAGES.get(progress.stage, progress.stage), "━" * full + "╌" * (_BAR - full), f"{share:>4.0%}",
            progress.note, "-:--" if left is None else _clock(left),
        )  # fmt: skip
        return " ".join(word for word in words if word)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
