"""By which words a text denies, forbids, or says that there is no other case, and what each of them is said of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from nacre.dedup.cues import language_of
from nacre.dedup.had import says
from nacre.dedup.statement import NEGATION, Statement, read_whole

_BORDER = re.compile(r"[,;:.!?](?!\S)|[，；：。！？]|\s[–—-]\s")


def firm_words(text: str) -> frozenset[str]:
    """The words by which a text denies, forbids, or says that there is no other case."""
    return frozenset(word for word, _ in _firmly(text))


def binds(text: str, firm: Set[str], about: Statement) -> bool:
    """Whether a sentence has one of some firm words, and right behind it a word of a statement: "no worries, commit it"
    denies no commit.
    """
    for word, what in _firmly(text):
        first = next(iter(read_whole(what).uttered), None)
        if word in firm and first and says(first.stem, about):
            return True
    return False


def _firmly(text: str) -> Iterator[tuple[str, str]]:
    """Each firm word, with what follows it in its clause."""
    for words in (NEGATION, language_of(text).mood.firm):
        for one in words.finditer(text.lower()):
            yield one.group(), _BORDER.split(text[one.end() :], maxsplit=1)[0]
