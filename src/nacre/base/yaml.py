"""A safe subset of YAML for notes: keys, strings, lists and mappings. All scalars are strings.

Aliases, tags, merge keys and repeated keys are rejected, and sizes are limited. The library's own
composer is not used, because deeply nested files could overflow its C stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from nacre.base.frozen import frozen

MAX_CHARACTERS = 256_000
"""Maximum number of characters in one document."""

MAX_EVENTS = 20_000
"""Maximum number of parser events in one document: values and ends of collections."""

MAX_DEPTH = 16
"""Maximum nesting depth of lists and mappings."""

_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_COLON = re.compile(r"[ \t]*:")


class NotPlainError(ValueError):
    """Raised for text outside the supported subset of YAML. ``line``, if known, counts from 0."""

    def __init__(self, problem: str, mark: yaml.Mark | None = None) -> None:
        super().__init__(problem)
        self.line: int | None = mark.line if mark else None


@frozen
class Span:
    """The character positions of a key and its value (up to ``end``) in a document."""

    start: int
    key_end: int
    end: int


def read(document: str) -> tuple[dict[str, Any], dict[str, Span]]:
    """Parse a document into its values and the position of each key. Raises NotPlainError."""
    if len(document) > MAX_CHARACTERS:
        raise NotPlainError(f"it is longer than {MAX_CHARACTERS:,} characters")
    if document.startswith("\ufeff"):
        # The parser does not count a byte order mark in positions.
        raise NotPlainError("there is a byte order mark within the file")
    try:
        return _Reader(document).read()
    except UnicodeEncodeError as error:
        raise NotPlainError("it contains unpaired surrogates") from error
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise NotPlainError(problem, getattr(error, "problem_mark", None)) from error


class _Reader:
    def __init__(self, document: str) -> None:
        self._document = document
        self._events: Iterator[Any] = yaml.parse(document, Loader=_LOADER)
        self._count = 0
        self._end = 0

    def read(self) -> tuple[dict[str, Any], dict[str, Span]]:
        values: dict[str, Any] = {}
        spans: dict[str, Span] = {}
        self._next()
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return values, spans
        if event.explicit:
            raise NotPlainError("more than one document", event.start_mark)
        event = self._next()
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
                raise NotPlainError("a key has no colon", event.start_mark)
            self._end = key_end
            values[key] = self._value(self._next(), 1)
            end = key_end + len(self._document[key_end : self._end].rstrip())
            spans[key] = Span(start, key_end, max(end, colon.end()))
        event = self._next()
        if event.explicit or not isinstance(self._next(), yaml.StreamEndEvent):
            raise NotPlainError("more than one document", event.start_mark)
        return values, spans

    def _next(self) -> Any:
        self._count += 1
        if self._count > MAX_EVENTS:
            raise NotPlainError(f"it has more than {MAX_EVENTS:,} values")
        event = next(self._events)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise NotPlainError(
                "anchors and aliases (& and *) are not supported; quote the text",
                event.start_mark,
            )
        if getattr(event, "tag", None):
            raise NotPlainError("tags (!) are not supported; quote the text", event.start_mark)
        return event

    def _key(self, event: Any, previous: Mapping[str, Any]) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise NotPlainError("a key is not a plain word", event.start_mark)
        key: str = event.value
        if key == "<<" and event.implicit[0]:
            raise NotPlainError("merge keys (<<) are not supported", event.start_mark)
        if key in previous:
            raise NotPlainError(f"{key[:80]!r} occurs twice", event.start_mark)
        return key

    def _value(self, event: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise NotPlainError("it is nested too deeply")
        if isinstance(event, yaml.ScalarEvent):
            self._end = event.end_mark.index
            return event.value
        values: list[Any] = []
        by_key: dict[str, Any] = {}
        is_list = isinstance(event, yaml.SequenceStartEvent)
        while not isinstance(inner := self._next(), yaml.CollectionEndEvent):
            if is_list:
                values.append(self._value(inner, depth + 1))
            else:
                key = self._key(inner, by_key)
                by_key[key] = self._value(self._next(), depth + 1)
        if event.flow_style:
            self._end = inner.end_mark.index
        return values if is_list else by_key
