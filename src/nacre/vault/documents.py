"""Memories as Markdown documents with YAML front matter, and notes about merges.

All scalars are read as text: ``no`` does not become false, ``0755`` does not become 493, and no
number or date is too large. For speed, aliases, tags, merge keys and repeated keys are rejected,
and text size, number of values and depth are limited. Rewriting a document replaces changed values
in place; unknown keys, comments, quotes and key order stay. All YAML readers read the output alike.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import cache, partial
from pathlib import PurePosixPath
from typing import Any, get_args, get_origin, get_type_hints

from nacre.base.frozen import frozen
from nacre.base.ids import to_millisecond
from nacre.base.text import to_bytes
from nacre.base.times import day_of, in_utc, is_known
from nacre.base.yaml import NotPlainError, Span, read
from nacre.errors import InvalidMemoryError
from nacre.values.codec import keys_of, plain_fields
from nacre.values.memory import (
    MAX_BODY_BYTES,
    Confirmation,
    Kind,
    Link,
    Memory,
    Retirement,
    Validity,
)
from nacre.vault.files import Place, place_of, slugify

Values = dict[str, Any]
"""Front matter values, by key."""

_LINE_END = re.compile(r"\r\n?|\n")
_FENCE = re.compile(
    r"\A\ufeff?---[ \t]*(?:\r\n?|\n)(.*?)(?<=[\r\n])---[ \t]*(?:\r\n?|\n|\Z)", re.DOTALL
)
_UNCLOSED = re.compile(r"\A\ufeff?---[ \t]*[\r\n]\s*[A-Za-z_]+:")
_PLAIN = re.compile(r"[A-Za-z\u00c0-\ud7ff][\w .,/()+@'’–—&%;?!*=<>\u3000-\ud7ff-]*", re.UNICODE)
_PLAIN_IN_LIST = re.compile(r"(?:[\w./:+@-]*[\w./+@-] )*[\w./:+@-]*[\w./+@-]", re.UNICODE)
_AMBIGUOUS = re.compile(r"(?i:true|false|yes|no|on|off|null|none|~|y|n|[-+.\d_:e]+|0[xo][\da-f]+)")
_STAMP = re.compile(
    r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z)?|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON does not escape, but that YAML rejects or treats as line ends."""


def split(text: str) -> tuple[str | None, str]:
    """Return a document's front matter without its ``---`` lines, or ``None``, and its body.

    Raises InvalidMemoryError for unclosed front matter, because the file might be truncated.
    """
    match = _FENCE.match(text)
    if match:
        return match.group(1), text[match.end() :]
    if _UNCLOSED.match(text):
        raise InvalidMemoryError(
            "the front matter has no end", hint="close it with a line of three dashes: ---"
        )
    return None, text


def join(text: str, front: str, body: str) -> str:
    """Replace a document's front matter and body, but keep its own ``---`` lines."""
    match = _FENCE.match(text)
    if match is None:
        return f"---\n{front}---\n{body}"
    fence = text[match.end(1) : match.end()]
    return (
        text[: match.start(1)]
        + front
        + (fence if fence.endswith(("\n", "\r")) else f"{fence}\n")
        + body
    )


def load(front: str) -> Values:
    """Parse front matter. Raises InvalidMemoryError with the line number."""
    return _read(front)[0]


def dump(values: Mapping[str, Any]) -> str:
    """Format a mapping as front matter, with one key per line and nested values in flow style."""
    return "".join(
        f"{_item(key)}: {_value(value)}".rstrip(" ") + "\n" for key, value in values.items()
    )


def merge(front: str, changed: Mapping[str, Any], removed: Sequence[str]) -> str:
    """Change or remove some keys of front matter without altering any other byte.

    Raises InvalidMemoryError.
    """
    _, spans = _read(front)
    edits: list[tuple[int, int, str]] = []
    for key, span in spans.items():
        if key in changed:
            edits.append((span.key_end, span.end, f": {_value(changed[key])}".rstrip(" ")))
        elif key in removed:
            after = _LINE_END.search(front, span.end)
            edits.append((span.start, after.end() if after else len(front), ""))
    for start, end, text in sorted(edits, reverse=True):
        front = front[:start] + text + front[end:]
    added = dump({key: value for key, value in changed.items() if key not in spans})
    if not added:
        return front
    if "\r\n" in front:
        added = added.replace("\n", "\r\n")
    return front + ("" if not front or front.endswith(("\n", "\r")) else "\n") + added


