"""Find the repository and project of a folder, sessions and projects, and redact stored values.

Hooks use this module, so it must load fast.
"""

from __future__ import annotations

import configparser
import os
import re
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from nacre.base.frozen import frozen
from nacre.base.text import aliases_in, called
from nacre.errors import ConflictError, InvalidMemoryError, NotFoundError
from nacre.home.home import Home
from nacre.redact import redactor
from nacre.store.schema import ALIASES
from nacre.values import codec
from nacre.values.memory import NAMES, Memory, SessionFilter
from nacre.values.session import StoredSession
from nacre.vault.files import normalise_remote

if TYPE_CHECKING:
    from nacre.values.recall import Filter

_WORKTREE = re.compile(
    r"^(.*?)[\\/](?:\.claude[\\/]worktrees|\.worktrees|\.git[\\/]worktrees)[\\/].*$"
    r"|^((?:.*?[\\/])?[^.\\/][^\\/]*)[\\/]worktrees[\\/].*$"
)
"""Matches paths of worktrees inside a repository, but not in ``~/.codex/worktrees``."""

_MAX_POINTER_CHARACTERS = 4096
_MAX_CLONES = 3
"""Maximum number of local clones to follow to their origins. Clones can form a loop."""


@frozen
class Place:
    """A session's location: its repository's root and remote, or its folder."""

    root: str | None
    remote: str | None
    is_repository: bool = False
    worktree: str | None = None
    """The folder of a worktree or clone, if it is outside the repository's root."""


def project_of_folder(home: Home, folder: Path) -> str | None:
    """Return the known project of a folder, without creating one."""
    return known_project(home, locate(str(folder)))


def known_project(home: Home, place: Place) -> str | None:
    """Return the slug of the project to which a place belongs, or ``None`` if there is none.

    The project's page lists the place's git remote, the place's folder or a parent folder, or
    the repository from which the place was cloned.
    """
    slug = _project_of_remote(home, place.remote) if place.remote else None
    if slug:
        return slug
    root = place.root
    while root:
        slug = home.files.project_by("root", root)
        # If the remote differs, this is a fork or namesake.
        if slug and not (
            place.remote
            and any(
                name == "remote" and owner == slug for name, _, owner in home.files.project_keys()
            )
        ):
            return slug
        parent = str((PureWindowsPath(root) if "\\" in root else PurePosixPath(root)).parent)
        # A repository is a separate project even inside another project's folder.
        root = parent if parent != root and not place.is_repository else None
    return (
        _project_of_remote(home, normalise_remote(place.root))
        if place.root and place.worktree
        else None
    )


def with_dependencies(home: Home, criteria: Filter) -> Filter:
    """Add the direct dependencies of a filter's projects, unless the filter is strict."""
    if not criteria.projects or criteria.strict:
        return criteria
    dependencies = (
        other for slug in criteria.projects for _, other in home.files.dependencies(slug)
    )
    return replace(criteria, projects=tuple(dict.fromkeys((*criteria.projects, *dependencies))))


def locate(cwd: str | None, repository: str | None = None) -> Place:
    """Return the repository or folder to which a folder belongs. ``repository``: its remote, if known."""
    if not cwd:
        return Place(None, _normalise(repository))
    main = _WORKTREE.sub(r"\1\2", cwd.rstrip("/\\")) or cwd
    for folder in dict.fromkeys((Path(cwd), Path(main))):
        # For invalid paths (too long, null characters), os.path returns False where Path raises.
        if folder.is_absolute() and os.path.isdir(folder):
            for candidate in (folder, *folder.parents):
                if os.path.exists(candidate / ".git"):
                    return _repository_place(candidate, repository)
    return Place(main, _normalise(repository))


def _project_of_remote(home: Home, remote: str) -> str | None:
    """Return the project of a git remote. The project's page can write the address differently."""
    exact_match = home.files.project_by("remote", remote)
    if exact_match:
        return exact_match
    remotes = ((value, slug) for key, value, slug in home.files.project_keys() if key == "remote")
    return next((slug for value, slug in remotes if normalise_remote(value) == remote), None)


