"""What a scrub counts, and how it cleans a text, a document, the files of a folder."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nacre.errors import MemoryInvalid
from nacre.home.home import Home
from nacre.storage.maintenance.scrub import clean_stored, clean_value
from nacre.vault.front_matter import load, merge, split

_LARGEST_BYTES = 200_000_000


@dataclass(slots=True)
class Tally:
    """Counts what is found in the place that is being looked at."""

    home: Home
    place: str = ""
    found: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    changed: Counter[str] = field(default_factory=Counter)

    def at(self, place: str) -> Tally:
        self.place = place
        return self

    def clean(self, text: str) -> str:
        """A text without secrets, counted."""
        redacted_text = self.home.redactor.redact(text)
        if redacted_text.found:
            self.found[self.place].update(redacted_text.found)
        return redacted_text.text if redacted_text.found else text

    def stored(self, text: str | None) -> str | None:
        return clean_stored(text, self.clean) if text else text


def clean_document(text: str, tally: Tally) -> str:
    """A file of the vault without secrets; its front matter is cleaned value by value, so that it stays YAML."""
    front, body = split(text)
    if front is None:
        return clean_lines(text, tally)
    try:
        values = load(front)
    except MemoryInvalid:
        return tally.clean(text)
    changed = {key: new for key, value in values.items() if (new := clean_value(value, tally.clean)) != value}
    merged = merge(front, changed, []) if changed else front
    head = text[: len(text) - len(body)]
    return head.replace(front, tally.clean(merged), 1) + tally.clean(body)


def clean_lines(text: str, tally: Tally) -> str:
    """A text without secrets; lines that are JSON stay so."""
    lines = text.split("\n")
    if not any(line[:1] in ("{", "[") for line in lines):
        return tally.clean(text)
    cleaned = [clean_stored(line, tally.clean) if line[:1] in ("{", "[") else tally.clean(line) for line in lines]
    return "\n".join(cleaned)


def text_files(folder: Path, *, skipped: set[str]) -> Iterator[tuple[Path, bytes]]:
    """Files below a folder that are text, with their bytes; links are not followed."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not (name in skipped and Path(parent) == folder))
        for name in sorted(names):
            path = Path(parent, name)
            if (Path(parent) == folder and name in skipped) or path.is_symlink() or name.endswith(".lock"):
                continue
            if not path.is_file() or path.stat().st_size > _LARGEST_BYTES:
                continue
            data = path.read_bytes()
            if b"\0" not in data and _is_utf8(data):
                yield path, data


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
