"""YAML front matter: read with every scalar as text, written so that any YAML reader agrees with us.

Reading scalars as text keeps YAML's own guesses out (``no`` is not false, ``0755`` is not 493, no number or date is too
large). What is read is bounded: no aliases, tags, merge keys or repeated keys, and so much text, so many values and
levels at most; a document that wants more costs no more than that. A rewrite of an existing file replaces the values
that changed where they stand, so that unknown keys, comments, quotes and the order of keys survive.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import cache, partial
from pathlib import PurePosixPath
from typing import Any, get_args, get_origin, get_type_hints

from nacre.base.ids import to_millisecond
from nacre.base.times import day_of, in_utc, is_known
from nacre.base.yaml import NotPlainError, Span, read
from nacre.errors import MemoryInvalid
from nacre.values.codec import keys_of, plain, plain_fields
from nacre.values.memory import (
    MAX_BODY_BYTES,
    Claim,
    Confirmation,
    Kind,
    Link,
    Memory,
    Retirement,
    Validity,
)
from nacre.vault.files import Place, place_of, slugify

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
"""What YAML does not take as it is, or takes for the end of a line; JSON leaves it alone."""


def split(text: str) -> tuple[str | None, str]:
    """Front matter (without its fences) and body; ``None`` when a file has no front matter.

    Raises MemoryInvalid for front matter that has no end: half of a file is not its words.
    """
    match = _FENCE.match(text)
    if match:
        return match.group(1), text[match.end() :]
    if _UNCLOSED.match(text):
        raise MemoryInvalid(
            "front matter has no end", hint="close it with a line of three dashes: ---"
        )
    return None, text


def join(text: str, front: str, body: str) -> str:
    """A file's text with other front matter and another body, between the fences that it has."""
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


def load(front: str) -> dict[str, Any]:
    """Read front matter as a mapping of text, lists and mappings. Raises MemoryInvalid with the line at fault."""
    return _read(front)[0]


def dump(values: Mapping[str, Any]) -> str:
    """Write a mapping as front matter: one line a key, lists and mappings in flow style."""
    return "".join(
        f"{_item(key)}: {_value(value)}".rstrip(" ") + "\n" for key, value in values.items()
    )


def merge(front: str, changed: Mapping[str, Any], removed: Sequence[str]) -> str:
    """Change some keys of existing front matter and leave everything else as it was, byte for byte.

    Raises MemoryInvalid.
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


def _read(front: str) -> tuple[dict[str, Any], dict[str, Span]]:
    try:
        return read(front)
    except NotPlainError as error:
        where = f" at line {error.line + 2}" if error.line is not None else ""
        raise MemoryInvalid(
            f"broken YAML{where}: {error}", hint="mend the lines between the two --- marks"
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
    return text if _is_stamp(text) else _quoted(text)


def _item(value: Any) -> str:
    """A key, or a value inside a flow list or mapping, where commas and brackets mean something."""
    if isinstance(value, str):
        plain = _PLAIN_IN_LIST.fullmatch(value) and not value.startswith(("-", "@", ":"))
        if _is_stamp(value) or (plain and not _AMBIGUOUS.fullmatch(value)):
            return value
        return _quoted(value)
    return _value(value)


def _quoted(text: str) -> str:
    """A text in double quotes, as both JSON and YAML read it."""
    whole = json.dumps(text.encode("utf-8", errors="replace").decode("utf-8"), ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", whole)


def _is_stamp(text: str) -> bool:
    """Dates and UUIDs begin with digits and are safe unquoted all the same."""
    return bool(_STAMP.fullmatch(text))


# ----------------------------------------------------------------------------
# A memory as the text of its file, and back.


Reader = Callable[[dict[str, Any], str], Any]
"""Reads the value of a key from front matter, whose values are all text."""

_HEADING = re.compile(r"\A\s*#{1,6}[ \t]+(\S[^\r\n]*)\r?\n?")
_CLOSING = re.compile(r"(?<=[ \t])#+\Z")
_SLACK_BYTES = 1000
"""A heading and the last line's end come on top of what is stored."""

