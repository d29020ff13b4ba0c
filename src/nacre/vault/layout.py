"""Where a memory's file lies, and what a file's place says of the memory in it. Paths are relative to the vault."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from nacre.errors import MemoryInvalid
from nacre.model.memory import Kind, Memory

LEDGER = "ledger.jsonl"
GIT_FOLDER = ".git"
DERIVED = frozenset({"MEMORY.md", "profile.md", "project.md", "README.md"})
_FOLDERS = frozenset({"global", "projects", "inbox", "retired"})
_SLUG_CHARACTERS = 60
_RESERVED = frozenset({"con", "prn", "aux", "nul", "memory", "profile", "project", "readme"})


@dataclass(frozen=True, slots=True)
class Place:
    """What a file's folders say. ``kind`` is ``None`` in the inbox and directly under a scope."""

    project: str | None = None
    kind: Kind | None = None
    inbox: bool = False
    retired: bool = False


def is_memory_file(path: str) -> bool:
    """Whether a file of the vault holds a memory: Markdown, at the top or in a memory folder, not a derived page."""
    top, _, rest = path.partition("/")
    return (
        path.endswith(".md")
        and (not rest or top in _FOLDERS)
        and path.rpartition("/")[2] not in DERIVED
        and not path.startswith(".")
        and "/." not in path
    )


def place_of(path: str) -> Place:
    """Read a memory's place from its path. Raises MemoryInvalid for a folder that is not a kind."""
    parts = PurePosixPath(path).parts
    retired = parts[0] == "retired" and len(parts) > 1
    parts = parts[1:] if retired else parts
    match parts:
        case ["inbox", _]:
            return Place(inbox=True, retired=retired)
        case ["projects", project, *folders, _]:
            return Place(project, _kind_of(folders), retired=retired)
        case ["global", *folders, _]:
            return Place(None, _kind_of(folders), retired=retired)
        case _:
            return Place(retired=retired)


def path_for(memory: Memory, is_taken: Callable[[str], bool]) -> str:
    """The path of a memory's file: its folder by metadata, its name from the subject, numbered when taken."""
    folder = folder_of(memory)
    slug = slugify(memory.subject) or memory.kind.value
    name = slug
    number = 1
    while is_taken(f"{folder}/{name}.md"):
        number += 1
        name = f"{slug}-{number}"
    return f"{folder}/{name}.md"


def folder_of(memory: Memory) -> str:
    """The folder a memory belongs in."""
    if memory.inbox:
        folder = "inbox"
    elif memory.project:
        folder = f"projects/{memory.project}/{memory.kind.value}"
    else:
        folder = f"global/{memory.kind.value}"
    return f"retired/{folder}" if memory.retired else folder


def slugify(text: str) -> str:
    """A file or folder name from words: lower case, hyphens, letters of any script, at most 60 characters."""
    text = unicodedata.normalize("NFKC", text).lower()
    slug = "-".join(re.findall(r"\w+", text.replace("_", "-")))
    if len(slug) > _SLUG_CHARACTERS:
        slug = slug[:_SLUG_CHARACTERS].rsplit("-", 1)[0] or slug[:_SLUG_CHARACTERS]
    return f"{slug}-x" if slug in _RESERVED else slug


def _kind_of(folders: list[str]) -> Kind | None:
    if not folders:
        return None
    try:
        return Kind(folders[0])
    except ValueError:
        raise MemoryInvalid(
            f"{folders[0]!r} is not a kind of memory", hint=f"move the file into one of: {', '.join(Kind)}"
        ) from None
