"""Front matter as blocks of lines, one for each key, so that comments and ways of writing survive a merge."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nacre.errors import MemoryInvalid
from nacre.vault.front_matter import dump, load
from nacre.vault.threeway import greatest, merge_list, merge_value

_KEY = re.compile(r"""("[^"\n]*"|'[^'\n]*'|[^\s#"'\[\]{}&*!|>%@`?,-][^:#\n]*?)\s*:(?=\s|$)""")
_COMMENT = re.compile(r"(\s+#.*?)\s*$")
_TAIL = "\0tail"


@dataclass(frozen=True, slots=True)
class Block:
    """The lines of one key, and the comments and empty lines above them."""

    lead: tuple[str, ...] = ()
    lines: str = ""


def split_blocks(front: str) -> dict[str, Block]:
    """Front matter by key; what follows the last key is under a name that is none.

    Lines that belong to no key are left out: whoever puts blocks together looks at what they say.
    """
    found: dict[str, Block] = {}
    key = ""
    lead: list[str] = []
    for line in front.splitlines(keepends=True):
        match = _KEY.match(line)
        if not line.strip() or line.startswith("#"):
            lead.append(line)
        elif match:
            key = match.group(1).strip("\"'")
            found[key] = Block(tuple(lead), line)
            lead = []
        elif key:
            found[key] = Block(found[key].lead, found[key].lines + "".join(lead) + line)
            lead = []
    return {**found, _TAIL: Block(tuple(lead))} if lead else found


def merge_blocks(fronts: Sequence[str], values: Mapping[str, Any]) -> str:
    """Front matter that says ``values``, written as base, ours and theirs (``fronts``) write it."""
    sides = [split_blocks(front) for front in fronts]
    text = "".join(_block(key, value, sides) for key, value in values.items())
    text += "".join(_lead(_TAIL, sides))
    return text if _says(text, values) else dump(values)


def _says(text: str, values: Mapping[str, Any]) -> bool:
    try:
        return load(text) == dict(values)
    except MemoryInvalid:
        return False


def _block(key: str, value: Any, sides: Sequence[Mapping[str, Block]]) -> str:
    fitting = [side[key].lines for side in sides[1:] if key in side and _says(side[key].lines, {key: value})]
    if len(fitting) == 2:
        before = sides[0].get(key, Block()).lines
        lines = merge_value(before, fitting[0], fitting[1], greatest)
    else:
        lines = fitting[0] if fitting else _written(key, value, sides)
    return "".join(_lead(key, sides)) + (lines if lines.endswith("\n") else f"{lines}\n")


def _written(key: str, value: Any, sides: Sequence[Mapping[str, Block]]) -> str:
    """A line of our own, with the comment that stood behind the value."""
    comments = [_comment(side.get(key, Block()).lines) for side in sides]
    return dump({key: value}).rstrip("\n") + merge_value(comments[0], comments[1], comments[2], greatest) + "\n"


def _comment(lines: str) -> str:
    match = _COMMENT.search(lines) if lines.count("\n") <= 1 else None
    return match.group(1) if match else ""


def _lead(key: str, sides: Sequence[Mapping[str, Block]]) -> tuple[str, ...]:
    base, ours, theirs = (side.get(key, Block()).lead for side in sides)
    return merge_value(base, ours, theirs, lambda one, other: tuple(merge_list(base, one, other)))
