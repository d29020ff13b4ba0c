"""Measure nacre's speed on copies of transcripts, large homes and notes."""

from __future__ import annotations

import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import nacre
from nacre.base.frozen import frozen
from nacre.base.ids import content_hash
from nacre.base.lazy import Module
from nacre.context.build import context_for
from nacre.errors import NacreError, NotFoundError
from nacre.home.consent import configured_embedder
from nacre.home.home import Home, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.memories.edit import scan
from nacre.memories.vectors import embed_memories, passages
from nacre.recall.recall import recall
from nacre.settings import Settings, load_settings
from nacre.values.context import ContextRequest, Moment
from nacre.values.memory import SessionFilter
from nacre.values.recall import Mode, RecallQuery
from nacre.values.reports import OnProgress, Progress
from nacre.values.session import StoredSession, Turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = Module("numpy")

Origins = Callable[[Sequence[tuple[int, str]]], Sequence[str]]

_ID = re.compile(
    rb'("(?:sessionId|session_id|uuid|parentUuid|logicalParentUuid|leafUuid|messageId|requestId|agentId|promptId|'
    rb'toolUseID|parentToolUseID|sourceToolAssistantUUID|sourceToolUseID|tool_use_id|id)"\s*:\s*"[^"\\]+)"'
)
_NOISE = 0.35
"""Length of the random vector that is added to a vector of length 1."""

_STEP = 2000
_PLACES = tuple(
    "harbour quarry orchard foundry granary chapel mill observatory brewery tannery".split()
)
_THINGS = tuple(
    "ledger gateway scheduler archive importer dashboard mailer indexer proxy cache".split()
)


def copy_tree(tree: Path, target: Path, megabytes: int) -> float:
    """Copy JSON lines, with new ids, until the copies have this many megabytes.

    Returns the number of megabytes. Raises NotFoundError for a folder without JSON lines.
    """
    files = sorted(path for path in tree.rglob("*.jsonl") if path.is_file())
    if not any(path.stat().st_size for path in files):
        raise NotFoundError(
            f"there are no .jsonl files in {tree}", hint="point at a folder of Claude Code projects"
        )
    written, copy = 0, 0
    while True:
        for path in files:
            content = _ID.sub(rb'\g<1>-%x"' % copy, path.read_bytes())
            copied = target / f"copy-{copy:04}" / path.relative_to(tree)
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_bytes(content)
            written += len(content)
            if written >= megabytes * 1_000_000:
                return written / 1_000_000
        copy += 1


def multiply_turns(home: Home, turns: int, notify: OnProgress) -> int:
    """Copy a home's sessions, with new ids, until it has this many turns.

    Returns the number of turns.
    """
    sessions = home.sessions.newest(SessionFilter(subagents=True), limit=1_000_000)
    originals = [
        (stored, [found.turn for found in home.sessions.turns_of(stored.row)])
        for stored in sessions
    ]
    have = sum(len(said) for _, said in originals)
    copy = 0
    while have and have < turns:
        copy += 1
        with home.transaction():
            for stored, said in originals:
                have += add_copy(home, stored, said[: max(0, turns - have)], f"{copy:x}")
        notify(Progress("turns", have, turns))
    return have


def add_copy(
    home: Home, stored: StoredSession, said: Sequence[Turn], copy: str, **changes: Any
) -> int:
    """Store a copy of a session with new ids. Return the number of turns.

    ``changes``: new values of the session's fields.
    """
    if not said:
        return 0
    name = f"{stored.session.native_id}-{copy}"
    session = replace(stored.session, native_id=name, **changes)
    row = home.sessions.upsert(session, project=stored.project, file=None)
    added = home.sessions.add_turns(
        session, row, [replace(turn, id=f"{turn.id}-{copy}") for turn in said]
    )
    home.sessions.refresh([row])
    return added