def _read(front: str) -> tuple[Values, dict[str, Span]]:
    try:
        return read(front)
    except NotPlainError as error:
        where = f" at line {error.line + 2}" if error.line is not None else ""
        raise InvalidMemoryError(
            f"broken YAML{where}: {error}", hint="correct the lines between the two --- marks"
        ) from error


def _value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_item(key)}: {_item(item)}".rstrip(" ") for key, item in value.items())
        return f"{{{inner}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_item(item) for item in value)}]"
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and not _AMBIGUOUS.fullmatch(text) and not text.endswith(" "):
        return text
    # A date or UUID needs no quotes although it begins with a digit.
    return text if _STAMP.fullmatch(text) else _quote(text)


def _item(value: Any) -> str:
    # Commas and brackets are special inside a flow list or mapping.
    if isinstance(value, str):
        plain = _PLAIN_IN_LIST.fullmatch(value) and not value.startswith(("-", "@", ":"))
        if _STAMP.fullmatch(value) or (plain and not _AMBIGUOUS.fullmatch(value)):
            return value
        return _quote(value)
    return _value(value)


def _quote(text: str) -> str:
    # JSON and YAML parsers must return the same text.
    escaped = json.dumps(to_bytes(text).decode("utf-8"), ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", escaped)


# -- Memories as documents ----------------------------------------------------


Reader = Callable[[Values, str], Any]
"""A function that converts a front matter value from text."""

_HEADING = re.compile(r"\A\s*#{1,6}[ \t]+(\S[^\r\n]*)\r?\n?")
_CLOSING = re.compile(r"(?<=[ \t])#+\Z")
_HEADING_BYTES = 1000
"""Number of extra bytes allowed for a heading and the final newline, which are not stored."""

_IDENTITY = re.compile(r"[\w.:-]{1,128}", re.ASCII)

_FENCE_DOCUMENT = re.compile(r" {0,3}(```|~~~)")
_MARKS = ("<<<<<<< ", "=======", ">>>>>>> ")

_NOT_IN_FRONT_MATTER = ("content", "inbox", "extra")
"""Fields of a memory without a front matter key of the same name."""
_SPECIAL_FIELDS = ("id", "kind", "subject", "project", "retired")
"""Fields whose values do not depend on the front matter key alone."""
_DATES = ("created", "updated")
_FIELDS = [name for name in keys_of(Memory) if name not in (*_NOT_IN_FRONT_MATTER, *_DATES)]
MANAGED = tuple(
    name for field in _FIELDS for name in ((field, *_DATES) if field == "tags" else (field,))
)
"""Front matter keys that nacre writes, in order."""


def render(memory: Memory) -> str:
    """Format a new memory as a Markdown document."""
    own = {key: value for key, value in memory.extra.items() if key not in MANAGED}
    return f"---\n{dump(to_front(memory) | own)}---\n{_body(memory)}"


def rewrite(text: str, memory: Memory) -> str:
    """Update a document with a memory's values, and keep everything else in it."""
    front, body = split(text)
    if front is None:
        return f"---\n{dump(to_front(memory))}---\n{_new_body(body, memory)}"
    before = load(front)
    new_values = {**memory.extra, **to_front(memory)}
    changed = {
        key: value
        for key, value in new_values.items()
        if as_text(value) != before.get(key)
        and not (key in _DATES and _is_same_time(key, before, new_values))
    }
    removed = [key for key in before if key not in new_values]
    if changed or removed:
        front = merge(front, changed, removed)
    return join(text, front, _new_body(body, memory))


def adjust(text: str, values: Mapping[str, Any]) -> str:
    """Change a document's front matter. Keys with empty values are removed."""
    new_values = _drop_empty(dict(values))
    front, body = split(text)
    if front is None:
        return f"---\n{dump(new_values)}---\n{body}"
    return join(
        text, merge(front, new_values, [key for key in values if key not in new_values]), body
    )


def adopt(text: str, identity: Mapping[str, str]) -> str:
    """Add an id and other keys to a document that a person wrote. Its text stays the same."""
    front, body = split(text)
    if front is None:
        return f"---\n{dump(identity)}---\n{body}"
    new = dump(identity)
    return join(text, (new.replace("\n", "\r\n") if "\r\n" in front else new) + front, body)


def parse(text: str, path: str, *, new_id: Callable[[], str], modified: datetime) -> Memory:
    """Parse a memory from a document. ``path`` is relative to the vault.

    The folder determines the project and the kind. ``modified`` replaces missing dates. Raises
    InvalidMemoryError.
    """
    if "\0" in text:
        raise InvalidMemoryError(
            "it is not text: it contains zero bytes", hint="keep other files outside the vault"
        )
    if not text.strip("\ufeff \t\r\n"):
        raise InvalidMemoryError("the file is empty", hint="delete it to retire the memory")
    if has_marks(text):
        raise InvalidMemoryError(
            "contains conflict marks of an unfinished merge (<<<<<<<, =======, >>>>>>>)",
            hint="keep the right version and remove the marks",
        )
    front, body = split(text)
    if len(body) > MAX_BODY_BYTES // 4 and len(to_bytes(body)) > MAX_BODY_BYTES + _HEADING_BYTES:
        raise InvalidMemoryError("a memory can have at most 1 MB", hint="split the file")
    return assemble(load(front) if front else {}, body, path, new_id=new_id, modified=modified)


def assemble(
    values: Values, body: str, path: str, *, new_id: Callable[[], str], modified: datetime
) -> Memory:
    """Build a memory from front matter and body like :func:`parse`. Raises InvalidMemoryError."""
    place = place_of(path)
    title, below = _split_title(body)
    if title and _text(values, "subject") not in (None, title):
        title, below = None, body
    words = PurePosixPath(path).stem.replace("_", " ").replace("-", " ").strip()
    subject = _text(values, "subject") or title or words[:1].upper() + words[1:]
    created = _time(values, "created") or modified
    details = _mapping(values, "retired") if place.retired else {}
    retirement = Retirement(_time(details, "at") or modified, _text(details, "reason"))
    return Memory(
        id=_id(values) or new_id(),
        kind=place.kind or _choice(values, "kind", Kind, Kind.FACT),
        subject=subject,
        content=below.strip() or subject,
        created=created,
        updated=_time(values, "updated") or created,
        project=_project(values) if place.inbox else place.project,
        inbox=place.inbox,
        retired=retirement if place.retired else None,
        extra={key: value for key, value in values.items() if key not in MANAGED},
        **{name: read(values, name) for name, read in _readers().items()},
    )


def has_marks(text: str) -> bool:
    """Return True if there are git conflict markers outside code blocks."""
    if _MARKS[0] not in text:
        return False
    found_marks = 0
    fence = None
    for line in text.splitlines():
        code_fence = _FENCE_DOCUMENT.match(line)
        if code_fence and fence in (None, code_fence.group(1)):
            fence = None if fence else code_fence.group(1)
        elif not fence and line.startswith(_MARKS[found_marks]):
            found_marks += 1
            if found_marks == len(_MARKS):
                return True
    return False


def values_of(text: str) -> Values:
    """Return a document's front matter as a mapping. Raises InvalidMemoryError."""
    front, _ = split(text)
    return load(front) if front else {}


def read_place(values: Values) -> Place:
    """Return the kind and project that front matter specifies. Raises InvalidMemoryError."""
    return Place(_project(values), _choice(values, "kind", Kind, None))


def to_front(memory: Memory) -> Values:
    """Return a memory as front matter values in file order, without empty and false values."""
    return dict(_drop_empty(plain_fields(memory, MANAGED)))


@cache
def _readers() -> dict[str, Reader]:
    own: dict[str, Reader] = {
        "importance": lambda values, _: _importance(values),
        "links": lambda values, _: _links(values),
        "confirmed": lambda values, _: _read_confirmations(values),
    }
    excluded = (*_SPECIAL_FIELDS, *_NOT_IN_FRONT_MATTER, *_DATES)
    return {
        name: own.get(name, read)
        for name, read in _readers_of(Memory).items()
        if name not in excluded
    }


def _readers_of(kind: Any) -> dict[str, Reader]:
    types = get_type_hints(kind)
    return {field.name: _reader(types[field.name], field.default) for field in fields(kind)}


def _reader(kind: Any, default: Any) -> Reader:
    if type(None) in get_args(kind):
        kind = next(argument for argument in get_args(kind) if argument is not type(None))
    if kind in _READERS:
        return _READERS[kind]
    if is_dataclass(kind):
        keys, readers = keys_of(kind), _readers_of(kind)
        return partial(_read_nested, kind, [(keys[name], read) for name, read in readers.items()])
    if get_origin(kind) is tuple:
        return _texts
    return lambda values, key: _choice(values, key, kind, default)


def _read_nested(kind: Any, readers: Sequence[tuple[str, Reader]], values: Values, key: str) -> Any:
    nested_values = _mapping(values, key)
    return kind(*[read(nested_values, name) for name, read in readers])


def _new_body(body: str, memory: Memory) -> str:
    if memory.content.strip() in (body.strip(), _split_title(body)[1].strip()):
        return body
    return _body(memory)


def _body(memory: Memory) -> str:
    # Parsing drops a heading that equals the subject, so a heading in the content is repeated.
    content = memory.content.strip()
    if _split_title(content)[0] == memory.subject:
        return f"# {memory.subject}\n\n{content}\n"
    return f"{content}\n"


def _split_title(body: str) -> tuple[str | None, str]:
    match = _HEADING.match(body)
    title = _CLOSING.sub("", match.group(1).rstrip()).rstrip() if match else ""
    return (title, body[match.end() :]) if match and title else (None, body)


def _project(values: Values) -> str | None:
    name = _text(values, "project")
    return slugify(name) or None if name else None


def _id(values: Values) -> str | None:
    identity = _text(values, "id")
    if identity and not _IDENTITY.fullmatch(identity):
        raise InvalidMemoryError(
            f"{identity[:80]!r} is not a valid id",
            hint="remove the line, and nacre writes a new id",
        )
    return identity


def _links(values: Values) -> tuple[Link, ...]:
    links = values.get("links") or []
    if not isinstance(links, list) or not all(
        isinstance(link, dict) and link.get("to") for link in links
    ):
        raise InvalidMemoryError(
            "links must be a list of {rel: …, to: …}",
            hint="e.g. links: [{rel: supersedes, to: <id>}]",
        )
    return tuple(_link(link) for link in links)


def _link(link: Values) -> Link:
    valid = _mapping(link, "valid")
    strength = _number(link, "strength")
    if strength is not None and not 0 <= strength <= 1:
        raise InvalidMemoryError(f"a link's strength must be 0 to 1, not {strength:g}")
    return Link(
        _text(link, "rel") or "related_to",
        _text(link, "to") or "",
        _text(link, "reason"),
        _text(link, "origin"),
        strength,
        Validity(_date(valid, "from"), _date(valid, "to")),
    )


def _read_confirmations(values: Values) -> tuple[Confirmation, ...]:
    entries = values.get("confirmed") or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidMemoryError("confirmed must be a list of {at: …, session: …, turns: …}")
    times = ((entry, _time(entry, "at")) for entry in entries)
    return tuple(
        Confirmation(at, _text(entry, "session"), _texts(entry, "turns"))
        for entry, at in times
        if at
    )


def _text(values: Values, key: str) -> str | None:
    value = values.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise InvalidMemoryError(f"{key} must be text, not a list or mapping")
    return value.strip()


def _texts(values: Values, key: str) -> tuple[str, ...]:
    value = values.get(key) or []
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidMemoryError(f"{key} must be a list of words", hint=f"e.g. {key}: [one, two]")
    return tuple(item for item in value if item)


def _mapping(values: Values, key: str) -> Values:
    value = values.get(key) or {}
    if not isinstance(value, dict):
        raise InvalidMemoryError(f"{key} must be a mapping, not {str(value)[:80]!r}")
    return value


def _choice(values: Values, key: str, options: Any, default: Any) -> Any:
    text = _text(values, key)
    if text is None:
        return default
    try:
        return options(text.lower())
    except ValueError:
        raise InvalidMemoryError(
            f"unknown {key} {text[:80]!r}",
            hint=f"one of: {', '.join(option.value for option in options)}",
        ) from None


def _importance(values: Values) -> int:
    number = _number(values, "importance")
    if number is None:
        return 7
    if not 1 <= number <= 10:
        raise InvalidMemoryError(f"importance must be 1 to 10, not {number:g}")
    return round(number)


def _number(values: Values, key: str) -> float | None:
    text = _text(values, key)
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidMemoryError(f"{key} must be a number, not {text[:80]!r}")
    return number


def _is_same_time(key: str, before: Values, after: Values) -> bool:
    with suppress(InvalidMemoryError):
        return _time(before, key) == _time(after, key)
    return False


def _time(values: Values, key: str) -> datetime | None:
    text = _text(values, key)
    if text is None:
        return None
    try:
        moment = to_millisecond(datetime.fromisoformat(text))
        return in_utc(moment) if is_known(moment) else None
    except (ValueError, OverflowError):
        raise InvalidMemoryError(
            f"{key} is not a date: {text[:80]!r}", hint="write 2026-11-20 or 2026-11-20T03:12:00Z"
        ) from None


def _date(values: Values, key: str) -> date | None:
    with suppress(ValueError):
        return date.fromisoformat(_text(values, key) or "")
    moment = _time(values, key)
    return day_of(moment) if moment else None


def _drop_empty(value: Any) -> Any:
    if isinstance(value, dict):
        cleaned = {key: _drop_empty(item) for key, item in value.items()}
        return {
            key: item
            for key, item in cleaned.items()
            if item is not False and item not in (None, "", [], {})
        }
    return [_drop_empty(item) for item in value] if isinstance(value, list) else value


def _truth(values: Values, key: str) -> bool:
    return (_text(values, key) or "").lower() in ("true", "yes")


def as_text(value: Any) -> Any:
    """Convert scalars to strings, as the front matter reader does. ``None`` becomes ""."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return {key: as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_text(item) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


_READERS: dict[Any, Reader] = {
    str: _text,
    float: _number,
    bool: _truth,
    date: _date,
    datetime: _time,
}


# -- Merge notes for the user ----------------------------------------------------------------------


class MergeOutcome(StrEnum):
    """The result of merging two versions of a memory."""

    MERGED = "merged"
    """Both sides changed the memory."""

    KEPT_TWICE = "kept_twice"
    """Both sides changed the same sentence. There are now two memories that contradict each other."""

    KEPT_EDITED = "kept_edited"
    """One side deleted the memory, and the other changed it. The memory is kept."""

    STAYS_RETIRED = "stays_retired"
    """One side retired the memory, and the other changed it. The changed version is retired."""

    RENAMED = "renamed"
    """Two memories needed the same path."""

    UNITED = "united"
    """Both sides created the same memory with different ids."""

    KEPT_BESIDE = "kept_beside"
    """A file could not be merged. The other version is stored next to it."""

    FORGOTTEN = "forgotten"
    """The other side forgot the memory. It is deleted, and its note contains no text."""


@frozen
class Note:
    """A message for the user about the merge of a memory or file.

    ``other``: path of a second memory or file that remains after the merge.
    ``fields``: names of the fields that both sides changed.
    """

    outcome: MergeOutcome
    path: str
    memory: str | None = None
    subject: str | None = None
    other: str | None = None
    fields: tuple[str, ...] = ()
