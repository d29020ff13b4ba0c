"""Discovery of transcripts in tool folders and given paths."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path

from nacre.base.environment import install_hint
from nacre.base.frozen import frozen
from nacre.errors import InvalidSettingsError, NotFoundError
from nacre.home.home import Home
from nacre.home.parsing import roots_of
from nacre.readers.adapter import SUFFIXES as _DATABASES
from nacre.readers.adapter import Adapter, Places, Root, on_disk, plain_path
from nacre.readers.nacre_chat import sessions_folder
from nacre.readers.registry import IN_EXTRAS, adapters, parts_of
from nacre.values.reports import Problem

_SUFFIXES = (".jsonl", ".json", ".md", ".markdown", ".txt", ".llm.history", *_DATABASES)
_SKIPPED_FOLDERS = frozenset(
    {".git", "node_modules", "__pycache__", ".venv", "tool-results", "file-history"}
)
_WILDCARDS = {"**/": "(?:.*/)?", "*": "[^/]*"}
_UNREADABLE = {
    "Antigravity": ".gemini/antigravity*/conversations/*.[dp]b",
    "Windsurf": ".codeium/windsurf*/cascade/*.pb",
}
"""Globs for encrypted or packed transcripts that only the tool itself can read."""

_SKIPPED_NAMES = (".lock", "sessions.json", ".meta.json")


@frozen
class FoundFile:
    """A file that might be a transcript.

    ``is_named``: whether the user named it. ``expected_of``: the tool that owns its folder.
    ``size`` and ``mtime_ns`` cover all files of the transcript.
    """

    path: Path
    size: int
    mtime_ns: int
    is_named: bool = False
    expected_of: str = ""


@dataclass(slots=True)
class Findings:
    """Possible transcripts, oldest first, and problems with unreadable paths."""

    files: list[FoundFile]
    problems: list[Problem]


def find(home: Home, paths: Sequence[Path], *, with_discovery: bool) -> Findings:
    """Find transcripts in ``paths`` and, if ``with_discovery`` is set, in the folders of all known tools.

    Raises NotFoundError if a path does not exist.
    """
    named = [path.expanduser().absolute() for path in paths]
    for path in named:
        if not on_disk(path).exists():
            raise NotFoundError(f"there is no file or folder {path}", hint="check the path")
    problems: list[Problem] = []
    discovered = _discovered(home, problems) if with_discovery else ()
    inside = (
        (file, "")
        for path in named
        for file in (_walk(path, problems) if path.is_dir() else (path,))
    )
    return _collect(home, chain(discovered, inside), problems, named)


def without_put_off(home: Home, findings: Findings) -> Findings:
    """Omit files last changed before the time in ``watch.changed_since``.

    The daemon leaves them to ``nacre ingest``. Raises InvalidSettingsError for an invalid time.
    """
    value = home.settings.text("watch.changed_since")
    if not value:
        return findings
    try:
        since = datetime.fromisoformat(value).timestamp() * 1e9
        return Findings(
            [file for file in findings.files if file.mtime_ns >= since], findings.problems
        )
    except ValueError as error:
        hint = "nacre config set watch.changed_since 2026-11-20, or nothing"
        raise InvalidSettingsError(
            f"watch.changed_since is not a valid time: {value}", hint=hint
        ) from error


def projects_of(home: Home) -> frozenset[Path]:
    """Return the existing working folders of all sessions, and the repositories that contain them."""
    folders = [Path(folder) for folder in home.sessions.folders()]
    existing = {folder for folder in folders if folder.is_absolute() and os.path.isdir(folder)}
    repositories = {_repository(folder) for folder in existing}
    return frozenset(existing | repositories) - {home.settings.user_home}


def _repository(folder: Path) -> Path:
    return next(
        (parent for parent in (folder, *folder.parents) if os.path.exists(parent / ".git")), folder
    )


def find_in_projects(home: Home, projects: Iterable[Path]) -> Findings:
    """Return the transcripts that tools keep inside the given projects."""
    problems: list[Problem] = []
    known_roots = {root for _, root in tool_roots(home, (), [])}
    transcripts = (
        (path, adapter.label)
        for adapter, root in tool_roots(home, projects, [])  # failing adapters were reported before
        if root not in known_roots
        for path in _glob(root.folder, root.patterns, problems)
    )
    return _collect(home, transcripts, problems)


def _discovered(home: Home, problems: list[Problem]) -> Iterator[tuple[Path, str]]:
    for adapter, root in tool_roots(home, projects_of(home), problems):
        yield from ((path, adapter.label) for path in _glob(root.folder, root.patterns, problems))
    for folder in home.settings.texts("ingest.roots"):
        yield from ((path, "") for path in _walk(Path(folder).expanduser(), problems))


def tool_roots(
    home: Home, projects: Iterable[Path], problems: list[Problem]
) -> Iterator[tuple[Adapter, Root]]:
    """Yield each folder in which a tool keeps transcripts, with the tool's adapter."""
    settings = home.settings
    places = Places(
        settings.user_home,
        settings.environ,
        settings.platform,
        tuple(sorted(projects)),
        settings.home,
    )
    for adapter in adapters().values():
        roots = roots_of(adapter, places)
        if isinstance(roots, Problem):
            problems.append(roots)
        else:
            yield from ((adapter, root) for root in roots)


def missing_readers(home: Home) -> Iterator[str]:
    """Yield a message for each tool whose transcripts are unreadable or need a plugin."""
    folders = (home.settings.user_home, *projects_of(home))
    for tool, pattern in IN_EXTRAS.items():
        number = sum(1 for folder in folders for _ in folder.glob(pattern))
        if number and tool not in adapters():
            yield f"{number:,} {tool} transcripts are not read: {install_hint('extras')}"
    for tool, pattern in _UNREADABLE.items():
        paths = home.settings.user_home.glob(pattern)
        logs = (path.parents[1] / "brain" / path.stem / ".system_generated" for path in paths)
        if number := sum(not log.exists() for log in logs):
            yield f"{number:,} {tool} transcripts are not read: only {tool} can read them"


