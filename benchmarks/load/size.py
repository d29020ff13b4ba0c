"""Measure search in homes with 1,000, 10,000, … turns, each in a separate process."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

from benchmarks.figures import percentile
from benchmarks.load.growth import draw_questions, gather, grow, scatter
from nacre.base.frozen import frozen
from nacre.home.home import Home, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.recall.recall import recall
from nacre.settings import Settings, load_settings
from nacre.values.recall import Mode, RecallQuery
from nacre.values.reports import OnProgress, Progress
from nacre_server.connection import connect

_QUESTIONS = 100
_WARMING = 10
_RECALLED_TURNS = 3
_VECTOR_TABLES = (
    "passages",
    "turn_passages",
    "passage_bits",
    "sqlite_autoindex_passages",
    "sqlite_autoindex_turn_passages",
)
_TEXT_TABLES = ("turns_fts", "turns_parts")
_ON_SERVER = {
    "text": ("words", "terms", "names"),
    "vectors": ("passages", "turn_passages", "signs"),
}


@frozen
class Spread:
    """Percentiles of the duration and CPU time of recall in milliseconds, after a first run."""

    p50: float
    p95: float
    p99: float
    cpu_p50: float
    cpu_p95: float
    cpu_p99: float


@frozen
class Size:
    """The figures for a home with ``turns`` turns.

    ``text_bytes`` and ``vector_bytes`` are the sizes of full text and vectors on disk for each
    turn. ``memory_mb`` is the memory of the searching process without mapped files, ``mapped_mb``
    the resident part of these files. The seconds are durations of generating the new turns with
    their full text, and of storing the vectors.
    """

    turns: int
    passages: int
    lexical: Spread
    all_lanes: Spread
    text_bytes: float
    vector_bytes: float
    memory_mb: float
    mapped_mb: float
    growing_seconds: float
    vector_seconds: float


@frozen
class SizeResult:
    """The figures for each size."""

    sizes: tuple[Size, ...]
    material: int
    note: str


@frozen
class _Searched:
    lexical: Spread
    all_lanes: Spread
    memory_mb: float
    mapped_mb: float


NOTE = (
    "Turns are generated from real ones: sessions with new ids in which four of ten sentences come from other turns of "
    "the same speaker. Vectors are those of the original turns with some noise."
)


def measure_size(
    paths: Sequence[Path],
    folder: Path,
    *,
    turns: int,
    server: str = "",
    notify: OnProgress = lambda _: None,
) -> SizeResult:
    """Grow a home in ``folder``, which should be empty and on the disk to measure, from the sessions at ``paths``.

    With ``server``, the rows are in the empty database at this address.
    """
    settings = _settings(folder / "home", server)
    context = open_home(settings)
    sizes = []
    try:
        context.database.relax()
        ingest(
            context,
            IngestOptions(paths=tuple(paths), extract=False, vectors=False, remember_paths=False),
        )
        material = gather(context)
        questions = draw_questions(material, _QUESTIONS)
        have = material.turns
        for target in _sizes(have, turns):
            started = [time.perf_counter()]
            have = grow(context, material, have, target, notify)
            started.append(time.perf_counter())
            passages = scatter(context, material, notify)
            started.append(time.perf_counter())
            _settle(context)
            notify(Progress("recalling", 0, 1))
            seconds = [round(after - before, 1) for before, after in pairwise(started)]
            sizes.append(_size(context, settings, questions, (have, passages), seconds))
            notify(Progress("recalling", 1, 1))
    finally:
        context.database.close()
    return SizeResult(tuple(sizes), material.turns, NOTE)


def _sizes(least: int, most: int) -> Iterator[int]:
    size = 1_000
    while size < most:
        if size >= least:
            yield size
        size *= 10
    yield max(least, most)


def _settle(context: Home) -> None:
    if context.database.server:
        with connect(context.settings.server) as server:
            server.execute("VACUUM ANALYZE")
    else:
        context.database_file.fold_log()


def _size(
    context: Home,
    settings: Settings,
    questions: Sequence[str],
    counts: tuple[int, int],
    seconds: Sequence[float],
) -> Size:
    turns, passages = counts
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        searched = pool.submit(_search, settings.home, settings.server, tuple(questions)).result()
    text, vectors = _bytes(context)
    growing, embedding = seconds
    return Size(
        turns=turns,
        passages=passages,
        lexical=searched.lexical,
        all_lanes=searched.all_lanes,
        text_bytes=round(text / turns, 1),
        vector_bytes=round(vectors / turns, 1),
        memory_mb=searched.memory_mb,
        mapped_mb=searched.mapped_mb,
        growing_seconds=growing,
        vector_seconds=embedding,
    )


def _bytes(context: Home) -> tuple[int, int]:
    """Return the sizes of full text and vectors on disk. On a server, they include all tenants."""
    if context.database.server:
        query = "SELECT CAST(pg_total_relation_size(CAST(? AS regclass)) AS bigint)"
        text, vectors = (
            sum(
                int(context.database.rows(query, [f"nacre_rows.{table}"])[0][0]) for table in tables
            )
            for tables in _ON_SERVER.values()
        )
        return text, vectors
    pages = context.database.rows("SELECT name, sum(pgsize) FROM dbstat GROUP BY name")
    return _of(pages, _TEXT_TABLES), _of(pages, _VECTOR_TABLES)


def _of(pages: Sequence[tuple[str, int]], tables: tuple[str, ...]) -> int:
    return sum(size for name, size in pages if name.startswith(tables))


def _search(home: Path, server: str, questions: Sequence[str]) -> _Searched:
    context = open_home(_settings(home, server))
    try:
        lexical, hybrid = (
            _spread(context, mode, questions) for mode in (Mode.LEXICAL, Mode.HYBRID)
        )
    finally:
        context.database.close()
    memory, mapped = _memory()
    return _Searched(lexical, hybrid, memory, mapped)


def _spread(context: Home, mode: Mode, questions: Sequence[str]) -> Spread:
    queries = [
        RecallQuery(text, mode=mode, turns=_RECALLED_TURNS, update=False) for text in questions
    ]
    for query in queries[:_WARMING]:
        recall(context, query)
    waited, worked = [], []
    for query in queries:
        started, busy = time.perf_counter(), time.process_time()
        recall(context, query)
        waited.append(1000 * (time.perf_counter() - started))
        worked.append(1000 * (time.process_time() - busy))
    return Spread(
        *(
            round(percentile(times, share), 1)
            for times in (waited, worked)
            for share in (0.5, 0.95, 0.99)
        )
    )


def _memory() -> tuple[float, float]:
    """Return the megabytes of this process's own memory and of mapped files. Zero except on Linux."""
    if not sys.platform.startswith("linux"):
        return 0.0, 0.0
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    kilobytes = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    own, mapped = (
        round(int(kilobytes[name][0]) * 1024 / 1_000_000, 1) for name in ("RssAnon", "RssFile")
    )
    return own, mapped


def _settings(home: Path, server: str) -> Settings:
    return load_settings(home, {"HOME": str(home), **({"NACRE_DB": server} if server else {})})
