"""The files of a repository that hold code: those that git knows or would add, else those of the folder.

Nothing outside the folder is read: symbolic links are not followed, and nothing of the repository is run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from nacre.code.languages.table import language_of
from nacre.errors import NacreError
from nacre.git.program import GitProgram
from nacre.platform.private_files import open_file

MOST_BYTES = 1_000_000
"""A longer file is data or generated code."""

_MANIFEST = re.compile(r"(?:^|/)(?:go\.mod|Cargo\.toml|[jt]sconfig[^/]*\.json)$")
"""What defines the names of packages and modules."""

_BARREN = frozenset(
    {"node_modules", "__pycache__", "venv", "env", "dist", "build", "target", "vendor", "site-packages"}
)
_LINE_BYTES = 400
_SMALL = 50_000
_HEAD = 8_192


@dataclass(frozen=True, slots=True)
class Listing:
    """Sorted paths of source files and manifests, relative to the folder. ``left_out`` counts files over the limit."""

    code: tuple[str, ...]
    manifests: tuple[str, ...]
    left_out: int
    by_git: bool


def toplevel(path: Path, environ: Mapping[str, str]) -> Path:
    """The working tree that contains a folder; the folder itself if there is none, or if git ignores it."""
    here = Path(os.path.abspath(path))
    found = next((one for one in (here, *here.parents) if os.path.lexists(one / ".git")), here)
    try:
        is_ignored = (
            found != here and not GitProgram(found, environ).attempt("check-ignore", "-q", str(here)).returncode
        )
    except NacreError:
        return found
    return here if is_ignored else found


def list_code(root: Path, environ: Mapping[str, str], most: int) -> Listing:
    """The source files of a working tree, at most ``most``."""
    by_git = os.path.lexists(root / ".git")
    try:
        found = _tracked(root, environ) if by_git else list(_walked(root))
    except NacreError:  # no git, or a repository that it refuses: what lies there is code all the same
        by_git, found = False, list(_walked(root))
    code = sorted(one for one in found if language_of(one) and one.isprintable())
    manifests = sorted(filter(_MANIFEST.search, found))
    return Listing(tuple(code[:most]), tuple(manifests[:most]), max(0, len(code) - most), by_git)


def read_file(root: Path, path: str) -> bytes | None:
    """The bytes of a file of a repository; ``None`` for what is no code to be read: gone, too long, binary, minified,
    or not within the folder."""
    place = root / path
    inside = os.path.join(os.path.realpath(root), os.path.dirname(path)).rstrip(os.sep)
    if ".." in path.split("/") or os.path.realpath(place.parent) != os.path.normpath(inside):
        return None
    try:
        with open(open_file(place, os.O_RDONLY), "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError):
        return None
    is_minified = len(data) > _SMALL and data.count(b"\n") * _LINE_BYTES < len(data)
    return None if len(data) > MOST_BYTES or is_minified or b"\0" in data[:_HEAD] else data


def _tracked(root: Path, environ: Mapping[str, str]) -> list[str]:
    """Tracked files, and untracked ones that git does not ignore."""
    told = GitProgram(root, environ).run(
        "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"
    )
    return [one for one in os.fsdecode(told).split("\0") if one]


def _walked(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root, followlinks=False):
        folders[:] = sorted(one for one in folders if not one.startswith(".") and one not in _BARREN)
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")
