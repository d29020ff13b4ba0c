"""Files that came with messages: kept without secrets, and shown to who answers where they are text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from nacre.platform import private_files

MOST_CHARACTERS = 16_000
"""Of all files of a turn, as who answers sees them."""

_MOST_BYTES = 2_000_000
"""Of a file that is looked at as text."""


class Cleans(Protocol):
    """Takes secrets out of texts."""

    def clean(self, text: str) -> str:
        """The text without them."""


def redact(path: Path, redactor: Cleans) -> None:
    """Take secrets out of a file that is text. Raises OSError."""
    text = _text(path)
    if text is None:
        return
    cleaned = redactor.clean(text)
    if cleaned != text:
        private_files.write_file(path, cleaned)


def keep_newest(folder: Path, most_bytes: int) -> None:
    """Delete the oldest files of all conversations beyond a bound. Their names begin with the ids of lines, which tell
    the time. Raises OSError."""
    room = most_bytes
    for path in sorted(folder.glob("*/*"), key=lambda path: path.name, reverse=True):
        room -= path.stat().st_size
        if room < 0:
            path.unlink(missing_ok=True)


def texts(files: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, str]]:
    """The beginnings of those that are text, each with its name, within a bound for all of them."""
    room = MOST_CHARACTERS
    for name, path in files:
        text = _text(path) if room > 0 else None
        if text and text.strip():
            yield name, text[:room]
            room -= len(text)


def _text(path: Path) -> str | None:
    """What a file holds, if that is text of a bearable size."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        data = path.read_bytes()
        return None if b"\0" in data else data.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