_IDENTITY = re.compile(r"[\w.:-]{1,128}", re.ASCII)

_FENCE_DOCUMENT = re.compile(r" {0,3}(```|~~~)")
_MARKS = ("<<<<<<< ", "=======", ">>>>>>> ")

_ELSEWHERE = ("content", "inbox", "extra")
"""Fields that are the body, the place, or keys of their own."""
_PLACED = ("id", "kind", "subject", "project", "retired", "claim")
"""Fields that the file's place, its name or its completeness have a say in."""
_DATES = ("created", "updated")
_FIELDS = [name for name in keys_of(Memory) if name not in (*_ELSEWHERE, *_DATES)]
MANAGED = tuple(
    name for field in _FIELDS for name in ((field, *_DATES) if field == "tags" else (field,))
)
"""The keys nacre knows, in the order in which it writes them."""


def render(memory: Memory) -> str:
    """A new file for a memory."""
    own = {
        key: value
        for key, value in memory.extra.items()
        if key not in MANAGED or (key == "claim" and not memory.claim)
    }
    return f"---\n{dump(to_front(memory) | own)}---\n{_body(memory)}"


def rewrite(text: str, memory: Memory) -> str:
    """An existing file's text with a memory's present values; what did not change stays as it is."""
    front, body = split(text)
    if front is None:
        return f"---\n{dump(to_front(memory))}---\n{_new_body(body, memory)}"
    before = load(front)
    wanted = {**memory.extra, **to_front(memory)}
    changed = {
        key: value
        for key, value in wanted.items()
        if as_text(value) != before.get(key)
        and not (key in _DATES and _is_same_time(key, before, wanted))
    }
    removed = [key for key in before if key in MANAGED and key not in wanted]
    if changed or removed:
        front = merge(front, changed, removed)
    return join(text, front, _new_body(body, memory))


def adjust(text: str, values: Mapping[str, Any]) -> str:
    """An existing file's text with some values of its front matter changed, and nothing else.

    What is empty is left out, or taken out: an empty list, at any depth.
    """
    wanted = _drop_empty(dict(values))
    front, body = split(text)
    if front is None:
        return f"---\n{dump(wanted)}---\n{body}"
    return join(text, merge(front, wanted, [key for key in values if key not in wanted]), body)


def adopt(text: str, identity: Mapping[str, str]) -> str:
    """Give a file written by hand its id (and what else is new), without touching its words."""
    front, body = split(text)
    if front is None:
        return f"---\n{dump(identity)}---\n{body}"
    new = dump(identity)
    return join(text, (new.replace("\n", "\r\n") if "\r\n" in front else new) + front, body)


def without_id(text: str) -> str:
    """A file's text with the id taken out of its front matter."""
    front, body = split(text)
    return text if front is None else join(text, merge(front, {}, ["id"]), body)


def parse(text: str, path: str, *, new_id: Callable[[], str], modified: datetime) -> Memory:
    """Read a memory from the text of the file at ``path`` (relative to the vault).

    The folder decides project and kind, so that a file a person moved means what its place says. ``new_id`` names a
    file without an id; ``modified`` stands in for missing dates. Raises MemoryInvalid.
    """
    if "\0" in text:
        raise MemoryInvalid(
            "it is not text: it holds zero bytes", hint="keep other files outside the vault"
        )
    if not text.strip("\ufeff \t\r\n"):
        raise MemoryInvalid("the file is empty", hint="delete it to retire the memory")
    if has_marks(text):
        raise MemoryInvalid(
            "holds the marks of a merge that was not finished (<<<<<<<, =======, >>>>>>>)",
            hint="keep what is right, take the marks out",
        )
    front, body = split(text)
    if (
        len(body) > MAX_BODY_BYTES // 4
        and len(body.encode("utf-8", errors="replace")) > MAX_BODY_BYTES + _SLACK_BYTES
    ):
        raise MemoryInvalid("a memory is at most 1 MB", hint="split the file")
    return assemble(load(front) if front else {}, body, path, new_id=new_id, modified=modified)


