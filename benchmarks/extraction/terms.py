"""Search memories for the terms in labels."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u2018\u2019\u201b", "'"),
        **dict.fromkeys("\u201c\u201d", '"'),
    }
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SPACES = re.compile(r"\s+")
_SHORT = re.compile(r"[a-z0-9]{1,4}")


def plain(text: str) -> str:
    """Return text in lower case with simple punctuation and single spaces.

    Split CamelCase is added.
    """
    text = unicodedata.normalize("NFKC", text).translate(_PLAIN)
    apart = _HUMP.sub(" ", text)
    if apart != text:
        text = f"{text} {apart}"
    return _SPACES.sub(" ", text.lower()) + " "


def holds(text: str, groups: Sequence[Sequence[str]]) -> bool:
    """Return True if plain text has at least one term from every group."""
    return all(any(_pattern(term).search(text) for term in group) for group in groups)


@cache
def _pattern(term: str) -> re.Pattern[str]:
    """Return a pattern for a term.

    Terms of up to two letters match whole words, up to four the start of a word.

    If a term ends in a space, the word must end there.
    """
    plain_term = plain(term).rstrip() + (" " if term.endswith(" ") else "")
    before = after = ""
    if _SHORT.fullmatch(plain_term):
        before = r"(?<![a-z0-9])"
        after = r"(?![a-z0-9])" if len(plain_term) <= 2 else ""
    return re.compile(before + re.escape(plain_term) + after)
