"""Handoffs, and the references to memories and sessions in lines that nacre writes on pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import fields, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from nacre.base import files
from nacre.base.text import to_text
from nacre.errors import (
    InvalidMemoryError,
    UnusableStoreError,
)
from nacre.home.home import Home
from nacre.hosts.files import blocks_of
from nacre.values.codec import plain_fields
from nacre.values.memory import Memory
from nacre.values.session import Handoff
from nacre.vault import documents

REFERENCE_CHARACTERS = 8
"""A reference consists of this many characters at the end of a memory's id."""

AGENTS = "an agent: "
"""Text before the references in a line that is based on an agent's statement."""

_REFERENCES = re.compile(rf"\((?:{AGENTS})?([^()\s]+(?:, [^()\s]+)*)\)$")
_MEMORY_REFERENCE = re.compile(r"[0-9a-f]{8}")
_SESSION_REFERENCE = re.compile(r"[\w.-]+:\S+")


def references_of(line: str) -> tuple[str, ...]:
    """Return the session ids and shortened memory ids at the end of a page's line.

    Return nothing if anything else is there.
    """
    match = _REFERENCES.search(line)
    names = tuple(match[1].split(", ")) if match else ()
    return (
        names
        if all(_MEMORY_REFERENCE.fullmatch(name) or is_session(name) for name in names)
        else ()
    )


def is_session(reference: str) -> bool:
    """Return True if a page's reference names a session rather than a memory."""
    return bool(_SESSION_REFERENCE.fullmatch(reference))


def as_line(words: str, references: Iterable[str], *, by_agent: bool = False) -> str:
    """Return a list item for a page, with its references at the end."""
    return f"- {words} ({AGENTS if by_agent else ''}{', '.join(references)})"


def memory_named(home: Home, reference: str) -> Memory | None:
    """Return the memory whose id ends with ``reference``, or ``None`` if it is not unique."""
    matches = [
        memory for memory in home.memories.find_like(reference) if memory.id.endswith(reference)
    ]
    return matches[0] if len(matches) == 1 else None


def is_current(memory: Memory, today: date) -> bool:
    """Return True if a memory is active, outside the inbox, and valid on the given day."""
    has_ended = (memory.valid.until and memory.valid.until < today) or (
        memory.expires_on and memory.expires_on <= today
    )
    return memory.is_active and not (memory.inbox or has_ended)


def without_what_is_over(home: Home, text: str) -> str:
    """Return a page's text without nacre's lines about memories that are no longer valid."""
    lines = [
        line for block in blocks_of(text) for line in block.splitlines() if line.startswith("- ")
    ]
    outdated = {line for line in lines if not rests_on_what_holds(home, line)}
    if not outdated:
        return text
    return "".join(
        line for line in text.splitlines(keepends=True) if line.rstrip("\r\n") not in outdated
    )


def rests_on_what_holds(home: Home, line: str) -> bool:
    """Return True if all memories referenced in a page's line are current and confirmed."""
    today = home.today()
    memories = [
        memory_named(home, reference)
        for reference in references_of(line)
        if not is_session(reference)
    ]
    return all(
        memory is not None and memory.is_vouched and is_current(memory, today)
        for memory in memories
    )


# -- Handoffs ------------------------------------------------------------------
#
# A handoff is a Markdown file ``handoffs/<project>/<id>.md``. When a session has received it, it is
# moved to the subfolder ``given``. Handoffs are short-lived and not memories, so they are not
# indexed, committed or synchronised. Writers hold the vault lock, but hooks read without it.


FOLDER = "handoffs"
_DELIVERED = "given"
_MAX_WAITING, _MAX_BYTES = 20, 1_000_000
_PATH_FIELDS = frozenset({"id", "project", "content"})


