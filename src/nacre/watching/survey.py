"""What a watcher would follow, without following it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nacre.home.home import Home
from nacre.ingestion import discovery
from nacre.ingestion.ingest import unread
from nacre.values.reports import Problem
from nacre.watching.territory import territory_of


@dataclass(frozen=True, slots=True)
class Watched:
    """A folder, or a single file, for whom it is watched (a tool's name; ``None``: somebody named it), and whether it
    is there."""

    path: Path
    tool: str | None
    is_there: bool


@dataclass(frozen=True, slots=True)
class Survey:
    """What would be watched, how many transcripts are there, and how many of them, with how many bytes, are unread."""

    watched: tuple[Watched, ...]
    files: int
    unread_files: int
    unread_bytes: int
    problems: tuple[Problem, ...]


def survey(home: Home, paths: Sequence[Path]) -> Survey:
    """Look at everything once, and change nothing. Raises NotFound."""
    territory = territory_of(home, paths)
    findings = discovery.find(home, paths, with_discovery=not paths)
    jobs = unread(home, (findings if paths else discovery.without_put_off(home, findings)).files)
    watched = [] if paths else _of_tools(home)
    watched += _named([*territory.folders, *territory.files])
    unread_bytes = sum(job.unread for job in jobs)
    return Survey(tuple(watched), len(findings.files), len(jobs), unread_bytes, tuple(findings.problems))


def _of_tools(home: Home) -> list[Watched]:
    found = ((adapter.label, root.folder) for adapter, root in discovery.tool_roots(home, (), []))
    return [Watched(folder, tool, folder.is_dir()) for tool, folder in dict.fromkeys(found)]


def _named(paths: Iterable[Path]) -> list[Watched]:
    return [Watched(path, None, path.exists()) for path in paths]
