"""Where a folder belongs: its repository, and the project that the index knows of it. Light, for hooks ask it."""

from __future__ import annotations

import configparser
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from nacre.base.text import aliases_in, called
from nacre.errors import Conflict, MemoryInvalid, NotFound
from nacre.home.home import Home
from nacre.redact.redactor import Redactor
from nacre.store.schema import ALIASES
from nacre.values.codec import with_texts
from nacre.values.memory import NAMES, Memory, SessionFilter
from nacre.values.session import StoredSession
from nacre.vault.files import normalise_remote

if TYPE_CHECKING:
    from nacre.values.recall import Filter

_WORKTREE = re.compile(
    r"^(.*?)[\\/](?:\.claude[\\/]worktrees|\.worktrees|\.git[\\/]worktrees)[\\/].*$"
    r"|^((?:.*?[\\/])?[^.\\/][^\\/]*)[\\/]worktrees[\\/].*$"
)
"""Where worktrees lie inside a repository; ``~/.codex/worktrees`` and the like lie in no repository."""

_POINTER_CHARACTERS = 4096
_MOST_CLONES = 3
"""A clone of a clone of a clone: two may name each other."""


@dataclass(frozen=True, slots=True)
class Place:
    """What is known of a session's folder: its repository's root and remote, or the folder where there is none."""

    root: str | None
    remote: str | None
    is_repository: bool = False
    worktree: str | None = None
    """The folder of a worktree or of a clone that lies outside the repository's own."""


def project_of_folder(home: Home, folder: Path) -> str | None:
    """The known project a folder belongs to; never makes one."""
    return known_project(home, locate(str(folder)))


def known_project(home: Home, place: Place) -> str | None:
    """The slug of the project that a place belongs to, by its remote, else by the nearest root above it; of a clone on
    this machine also by the path that it came from, where a page lists that as a remote.
    """
    found = _project_of_remote(home, place.remote) if place.remote else None
    if found:
        return found
    root = place.root
    while root:
        found = home.files.project_by("root", root)
        if found and not (place.remote and _has_remotes(home, found)):
            return found
        parent = _parent(root)
        # A repository is a project of its own, whatever folder it lies in.
        root = parent if parent != root and not place.is_repository else None
    return (
        _project_of_remote(home, normalise_remote(place.root))
        if place.root and place.worktree
        else None
    )


def with_dependencies(home: Home, wanted: Filter) -> Filter:
    """A filter that also admits what its projects depend on, one level deep; not where it is strict."""
    if not wanted.projects or wanted.strict:
        return wanted
    found = (other for slug in wanted.projects for _, other in home.files.dependencies(slug))
    return replace(wanted, projects=tuple(dict.fromkeys((*wanted.projects, *found))))


def locate(cwd: str | None, repository: str | None = None) -> Place:
    """The place of a folder; ``repository`` is a remote that is known of it."""
    if not cwd:
        return Place(None, _normalised(repository))
    main = _WORKTREE.sub(r"\1\2", cwd.rstrip("/\\")) or cwd
    for folder in dict.fromkeys((Path(cwd), Path(main))):
        # os.path answers no where Path raises: a name that is too long, or has a zero in it.
        if folder.is_absolute() and os.path.isdir(folder):
            for candidate in (folder, *folder.parents):
                if os.path.exists(candidate / ".git"):
                    return _repository(candidate, repository)
    return Place(main, _normalised(repository))


def _project_of_remote(home: Home, remote: str) -> str | None:
    """The project of a remote, however its page spells it."""
    found = home.files.project_by("remote", remote)
    if found:
        return found
    spelt = ((value, slug) for key, value, slug in home.files.project_keys() if key == "remote")
    return next((slug for value, slug in spelt if normalise_remote(value) == remote), None)


def _has_remotes(home: Home, slug: str) -> bool:
    """Whether a project is known under remotes, none of which is the one asked for: a fork, or a namesake."""
    return any(key == "remote" and found == slug for key, _, found in home.files.project_keys())


def _repository(folder: Path, remote: str | None, clones: int = 0) -> Place:
    """The place of a folder that has a ``.git``: a repository's, or that of the repository a worktree belongs to, or
    that from which it was cloned on this machine.
    """
    git, root, outside = folder / ".git", folder, None
    if os.path.isfile(git):
        git = _pointed(git, folder, "gitdir:") or git
        shared = _pointed(git / "commondir", git) or (
            git.parents[1] if git.parent.name == "worktrees" else None
        )
        if shared:  # else a submodule, or a repository whose ".git" lies elsewhere
            git, root = shared, shared.parent if shared.name.startswith(".") else shared
            outside = None if folder.is_relative_to(root) else str(folder)
    remote = remote or _remote_of(git, root)
    origin = Path((remote or "").removeprefix("file://"))
    if clones < _MOST_CLONES and origin.is_absolute() and os.path.exists(origin / ".git"):
        return replace(
            _repository(Path(os.path.normpath(origin)), None, clones + 1), worktree=str(folder)
        )
    return Place(str(root), _normalised(remote), is_repository=True, worktree=outside)