class Handoffs:
    """The notes that sessions leave for later sessions in the same project, stored as files."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    def pending(self, project: str) -> list[Handoff]:
        """Return up to 20 undelivered handoffs of a project, latest first."""
        return _read_all(self._folder / project, _MAX_WAITING)

    def of_project(self, project: str) -> list[Handoff]:
        """Return a project's handoffs, latest first, but pending before delivered ones."""
        folder = self._folder / project
        return [*_read_all(folder), *_read_all(folder / _DELIVERED)]

    def among(self, project: str, ids: Container[str]) -> list[Handoff]:
        """Return a project's handoffs with the given ids. Only their files are read."""
        folder = self._folder / project
        return [*_read_all(folder, only=ids), *_read_all(folder / _DELIVERED, only=ids)]

    def everything(self) -> list[Handoff]:
        """Return the handoffs of all projects. Within a project, pending ones come first."""
        return [handoff for project in self._projects() for handoff in self.of_project(project)]

    def damaged(self) -> list[Handoff]:
        """Return a handoff for each damaged file, with the file's text and no session."""
        folders = (self._folder / project for project in self._projects())
        return [
            handoff
            for folder in folders
            for place in (folder, folder / _DELIVERED)
            for handoff in _damaged_in(place)
        ]

    def of_session(self, session: str) -> list[Handoff]:
        """Return a session's handoffs, pending first."""
        return [handoff for handoff in self.everything() if handoff.session == session]

    def find(self, handoff_id: str) -> Handoff | None:
        """Return the pending or delivered handoff with this id, or ``None``."""
        return next((handoff for handoff in self.everything() if handoff.id == handoff_id), None)

    def is_pending(self, handoff: Handoff) -> bool:
        """Return True if a handoff has not been delivered yet."""
        return self._path(handoff).exists()

    def write(self, handoff: Handoff) -> None:
        """Create or replace a handoff's file. Raises UnusableStoreError."""
        path = self._path(handoff)
        values = {
            name: value
            for name, value in plain_fields(handoff).items()
            if value and name not in _PATH_FIELDS
        }
        try:
            files.make_folder(path.parent)
            if handoff.given:
                with suppress(FileNotFoundError):
                    self._path(replace(handoff, given="")).rename(path)
            files.sweep(path.parent)
            files.write_file(path, f"---\n{documents.dump(values)}---\n{handoff.content}\n")
        except OSError as error:
            raise UnusableStoreError(
                f"cannot write {path}: {error.strerror}", hint="check whether the disk is full"
            ) from error

    def remove(self, handoff: Handoff) -> None:
        """Delete a handoff. Raises UnusableStoreError."""
        path = self._path(handoff)
        try:
            files.sweep(path.parent)
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UnusableStoreError(
                f"cannot delete {path}: {error.strerror}", hint="delete the file manually"
            ) from error

    def follow(self, project_of: Callable[[Handoff], str]) -> None:
        """Move each handoff to the folder of its current project."""
        for handoff in self.everything():
            project = project_of(handoff)
            if project != handoff.project:
                self.write(replace(handoff, project=project))
                self.remove(handoff)

    def _projects(self) -> list[str]:
        return sorted(folder.name for folder in self._folder.glob("*"))

    def _path(self, handoff: Handoff) -> Path:
        folder = self._folder / handoff.project
        return (folder / _DELIVERED if handoff.given else folder) / f"{handoff.id}.md"


def _read_all(
    folder: Path, limit: int | None = None, only: Container[str] | None = None
) -> list[Handoff]:
    handoffs = []
    with suppress(OSError):
        paths = [path for path in _files(folder) if only is None or path.stem in only]
        for path in sorted(paths, reverse=True)[:limit]:
            with suppress(OSError, InvalidMemoryError, ValueError, KeyError, TypeError):
                handoffs.append(_read(path))
    return sorted(handoffs, key=lambda handoff: (handoff.written, handoff.id), reverse=True)


def _files(folder: Path) -> list[Path]:
    return list(folder.glob("[!.]*.md"))


def _damaged_in(folder: Path) -> Iterator[Handoff]:
    with suppress(OSError):
        for path in sorted(_files(folder)):
            try:
                _read(path)
            except OSError:
                continue
            except (InvalidMemoryError, ValueError, KeyError, TypeError):
                with open(path, "rb", opener=files.open_file) as file:
                    text = to_text(file.read(_MAX_BYTES))
                since = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                name, project, recipient = _fields_of_path(path)
                yield Handoff(name, project, "", text.strip(), "", since, since, given=recipient)


def _fields_of_path(path: Path) -> tuple[str, str, str]:
    is_delivered = path.parent.name == _DELIVERED and path.parents[2].name == FOLDER
    folder = path.parents[1] if is_delivered else path.parent
    return path.stem, folder.name, "a session" if is_delivered else ""


def _read(path: Path) -> Handoff:
    with open(path, "rb", opener=files.open_file) as file:
        front, content = documents.split(file.read(_MAX_BYTES).decode("utf-8"))
    front_values = documents.load(front or "")
    values: dict[str, Any] = {
        field.name: str(front_values[field.name])
        for field in fields(Handoff)
        if field.name in front_values
    }
    values |= {
        name: datetime.fromisoformat(values[name]).astimezone(UTC) for name in ("written", "said")
    }
    name, project, recipient = _fields_of_path(path)
    recipient = recipient and (values.get("given") or recipient)
    return Handoff(
        **values | {"id": name, "project": project, "content": content.strip(), "given": recipient}
    )
