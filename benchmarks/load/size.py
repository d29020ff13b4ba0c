"""How search grows: one home at 1,000, 10,000, … turns, each size searched by a process of its own."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from nacre.cli.growth import gather, grow, scatter
from nacre.cli.speed import draw_questions, percentile
from nacre.home.home import Home, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.recall.recall import recall
from nacre.settings import Settings, load_settings
from nacre.store.postgres_connection import connect
from nacre.values.recall import Mode, RecallQuery
from nacre.values.reports import OnProgress, Progress

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


@dataclass(frozen=True, slots=True)
class Spread:
    """How long recall took, warm: as a person waits, and what this process's processor worked, in milliseconds."""

    p50: float
    p95: float
    p99: float
    cpu_p50: float
    cpu_p95: float
    cpu_p99: float


@dataclass(frozen=True, slots=True)
class Size:
    """A home of so many turns.

    ``text_bytes`` and ``vector_bytes`` are what the full text and the vectors take on disk for each turn;
    ``memory_mb`` is what the searching process holds beside mapped files, ``mapped_mb`` what it has of those in
    memory. The seconds are what it took to make the turns that came and their full text, and
    to keep the vectors.
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


@dataclass(frozen=True, slots=True)
class SizeResult:
    """The curve."""

    sizes: tuple[Size, ...]
    material: int
    note: str


@dataclass(frozen=True, slots=True)
class _Searched:
    lexical: Spread
    all_lanes: Spread
    memory_mb: float
    mapped_mb: float


NOTE = (
    "Turns grow from real ones: sessions with fresh ids in which four of ten sentences are those of other turns of the "
    "same speaker. The vectors of a turn are those of the turn it grew from with some noise."
)


def measure_size(
    paths: Sequence[Path],
    folder: Path,
    *,
    turns: int,
    server: str = "",
    notify: OnProgress = lambda _: None,
) -> SizeResult:
    """Grow a home in ``folder``, which should be empty and on the disk that counts, from the sessions at ``paths``.

    With ``server``, the address of one that has no rows of others, the memory is there.
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
        questions = draw_questions(context, _QUESTIONS)
        have = material.turns
        for wanted in _sizes(have, turns):
            started = [time.perf_counter()]
            have = grow(context, material, have, wanted, notify)
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
    """Powers of ten from what there is on, and the end."""
    size = 1_000
    while size < most:
        if size >= least:
            yield size
        size *= 10
    yield max(least, most)


def _settle(context: Home) -> None:
    """What the file's log and the server's statistics would leave to later."""
    if context.database.is_server:
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
    """What full text and vectors take on disk; on a server, those of all tenants."""
    if context.database.is_server:
        told = "SELECT CAST(pg_total_relation_size(CAST(? AS regclass)) AS bigint)"
        text, vectors = (
            sum(int(context.database.rows(told, [f"nacre_rows.{table}"])[0][0]) for table in tables)
            for tables in _ON_SERVER.values()
        )
        return text, vectors
    pages = context.database.rows("SELECT name, sum(pgsize) FROM dbstat GROUP BY name")
    return _of(pages, _TEXT_TABLES), _of(pages, _VECTOR_TABLES)


def _of(pages: Sequence[tuple[str, int]], tables: tuple[str, ...]) -> int:
    return sum(size for name, size in pages if name.startswith(tables))


def _search(home: Path, server: str, questions: Sequence[str]) -> _Searched:
    """In a process of its own: only what searching needs is in its memory."""
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
            round(percentile(found, share), 1)
            for found in (waited, worked)
            for share in (0.5, 0.95, 0.99)
        )
    )


def _memory() -> tuple[float, float]:
    """Megabytes of this process's own memory, and of mapped files; zero where the system does not tell."""
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
