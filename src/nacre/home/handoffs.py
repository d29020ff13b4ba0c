"""Handoffs, a small Markdown file each: ``handoffs/<project>/<id>.md``, in ``given`` beside it once a session has it.

They are the state of a week and no memories: no index, history or other machine has them. Whoever writes holds the
vault lock; hooks read without one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nacre.errors import MemoryInvalid, StoreUnusable
from nacre.platform import private_files
from nacre.values.codec import plain_fields
from nacre.values.handoff import Handoff
from nacre.vault import front_matter

FOLDER = "handoffs"
_GIVEN = "given"
_MOST_WAITING, _MOST_BYTES = 20, 1_000_000
_BY_PLACE = frozenset({"id", "project", "content"})


class Handoffs:
    """The handoffs of a home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    def waiting(self, project: str) -> list[Handoff]:
        """Those of a project that wait for a session, the latest first; of many the last that were begun."""
        return _read_all(self._folder / project, _MOST_WAITING)

    def of_project(self, project: str) -> list[Handoff]:
        """Those that wait and then those that were given, each the latest first."""
        folder = self._folder / project
        return [*_read_all(folder), *_read_all(folder / _GIVEN)]

    def among(self, project: str, ids: Container[str]) -> list[Handoff]:
        """Those of a project with some ids; no others are read."""
        folder = self._folder / project
        return [*_read_all(folder, only=ids), *_read_all(folder / _GIVEN, only=ids)]

    def everything(self) -> list[Handoff]:
        """Those of all projects, what waits before what was given of each."""
        return [one for project in self._projects() for one in self.of_project(project)]

    def damaged(self) -> list[Handoff]:
        """What lies among those of all projects and cannot be read as one, whole, with no session and no writer."""
        folders = (self._folder / project for project in self._projects())
        return [one for folder in folders for place in (folder, folder / _GIVEN) for one in _damaged_in(place)]

    def of_session(self, session: str) -> list[Handoff]:
        """What a session handed over within a week, what waits first."""
        return [one for one in self.everything() if one.session == session]

    def find(self, handoff_id: str) -> Handoff | None:
        """The one with an id, whether it waits or was given."""
        return next((one for one in self.everything() if one.id == handoff_id), None)

    def waits(self, handoff: Handoff) -> bool:
        """Whether one that was read a moment ago still waits."""
        return self._path(handoff).exists()

    def write(self, handoff: Handoff) -> None:
        """Write one, or put other words in its place, whole or not at all; one that was given waits no more.

        Raises StoreUnusable.
        """
        path = self._path(handoff)
        values = {name: value for name, value in plain_fields(handoff).items() if value and name not in _BY_PLACE}
        try:
            private_files.make_folder(path.parent)
            if handoff.given:
                with suppress(FileNotFoundError):
                    self._path(replace(handoff, given="")).rename(path)
            private_files.sweep(path.parent)
            private_files.write_file(path, f"---\n{front_matter.dump(values)}---\n{handoff.content}\n")
        except OSError as error:
            raise StoreUnusable(f"cannot write {path}: {error.strerror}", hint="is the disk full?") from error

    def remove(self, handoff: Handoff) -> None:
        """Delete one for good. Raises StoreUnusable."""
        path = self._path(handoff)
        try:
            private_files.sweep(path.parent)
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreUnusable(f"cannot delete {path}: {error.strerror}", hint="delete it by hand") from error

    def follow(self, project_of: Callable[[Handoff], str]) -> None:
        """Let each handoff be one of the project that it belongs to now."""
        for one in self.everything():
            into = project_of(one)
            if into != one.project:
                self.write(replace(one, project=into))
                self.remove(one)

    def _projects(self) -> list[str]:
        with suppress(OSError):
            return sorted(folder.name for folder in self._folder.iterdir())
        return []

    def _path(self, handoff: Handoff) -> Path:
        folder = self._folder / handoff.project
        return (folder / _GIVEN if handoff.given else folder) / f"{handoff.id}.md"


def _read_all(folder: Path, most: int | None = None, only: Container[str] | None = None) -> list[Handoff]:
    """The handoffs in a folder, the latest first; what is none is passed over."""
    found = []
    with suppress(OSError):
        wanted = [path for path in _files(folder) if only is None or path.stem in only]
        for path in sorted(wanted, reverse=True)[:most]:
            with suppress(OSError, MemoryInvalid, ValueError, KeyError, TypeError):
                found.append(_read(path))
    return sorted(found, key=lambda one: (one.written, one.id), reverse=True)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix == ".md" and path.name[0] != "."]


def _damaged_in(folder: Path) -> Iterator[Handoff]:
    with suppress(OSError):
        for path in sorted(_files(folder)):
            try:
                _read(path)
            except OSError:
                continue
            except (MemoryInvalid, ValueError, KeyError, TypeError):
                with open(path, "rb", opener=private_files.open_file) as file:
                    text = file.read(_MOST_BYTES).decode("utf-8", "replace")
                since = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                name, project, given = _place(path)
                yield Handoff(name, project, "", text.strip(), "", since, since, given=given)


def _place(path: Path) -> tuple[str, str, str]:
    """What a file's place says: a handoff's id, its project, and whether a session was given it."""
    is_given = path.parent.name == _GIVEN and path.parents[2].name == FOLDER
    folder = path.parents[1] if is_given else path.parent
    return path.stem, folder.name, "a session" if is_given else ""


def _read(path: Path) -> Handoff:
    """Raises OSError, and MemoryInvalid, ValueError, KeyError, TypeError for what is none."""
    with open(path, "rb", opener=private_files.open_file) as file:
        front, content = front_matter.split(file.read(_MOST_BYTES).decode("utf-8"))
    told = front_matter.load(front or "")
    values: dict[str, Any] = {field.name: str(told[field.name]) for field in fields(Handoff) if field.name in told}
    values |= {name: datetime.fromisoformat(values[name]).astimezone(UTC) for name in ("written", "said")}
    name, project, given = _place(path)
    given = given and (values.get("given") or given)
    return Handoff(**values | {"id": name, "project": project, "content": content.strip(), "given": given})