def _repository_place(folder: Path, remote: str | None, clones: int = 0) -> Place:
    """Return the place of a folder that contains ``.git``.

    A worktree or local clone has the same place as the original repository.
    """
    git, root, outside = folder / ".git", folder, None
    if os.path.isfile(git):
        git = _read_pointer(git, folder, "gitdir:") or git
        shared = _read_pointer(git / "commondir", git) or (
            git.parents[1] if git.parent.name == "worktrees" else None
        )
        if shared:  # otherwise, it is a submodule, or ".git" is elsewhere
            git, root = shared, shared.parent if shared.name.startswith(".") else shared
            outside = None if folder.is_relative_to(root) else str(folder)
    remote = remote or _remote_of(git, root)
    origin = Path((remote or "").removeprefix("file://"))
    if clones < _MAX_CLONES and origin.is_absolute() and os.path.exists(origin / ".git"):
        return replace(
            _repository_place(Path(os.path.normpath(origin)), None, clones + 1),
            worktree=str(folder),
        )
    return Place(str(root), _normalise(remote), is_repository=True, worktree=outside)


def _read_pointer(file: Path, base: Path, label: str = "") -> Path | None:
    try:
        with file.open(encoding="utf-8", errors="replace") as content:
            return (
                base / content.read(_MAX_POINTER_CHARACTERS).removeprefix(label).strip()
            ).resolve()
    except (OSError, ValueError):
        return None


def _remote_of(git: Path, root: Path) -> str | None:
    """Return the address of a repository's remote ``origin``, or of another remote."""
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


def _normalise(remote: str | None) -> str | None:
    return normalise_remote(remote) if remote else None


# -- Lookup --------------------------------------------------------------------


def find_session(home: Home, reference: str | None, folder: Path | None = None) -> StoredSession:
    """Return the session whose id starts with ``reference``.

    Without ``reference``, return the latest session in ``folder`` or the current folder. If the
    folder has no sessions, return the latest session of all. Raises NotFoundError, ConflictError.
    """
    if reference is None:
        return _latest_in(home, folder or Path.cwd())
    sessions = home.sessions.find(reference.strip())
    if not sessions:
        raise NotFoundError(
            f"there is no session {reference!r}", hint="nacre sessions list shows ids"
        )
    if len(sessions) > 1:
        names = ", ".join(item.session.id for item in sessions)
        raise ConflictError(
            f"{reference!r} matches several sessions: {names}",
            hint="give more characters of the id",
        )
    return sessions[0]


def _latest_in(home: Home, folder: Path) -> StoredSession:
    project = project_of_folder(home, folder)
    sessions = home.sessions.newest(SessionFilter(project=project), limit=1) if project else []
    sessions = sessions or home.sessions.newest(limit=1)
    if not sessions:
        raise NotFoundError(
            "no session has been read yet", hint="nacre ingest reads your agents' transcripts"
        )
    return sessions[0]


def projects(home: Home) -> list[str]:
    """Return the slugs of all projects that have a page or memories."""
    pages = {project.slug for project in home.files.projects()}
    return sorted(pages | home.memories.projects())


def is_empty(home: Home) -> bool:
    """Return True if there are no memories or turns to recall yet."""
    return not home.memories.all_ids() and not home.sessions.counts()


# -- Former names --------------------------------------------------------------


def with_former_names(home: Home, memory: Memory, path: str) -> Memory:
    """Return a memory with those former names as aliases that links still use."""
    aliases = aliases_in(memory.extra.get(ALIASES))
    former = home.memories.names.lost(memory.id, called(memory.subject, path, aliases))
    lost = [name for name in former if home.redactor.clean(name) == name]
    return replace(memory, extra={**memory.extra, ALIASES: [*aliases, *lost]}) if lost else memory


# -- Redaction -----------------------------------------------------------------


def without_secrets(redactor: redactor.Redactor, text: str | None) -> str | None:
    """Return a text, or ``None`` if it seems to contain a secret."""
    return text if text is None or redactor.clean(text) == text else None


def redact(redactor: redactor.Redactor, memory: Memory) -> Memory:
    """Return a memory with secrets removed from its text. Raises InvalidMemoryError if no text is left."""
    clean = redactor.clean
    subject, content = clean(memory.subject).strip(), clean(memory.content).strip()
    if not content:
        raise InvalidMemoryError("a memory needs content", hint="give the text to remember")
    if not subject:
        raise InvalidMemoryError(
            "a memory needs a subject", hint="give a few words for its subject"
        )
    cleaned: Memory = codec.with_texts(memory, clean, NAMES)
    return replace(cleaned, subject=subject, content=content)


def clean_values(redactor: redactor.Redactor, value: Any) -> Any:
    """Return JSON values with secrets removed from strings."""
    return codec.with_texts(value, redactor.clean, ())
