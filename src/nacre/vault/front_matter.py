"""YAML front matter: read with every scalar as text, written so that any YAML reader agrees with us.

Reading scalars as text keeps YAML's own guesses out (``no`` is not false, ``0755`` is not 493). A rewrite of an
existing file goes through ruamel.yaml, so that unknown keys, comments, quotes and the order of keys survive.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from nacre.errors import MemoryInvalid

Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

_FENCE = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z\u00c0-\uffff][\w .,/()+@'’–—&%;?!*=<>\u3000-\uffff-]*", re.UNICODE)
_PLAIN_IN_LIST = re.compile(r"[\w.:/+@#-]+", re.UNICODE)
_AMBIGUOUS = re.compile(r"(?i:true|false|yes|no|on|off|null|none|~|y|n|[-+.\d_:e]+|0[xo][\da-f]+)")
_STAMP = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z)?|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WIDE = 1_000_000


def split(text: str) -> tuple[str | None, str]:
    """Front matter (without its fences) and body; ``None`` when a file has no front matter."""
    match = _FENCE.match(text)
    return (match.group(1), text[match.end() :]) if match else (None, text)


def load(front: str) -> dict[str, Any]:
    """Read front matter as a mapping of text, lists and mappings. Raises MemoryInvalid with the line at fault."""
    try:
        value = yaml.load(front, Loader=Loader)  # noqa: S506 - a base loader builds nothing but text
    except RecursionError as error:
        raise MemoryInvalid("front matter is nested too deeply", hint="write plain `key: value` lines") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 2}" if mark else ""
        raise MemoryInvalid(
            f"broken YAML{where}: {getattr(error, 'problem', None) or error}",
            hint="mend the lines between the two --- marks",
        ) from error
    if value in (None, ""):
        return {}
    if not isinstance(value, dict):
        raise MemoryInvalid("front matter is not a list of keys and values", hint="write `key: value` lines")
    return value


def dump(values: Mapping[str, Any]) -> str:
    """Write a mapping as front matter: one line a key, lists and mappings in flow style."""
    return "".join(f"{key}: {_value(value)}".rstrip() + "\n" for key, value in values.items())


def merge(front: str, changed: Mapping[str, Any], removed: Sequence[str]) -> str:
    """Change some keys of existing front matter and leave everything else as it was, byte for byte."""
    from ruamel.yaml import YAML  # 18 ms that only rewrites of existing files pay

    engine = YAML()
    engine.preserve_quotes = True
    engine.width = _WIDE
    document = engine.load(front) or engine.load("{}")
    for key in removed:
        document.pop(key, None)
    if changed:
        fresh = YAML()
        fresh.width = _WIDE
        for key, value in fresh.load(dump(changed)).items():
            document[key] = value
    buffer = io.StringIO()
    engine.dump(document, buffer)
    return buffer.getvalue()


def _value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key}: {_item(item)}".rstrip() for key, item in value.items())
        return f"{{{inner}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_item(item) for item in value)}]"
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and not _AMBIGUOUS.fullmatch(text) and not text.endswith(" "):
        return text
    return text if _is_stamp(text) else json.dumps(text, ensure_ascii=False)


def _item(value: Any) -> str:
    """A value inside a flow list or mapping, where commas and brackets mean something."""
    if isinstance(value, str):
        plain = _PLAIN_IN_LIST.fullmatch(value) and not value.startswith(("#", "-", "@", ":"))
        if _is_stamp(value) or (plain and not _AMBIGUOUS.fullmatch(value) and not value.endswith(":")):
            return value
        return json.dumps(value, ensure_ascii=False)
    return _value(value)


def _is_stamp(text: str) -> bool:
    """Dates and UUIDs begin with digits and are safe unquoted all the same."""
    return bool(_STAMP.fullmatch(text))
