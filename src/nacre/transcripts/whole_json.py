"""Transcripts that are one JSON document: recognised by their outermost keys, read as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from nacre.errors import TranscriptUnreadable
from nacre.transcripts.adapter import Head, Source, records
from nacre.transcripts.objects import decode, split_objects

_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_TOKEN = re.compile(r'"((?:[^"\\]++|\\.)*+)("?)|[{}\[\]:]', re.DOTALL)
_MOST_BESIDE = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Shape:
    """What a JSON document looks like from outside: an array or an object, and the keys of its (first) object."""

    is_array: bool
    keys: frozenset[str]


@lru_cache(maxsize=1)
def shape_of(head: Head) -> Shape | None:
    """The shape of the document that a file begins with, as far as the head goes; ``None`` when it is no JSON."""
    text = head.text.lstrip("\ufeff \t\r\n")
    if text[:1] not in ("{", "["):
        return None
    is_array = text[0] == "["
    wanted = 2 if is_array else 1
    keys: set[str] = set()
    depth, last = 0, ""
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth < wanted and (keys or depth < 1):
                break
        elif mark == ":":
            keys |= {last} if depth == wanted else set()
        elif token[2]:
            last = token[1]
    return Shape(is_array, frozenset(keys))


def document(source: Source) -> Any:
    """The JSON document in a file. Raises TranscriptUnreadable when it is not whole, as while a tool writes it:
    then what was read of it before stays.
    """
    value = decode(_ANY, _encoded(source.text()))
    if value is None:
        raise torn(source.path)
    return value


def documents(source: Source) -> Iterator[dict[str, Any]]:
    """The objects in a file: one document, or one a line. A torn last line waits.

    Raises TranscriptUnreadable when not even the first is whole.
    """
    text = source.text()
    whole = decode(_ANY, _encoded(text))
    if whole is not None:
        yield from [whole] if isinstance(whole, dict) else ()
        return
    *lines, last = text.split("\n")
    first = split_objects(_encoded(next(filter(str.strip, lines), "")))
    if not any(decode(_ANY, raw) for raw in first.objects):
        raise torn(source.path)
    lines += [last] if decode(_ANY, _encoded(last)) is not None else []
    for line in filter(str.strip, lines):
        yield from (one for one in records(source, _encoded(line), _ANY) if isinstance(one, dict))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")


def torn(path: Path) -> TranscriptUnreadable:
    """The error that says that a document is not whole."""
    return TranscriptUnreadable(
        f"{path} is not a whole JSON document",
        hint="it is read again once the tool has finished writing it",
    )


def beside(path: Path, most: int = _MOST_BESIDE) -> Any:
    """The JSON document in a file beside a transcript; ``None`` when none can be read, or it is larger."""
    try:
        if path.stat().st_size > most:
            return None
        return decode(_ANY, path.read_bytes())
    except OSError:
        return None


def modified(source: Source) -> datetime | None:
    """When the file was last written, for formats that know no times."""
    try:
        return datetime.fromtimestamp(source.path.stat().st_mtime, UTC)
    except (OSError, OverflowError, ValueError):
        return None


def mapping(value: Any, *keys: str) -> Mapping[str, Any]:
    """The object below some keys; empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def objects(value: Any, key: str) -> list[Mapping[str, Any]]:
    """The objects in the list at a key; empty where there is none."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def string(value: Any, *keys: str) -> str | None:
    """The first of some fields that is a text which says something."""
    for key in keys:
        found = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(found, str) and found.strip():
            return found
    return None


def total(values: Mapping[str, Any], *names: str) -> int:
    """The sum of the counts under some names; what is no count is nothing."""
    found = (values.get(name) for name in names)
    return sum(value for value in found if type(value) is int)
