"""Where a folder belongs: its repository, and the project that the index knows of it. Light, for hooks ask it."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from nacre.home.home import Home
from nacre.platform.fast_dataclass import dataclass
from nacre.platform.lazy import Module

if TYPE_CHECKING:
    import configparser
else:
    configparser = Module("configparser")

_WORKTREE = re.compile(r"^(.*?)[\\/](?:\.claude[\\/]worktrees|\.worktrees|worktrees|\.git[\\/]worktrees)[\\/].*$")
_POINTER_CHARACTERS = 4096


@dataclass(frozen=True, slots=True)
class Place:
    """What is known of a session's folder: its repository's root and remote, or the folder where there is none."""

    root: str | None
    remote: str | None
    is_repository: bool = False


def project_of_folder(home: Home, folder: Path) -> str | None:
    """The known project a folder belongs to; never makes one."""
    return known_project(home, locate(str(folder)))


def known_project(home: Home, place: Place) -> str | None:
    """The slug of the project that a place belongs to, by its remote, else by the nearest root above it."""
    if place.remote:
        found = home.files.project_by("remote", place.remote)
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
    return None


def locate(cwd: str | None, repository: str | None = None) -> Place:
    """The place of a folder; ``repository`` is a remote that is known of it."""
    remote = normalise_remote(repository) if repository else None
    if not cwd:
        return Place(None, remote)
    main = _WORKTREE.sub(r"\1", cwd.rstrip("/\\")) or cwd
    folder = Path(main)
    # os.path answers no where Path raises: a name that is too long, or has a zero in it.
    if folder.is_absolute() and os.path.isdir(folder):
        for candidate in (folder, *folder.parents):
            git = candidate / ".git"
            if os.path.exists(git):
                root = _main_repository(candidate, git)
                return Place(str(root), remote or _remote_of(root), is_repository=True)
    return Place(main, remote)


def normalise_remote(url: str) -> str:
    """``git@host:owner/name.git`` and ``https://user@host/owner/name`` become ``host/owner/name``."""
    text = re.sub(r"^[a-z+]+://", "", url.strip())
    text = re.sub(r"^[^@/]+@", "", text)
    text = re.sub(r"^([^/:]+):(?!\d+/)", r"\1/", text)
    return text.removesuffix("/").removesuffix(".git").lower()


def _has_remotes(home: Home, slug: str) -> bool:
    """Whether a project is known under remotes, none of which is the one asked for: a fork, or a namesake."""
    return any(key == "remote" and found == slug for key, _, found in home.files.project_keys())


def _main_repository(candidate: Path, git: Path) -> Path:
    """The folder of the repository a worktree belongs to."""
    if git.is_dir():
        return candidate
    if not git.is_file():
        return candidate
    try:
        with git.open(encoding="utf-8", errors="replace") as file:
            pointed = file.read(_POINTER_CHARACTERS).removeprefix("gitdir:").strip()
        parts = (candidate / pointed).resolve().parts
    except (OSError, ValueError):
        return candidate
    if "worktrees" in parts and ".git" in parts:
        return Path(*parts[: parts.index(".git")])
    return candidate


def _remote_of(root: Path) -> str | None:
    config = root / ".git" / "config"
    if not config.is_file():
        return None

    parser = configparser.ConfigParser(strict=False, interpolation=None)
    try:
        parser.read(config, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError):
        return None
    sections = [name for name in parser.sections() if name.startswith("remote ")]
    sections.sort(key=lambda name: name != 'remote "origin"')
    url = parser.get(sections[0], "url", fallback=None) if sections else None
    return normalise_remote(url) if url else None


def _parent(path: str) -> str:
    pure = PureWindowsPath(path) if "\\" in path else PurePosixPath(path)
    return str(pure.parent)