def _collect(
    home: Home,
    paths: Iterable[tuple[Path, str]],
    problems: list[Problem],
    named: Sequence[Path] = (),
) -> Findings:
    by_path: dict[Path, FoundFile] = {}
    for path, tool in paths:
        is_named = path in named
        file, path = on_disk(path), plain_path(path)
        try:
            str(path).encode()
            status = file.stat()
            if not stat.S_ISREG(status.st_mode):
                continue
            size, mtime_ns = footprint(path, status)
        except UnicodeEncodeError:
            name = os.fsencode(path).decode("utf-8", errors="replace")
            problems.append(
                Problem(name, "its path is not UTF-8 text", "rename it, or the folder it is in")
            )
            continue
        except OSError as error:
            problems.append(
                Problem(str(path), error.strerror or "cannot be read", "check its permissions")
            )
            continue
        tool = tool or (by_path[path].expected_of if path in by_path else "")
        by_path[path] = FoundFile(path, size, mtime_ns, is_named, tool)
    excluded = home.settings.texts("ingest.exclude")
    home_path = str(home.settings.home) + os.sep
    conversations = sessions_folder(home.settings.home)
    included = [
        file
        for file in by_path.values()
        if not any(fnmatch.fnmatch(str(file.path), pattern) for pattern in excluded)
        and (
            file.is_named
            or file.path.parent == conversations
            or not str(file.path).startswith(home_path)
        )
    ]
    return Findings(sorted(included, key=lambda file: (file.mtime_ns, str(file.path))), problems)


def footprint(path: Path, status: os.stat_result | None = None) -> tuple[int, int]:
    """Return the total size and the latest ``mtime_ns`` of a transcript's files. Raises OSError."""
    status = status or on_disk(path).stat()
    size, mtime_ns = status.st_size, status.st_mtime_ns
    for part in parts_of(path):
        with contextlib.suppress(FileNotFoundError):
            status = part.stat()
            size, mtime_ns = size + status.st_size, max(mtime_ns, status.st_mtime_ns)
    return size, mtime_ns


def _glob(folder: Path, patterns: Sequence[str], problems: list[Problem]) -> Iterator[Path]:
    if not folder.is_dir():
        return
    file_patterns = [_to_regex(pattern) for pattern in patterns]
    folder_patterns = [
        _to_regex(part) for pattern in patterns for part in _parent_patterns(pattern)
    ]
    for path in _walk(folder, problems, folder_patterns):
        relative = path.relative_to(folder).as_posix()
        if not any(pattern.fullmatch(relative) for pattern in file_patterns):
            continue
        if _links_outside(path, folder):
            problems.append(
                Problem(
                    str(path),
                    "it is a link to a file outside of the folder",
                    "nacre ingest FILE reads the file itself",
                )
            )
        else:
            yield path


def _parent_patterns(pattern: str) -> Iterator[str]:
    parts = pattern.split("/")[:-1]
    for length, part in enumerate(parts, start=1):
        if part == "**":
            yield "/".join([*parts[: length - 1], "**/*"])
            return
        yield "/".join(parts[:length])


def _to_regex(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*)", pattern)
    return re.compile("".join(_WILDCARDS.get(part, re.escape(part)) for part in parts))


def _walk(
    folder: Path, problems: list[Problem], above: Sequence[re.Pattern[str]] | None = None
) -> Iterator[Path]:
    def failed(error: OSError) -> None:
        problems.append(
            Problem(
                str(error.filename), error.strerror or "cannot be read", "check its permissions"
            )
        )

    for parent, folders, names in os.walk(folder, onerror=failed):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        if above is not None:
            within = Path(parent).relative_to(folder)
            folders[:] = [
                name
                for name in folders
                if any(pattern.fullmatch((within / name).as_posix()) for pattern in above)
            ]
        for name in sorted(names):
            path = Path(parent, name)
            is_wanted = (
                may_be_transcript(path) if above is None else not name.endswith(_SKIPPED_NAMES)
            )
            if is_wanted and (above is not None or not _links_outside(path, folder)):
                yield path


def _links_outside(path: Path, folder: Path) -> bool:
    """Return True if a link, perhaps planted by an attacker, leads out of ``folder``."""
    return path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(
        os.path.realpath(folder)
    )


def look(home: Home, paths: Iterable[Path]) -> Findings:
    """Return the given paths that exist and are not excluded."""
    return _collect(home, ((path, "") for path in paths if on_disk(path).exists()), [])


def below(root: Root) -> Iterator[Path]:
    """Yield the transcripts below a tool's folder."""
    yield from _glob(root.folder, root.patterns, [])


def fits(root: Root, path: Path) -> bool:
    """Return True if discovery would find ``path`` in ``root``."""
    if (
        not path.is_relative_to(root.folder)
        or path.name.endswith(_SKIPPED_NAMES)
        or _links_outside(path, root.folder)
    ):
        return False
    relative = path.relative_to(root.folder)
    if _SKIPPED_FOLDERS & set(relative.parts[:-1]):
        return False
    return any(_to_regex(pattern).fullmatch(relative.as_posix()) for pattern in root.patterns)


def may_be_transcript(path: Path) -> bool:
    """Return True if a transcript can have this file name."""
    return not path.name.endswith(_SKIPPED_NAMES) and (
        path.name.endswith(_SUFFIXES) or ".jsonl." in path.name
    )
