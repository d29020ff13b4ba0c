"""Reads: whether a statement leans on one before it."""

from __future__ import annotations

from nacre.extraction.reading.cues import Language
from nacre.extraction.rules.reversal import content_words


def leans(text: str, language: Language) -> bool:
    """Whether a pronoun in the text has nothing in the text to stand for."""
    if language.lean.start.match(text) or language.lean.object.search(text):
        return True
    pronoun = language.lean.inside.search(text)
    if pronoun is None:
        return False
    before = text[: pronoun.start()]
    return not (language.lean.named.search(before) or content_words(before, language))
