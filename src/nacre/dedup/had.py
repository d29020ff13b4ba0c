"""Whether a statement has a word that another one has."""

from __future__ import annotations

from nacre.dedup.statement import Statement
from nacre.dedup.words import is_chinese

_PREFIXES = ("mono", "multi", "micro", "sub", "dev", "pre")
_LONG = 5
_ENDING = 4


def held(word: str, by: Statement) -> bool:
    """Whether a statement has a word, also in two parts ("back up") or with a prefix ("devcontainer")."""
    known = by.answers.get(word)
    if known is None:
        known = by.answers[word] = _has(word, by)
    return known


def _has(word: str, by: Statement) -> bool:
    if word in by.words or word in by.joined:
        return True
    if is_chinese(word[0]):
        return set(word) <= set("".join(by.order))
    if any(prefix + word in by.words for prefix in _PREFIXES):
        return True
    if word.startswith(_PREFIXES) and any(
        word.startswith(prefix) and word[len(prefix) :] in by.words for prefix in _PREFIXES
    ):
        return True
    return len(word) >= _LONG and word.isalpha() and any(_is_kin(word, one) for one in by.words if one[:1] == word[0])


def _is_kin(word: str, other: str) -> bool:
    """Whether two long words begin alike and differ in an ending: "expire" and "expiry", "deploy" and "deployment"."""
    more = len(other) - len(word)
    if abs(more) > _ENDING or len(other) < _LONG or len(word) < _LONG:
        return False
    return other.startswith(word) if more >= 0 else word.startswith(other)


def says(word: str, by: Statement) -> bool:
    """Whether a statement has a word, be it one that carries no topic."""
    return word in by.order or held(word, by)
