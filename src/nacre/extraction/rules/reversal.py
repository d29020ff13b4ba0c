"""Settles: statements of one session that say the same, and the words by which statements are compared."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nacre.extraction.reading.cues import Language, language_of
from nacre.extraction.rules.findings import Finding
from nacre.text.passages import normalise, words
from nacre.text.stems import stem

_WORD = re.compile(r"[a-z0-9_./]{2,}|[\u4e00-\u9fff]{2}", re.IGNORECASE)


def once(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings in order, without those that say again what was said last of the same: what "never" came between
    is said anew.
    """
    found: dict[int, Finding] = {}
    last: dict[frozenset[str], int] = {}
    for at, one in enumerate(sorted(findings, key=lambda one: one.index)):
        about = content_words(one.content, language_of(one.content))
        before = found.get(last.get(about, -1))
        if before and normalise(before.content) == normalise(one.content):
            found[last[about]] = max(before, one, key=lambda said: (said.score, said.importance))
        else:
            found[at], last[about] = one, at
    return list(found.values())


def content_words(text: str, language: Language, silent: frozenset[str] = frozenset()) -> frozenset[str]:
    """The stems of a text's content words, without those of ``silent``; pairs of characters in Chinese."""
    stop = language.subject.stop
    if not language.joiner:
        return frozenset(word for word in words(text) if len(word) > 1) - stop - silent
    found = (word.lower().strip("./") for word in _WORD.findall(text))
    return frozenset(stem(word) for word in found if word not in stop) - {stem(word) for word in silent}
