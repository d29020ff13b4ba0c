"""``<private>…</private>``: what its speaker does not want kept, wherever it stands.

Also in code fences, across lines, in any case, nested, and escaped as JSON and HTML write it. A block that never ends
runs to the end of the text: better to lose words than to keep what was marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

PRIVATE = "private"
"""The name under which such blocks are counted; they become ``[private]``."""

_TAG = re.compile(
    rb"(?:<|&lt;|\\{1,4}u003c)(?:%(blank)s){0,6}(?P<end>\\{0,4}/)?(?:%(blank)s){0,6}private"
    rb"(?:(?:%(blank)s){1,6}[\w-]{1,40}=[^<>]{0,200})?(?:%(blank)s){0,6}(?:>|&gt;|\\{1,4}u003e)"
    % {b"blank": rb"[ \t\r\n]|\\{1,4}[nrt]"},
    re.IGNORECASE,
)

_OPENINGS = (b"<", b"&lt;", b"u003c")
_BEFORE = 40  # the longest of them, and blanks


def may_begin(data: bytes, place: int) -> bool:
    """Whether a block may begin where "private" is in a text."""
    before = data[max(0, place - _BEFORE) : place].lower()
    return any(opening in before for opening in _OPENINGS)


def iter_blocks(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the outermost private blocks lie, tags and all. An end without a beginning is no block."""
    depth = start = 0
    for tag in _TAG.finditer(data):
        if not tag["end"]:
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                yield start, tag.end()
    if depth:
        yield start, len(data)