def assemble(
    values: dict[str, Any], body: str, path: str, *, new_id: Callable[[], str], modified: datetime
) -> Memory:
    """A memory from its front matter, as text, and its body; see :func:`parse`. Raises MemoryInvalid."""
    place = place_of(path)
    title, below = _titled(body)
    if title and _text(values, "subject") not in (None, title):
        title, below = None, body
    subject = _text(values, "subject") or title or _subject_from(path)
    created = _time(values, "created") or modified
    claim = _claim(values)
    return Memory(
        id=_id(values) or new_id(),
        kind=place.kind or _choice(values, "kind", Kind, Kind.FACT),
        subject=subject,
        content=below.strip() or subject,
        created=created,
        updated=_time(values, "updated") or created,
        project=_project(place, values),
        inbox=place.inbox,
        retired=_retired(values, place, modified),
        claim=claim,
        extra={
            key: value
            for key, value in values.items()
            if key not in MANAGED or (key == "claim" and not claim)
        },
        **_details(values),
    )


def has_marks(text: str) -> bool:
    """Whether a text holds the marks that an unfinished merge of git leaves; those in a block of code do not count."""
    if _MARKS[0] not in text:
        return False
    seen = 0
    fence = None
    for line in text.splitlines():
        found = _FENCE_DOCUMENT.match(line)
        if found and fence in (None, found.group(1)):
            fence = None if fence else found.group(1)
        elif not fence and line.startswith(_MARKS[seen]):
            seen += 1
            if seen == len(_MARKS):
                return True
    return False


@dataclass(frozen=True, slots=True)
class Stated:
    """What a file's front matter says of its place; ``None`` where it says nothing."""

    kind: Kind | None = None
    project: str | None = None

    def differs(self, kind: Kind, project: str | None) -> bool:
        """Whether it says something else."""
        projects = (None, project, slugify(project) if project else None)
        return self.kind not in (None, kind) or self.project not in projects


def stated(text: str) -> Stated:
    """Kind and project as front matter states them, whatever the folder says. Raises MemoryInvalid."""
    front, _ = split(text)
    values = load(front) if front else {}
    return Stated(_choice(values, "kind", Kind, None), _stated_project(values))


def to_front(memory: Memory) -> dict[str, Any]:
    """A memory's front matter, in the order in which nacre writes it; what is empty or false is left out."""
    front: dict[str, Any] = _drop_empty(plain_fields(memory, MANAGED))
    return front | {"claim": plain(memory.claim)} if memory.claim else front


def _details(values: dict[str, Any]) -> dict[str, Any]:
    """The fields that mean what front matter says, whatever the place of the file."""
    return {name: read(values, name) for name, read in _readers().items()}


@cache
def _readers() -> dict[str, Reader]:
    """How each field is read: a few in their own way, the others by their type."""
    own: dict[str, Reader] = {
        "importance": lambda values, _: _importance(values),
        "links": lambda values, _: _links(values),
        "confirmed": lambda values, _: _confirmed(values),
    }
    elsewhere = (*_PLACED, *_ELSEWHERE, *_DATES)
    return {
        name: own.get(name, read)
        for name, read in _readers_of(Memory).items()
        if name not in elsewhere
    }


def _readers_of(kind: Any) -> dict[str, Reader]:
    """What reads each field of a dataclass from text."""
    types = get_type_hints(kind)
    return {field.name: _reader(types[field.name], field.default) for field in fields(kind)}


def _reader(kind: Any, default: Any) -> Reader:
    """What reads a value of a type from text. Raises MemoryInvalid."""
    if type(None) in get_args(kind):
        kind = next(one for one in get_args(kind) if one is not type(None))
    if kind in _READERS:
        return _READERS[kind]
    if is_dataclass(kind):
        keys, readers = keys_of(kind), _readers_of(kind)
        return partial(_nested, kind, [(keys[name], read) for name, read in readers.items()])
    if get_origin(kind) is tuple:
        return _texts
    return lambda values, key: _choice(values, key, kind, default)


def _nested(
    kind: Any, readers: Sequence[tuple[str, Reader]], values: dict[str, Any], key: str
) -> Any:
    """A small value from the mapping under a key."""
    found = _mapping(values, key)
    return kind(*[read(found, name) for name, read in readers])


