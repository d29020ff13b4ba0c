"""How fast nacre reads transcripts, recalls, builds contexts, and starts."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from nacre.context.on_request import context_for
from nacre.errors import NacreError
from nacre.home.home import Home, open_home
from nacre.indexing.vectors import embed_memories
from nacre.ingestion.ingest import ingest
from nacre.ingestion.requests import IngestOptions
from nacre.memories.scan import scan
from nacre.retrieval.recall import recall
from nacre.settings import Settings, load_settings
from nacre.speed.material import copy_tree, draw_questions, multiply_turns, scatter_vectors, write_notes
from nacre.values.context import ContextRequest, Moment
from nacre.values.filters import SessionFilter
from nacre.values.recall import Mode, RecallQuery
from nacre.values.reports import OnProgress, Progress

_QUESTIONS = 100
_REPETITIONS = 7
_RECALLED_TURNS = 3
_MEMORIES = 1_500


@dataclass(frozen=True, slots=True)
class IngestSpeed:
    """One ingest as a process of its own. A megabyte is 1,000,000 bytes of raw transcripts.

    ``searchable_seconds`` are those from the start of the process until all of the text could be searched; the whole
    command goes on to keep the transcripts, and learns where it is asked to.
    """

    name: str
    megabytes: float
    turns: int
    searchable_seconds: float
    seconds: float
    cpu_seconds: float
    peak_mb: float
    searchable_mb_per_second: float
    megabytes_per_second: float


@dataclass(frozen=True, slots=True)
class Latency:
    """What one question takes in a process that is warm, as a daemon is."""

    name: str
    queries: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Start:
    """A command as a process of its own, from start to exit."""

    name: str
    median_ms: float


@dataclass(frozen=True, slots=True)
class SpeedResult:
    """Everything that was measured."""

    ingests: tuple[IngestSpeed, ...]
    turns: int
    passages: int
    recalls: tuple[Latency, ...]
    memories: int
    contexts: tuple[Latency, ...]
    starts: tuple[Start, ...]
    note: str


@dataclass(frozen=True, slots=True)
class _Finished:
    seconds: float
    cpu_seconds: float
    peak_mb: float
    output: bytes = b""


NOTE = (
    "Turns are those of the transcripts, repeated. Every turn has passages of its own: the vectors of its text with "
    "some noise, since repeated texts would share theirs and be scanned too quickly."
)


def measure(
    transcripts: Path, folder: Path, *, megabytes: int, turns: int, notify: OnProgress = lambda _: None
) -> SpeedResult:
    """Measure in ``folder``, which should be empty and on the disk that counts. Raises NotFound."""
    tree = folder / "transcripts"
    notify(Progress("copying", 0, 1))
    size = copy_tree(transcripts, tree, megabytes)
    notify(Progress("copying", 1, 1))
    ingests = (
        _ingest("read, one process", folder / "alone", tree, size, ["--no-extract"], workers=1),
        _ingest("read, as many as there are cores", folder / "read", tree, size, ["--no-extract"]),
        _ingest("with memories", folder / "learned", tree, size, []),
    )
    large = _settings(folder / "large")
    home = open_home(large)
    try:
        ingest(home, IngestOptions(paths=(transcripts,), extract=False, vectors=False, remember_paths=False))
        have = multiply_turns(home, turns, notify)
        passages = scatter_vectors(home, notify)
        questions = draw_questions(home, _QUESTIONS)
        recalls = tuple(_recalls(home, mode, questions, notify) for mode in (Mode.LEXICAL, Mode.HYBRID))
        write_notes(large.home, _MEMORIES)
        scan(home)
        embed_memories(home)
        folder_of_work = home.sessions.newest(SessionFilter(), limit=1)[0].session.cwd
        contexts = _contexts(home, folder_of_work, questions, notify)
        memories = sum(home.memories.counts().values())
    finally:
        home.database.close()
    question = questions[0]
    here = ["--folder", folder_of_work] if folder_of_work else []
    starts = (
        _start("nacre --help", ["--help"], folder / "small"),
        _start("nacre recall, empty home", ["recall", question], folder / "small"),
        _start(f"nacre recall, {have:,} turns", ["recall", question, "--no-update"], large.home),
        _start(f"nacre recall --mode lexical, {have:,} turns", ["recall", question, "--mode", "lexical"], large.home),
        _start(f"nacre context, {have:,} turns", ["context", *here], large.home),
        _start(f"nacre context with a prompt, {have:,} turns", ["context", question, *here], large.home),
    )
    return SpeedResult(ingests, have, passages, recalls, memories, contexts, starts, NOTE)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which a share of the values lies (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def _ingest(
    name: str, home_path: Path, tree: Path, size: float, options: Sequence[str], *, workers: int = 0
) -> IngestSpeed:  # fmt: skip
    environ = {"NACRE_INGEST_WORKERS": str(workers)}
    finished = _run(["ingest", str(tree), "--no-vectors", "--json", *options], home_path, environ)
    told = json.loads(finished.output)
    searchable = finished.seconds - (told["seconds"] - told["read_seconds"])
    home = open_home(_settings(home_path))
    try:
        turns = sum(int(row[2]) for row in home.sessions.counts())
    finally:
        home.database.close()
    return IngestSpeed(
        name=name,
        megabytes=round(size, 1),
        turns=turns,
        searchable_seconds=round(searchable, 2),
        seconds=round(finished.seconds, 2),
        cpu_seconds=round(finished.cpu_seconds, 2),
        peak_mb=round(finished.peak_mb, 1),
        searchable_mb_per_second=round(size / searchable, 1),
        megabytes_per_second=round(size / finished.seconds, 1),
    )


def _recalls(home: Home, mode: Mode, questions: Sequence[str], notify: OnProgress) -> Latency:
    def ask(question: str) -> None:
        recall(home, RecallQuery(question, mode=mode, turns=_RECALLED_TURNS, update=False))

    name = "lexical" if mode is Mode.LEXICAL else "all lanes"
    return _latency(name, ask, questions, lambda at: notify(Progress(f"recalling ({name})", at, len(questions))))


def _contexts(
    home: Home, folder: str | None, questions: Sequence[str], notify: OnProgress
) -> tuple[Latency, ...]:  # fmt: skip
    def of(name: str, moment: Moment, *, has_prompt: bool) -> Latency:
        def ask(question: str) -> None:
            context_for(home, ContextRequest(moment, prompt=question if has_prompt else "", folder=folder))

        return _latency(name, ask, questions, lambda at: notify(Progress(name, at, len(questions))))

    return (
        of("session start", Moment.START, has_prompt=False),
        of("session start with its first prompt", Moment.START, has_prompt=True),
        of("prompt", Moment.PROMPT, has_prompt=True),
    )


def _latency(name: str, ask: Callable[[str], None], questions: Sequence[str], notify: Callable[[int], None]) -> Latency:
    for question in questions[:5]:
        ask(question)
    seconds = []
    for at, question in enumerate(questions, start=1):
        started = time.perf_counter()
        ask(question)
        seconds.append(time.perf_counter() - started)
        notify(at)
    p50, p95 = (round(1000 * percentile(seconds, share), 2) for share in (0.5, 0.95))
    return Latency(name, len(seconds), p50, p95)


def _start(name: str, arguments: Sequence[str], home: Path) -> Start:
    seconds = [_run(arguments, home).seconds for _ in range(_REPETITIONS)]
    return Start(name, round(1000 * statistics.median(seconds), 1))


_COUNTED = """
import json, os, sys, time
began = time.perf_counter()
silent = [(os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, used = os.wait4(process, 0)
sys.stderr.write(json.dumps([time.perf_counter() - began, status, used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""
"""Starts a process and counts for it. It is small: the peak of a process is at least that of what started it."""


def _run(arguments: Sequence[str], home: Path, environ: Mapping[str, str] = MappingProxyType({})) -> _Finished:
    """Run nacre as a process. Raises NacreError when it fails, or where the system does not count for processes."""
    if not hasattr(os, "wait4"):
        raise NacreError("this system does not tell what a process took", hint="measure speed on Linux or macOS")
    home.mkdir(parents=True, exist_ok=True)
    given = {**_paths(), "HOME": str(home), "NACRE_HOME": str(home), **environ}
    counted = [sys.executable, "-ISc", _COUNTED, sys.executable, "-m", "nacre", *arguments]
    with tempfile.TemporaryFile() as output:
        ran = subprocess.run(counted, env=given, stdout=output, stderr=subprocess.PIPE, check=True)
        output.seek(0)
        told = output.read()
    seconds, status, cpu_seconds, peak = json.loads(ran.stderr)
    if code := os.waitstatus_to_exitcode(status):
        raise NacreError(f"nacre {arguments[0]} ended with exit code {code}")
    return _Finished(seconds, cpu_seconds, _megabytes(peak), told)


def _megabytes(peak: int) -> float:
    """Linux counts kilobytes, macOS bytes."""
    return peak / 1_000_000 if sys.platform == "darwin" else peak * 1024 / 1_000_000


def _paths() -> dict[str, str]:
    """What a process needs to find this Python and this nacre."""
    return {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path)}


def _settings(home: Path) -> Settings:
    return load_settings(home, {"HOME": str(home)})
