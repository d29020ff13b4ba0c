"""What a watcher would follow, without following it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nacre.app import finding
from nacre.app.context import Context
from nacre.app.ingesting import unread
from nacre.app.watching.territory import territory_of
from nacre.model.reports import Problem


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


def survey(context: Context, paths: Sequence[Path]) -> Survey:
    """Look at everything once, and change nothing. Raises NotFound."""
    territory = territory_of(context, paths)
    findings = finding.find(context, paths, with_discovery=not paths)
    jobs = unread(context, (findings if paths else finding.without_put_off(context, findings)).files)
    watched = [] if paths else _of_tools(context)
    watched += _named([*territory.folders, *territory.files])
    unread_bytes = sum(job.unread for job in jobs)
    return Survey(tuple(watched), len(findings.files), len(jobs), unread_bytes, tuple(findings.problems))


def _of_tools(context: Context) -> list[Watched]:
    found = ((adapter.label, root.folder) for adapter, root in finding.tool_roots(context, (), []))
    return [Watched(folder, tool, folder.is_dir()) for tool, folder in dict.fromkeys(found)]


def _named(paths: Iterable[Path]) -> list[Watched]:
    return [Watched(path, None, path.exists()) for path in paths]