def _claim(values: dict[str, Any]) -> Claim | None:
    """The claim, where all of it is there; what a person half wrote is kept as it is, and means nothing."""
    found = values.get("claim")
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return None
    said = [
        str(found.get(key, "")).strip() for key in ("entity", "attribute", "predicate", "object")
    ]
    if not (said[0] and said[1] and said[3]):
        return None
    return Claim(said[0], said[1], said[2], said[3], _share(found.get("confidence", "")))


def _share(text: str) -> float:
    """A number from 0 to 1; .5 where it is none."""
    try:
        number = float(text)
    except ValueError:
        return 0.5
    return min(1.0, max(0.0, number)) if math.isfinite(number) else 0.5


def _new_body(body: str, memory: Memory) -> str:
    if memory.content.strip() in (body.strip(), _titled(body)[1].strip()):
        return body
    return _body(memory)


def _body(memory: Memory) -> str:
    """The words of a memory; a heading of theirs that is the subject stands below another one, which is taken off."""
    content = memory.content.strip()
    if _titled(content)[0] == memory.subject:
        return f"# {memory.subject}\n\n{content}\n"
    return f"{content}\n"


def _titled(body: str) -> tuple[str | None, str]:
    """The heading that a text begins with, and what stands below it; ``None`` and the text where there is none."""
    match = _HEADING.match(body)
    title = _CLOSING.sub("", match.group(1).rstrip()).rstrip() if match else ""
    return (title, body[match.end() :]) if match and title else (None, body)


def _subject_from(path: str) -> str:
    words = PurePosixPath(path).stem.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def _project(place: Place, values: dict[str, Any]) -> str | None:
    return _stated_project(values) if place.inbox else place.project


def _stated_project(values: dict[str, Any]) -> str | None:
    """The project that front matter names, as the name of a folder: it may be anything that a person wrote."""
    name = _text(values, "project")
    return slugify(name) or None if name else None


def _id(values: dict[str, Any]) -> str | None:
    found = _text(values, "id")
    if found and not _IDENTITY.fullmatch(found):
        raise MemoryInvalid(
            f"{found[:80]!r} cannot be an id", hint="remove the line: the file gets a new one"
        )
    return found


def _retired(values: dict[str, Any], place: Place, modified: datetime) -> Retirement | None:
    if not place.retired:
        return None
    details = _mapping(values, "retired")
    return Retirement(_time(details, "at") or modified, _text(details, "reason"))


def _links(values: dict[str, Any]) -> tuple[Link, ...]:
    found = values.get("links") or []
    if not isinstance(found, list) or not all(
        isinstance(link, dict) and link.get("to") for link in found
    ):
        raise MemoryInvalid(
            "links are a list of {rel: …, to: …}", hint="e.g. links: [{rel: supersedes, to: <id>}]"
        )
    return tuple(_link(link) for link in found)


def _link(link: dict[str, Any]) -> Link:
    valid = _mapping(link, "valid")
    strength = _number(link, "strength")
    if strength is not None and not 0 <= strength <= 1:
        raise MemoryInvalid(f"the strength of a link is 0 to 1, not {strength:g}")
    return Link(
        _text(link, "rel") or "related_to",
        _text(link, "to") or "",
        _text(link, "reason"),
        _text(link, "origin"),
        strength,
        Validity(_date(valid, "from"), _date(valid, "to")),
    )


def _confirmed(values: dict[str, Any]) -> tuple[Confirmation, ...]:
    found = values.get("confirmed") or []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise MemoryInvalid("confirmed is a list of {at: …, session: …, turns: …}")
    times = ((one, _time(one, "at")) for one in found)
    return tuple(
        Confirmation(at, _text(one, "session"), _texts(one, "turns")) for one, at in times if at
    )


def _text(values: dict[str, Any], key: str) -> str | None:
    value = values.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise MemoryInvalid(f"{key} must be text, not a list or mapping")
    return value.strip()


