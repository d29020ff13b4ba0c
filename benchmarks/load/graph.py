"""Measure operations on links in a large home. Links are random but have hubs, like real ones."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.load.code_material import write_repository
from nacre.base.frozen import frozen
from nacre.home.home import Home, open_home
from nacre.memories.edit import catch_up, scan
from nacre.memories.graph import (
    NewLink,
    Relation,
    TraverseRequest,
    brief,
    central,
    components,
    gaps,
    link,
    list_links,
    traverse,
)
from nacre.settings import load_settings
from nacre.values.reports import OnProgress, Progress
from nacre.vault.watch import VaultWatch
from nacre_code.ingest import ingest_code

_PROJECT_SIZE = 100
_SYMBOLS = 40
_ROUNDS = 7
_BULK = 1000
_NOTE = "---\nid: {id}\nkind: fact\nsubject: {name}\ncreated: 2026-11-01\nlinks: [{links}]\n---\n{name} holds {words}.\n"  # noqa: E501


@frozen
class Timing:
    """The median duration and CPU time of an operation in milliseconds, after a first run."""

    name: str
    milliseconds: float
    cpu_milliseconds: float


@frozen
class GraphResult:
    """The size of the home, the seconds needed to read its memories, and the operations in the daemon."""

    memories: int
    links: int
    symbols: int
    read_seconds: float
    operations: tuple[Timing, ...]


def measure_graph(
    place: Path, *, memories: int, links: int, files: int, notify: OnProgress
) -> GraphResult:
    """Create a home with memories, links and code in a new folder, and measure operations."""
    pairs = draw_links(memories, links)
    write_vault(place / "vault", memories, pairs)
    settings = load_settings(place, {"HOME": str(place), "NACRE_EMBEDDING_MODEL": "none"})
    home = open_home(settings)
    try:
        began = time.perf_counter()
        scan(home)
        read = time.perf_counter() - began
        notify(Progress("memories", memories, memories))
        symbols = _read_code(home, place / "code", files, notify) if files else 0
        alone = _took("look for manual edits, without the daemon", lambda _: catch_up(home))
        home.vault.watch = VaultWatch(home.vault)
        took = (alone, *(_took(name, work) for name, work in _operations(home).items()))
        return GraphResult(memories, home.links.count(home.now().date()), symbols, read, took)
    finally:
        home.close()


def _read_code(home: Home, root: Path, files: int, notify: OnProgress) -> int:
    write_repository(root, files, _SYMBOLS)
    return ingest_code(home, str(root), "made", seconds=3600, on_progress=notify).symbols


def draw_links(memories: int, links: int) -> list[tuple[int, int]]:
    """Return pairs of memories. Four of five are in the same project. Memories with links attract more."""
    draw = random.Random(memories)  # noqa: S311 - a repeatable draw
    projects = max(1, memories // _PROJECT_SIZE)
    by_project: list[list[int]] = [[] for _ in range(projects)]
    ends: list[int] = []
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < links:
        source = draw.randrange(memories)
        inside = by_project[source % projects]
        if draw.random() < 0.8:
            other = (
                draw.choice(inside) if inside and draw.random() < 0.5 else draw.randrange(memories)
            )
            other = other - other % projects + source % projects
        else:
            other = draw.choice(ends) if ends else draw.randrange(memories)
        if (
            source != other
            and other < memories
            and (other, source) not in pairs
            and (source, other) not in pairs
        ):
            pairs.add((source, other))
            inside.append(other)
            ends += (source, other)
    return sorted(pairs)


def write_vault(vault: Path, memories: int, pairs: Sequence[tuple[int, int]]) -> None:
    """Write memory files with these links, each in the folder of its project."""
    leads: dict[int, list[int]] = {}
    for source, target in pairs:
        leads.setdefault(source, []).append(target)
    projects = max(1, memories // _PROJECT_SIZE)
    for at in range(memories):
        links = ", ".join(f"{{rel: related_to, to: {_id(other)}}}" for other in leads.get(at, ()))
        folder = vault / "projects" / f"p{at % projects}" / "fact"
        folder.mkdir(parents=True, exist_ok=True)
        words = " ".join(f"w{(at * 7919 + step * 104729) % 50021}" for step in range(12))
        text = _NOTE.format(id=_id(at), name=f"Memory {at}", links=links, words=words)
        (folder / f"m{at}.md").write_text(text, encoding="utf-8")


def _id(at: int) -> str:
    return f"01970000-0000-7000-8000-{at:012x}"


def _operations(home: Home) -> dict[str, Callable[[int], Any]]:
    def drawn(round_: int) -> Any:
        ends = [(_id(at), _id(at + 1 + round_)) for at in range(_BULK)]
        new = [
            NewLink(source=source, relation=Relation.ELABORATES, target=target)
            for source, target in ends
        ]
        return link(home, links=tuple(new))

    def analysed(work: Callable[..., Any]) -> Callable[[int], Any]:
        return lambda round_: work(home, limit=10 + round_)  # avoid cached results

    return {
        "look for manual edits, with the daemon": lambda _: catch_up(home),
        "traverse, depth 2": lambda at: traverse(
            home, TraverseRequest(reference=_id(at * 97), depth=2)
        ),
        "traverse, depth 10": lambda at: traverse(
            home, TraverseRequest(reference=_id(at * 97), depth=10, limit=1000)
        ),
        "list": lambda _: list_links(home),
        "central": analysed(central),
        "gaps": analysed(gaps),
        "components": analysed(components),
        "brief, cached": lambda _: brief(home),
        f"link, {_BULK:,} at once": drawn,
    }


def _took(name: str, work: Callable[[int], Any]) -> Timing:
    walls, works = [], []
    rounds = 2 if name.startswith("link") else _ROUNDS
    if rounds == _ROUNDS:
        work(_ROUNDS)
    for at in range(rounds):
        began, worked = time.perf_counter(), time.process_time()
        work(at)
        walls.append(time.perf_counter() - began)
        works.append(time.process_time() - worked)
    return Timing(name, 1000 * median(walls), 1000 * median(works))
