"""The signs by which a statement is judged: its words, pairs of them, how it begins, cues, and what follows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise

from nacre.extraction.explicit.cues import Cues, cues
from nacre.extraction.reading.cues import language_of
from nacre.text.passages import identifiers

_TOKEN = re.compile(r"[぀-鿿가-힯]|[^\W\d_぀-鿿가-힯]+(?:'[^\W\d_]+)?|\d+|[^\w\s]")
_WORDS_A_STEP, _MOST_STEPS = 5, 6
_MOST_NAMES = 3
_NAME = "§"
_LINK = re.compile(r"https?://\S+")
_ASKS = re.compile(r"[?？]\W*$")
_OF_WHAT_FOLLOWS = ("pointing", "remember", "taken_back")


def without_links(text: str) -> str:
    """A sentence without addresses: they say nothing of what it is."""
    return _LINK.sub("", text)


def asks(text: str) -> bool:
    """Whether a sentence is a question."""
    return bool(_ASKS.search(text))


def leans(text: str) -> bool:
    """Whether a sentence is about something said before, or names what changes with each day."""
    language = language_of(text)
    return bool(language.lean.start.match(text) or language.reject["identifier"].search(text))


def words(text: str) -> list[str]:
    """The words and marks of a text in small letters; each character of Chinese, Japanese and Korean by itself, and one
    mark for whatever is a name of code."""
    for name in identifiers(text):
        text = text.replace(name, _NAME)
    return _TOKEN.findall(text.lower().replace("’", "'"))


def signs(statements: Sequence[str], place: int) -> frozenset[str]:
    """The signs of the statement at ``place`` of a message."""
    text = without_links(statements[place])
    tokens = words(text)
    framed = ["^", *tokens, "$"]
    following = without_links(statements[place + 1]) if place + 1 < len(statements) else ""
    return frozenset(
        [
            *framed,
            *map(" ".join, pairwise(framed)),
            "^ " + " ".join(tokens[:2]),
            *(f"cue:{one.name}" for one in fields(Cues) if getattr(cues(), one.name).search(text)),
            *(f"next:{name}" for name in _OF_WHAT_FOLLOWS if getattr(cues(), name).search(following)),
            *(["leans"] if leans(language_of(text).trim(text)) else []),
            *(["asks"] if asks(text) else []),
            f"names:{min(_MOST_NAMES, len(identifiers(text)))}",
            f"words:{min(_MOST_STEPS, len(tokens) // _WORDS_A_STEP)}",
        ]
    )
