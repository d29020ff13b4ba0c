"""Whether one text keeps what others say: what must not get lost when two statements become one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from nacre.dedup.cues import ChangeLanguage, kinds_of_things, language_of, no_names, with_capital
from nacre.dedup.pair import held
from nacre.dedup.statement import negations, read
from nacre.dedup.words import Amount, Word, amounts, tokens
from nacre.text import identifiers

MOST_LEFT_OUT = 0.5
"""A text that leaves out more of another's topical words than this share does not stand for it."""

_BETWEEN_DIGITS = re.compile(r"(?<=\d)[,_](?=\d{3})")


def lost(text: str, kept: Sequence[str]) -> str | None:
    """The first thing of a text that none of those ``kept`` has: a number, an amount, a name, a denial.

    It is told in a few words; ``None`` when all is there. Spellings count, meanings do not: what is said in other
    words may be called lost, and what is called kept is there.
    """
    language = language_of(text)
    mine = tokens(_plain(text), language)
    others = [tokens(_plain(one), language) for one in kept]
    there = {form for words in others for word in words for form in _forms(word)}
    whole = _plain(" ".join(kept)).lower()
    for word in mine:
        if _is_telling(word, language) and not there.intersection(_forms(word)):
            return word.text
    for name in identifiers(text):
        if _plain(name).lower() not in whole:
            return name
    counted = [amount for one, words in zip(kept, others, strict=True) for amount in _amounts(one, words, language)]
    for one in _amounts(text, mine, language):
        if not any(one.says(other) for other in counted):
            return one.text or one.value
    return "a denial" if negations(text) > sum(map(negations, kept)) else None


def leaves_out(text: str, kept: str) -> float:
    """The share of a text's topical words that another one has not: 0 to 1."""
    mine, other = read(text).words, read(kept)
    return sum(not held(word, other) for word in mine) / len(mine) if mine else 0.0


def adds(text: str, both: Sequence[str]) -> int:
    """How many topical words a text has that none of the others have."""
    known = read("\n".join(both))
    return sum(not held(word, known) for word in read(text).words)


def _amounts(text: str, words: list[Word], language: ChangeLanguage) -> list[Amount]:
    return amounts(list(words), _plain(text), language)


def _forms(word: Word) -> Iterable[str]:
    return word.stem, word.text.lower()


def _is_telling(word: Word, language: ChangeLanguage) -> bool:
    """Whether a word is a name or a number, or may be a name, as it begins a sentence."""
    lower = word.text.lower()
    is_thing = lower in kinds_of_things() and lower not in with_capital() | no_names()
    if word.is_name or is_thing or any(map(str.isdigit, lower)):
        return True
    usual = language.words.stop | language.words.light
    return word.begins and word.text[:1].isupper() and lower not in usual and word.stem not in usual


def _plain(text: str) -> str:
    """A text with its long numbers in one piece."""
    return _BETWEEN_DIGITS.sub("", text)