def scatter_vectors(
    home: Home,
    notify: OnProgress,
    origins: Origins | None = None,
    known: dict[bytes, NDArray[np.float32]] | None = None,
) -> int:
    """Store made-up vectors for turns without vectors. Return the number of passages.

    Each text is embedded only once. Every turn with this text gets the text's vectors with some
    noise, because searching a few shared vectors would be unrealistically fast.

    ``origins`` receives the rows and texts of turns, and returns other texts to embed instead.
    ``known`` keeps the embeddings.
    """
    noise = np.random.default_rng(home.vectors.count())
    known = {} if known is None else known
    home.vectors.begin(configured_embedder(home).name)
    done, total = 0, home.vectors.missing()[0]
    while waiting := home.vectors.turns_to_embed(_STEP):
        texts = origins(waiting) if origins else [text for _, text in waiting]
        digests: dict[int, list[bytes]] = {}
        vectors: list[NDArray[np.float32]] = []
        for (row, _), text in zip(waiting, texts, strict=True):
            origin = content_hash(text)
            if origin not in known:
                known[origin] = configured_embedder(home).embed(passages(text))
            digests[row] = [content_hash(f"{row}/{at}") for at in range(len(known[origin]))]
            vectors.append(known[origin])
        fresh = [digest for of_turn in digests.values() for digest in of_turn]
        home.vectors.add_turn_passages(
            digests, fresh, _noisy(np.concatenate(vectors), noise), through=waiting[-1][0]
        )
        done += len(waiting)
        notify(Progress("vectors", done, total))
    return home.vectors.count()


def _noisy(vectors: NDArray[np.float32], noise: np.random.Generator) -> NDArray[np.float32]:
    spread = noise.standard_normal(vectors.shape, np.float32) * (_NOISE / vectors.shape[1] ** 0.5)
    moved = vectors + spread
    unit: NDArray[np.float32] = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return unit


def draw_questions(home: Home, count: int) -> list[str]:
    """Return the first words of random turns. The same home always yields the same turns."""
    texts = [" ".join(text.split()[:16]) for (text,) in home.database.all("list_typed")]
    return random.Random(0).sample(texts, min(count, len(texts)))  # noqa: S311 - a repeatable draw


def write_notes(home: Path, memories: int) -> None:
    """Write facts into the vault of ``home``. The next scan imports them."""
    kept = home / "vault" / "global" / "fact"
    kept.mkdir(parents=True, exist_ok=True, mode=0o700)
    for number in range(memories):
        (kept / f"note-{number}.md").write_text(f"# {subject(number)}\n\n{statement(number)}\n")


def subject(number: int) -> str:
    """Return the subject of a note."""
    return f"The {_PLACES[number % 10]} {_THINGS[number // 10 % 10]} {number // 100}"


def statement(number: int) -> str:
    """Return the content of a note."""
    return f"{subject(number)} listens on port {20_000 + number} and is restarted by team {number % 7}."


# ----------------------------------------------------------------------------
# How fast nacre reads transcripts, recalls, builds contexts, and starts.


_QUESTIONS = 100
_REPETITIONS = 7
_RECALLED_TURNS = 3
_MEMORIES = 1_500


