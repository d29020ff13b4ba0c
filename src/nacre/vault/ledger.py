"""``ledger.jsonl``: what a file cannot say. Append-only; one JSON object a line, the operation's id first."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from nacre.platform import json_text
from nacre.platform.ids import to_millisecond
from nacre.values.codec import stamp

_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation: its UUIDv7, when, what (``retire``, ``ingest`` …), and its particulars."""

    op: str
    at: datetime
    action: str
    details: dict[str, Any] = field(default_factory=dict)

    def without_words(self) -> Entry:
        """Return the entry with only the ids and numbers of its particulars."""
        kept = {name: value for name, value in self.details.items() if _is_wordless(value)}
        return replace(self, details=kept)

    def line(self) -> str:
        """The entry as its line in the ledger."""
        values = {"op": self.op, "at": stamp(self.at), "action": self.action, **self.details}
        return json.dumps(values, ensure_ascii=False)


def encode(values: object) -> bytes:
    """One line of a ledger, from values that came from elsewhere; :func:`read` tells whether it is an entry."""
    return json.dumps(values, ensure_ascii=False).encode("utf-8", "replace")


def read(data: bytes) -> Iterator[Entry]:
    """The entries of a ledger; a line that is not one (a torn end, a merge marker) is passed over.

    Only a line feed ends a line: what people write holds other characters that Python takes for ends of lines.
    """
    for line in data.split(b"\n"):
        try:
            values = json_text.parse(line)
            op, at, action = (_sound(values.pop(key)) for key in ("op", "at", "action"))
            moment = datetime.fromisoformat(at)
            moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
            json.dumps(values, ensure_ascii=False).encode("utf-8")
        except (ValueError, KeyError, AttributeError, TypeError, OverflowError):
            continue
        yield Entry(op, to_millisecond(moment), action, values)


def broken_lines(data: bytes) -> list[int]:
    """The numbers of the lines that are no entries, from 1."""
    return [number for number, line in enumerate(data.split(b"\n"), 1) if line.strip() and not list(read(line))]


def read_about(data: bytes, pattern: re.Pattern[bytes]) -> Iterator[Entry]:
    """The entries whose lines hold what a pattern matches; no other line is parsed."""
    for found in pattern.finditer(data):
        end = data.find(b"\n", found.end())
        yield from read(data[data.rfind(b"\n", 0, found.start()) + 1 : end if end >= 0 else len(data)])


def ids_in(text: str) -> set[str]:
    """The ids of memories that a text names."""
    return set(_ID.findall(text))


def _is_wordless(value: Any) -> bool:
    if isinstance(value, str):
        return _ID.fullmatch(value) is not None
    if isinstance(value, list):
        return all(_is_wordless(one) for one in value)
    return isinstance(value, int | float | None)


def _sound(value: object) -> str:
    """A text without half characters. Raises TypeError, ValueError."""
    if not isinstance(value, str):
        raise TypeError(value)
    value.encode("utf-8")
    return value