def _pointed(file: Path, base: Path, label: str = "") -> Path | None:
    """The folder that a file of git's names; ``None`` where there is none."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return (base / opened.read(_POINTER_CHARACTERS).removeprefix(label).strip()).resolve()
    except (OSError, ValueError):
        return None


def _remote_of(git: Path, root: Path) -> str | None:
    """The remote that a repository's configuration names, as it does: origin, else the first."""
    config = git / "config"
    if not config.is_file():
        return None

    parser = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    try:
        parser.read(config, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError):
        return None
    sections = [name for name in parser.sections() if name.startswith("remote ")]
    sections.sort(key=lambda name: name != 'remote "origin"')
    url = parser.get(sections[0], "url", fallback=None) if sections else None
    if url and url.startswith("."):
        url = os.path.normpath(root / url)
    return url


def _normalised(remote: str | None) -> str | None:
    return normalise_remote(remote) if remote else None


def _parent(path: str) -> str:
    pure = PureWindowsPath(path) if "\\" in path else PurePosixPath(path)
    return str(pure.parent)


# ----------------------------------------------------------------------------
# Look up sessions and projects of an open home by what a person calls them.


def find_session(home: Home, reference: str | None, folder: Path | None = None) -> StoredSession:
    """A session by its id or the beginning of it; without one, the last one of the folder, by default the current one.

    Where no session of the folder is known, it is the last one of all. Raises NotFound, Conflict.
    """
    if reference is None:
        return _last_here(home, folder or Path.cwd())
    found = home.sessions.find(reference.strip())
    if not found:
        raise NotFound(f"no session is called {reference!r}", hint="nacre sessions list shows ids")
    if len(found) > 1:
        names = ", ".join(item.session.id for item in found)
        raise Conflict(f"{reference!r} means several sessions: {names}", hint="give more of the id")
    return found[0]


def _last_here(home: Home, folder: Path) -> StoredSession:
    project = project_of_folder(home, folder)
    found = home.sessions.newest(SessionFilter(project=project), limit=1) if project else []
    found = found or home.sessions.newest(limit=1)
    if not found:
        raise NotFound("no session is known yet", hint="nacre ingest reads what your agents wrote")
    return found[0]


def projects(home: Home) -> list[str]:
    """The slugs of all projects: those with a page, and those that memories name."""
    pages = {project.slug for project in home.files.projects()}
    return sorted(pages | home.memories.projects())


def is_empty(home: Home) -> bool:
    """Whether there is nothing to recall from yet."""
    return not home.memories.all_ids() and not home.sessions.counts()


# ----------------------------------------------------------------------------
# A memory that is renamed keeps the names by which others link it, as aliases in its front matter.


def with_former_names(home: Home, memory: Memory, path: str) -> Memory:
    """A memory as it is to be written at a path, with those of its names as aliases that others still use."""
    aliases = aliases_in(memory.extra.get(ALIASES))
    former = home.memories.names.lost(memory.id, called(memory.subject, path, aliases))
    lost = [name for name in former if home.redactor.clean(name) == name]
    return replace(memory, extra={**memory.extra, ALIASES: [*aliases, *lost]}) if lost else memory


# ----------------------------------------------------------------------------
# Takes secrets out of what is stored: memories, texts, JSON values.


def without_secrets(redactor: Redactor, text: str | None) -> str | None:
    """A text, unless it holds what looks like a secret: what a person wrote does not pass through the database then."""
    return text if text is None or redactor.clean(text) == text else None


def redacted(redactor: Redactor, memory: Memory) -> Memory:
    """A memory without secrets in any of its texts. Raises MemoryInvalid when nothing is left."""
    clean = redactor.clean
    subject, content = clean(memory.subject).strip(), clean(memory.content).strip()
    if not content:
        raise MemoryInvalid("a memory needs content", hint="say what is to be remembered")
    if not subject:
        raise MemoryInvalid(
            "a memory needs a subject", hint="a few words that say what it is about"
        )
    cleaned: Memory = with_texts(memory, clean, NAMES)
    return replace(cleaned, subject=subject, content=content)


def clean_values(redactor: Redactor, value: Any) -> Any:
    """JSON values without secrets in any of their texts."""
    return with_texts(value, redactor.clean, ())
