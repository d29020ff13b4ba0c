"""Finishes: the topics a memory names, and the one thing it settles."""

from __future__ import annotations

import re

from nacre.extraction.reading.cues import Language
from nacre.extraction.rules.validate import is_generic

MAX_TAGS = 4

_KEY_WORD = re.compile(r"[a-z0-9]+")
_SCOPE = re.compile(r" (?:for|of) (?:the )?(.+?)(?: (?:instead|rather)\b|$)")


def tags_of(text: str, language: Language) -> tuple[str, ...]:
    """Up to four topics the statement names, in order of first mention."""
    found = ((names.search(text), topic) for topic, names in language.topics.items())
    return tuple(topic for _, topic in sorted((match.start(), topic) for match, topic in found if match))[:MAX_TAGS]


def key_of(text: str, subject: str, language: Language) -> str | None:
    """``billing-service-database``, when the statement names one such thing and what it is for."""
    things = [thing for thing, names in language.things.items() if names.search(text)]
    scope = _SCOPE.search(subject)
    if len(things) != 1 or not scope or is_generic(scope[1], language):
        return None
    words = [*_KEY_WORD.findall(scope[1].lower()), *things[0].split("-")]
    return "-".join(words) if 3 <= len(words) <= 5 else None