@frozen
class IngestSpeed:
    """An ingest in a separate process. A megabyte is 1,000,000 bytes of raw transcripts.

    ``searchable_seconds`` is the time from the start of the process until all text is searchable.
    After that, the command archives the transcripts and can learn.
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


@frozen
class Latency:
    """The time to answer one question in a warm process, such as the daemon."""

    name: str
    queries: int
    p50_ms: float
    p95_ms: float


@frozen
class Start:
    """A command in a separate process, from start to exit."""

    name: str
    median_ms: float


@frozen
class SpeedResult:
    """The results of all measurements."""

    ingests: tuple[IngestSpeed, ...]
    turns: int
    passages: int
    recalls: tuple[Latency, ...]
    memories: int
    contexts: tuple[Latency, ...]
    starts: tuple[Start, ...]
    note: str


@frozen
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
    transcripts: Path,
    folder: Path,
    *,
    megabytes: int,
    turns: int,
    notify: OnProgress = lambda _: None,
) -> SpeedResult:
    """Measure nacre's speed. Raises NotFoundError.

    ``folder``: an empty folder on the disk to be measured.
    """
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
        ingest(
            home,
            IngestOptions(paths=(transcripts,), extract=False, vectors=False, remember_paths=False),
        )
        have = multiply_turns(home, turns, notify)
        passages = scatter_vectors(home, notify)
        questions = draw_questions(home, _QUESTIONS)
        recalls = tuple(
            _recalls(home, mode, questions, notify) for mode in (Mode.LEXICAL, Mode.HYBRID)
        )
        write_notes(large.home, _MEMORIES)
        scan(home)
        embed_memories(home)
        folder_of_work = home.sessions.newest(SessionFilter(), limit=1)[0].session.cwd

        def of(name: str, moment: Moment, *, has_prompt: bool) -> Latency:
            def ask(question: str) -> None:
                context_for(
                    home,
                    ContextRequest(
                        moment, prompt=question if has_prompt else "", folder=folder_of_work
                    ),
                )

            return _latency(
                name, ask, questions, lambda at: notify(Progress(name, at, len(questions)))
            )

        contexts = (
            of("session start", Moment.START, has_prompt=False),
            of("session start with its first prompt", Moment.START, has_prompt=True),
            of("prompt", Moment.PROMPT, has_prompt=True),
        )
        memories = sum(home.memories.counts().values())
    finally:
        home.database.close()
    question = questions[0]
    here = ["--folder", folder_of_work] if folder_of_work else []
    starts = (
        _start("nacre --help", ["--help"], folder / "small"),
        _start("nacre recall, empty home", ["recall", question], folder / "small"),
        _start(f"nacre recall, {have:,} turns", ["recall", question, "--no-update"], large.home),
        _start(
            f"nacre recall --mode lexical, {have:,} turns",
            ["recall", question, "--mode", "lexical"],
            large.home,
        ),
        _start(f"nacre context, {have:,} turns", ["context", *here], large.home),
        _start(
            f"nacre context with a prompt, {have:,} turns", ["context", question, *here], large.home
        ),
    )
    return SpeedResult(ingests, have, passages, recalls, memories, contexts, starts, NOTE)


def percentile(values: Sequence[float], share: float) -> float:
    """Return a quantile of the values (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def _ingest(
    name: str, home_path: Path, tree: Path, size: float, options: Sequence[str], *, workers: int = 0
) -> IngestSpeed:
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
    return _latency(
        name, ask, questions, lambda at: notify(Progress(f"recalling ({name})", at, len(questions)))
    )


def _latency(
    name: str, ask: Callable[[str], None], questions: Sequence[str], notify: Callable[[int], None]
) -> Latency:
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
"""A script that starts a process and reports its resources. It is small, because a process inherits
its parent's peak memory."""


def _run(
    arguments: Sequence[str], home: Path, environ: Mapping[str, str] = MappingProxyType({})
) -> _Finished:
    """Run nacre as a process. Raises NacreError if nacre fails or the system does not report its resources."""
    if not hasattr(os, "wait4"):
        raise NacreError(
            "this system does not report the resources of a process",
            hint="measure speed on Linux or macOS",
        )
    home.mkdir(parents=True, exist_ok=True)
    given = {
        "PATH": os.defpath,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HOME": str(home),
        "NACRE_HOME": str(home),
        **environ,
    }
    counted = [sys.executable, "-ISc", _COUNTED, sys.executable, "-m", "nacre", *arguments]
    with tempfile.TemporaryFile() as output:
        ran = subprocess.run(counted, env=given, stdout=output, stderr=subprocess.PIPE, check=True)
        output.seek(0)
        told = output.read()
    seconds, status, cpu_seconds, peak = json.loads(ran.stderr)
    if code := os.waitstatus_to_exitcode(status):
        raise NacreError(f"nacre {arguments[0]} ended with exit code {code}")
    return _Finished(
        seconds,
        cpu_seconds,
        # Linux reports kilobytes, macOS bytes.
        peak / 1_000_000 if sys.platform == "darwin" else peak * 1024 / 1_000_000,
        told,
    )


def _settings(home: Path) -> Settings:
    return load_settings(home, {"HOME": str(home)})


# ----------------------------------------------------------------------------
# The machine on which a measurement was made.


@frozen
class Machine:
    """The machine and the software versions that were measured."""

    processor: str
    cores: int
    system: str
    python: str
    commit: str | None


def describe() -> Machine:
    """Return a description of this machine."""
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        commit=_commit(),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def _commit() -> str | None:
    folder = Path(nacre.__file__).parent
    try:
        described = subprocess.run(
            ["git", "-C", str(folder), "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return described.stdout.strip() or None
