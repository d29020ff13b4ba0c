"""The part of YAML that notes use, read within bounds: keys, texts, lists and mappings, every scalar as text.

No aliases, tags, merge keys or repeated keys, and so many characters, values and levels at most: whatever a document
wants, reading it costs no more than that. The library's own composing recurses in C, as deep as a file says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

MAX_CHARACTERS = 256_000
"""In one document."""

MAX_EVENTS = 20_000
"""Values, and beginnings and ends of lists, in one document."""

MAX_DEPTH = 16
"""Lists and mappings within each other."""

_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_COLON = re.compile(r"[ \t]*:")


class NotPlainError(ValueError):
    """A document is not YAML, or more of it than is read here. ``line`` counts from 0, where it is known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


@dataclass(frozen=True, slots=True)
class Span:
    """Where one key of a document stands: its beginning, its end, the end of its value."""

    start: int
    key_end: int
    end: int


def read(document: str) -> tuple[dict[str, Any], dict[str, Span]]:
    """A document's keys and values, and where each key stands. Raises NotPlainError."""
    if len(document) > MAX_CHARACTERS:
        raise NotPlainError(f"it is longer than {MAX_CHARACTERS:,} characters")
    if document.startswith("\ufeff"):
        raise NotPlainError(
            "a byte order mark stands within the file"
        )  # the parser would not count it
    try:
        return _Reader(document).read()
    except UnicodeEncodeError as error:
        raise NotPlainError("it holds half characters") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise NotPlainError(problem, mark.line if mark else None) from error


class _Reader:
    """Builds values from the parser's events."""

    def __init__(self, document: str) -> None:
        self._document = document
        self._events: Iterator[Any] = yaml.parse(document, Loader=_LOADER)
        self._count = 0
        self._end = 0
        self._closed = 0

    def read(self) -> tuple[dict[str, Any], dict[str, Span]]:
        """The mapping, and where each of its keys stands."""
        values: dict[str, Any] = {}
        spans: dict[str, Span] = {}
        event = self._begin()
        if event is None:
            return values, spans
        if (
            not isinstance(event, yaml.MappingStartEvent)
            or event.flow_style
            or event.start_mark.column
        ):
            raise NotPlainError("it is not a list of keys and values")
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._key(event, values)
            start, key_end = event.start_mark.index, event.end_mark.index
            colon = _COLON.match(self._document, key_end)
            if colon is None:
                raise NotPlainError("a key without a colon", _line(event))
            self._end = key_end
            values[key] = self._value(self._next(), 1)
            end = key_end + len(self._document[key_end : self._end].rstrip())
            spans[key] = Span(start, key_end, max(end, colon.end()))
        self._finish()
        return values, spans

    def _begin(self) -> Any:
        """The first event of the one document; ``None`` for one without any values."""
        self._next()
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return None
        if event.explicit:
            raise NotPlainError("more than one document", _line(event))
        return self._next()

    def _finish(self) -> None:
        event = self._next()
        if event.explicit or not isinstance(self._next(), yaml.StreamEndEvent):
            raise NotPlainError("more than one document", _line(event))

    def _next(self) -> Any:
        self._count += 1
        if self._count > MAX_EVENTS:
            raise NotPlainError(f"it holds more than {MAX_EVENTS:,} values")
        event = next(self._events)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise NotPlainError(
                "anchors and aliases (& and *) are not used here; put quotes around the text",
                _line(event),
            )
        if getattr(event, "tag", None):
            raise NotPlainError(
                "tags (!) are not used here; put quotes around the text", _line(event)
            )
        return event

    def _key(self, event: Any, known: Mapping[str, Any]) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise NotPlainError("a key is not a word", _line(event))
        key: str = event.value
        if key == "<<" and event.implicit[0]:
            raise NotPlainError("merge keys (<<) are not used here", _line(event))
        if key in known:
            raise NotPlainError(f"{key[:80]!r} is there twice", _line(event))
        return key

    def _value(self, event: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise NotPlainError("it is nested too deeply")
        if isinstance(event, yaml.ScalarEvent):
            self._end = event.end_mark.index
            return event.value
        flow = event.flow_style
        value: Any = (
            self._list(depth)
            if isinstance(event, yaml.SequenceStartEvent)
            else self._mapping(depth)
        )
        if flow:
            self._end = self._closed
        return value

    def _list(self, depth: int) -> list[Any]:
        found = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            found.append(self._value(event, depth + 1))
        self._closed = event.end_mark.index
        return found

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._key(event, found)
            found[key] = self._value(self._next(), depth + 1)
        self._closed = event.end_mark.index
        return found


def _line(event: Any) -> int:
    line: int = event.start_mark.line
    return line
