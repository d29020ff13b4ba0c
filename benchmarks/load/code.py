"""Measure how fast a repository is read and questions about its code are answered."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import Spread, spread
from benchmarks.load.code_material import write_repository
from nacre.base.frozen import frozen
from nacre.home.home import Home, open_home
from nacre.memories.edit import catch_up
from nacre.settings import load_settings
from nacre.values.reports import OnProgress
from nacre_code.ask import (
    CodeAnswer,
    CodeReport,
    about,
    callers,
    impact,
    importers,
)
from nacre_code.ingest import ingest_code
from nacre_code.store import CodeGraph

PROJECT = "made"
_ASKED = 100


@frozen
class CodeResult:
    """The speed of reading code and answering questions.

    Seconds for reading all files, and after changing one; CPU time including child processes;
    latency of questions in milliseconds; peak memory and database size in MB.
    """

    files: int
    symbols: int
    edges: int
    cores: int
    seconds: float
    cpu_seconds: float
    unchanged_seconds: float
    one_changed_seconds: float
    questions: dict[str, Spread]
    memory_mb: float
    database_mb: float


def measure_code(
    place: Path, *, root: Path | None, files: int, symbols: int, memories: int, notify: OnProgress
) -> CodeResult:
    """Read a repository, by default a generated one, into a new home, and ask about it."""
    made = root is None
    root = root or place / "repository"
    if made:
        write_repository(root, files, symbols)
    environ = {"HOME": str(place), "PATH": os.defpath, "NACRE_EMBEDDING_MODEL": "none"}
    home = open_home(load_settings(place / "home", environ))
    before = _cpu()
    report = _read(home, root, notify)
    cpu = _cpu() - before
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    unchanged = _read(home, root, notify).seconds
    changed = unchanged
    if made:
        (root / "py" / "part000" / "file00000.py").write_text(
            "def work0x0(value):\n    pass\n", encoding="utf-8"
        )
        changed = _read(home, root, notify).seconds
    _write_memories(home, memories)
    result = CodeResult(
        report.files,
        report.symbols,
        report.edges,
        len(os.sched_getaffinity(0)),
        report.seconds,
        cpu,
        unchanged,
        changed,
        _questions(home),
        memory,
        home.settings.database.stat().st_size / 1e6,
    )
    home.close()
    return result


def _read(home: Home, root: Path, notify: OnProgress) -> CodeReport:
    return ingest_code(home, str(root), PROJECT, on_progress=notify)


def _write_memories(home: Home, count: int) -> None:
    names = _names(home, count)
    folder = home.settings.vault / "projects" / PROJECT / "fact"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        text = f"Number {number}: `{names[number % len(names)]}` keeps the order of row {number}.\n"
        (folder / f"number-{number:05}.md").write_text(text, encoding="utf-8")
    catch_up(home)


def _names(home: Home, count: int) -> list[str]:
    store = CodeGraph(home.database)
    rows = sorted(row for (_, name), row in store.symbol_rows(1).items() if name)
    symbols = store.of_rows(rows[:: max(1, len(rows) // max(1, count))])
    return [f"{symbol.path}#{symbol.qualified}" for symbol in symbols.values()]


def _questions(home: Home) -> dict[str, Spread]:
    names = _names(home, _ASKED)
    paths = [name.partition("#")[0] for name in names]
    about(home, name=names[0])  # memories are searched for names once
    return {
        "callers": _timed(names, lambda name: callers(home, name=name)),
        "callers, 3 steps": _timed(names, lambda name: callers(home, name=name, depth=3)),
        "importers": _timed(paths, lambda path: importers(home, name=path)),
        "about": _timed(names, lambda name: about(home, name=name)),
        "impact of a symbol": _timed(names, lambda name: impact(home, name=name)),
        "impact of a file": _timed(paths, lambda path: impact(home, name=path)),
    }


def _timed(names: list[str], ask: Callable[[str], CodeAnswer]) -> Spread:
    took = []
    for name in names[:_ASKED]:
        begun = time.perf_counter()
        ask(name)
        took.append(time.perf_counter() - begun)
    return spread(took)


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
