"""The parts of a statement that can be left out whole: sentences, what stands between semicolons or in parentheses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nacre.text.passages import normalise

_PART = re.compile(r"[(（][^()（）]*[)）]\s*|.+?(?:[.!?;]+(?=\s)\s*|[。！？；]\s*|(?=[(（])|\Z)", re.DOTALL)
_SPACE_BEFORE = re.compile(r"\s+(?=[.,;])")
_OPEN = " ,;:，；：—–-"
_MARKS = " .;:,!?()。；：，！？（）"
_FULL_STOPS = ".!。！"


def without(content: str, wrong: Sequence[str]) -> str | None:
    """A statement without its wrong parts, of which it keeps the first, and half of its length at least.

    ``None`` where ``wrong`` is not one or several of its parts, give or take the marks at their ends.
    """
    parts = _PART.findall(content)
    bare = [_bare(part) for part in parts]
    named = {_bare(one) for one in wrong} - {""}
    gone = {at for at, part in enumerate(bare) if part in named}
    if not gone or 0 in gone or not named <= set(bare):
        return None
    left = "".join(part for at, part in enumerate(parts) if at not in gone)
    rest = _SPACE_BEFORE.sub("", left).rstrip(_OPEN)
    if 2 * len(rest) < len(content):
        return None
    return rest if rest[-1] in _FULL_STOPS or content[-1] not in _FULL_STOPS else rest + content[-1]


def _bare(text: str) -> str:
    return normalise(text).strip(_MARKS)
