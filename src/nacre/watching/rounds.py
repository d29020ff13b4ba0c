"""What the watcher leaves to a process of its own, which is gone afterwards with all the memory it took.

That is learning and vectors, which need the embedding model, and reading where much is to be read.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from nacre.code.staleness import note_stale
from nacre.home.home import Home
from nacre.ingestion.ingest import ingest
from nacre.ingestion.requests import IngestOptions
from nacre.link.start import environment_of, program
from nacre.settings import Settings
from nacre.values.reports import IngestReport, OnProgress
from nacre.watching.requests import RoundRequest

VECTOR_SECONDS = 20.0
"""So long a round makes vectors; the next one goes on."""

GRACE_SECONDS = 60.0
"""So long a process has to finish what it is at, once it was asked to end."""

_BELOW_NORMAL = getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0)


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """What a round did, as far as the watcher counts it; ``error`` where it failed."""

    files: int = 0
    sessions: int = 0
    turns: int = 0
    memories: int = 0
    vectors_made: int = 0
    vectors_left: int = 0
    error: str | None = None


def go_round(home: Home, wanted: RoundRequest, on_progress: OnProgress | None = None) -> IngestReport:
    """Read what is new, learn from what is, make vectors. Raises NotFound."""
    options = IngestOptions(
        paths=wanted.paths, extract=wanted.learns, vectors=wanted.learns, reads=wanted.reads,
        vector_seconds=wanted.seconds,
        puts_off=not wanted.paths,
    )  # fmt: skip
    report = ingest(home, options, on_progress)
    if wanted.learns and report.turns:
        note_stale(home)
    return report


class Round:
    """A round in a process of low priority. ``done`` is told what came of it, from a thread."""

    def __init__(
        self, settings: Settings, wanted: RoundRequest, done: Callable[[RoundOutcome], None], context: Path | None
    ) -> None:
        """Start it; ``context`` is a file to keep up to date. Raises OSError."""
        self._done = done
        self._process = subprocess.Popen(
            [*program(), "watch", "--once", "--json", *_arguments(wanted, context)],
            env=environment_of(str(settings.home), settings.environ),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            creationflags=_BELOW_NORMAL,
        )  # fmt: skip
        self._thread = threading.Thread(target=self._wait, name="nacre-round", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Ask it to end after the step it is at, and wait; one that does not is killed: it is as safe as a crash."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        self._thread.join(GRACE_SECONDS)
        if self._thread.is_alive():
            self._process.kill()
            self._thread.join()

    def _wait(self) -> None:
        said, _ = self._process.communicate()
        self._done(_outcome(said, self._process.returncode))


def _arguments(wanted: RoundRequest, context: Path | None) -> list[str]:
    found = ["--background"]
    found += [] if wanted.reads else ["--no-read"]
    found += [] if wanted.learns else ["--no-learn"]
    found += ["--context", str(context)] if context else []
    if wanted.seconds is not None:
        found += ["--seconds", f"{wanted.seconds:.0f}"]
    return [*found, "--", *map(str, wanted.paths)]


def _outcome(said: bytes, code: int) -> RoundOutcome:
    try:
        answer = msgspec.json.decode(said)
        if "error" in answer:
            return RoundOutcome(error=str(answer["error"]["message"]))
        return RoundOutcome(
            answer["files"], answer["sessions"], answer["turns"], answer["memories"],
            answer["vectors"]["made"], answer["vectors"]["left"],
        )  # fmt: skip
    except (ValueError, KeyError, TypeError):
        return RoundOutcome(error=f"a round of learning ended with {code}")
