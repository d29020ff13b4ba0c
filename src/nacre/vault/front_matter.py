"""YAML front matter: read with every scalar as text, written so that any YAML reader agrees with us.

Reading scalars as text keeps YAML's own guesses out (``no`` is not false, ``0755`` is not 493, no number or date is too
large). What is read is bounded: no aliases, tags, merge keys or repeated keys, and so much text, so many values and
levels at most; a document that wants more costs no more than that. A rewrite of an existing file replaces the values
that changed where they stand, so that unknown keys, comments, quotes and the order of keys survive.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from nacre.errors import MemoryInvalid
from nacre.text.plain_yaml import NotPlainError, Span, read

_LINE_END = re.compile(r"\r\n?|\n")
_FENCE = re.compile(r"\A\ufeff?---[ \t]*(?:\r\n?|\n)(.*?)(?<=[\r\n])---[ \t]*(?:\r\n?|\n|\Z)", re.DOTALL)
_UNCLOSED = re.compile(r"\A\ufeff?---[ \t]*[\r\n]\s*[A-Za-z_]+:")
_PLAIN = re.compile(r"[A-Za-z\u00c0-\ud7ff][\w .,/()+@'’–—&%;?!*=<>\u3000-\ud7ff-]*", re.UNICODE)
_PLAIN_IN_LIST = re.compile(r"(?:[\w./:+@-]*[\w./+@-] )*[\w./:+@-]*[\w./+@-]", re.UNICODE)
_AMBIGUOUS = re.compile(r"(?i:true|false|yes|no|on|off|null|none|~|y|n|[-+.\d_:e]+|0[xo][\da-f]+)")
_STAMP = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z)?|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
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
        raise MemoryInvalid("front matter has no end", hint="close it with a line of three dashes: ---")
    return None, text


def join(text: str, front: str, body: str) -> str:
    """A file's text with other front matter and another body, between the fences that it has."""
    match = _FENCE.match(text)
    if match is None:
        return f"---\n{front}---\n{body}"
    fence = text[match.end(1) : match.end()]
    return text[: match.start(1)] + front + (fence if fence.endswith(("\n", "\r")) else f"{fence}\n") + body


def load(front: str) -> dict[str, Any]:
    """Read front matter as a mapping of text, lists and mappings. Raises MemoryInvalid with the line at fault."""
    return _read(front)[0]


def dump(values: Mapping[str, Any]) -> str:
    """Write a mapping as front matter: one line a key, lists and mappings in flow style."""
    return "".join(f"{_item(key)}: {_value(value)}".rstrip(" ") + "\n" for key, value in values.items())


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
        raise MemoryInvalid(f"broken YAML{where}: {error}", hint="mend the lines between the two --- marks") from error


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