def _texts(values: dict[str, Any], key: str) -> tuple[str, ...]:
    value = values.get(key) or []
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise MemoryInvalid(f"{key} must be a list of words", hint=f"e.g. {key}: [one, two]")
    return tuple(item for item in value if item)


def _mapping(values: dict[str, Any], key: str) -> dict[str, Any]:
    value = values.get(key) or {}
    if not isinstance(value, dict):
        raise MemoryInvalid(f"{key} must be a mapping, not {str(value)[:80]!r}")
    return value


def _choice(values: dict[str, Any], key: str, options: Any, default: Any) -> Any:
    text = _text(values, key)
    if text is None:
        return default
    try:
        return options(text.lower())
    except ValueError:
        raise MemoryInvalid(
            f"unknown {key} {text[:80]!r}",
            hint=f"one of: {', '.join(option.value for option in options)}",
        ) from None


def _importance(values: dict[str, Any]) -> int:
    number = _number(values, "importance")
    if number is None:
        return 7
    if not 1 <= number <= 10:
        raise MemoryInvalid(f"importance is 1 to 10, not {number:g}")
    return round(number)


def _number(values: dict[str, Any], key: str) -> float | None:
    text = _text(values, key)
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise MemoryInvalid(f"{key} must be a number, not {text[:80]!r}")
    return number


def _is_same_time(key: str, before: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether a time stays, however it is written: to the second, with another zone, as a day."""
    with suppress(MemoryInvalid):
        return _time(before, key) == _time(wanted, key)
    return False


def _time(values: dict[str, Any], key: str) -> datetime | None:
    text = _text(values, key)
    if text is None:
        return None
    try:
        moment = to_millisecond(datetime.fromisoformat(text))
        return in_utc(moment) if is_known(moment) else None
    except (ValueError, OverflowError):
        raise MemoryInvalid(
            f"{key} is not a date: {text[:80]!r}", hint="write 2026-11-20 or 2026-11-20T03:12:00Z"
        ) from None


def _date(values: dict[str, Any], key: str) -> date | None:
    with suppress(ValueError):
        return date.fromisoformat(_text(values, key) or "")
    moment = _time(values, key)
    return day_of(moment) if moment else None


def _drop_empty(value: Any) -> Any:
    """A value without what is empty or false, at any depth."""
    if isinstance(value, dict):
        kept = {key: _drop_empty(item) for key, item in value.items()}
        return {
            key: item
            for key, item in kept.items()
            if item is not False and item not in (None, "", [], {})
        }
    return [_drop_empty(item) for item in value] if isinstance(value, list) else value


def _truth(values: dict[str, Any], key: str) -> bool:
    return (_text(values, key) or "").lower() in ("true", "yes")


def as_text(value: Any) -> Any:
    """A value as the front matter reader sees it: scalars are text, nothing is empty text."""
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


# ----------------------------------------------------------------------------
# What a merge did that the vault's owner may want to know.


class MergeOutcome(StrEnum):
    """What a merge did that its owner may want to know."""

    MERGED = "merged"
    """Both sides changed it."""

    KEPT_TWICE = "kept_twice"
    """Both changed the same sentence: there are two memories now, which contradict each other."""

    KEPT_EDITED = "kept_edited"
    """One side deleted it, the other changed it: it stays."""

    STAYS_RETIRED = "stays_retired"
    """One side retired it, the other changed it: it is retired as changed."""

    RENAMED = "renamed"
    """Two memories wanted one path."""

    COPY_KEPT = "copy_kept"
    """One memory lay at two paths: the second has an id of its own now."""

    UNITED = "united"
    """Both sides made the same under different ids."""

    KEPT_BESIDE = "kept_beside"
    """A file that could not be merged: the other version lies beside it."""

    FORGOTTEN = "forgotten"
    """The other side forgot it for good: it goes, and its note has no words."""


@dataclass(frozen=True, slots=True)
class Note:
    """What happened to one memory or file. ``other`` is the path of a second one, ``fields`` what both changed."""

    outcome: MergeOutcome
    path: str
    memory: str | None = None
    subject: str | None = None
    other: str | None = None
    fields: tuple[str, ...] = ()
