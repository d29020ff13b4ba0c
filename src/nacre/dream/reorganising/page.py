"""A page of the vault: a person's text, and between two marks a part that nacre writes, in sections of lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nacre.errors import MemoryInvalid, VaultUnusable
from nacre.home.home import Home
from nacre.home.projects import page_path
from nacre.hosts.marked import blocks_of, drop_blocks, put_block
from nacre.platform.ids import bytes_hash
from nacre.text.passages import harmless, shorten
from nacre.values.operation import Intent
from nacre.vault.front_matter import load, split

PROFILE = "profile.md"
"""Where the owner's profile lies in the vault."""

UNREADABLE = (FileNotFoundError, UnicodeDecodeError, MemoryInvalid, VaultUnusable)

_NOTE = "*`nacre dream` writes this part anew; what you write outside of it stays.*"
_HEADING = "## "
_NO = frozenset({"false", "no", "off"})

Section = tuple[str, tuple[str, ...]]
"""A heading of nacre's part, and the lines below it."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it is, the part of it that nacre wrote, and whether its owner wants one. ``hash`` is ``None`` where
    there is no file yet."""

    text: str
    part: str
    hash: bytes | None
    is_wanted: bool

    @property
    def mark(self) -> str:
        """What tells this text from any other."""
        return self.hash.hex() if self.hash else ""


def path_of(project: str) -> str:
    """Where the page of a project lies; the profile where ``project`` is empty."""
    return page_path(project) if project else PROFILE


def read_page(home: Home, project: str) -> Page:
    """The page of a project, or the profile, which may not be there yet. Raises what ``UNREADABLE`` lists."""
    path = path_of(project)
    if not project and not home.vault.exists(path):
        return Page("", "", None, is_wanted=True)
    data = home.vault.read(path)
    text = data.decode("utf-8")
    front = load(split(text)[0] or "")
    return Page(text, "\n\n".join(blocks_of(text)).replace("\r\n", "\n"), bytes_hash(data), wants_dreams(front))


def wants_dreams(front_matter: Mapping[str, Any]) -> bool:
    """Whether the owner of a page lets dreams change it: ``dreams: false`` forbids it."""
    return str(front_matter.get("dreams") or "").lower() not in _NO


def page_write(home: Home, project: str, words: str) -> Intent:
    """The write of a page: nacre's part at its place, else at the end, and not a byte more; without words it goes.

    The page is as planned.
    """
    page = read_page(home, project)
    former = page.text if page.hash else None
    text = put_block(page.text, words) if words else drop_blocks(page.text)
    return Intent("write", path_of(project), text, page.hash, former=former)


def sections_of(part: str) -> list[Section]:
    """The sections of nacre's part; what stands before the first heading is in none."""
    found: list[tuple[str, list[str]]] = []
    for line in part.splitlines():
        if line.startswith(_HEADING):
            found.append((line.removeprefix(_HEADING).strip(), []))
        elif line.startswith("- "):
            found = found or [("", [])]
            found[-1][1].append(line)
    return [(title, tuple(lines)) for title, lines in found]


def composed(sections: Sequence[Section]) -> str:
    """Nacre's part of a page; sections without lines are left out."""
    filled = [(title, lines) for title, lines in sections if lines]
    parts: list[str] = []
    for number, (title, lines) in enumerate(filled):
        parts += ["", f"{_HEADING}{title}", ""] if number else [f"{_HEADING}{title}", "", _NOTE, ""]
        parts += lines
    return "\n".join(parts)


def plain_words(text: str, characters: int) -> str:
    """Words as one line that is nothing but words in Markdown."""
    return shorten(harmless(text), characters).replace("<", "&lt;").replace("[[", "\\[\\[")
