"""English words without their endings, for whatever compares words itself.

The full-text index has the stems of SQLite's Porter tokenizer, and what is looked up in it takes them from there.
"""

from __future__ import annotations

_PLURALS = (("ies", "y"), ("sses", "ss"), ("s", ""))
_NO_PLURALS = ("ss", "us", "is")
_VERB_ENDINGS = (("ing", ""), ("ied", "y"), ("ed", ""))
_LEAST = 3
"""Letters that stay; a singular may have one less."""


def stem(word: str) -> str:
    """A lower-case word without the ending of a plural, then of a verb, then a silent e.

    "meetings", "meeting" and "meet" are one; what holds anything but letters stays as it is.
    """
    if len(word) <= _LEAST or not word.isalpha():
        return word
    word = singular(word)
    for ending, by in _VERB_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST:
            word = _undoubled(word[: -len(ending)] + by)
            break
    return word[:-1] if word.endswith("e") and len(word) > _LEAST else word


def singular(word: str) -> str:
    """A lower-case word without the ending of a plural: "policy" for "policies", "gb" for "gbs"."""
    if word.endswith(_NO_PLURALS):
        return word
    found = (word[: -len(ending)] + by for ending, by in _PLURALS if word.endswith(ending) and _leaves(word, ending))
    return next(found, word)


def _leaves(word: str, ending: str) -> bool:
    return len(word) - len(ending) >= _LEAST - 1


def _undoubled(word: str) -> str:
    """ "plan" for the "plann" of "planned"; "call" and "miss" stay."""
    is_double = len(word) > _LEAST and word[-1] == word[-2] and word[-1] not in "lsz"
    return word[:-1] if is_double else word
