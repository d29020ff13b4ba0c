"""Where a memory's file lies, and what a file's place says of the memory in it. Paths are relative to the vault."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from nacre.errors import MemoryInvalid
from nacre.values.memory import Kind, Memory

LEDGER = "ledger.jsonl"
GIT_FOLDER = ".git"
DERIVED = frozenset({"MEMORY.md", "profile.md", "project.md", "README.md"})
OWN_PAGES = frozenset({"identity.md", "IDENTITY.md"})
"""What the owner tells agents of themselves, at the top of the vault; the profile is another such page."""

FOLDERS = frozenset({"global", "projects", "inbox", "retired"})
_SLUG_CHARACTERS = 60
_SLUG_BYTES = 120
"""A name of 255 bytes is too long for most file systems, one of 143 for some; an ending and a number are added."""

_DEVICES = [f"{port}{number}" for port in ("com", "lpt") for number in range(10)]
_RESERVED = frozenset(["con", "prn", "aux", "nul", *_DEVICES, "memory", "profile", "project", "readme"])
"""What Windows takes for a device, whatever the ending, and the names of derived pages."""

_WORDS = re.compile(r"[^\W_]+")
_LONGEST_NAME = 1000
_STEPS = 4


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
        is_memory_name(path.rpartition("/")[2])
        and (not rest or top in FOLDERS)
        and path not in OWN_PAGES
        and not path.startswith(".")
        and "/." not in path
    )


def is_memory_name(name: str) -> bool:
    """Whether a file of that name holds a memory, if it lies where memories do."""
    return name[-3:] == ".md" and name not in DERIVED and name[0] != "."


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


def normalise_remote(url: str) -> str:
    """``git@host:owner/name.git`` and ``https://user@host:8443/owner/name/`` become ``host/owner/name``.

    Ports are left out: a server's differ by the way in. So is ``ssh.``, the name that some have for ssh over HTTPS.
    """
    text = url.strip().replace("\\", "/")
    rest = re.sub(r"^[A-Za-z+]+://", "", text)
    has_scheme, text = rest != text, re.sub(r"^[^@/]+@", "", rest)
    if has_scheme or text == rest:  # "host:2222/owner/name" without a user is what was stored of a URL with a port
        text = re.sub(r"^([^/:]+):\d*(?=/)", r"\1", text)
    text = re.sub(r"^([^/:]{2,}):", r"\1/", text)
    text = re.sub(r"^(?:alt)?ssh\.(?=[^/]+\.)", "", re.sub(r"/{2,}", "/", text))
    return re.sub(r"(?:/\.?)+$", "", text).removesuffix(".git").lower()


def slugify(text: str) -> str:
    """A file or folder name from words, empty where there is none: the one door for names that are not nacre's own.

    Lower case, hyphens, letters and digits of any script in their composed form, at most 60 characters and 120 bytes:
    no separator, dot, mark of direction or device name is left, and two names never differ in case or composition
    alone.
    """
    words = _WORDS.findall(_folded(text))
    slug = "-".join(words)
    if len(slug) > _SLUG_CHARACTERS or len(slug.encode()) > _SLUG_BYTES:
        cut = slug.encode()[:_SLUG_BYTES].decode(errors="ignore")[:_SLUG_CHARACTERS]
        slug = cut.rpartition("-")[0] or cut
    return f"{slug}-x" if slug in _RESERVED else slug


def _folded(text: str) -> str:
    """Composed and in lower case, also what only becomes so in a second step."""
    text = text[:_LONGEST_NAME]
    for _ in range(_STEPS):
        text, before = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower()), text
        if text == before:
            break
    return text


def _kind_of(folders: list[str]) -> Kind | None:
    if not folders:
        return None
    try:
        return Kind(folders[0])
    except ValueError:
        raise MemoryInvalid(
            f"{folders[0]!r} is not a kind of memory", hint=f"move the file into one of: {', '.join(Kind)}"
        ) from None
