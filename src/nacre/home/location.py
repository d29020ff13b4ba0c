"""Find the repository and project of a folder, sessions and projects, and redact stored values.

Hooks use this module, so it must load fast.
"""

from __future__ import annotations

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
from nacre.vault.files import normalise_remote, slugify

if TYPE_CHECKING:
    from nacre.values.recall import Filter

_WORKTREE = re.compile(
    r"(.*?)(?:([\\/]\.[^\\/]+)?[\\/](\.?worktrees?|workspaces)|[._-]worktrees)[\\/](.+)",
    re.IGNORECASE | re.DOTALL,
)
"""Matches a worktree inside its repository, next to it, or in the folder of a tool."""

_TOOL_FOLDER = re.compile(r".*[\\/](?:\.|te?mp\b|var[\\/]folders).*", re.IGNORECASE)
"""Matches hidden and temporary folders, in which tools keep worktrees."""

_ID = re.compile(r"[0-9a-f-]{4,}|\w{0,3}\d\w{0,3}", re.IGNORECASE)
"""Matches a name that a tool made up for a worktree."""

_HOME = re.compile(
    r"(?:[a-z]:|//[^/]+/[^/]+|(?:/mnt|/cygdrive)?/[a-z]|/private)?/(?:home|users)/[^/]+"
    r"|/[^/]+/home/[^/]+|(?:(?:/private)?/var)?/root|[a-z]:|/mnt/[a-z]",
    re.IGNORECASE,
)
"""Matches home folders and drives, with forward slashes."""

CONTAINERS = frozenset(
    " home root tmp temp users src source sources code work dev develop development developer"
    " projects repos repositories git github gitlab workspace workspaces worktrees"
    " desktop documents downloads".split(" ")
)
"""Names of folders that usually contain several projects."""

_REMOTE = re.compile(
    r'^\s*\[remote "([^"]*)"\].*\n(?:(?!\s*\[).*\n)*?\s*url\s*=\s*(\S.*?)\s*$',
    re.IGNORECASE | re.MULTILINE,
)
"""Matches the name and address of a remote in git's configuration."""

_MAIN_BRANCHES = ("main", "master")
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
    names: tuple[str, ...] = ()
    """Parts of a worktree's path. A part can be the name of the repository."""
    branch: str | None = None
    folder: str | None = None
    """The session's folder, if it is not in a repository."""

    @property
    def exists(self) -> bool:
        """True if the folder is not deleted."""
        return self.is_repository or os.path.isdir(self.folder or "")


def project_of_folder(home: Home, folder: Path) -> str | None:
    """Return the known project of a folder, without creating one."""
    return known_project(home, locate(str(folder)))


def known_project(home: Home, place: Place) -> str | None:
    """Return the slug of the project to which a place belongs, or ``None`` if there is none.

    The project's page lists the place's git remote, the place's folder or a parent folder, or
    the repository from which the place was cloned. A deleted folder's parent must be a repository.
    """
    root = place.root
    if root and is_home(root, home.settings.user_home):
        return None
    slug = _project_of_remote(home, place.remote) if place.remote else None
    if slug or not root:
        return slug
    slug = _project_above(home, place, root)
    is_known = place.folder != root and home.project_contents.has_branch(root)
    if place.exists or (slug and (is_known or is_repository(home, slug))):
        return slug or (
            _project_of_remote(home, normalise_remote(root)) if place.worktree else None
        )
    return _repository_of_worktree(home, place) or slug


def _project_above(home: Home, place: Place, root: str) -> str | None:
    """Return the project of a folder or of its parents.

    Without a remote or commit, the topmost parent with sessions on a branch is the repository.
    """
    start, highest = place.folder or root, None
    parents = (PureWindowsPath(start) if "\\" in start else PurePosixPath(start)).parents
    # A repository is a separate project even inside another project's folder.
    lineage = (root,) if place.is_repository else (start, *map(str, parents), root)
    for folder in dict.fromkeys(lineage):
        slug = home.files.project_by("root", folder)
        # If the remote differs, this is a fork or namesake.
        if not slug or is_home(folder, home.settings.user_home) or is_fork(home, slug, place):
            continue
        if place.exists or is_repository(home, slug):
            return slug
        if folder == root or (
            slugify(last_part(folder)) not in CONTAINERS
            and home.project_contents.has_branch(folder)
        ):
            highest = slug
    return highest


def with_dependencies(home: Home, criteria: Filter) -> Filter:
    """Add the direct dependencies of a filter's projects, unless the filter is strict."""
    if not criteria.projects or criteria.strict:
        return criteria
    dependencies = (
        other for slug in criteria.projects for _, other in home.files.dependencies(slug)
    )
    return replace(criteria, projects=tuple(dict.fromkeys((*criteria.projects, *dependencies))))


