"""Files of others: read as they are, written whole, with the mode they had, never through a link that leads away."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_BOM = "\ufeff"
_MOST_BYTES = 20_000_000
_IS_POSIX = os.name == "posix"


class Untouchable(Exception):  # noqa: N818 - what is the case
    """The file is left alone; the message says why."""


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a file without its byte order mark; ``content`` is ``None`` where there is no file."""

    content: bytes | None

    @property
    def words(self) -> str:
        """What is in it. Raises Untouchable for what is no UTF-8."""
        try:
            return (self.content or b"").decode("utf-8").removeprefix(_BOM)
        except UnicodeDecodeError as error:
            raise Untouchable("it is not written in UTF-8") from error

    def encoded(self, words: str) -> bytes:
        """Other words, with the mark that this text has."""
        mark = _BOM.encode() if (self.content or b"").startswith(_BOM.encode()) else b""
        return mark + words.encode("utf-8")


def real_place(path: Path, roots: Sequence[Path]) -> Path:
    """Where a path leads, which must be under one of ``roots``. Raises Untouchable.

    Links within them are followed, as those of people who keep their settings in a repository: the file is written
    where it really is, and the link stays.
    """
    real = Path(os.path.realpath(path))
    if not any(real.is_relative_to(os.path.realpath(root)) for root in roots):
        raise Untouchable(f"it is a link, or lies behind one, that leads to {real}")
    if path.is_symlink() and not real.exists():
        raise Untouchable(f"it is a link to {real}, where nothing is")
    return real


def read(path: Path) -> Text:
    """A regular file, or that there is none. Raises Untouchable."""
    try:
        seen = path.stat()
    except FileNotFoundError:
        return Text(None)
    except OSError as error:
        raise Untouchable(f"it cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(seen.st_mode):
        raise Untouchable("it is not a regular file")
    if seen.st_size > _MOST_BYTES:
        raise Untouchable("it is too large")
    try:
        return Text(path.read_bytes())
    except OSError as error:
        raise Untouchable(f"it cannot be read: {error.strerror}") from error


def write(path: Path, content: bytes, *, mode: int) -> list[Path]:
    """Write a file whole or not at all; returns the folders that were made for it. Raises Untouchable.

    One that is there keeps its mode; a new one gets ``mode``.
    """
    try:
        made = _make_folders(path.parent, mode | (mode & 0o444) >> 2)
        kept = stat.S_IMODE(path.stat().st_mode) if path.exists() else mode
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                if _IS_POSIX:
                    os.fchmod(file.fileno(), kept)
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise Untouchable(f"it cannot be written: {error.strerror}") from error
    return made


def remove(path: Path) -> None:
    """Remove a file. Raises Untouchable."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise Untouchable(f"it cannot be removed: {error.strerror}") from error


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove those folders in which nothing is left."""
    for folder in sorted(folders, key=lambda one: len(one.parts), reverse=True):
        with suppress(OSError):
            folder.rmdir()


def back_up(path: Path, stamp: str, folder: Path | None = None) -> Path:
    """Put a copy of a file beside it, or into a folder, readable by no more people; returns where.

    Raises Untouchable.
    """
    above = folder or path.parent
    copy = above / f"{path.name}.nacre-{stamp}.bak"
    number = 1
    while os.path.lexists(copy):
        number += 1
        copy = above / f"{path.name}.nacre-{stamp}-{number}.bak"
    write(copy, path.read_bytes(), mode=stat.S_IMODE(path.stat().st_mode))
    return copy


def _make_folders(folder: Path, mode: int) -> list[Path]:
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        one.mkdir(mode | 0o100)
    return missing