def locate(
    cwd: str | None,
    repository: str | None = None,
    branch: str | None = None,
    user_home: Path | None = None,
) -> Place:
    """Return the repository or folder to which a folder belongs.

    ``repository`` and ``branch`` are the remote and the branch of the folder, if known.
    """
    if not cwd:
        return Place(None, _normalise(repository))
    cwd = cwd.rstrip("/\\") or cwd
    main, names = _main_folder(cwd, branch, user_home)
    for folder in dict.fromkeys((Path(cwd), Path(main))):
        # For invalid paths (too long, null characters), os.path returns False where Path raises.
        for candidate in (folder, *folder.parents) if folder.is_absolute() else ():
            if os.path.exists(candidate / ".git") and not is_home(str(candidate), user_home):
                return _repository_place(Path(os.path.realpath(candidate)), repository)
    root = os.path.realpath(main) if os.path.isabs(main) and os.path.isdir(main) else main
    return Place(root, _normalise(repository), names=names, branch=branch, folder=cwd)


def _main_folder(
    cwd: str, branch: str | None, user_home: Path | None
) -> tuple[str, tuple[str, ...]]:
    """Return the likely repository of a worktree, and the parts of the path that may name it."""
    match = _WORKTREE.fullmatch(cwd)
    if not match:
        return cwd, ()
    main, hidden, trees, rest = match.groups()
    names = tuple(re.split(r"[\\/]", rest))
    is_in_home, trees = not main or is_home(main, user_home), (trees or "").lower()
    if trees == "workspaces":
        return cwd, () if is_in_home else names
    is_inside = hidden or trees.startswith(".")
    if is_in_home or (trees and not is_inside and _TOOL_FOLDER.fullmatch(main)):
        unlike = (name for name in names if not (_ID.fullmatch(name) or _ends(branch, name)))
        last = names.index(next(unlike, names[0]))
        return cwd[: match.start(4) + len("/".join(names[: last + 1]))], names
    return main, () if is_inside else names


def is_fork(home: Home, slug: str, place: Place) -> bool:
    """Return True if a place has a remote, and the project has only other remotes."""
    keys = home.files.project_keys() if place.remote else ()
    remotes = [
        normalise_remote(value) for kind, value, owner in keys if (kind, owner) == ("remote", slug)
    ]
    return bool(remotes) and place.remote not in remotes


def _project_of_remote(home: Home, remote: str) -> str | None:
    """Return the project of a git remote. The project's page can write the address differently."""
    exact_match = home.files.project_by("remote", remote)
    if exact_match:
        return exact_match
    remotes = ((value, slug) for key, value, slug in home.files.project_keys() if key == "remote")
    return next((slug for value, slug in remotes if normalise_remote(value) == remote), None)


def _repository_of_worktree(home: Home, place: Place) -> str | None:
    """Return the project of a deleted worktree's repository.

    The path names the repository or its first commit, or only this repository has the branch.
    """
    keys, branch, tail = home.files.project_keys(), place.branch, last_part(place.root or "")
    near = (
        base
        for kind, value, _ in keys
        if kind == "root"
        and tail.startswith(base := last_part(value))
        and _ends(branch, tail[len(base) :])
        and value.removesuffix(base) + tail == place.root
    )
    slugs = [
        slug
        for name in (*place.names, *near)
        for kind, value, slug in keys
        if kind in ("remote", "root", "commit")
        and last_part(value) == name
        and value != place.root
        and (is_repository(home, slug) or home.project_contents.has_branch(value))
    ]
    if branch and branch not in _MAIN_BRANCHES and (place.names or _ends(branch, tail)):
        having = {
            slug for kind, value, slug in keys if kind == "root" and _has_branch(value, branch)
        }
        alone = sorted(having) if len(having) == 1 else []
        slugs = [slug for slug in slugs if slug in having] or slugs or alone
    return slugs[0] if slugs else None


def _ends(branch: str | None, name: str) -> bool:
    """Return True if the name of a branch ends with a folder's name."""
    return bool(branch and name) and f"-{slugify(branch or '')}".endswith(f"-{slugify(name)}")


def _has_branch(root: str, branch: str) -> bool:
    """Return True if a repository has a branch."""
    git, name = Path(root, ".git"), f"refs/heads/{branch}"
    try:
        packed = (git / "packed-refs").read_text("utf-8", "replace")
    except (OSError, ValueError):
        packed = ""
    return os.path.exists(git / name) or f" {name}\n" in packed


def is_repository(home: Home, slug: str) -> bool:
    """Return True if a project has a remote, a known first commit or a folder with a repository."""
    return any(
        owner == slug
        and (
            kind in ("remote", "commit")
            or (kind == "root" and os.path.exists(os.path.join(value, ".git")))
        )
        for kind, value, owner in home.files.project_keys()
    )


def is_home(folder: str, user_home: Path | None) -> bool:
    """Return True for the home folder of any user on any system."""
    text = folder.replace("\\", "/").rstrip("/")
    return folder == str(user_home) or bool(_HOME.fullmatch(text))


def last_part(path: str) -> str:
    """Return the last part of a path or address, on any system."""
    return re.split(r"[\\/]", path.rstrip("/\\"))[-1]


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
    try:
        urls = dict(_REMOTE.findall((git / "config").read_text("utf-8")))
    except (OSError, UnicodeDecodeError):
        return None
    url: str | None = urls.get("origin") or next(iter(urls.values()), None)
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
