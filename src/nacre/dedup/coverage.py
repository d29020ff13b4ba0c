"""Whether one text keeps what others say: what must not get lost when two statements become one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from nacre.dedup.cues import ChangeLanguage, kinds_of_things, language_of, no_names, with_capital
from nacre.dedup.had import held
from nacre.dedup.statement import Statement, negations, read_whole
from nacre.dedup.words import Amount, Word, amounts, tokens
from nacre.text.passages import identifiers

MOST_LEFT_OUT = 0.5
"""A text that leaves out more of another's topical words than this share does not stand for it."""

_VALUE = re.compile(r"[a-z]*[A-Z0-9](?:[\w.,:%/-]*\w)?")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[,_](?=\d{3})")


def lost(text: str, kept: Sequence[str]) -> str | None:
    """The first thing of a text that none of those ``kept`` has: a number, an amount, a name, a denial.

    It is told in a few words; ``None`` when all is there. Spellings count, meanings do not: what is said in other
    words may be called lost, and what is called kept is there.
    """
    language = language_of(text)
    mine = tokens(whole_numbers(text), language)
    there = _There(kept)
    counted = _amounts(text, mine, language)
    if (missing := _lost_word(text, _uncounted(mine, counted), there, language)) is not None:
        return missing
    for one in counted:
        if not any(one.says(other) for other in there.amounts):
            return one.text or one.value
    return "a denial" if negations(text) > sum(map(negations, kept)) else None


def leaves_out(text: str, kept: str) -> float:
    """The share of a text's topical words that another one has not: 0 to 1."""
    mine, other = read_whole(text).words, read_whole(kept)
    return sum(not held(word, other) for word in mine) / len(mine) if mine else 0.0


def lost_denial(text: str, left: str) -> str | None:
    """That a text denies something and what is left of it nothing; ``None`` where that is not so."""
    return "a denial is lost" if read_whole(text).is_negative and not read_whole(left).is_negative else None


def adds(text: str, both: Sequence[str]) -> str | None:
    """The first thing that a text says and none of the others does; ``None`` where it only says what they say.

    That is a topical word, a number, a name or a denial (:func:`lost`), and what makes another statement of the same
    words: that it is a guess, a question, told of the past or of some cases only; that it will be, or is already; that
    something changed or has gone.
    """
    said = read_whole(text)
    new = new_word(text, both) or swaps(text, both)
    return new or _told_otherwise(said, [read_whole(one) for one in both]) or lost(text, both)


def new_word(text: str, both: Sequence[str]) -> str | None:
    """The first topical word of a text that none of the others has."""
    said, known = read_whole(text), read_whole("\n".join(both))
    for word in said.order:
        if word in said.words and not held(word, known):
            return said.spell([word])
    return None


def swaps(text: str, others: Sequence[str]) -> str | None:
    """Two things that a text has in each other's place: it says "the hub asks the door" where another says "the door
    asks the hub". ``None`` where it does so nowhere, or says both, as another one does.
    """
    told = {deed for one in others for deed in _deeds(read_whole(one))}
    for first, verb, last in _deeds(said := read_whole(text)):
        if (last, verb, first) in told and (first, verb, last) not in told:
            return f"{said.spell([first])} and {said.spell([last])} in each other's place"
    return None


def exchanges(text: str, other: str) -> str | None:
    """A number or name that stands in a text where another one of both stood in the other text: "7 days in staging, 30
    in production" where it was the other way round. ``None`` where what both have of them stands in one order.
    """
    mine, theirs = _values(text), _values(other)
    for now, before in zip((one for one in mine if one in theirs), (one for one in theirs if one in mine), strict=True):
        if now != before:
            return f"{mine[now]} where {theirs[before]} stood"
    return None


def _values(text: str) -> dict[str, str]:
    """Numbers and words with a capital, in the order in which they come first, as they are spelt."""
    found: dict[str, str] = {}
    for match in _VALUE.finditer(text):
        found.setdefault(match.group().lower(), match.group())
    return found


def _deeds(one: Statement) -> Iterator[tuple[str, str, str]]:
    """What does what to what, as far as three words tell that follow each other but for articles and the like.

    Where a phrase ends between them ("by", "of", "is") it may be the other way round, so that is none.
    """
    known = one.language.words
    plain = [at for at, word in enumerate(one.every) if word.text.lower() not in known.stop]
    for first, verb, last in zip(plain, plain[1:], plain[2:], strict=False):
        if any(word.text.lower() in known.border for word in one.every[first:last]):
            continue
        if one.every[first].stem != one.every[last].stem:
            yield one.every[first].stem, one.every[verb].stem, one.every[last].stem


def _told_otherwise(said: Statement, others: Sequence[Statement]) -> str | None:
    """What makes another statement of the same words."""
    known = {sort for one in others for sort in one.moods | one.turns}
    for sort, words in _SORTS.items():
        if sort in (said.moods | said.turns) - known:
            return words
    if said.gone and not any(one.gone for one in others):
        return f"that {said.spell(said.gone)} has gone"
    if _is_firm(said) and not any(map(_is_firm, others)):
        return "that it has no other case"
    if _is_ahead(said) != any(map(_is_ahead, others)):
        return "that it will be or may be" if _is_ahead(said) else "that it is so already"
    return None


def _is_ahead(one: Statement) -> bool:
    return bool(one.language.mood.ahead.search(one.whole.lower()))


def _is_firm(one: Statement) -> bool:
    return bool(one.language.mood.firm.search(one.whole.lower()))


_SORTS = {
    "asks": "a question", "supposes": "a guess", "recounts": "a look back", "narrows": "a restriction",
    "now": "a change", "moved": "a change", "retracts": "a correction",
}  # fmt: skip
"""What a statement may be beside a plain one, and in which words it is told."""


class _There:
    """The words and amounts of some texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        languages = [language_of(one) for one in texts]
        self.words = [tokens(whole_numbers(one), language) for one, language in zip(texts, languages, strict=True)]
        self.forms = {form for words in self.words for word in words for form in _forms(word)}
        for one in texts:
            self.forms |= read_whole(whole_numbers(one)).joined
        self.whole = whole_numbers(" ".join(texts)).lower()
        self.amounts = [
            amount
            for one, words, language in zip(texts, self.words, languages, strict=True)
            for amount in _amounts(one, words, language)
        ]
        self.statements = [read_whole(one) for one in texts]

    def has(self, word: Word) -> bool:
        """Whether a word is there; one that only may be a name, as it begins a sentence, also with another ending."""
        if self.forms.intersection(_forms(word)):
            return True
        return word.begins and not word.is_name and any(held(word.stem, one) for one in self.statements)

    def names(self, name: str) -> bool:
        """Whether an identifier is there; a compound of plain words also in two words, or in one."""
        parts = name.split("-")
        if name in self.whole:
            return True
        if not all(part.isalpha() for part in parts):
            return False
        size = len(parts)
        said = [[word.text.lower() for word in words] for words in self.words]
        apart = (words[at : at + size] for words in said for at in range(len(words)))
        return "".join(parts) in self.forms or any(one == parts for one in apart)


def _lost_word(text: str, words: Iterable[Word], there: _There, language: ChangeLanguage) -> str | None:
    for word in words:
        if _is_telling(word, language) and not there.has(word):
            return word.text
    for name in identifiers(text):
        if not there.names(whole_numbers(name).lower()):
            return name
    return None


def _uncounted(words: list[Word], counted: Sequence[Amount]) -> list[Word]:
    """The words that are no part of an amount."""
    begins = [word.start for word in words]
    taken = {at for one in counted for at in range(begins.index(one.start), begins.index(one.start) + one.span)}
    return [word for at, word in enumerate(words) if at not in taken]


def _amounts(text: str, words: list[Word], language: ChangeLanguage) -> list[Amount]:
    return amounts(list(words), whole_numbers(text), language)


def _forms(word: Word) -> Iterable[str]:
    return word.stem, word.text.lower()


def _is_telling(word: Word, language: ChangeLanguage) -> bool:
    """Whether a word is a name or a number, or may be a name, as it begins a sentence."""
    lower = word.text.lower()
    if negations(lower):
        return False  # denials are counted
    is_thing = lower in kinds_of_things() and lower not in with_capital() | no_names()
    if word.is_name or is_thing or any(map(str.isdigit, lower)):
        return True
    usual = language.words.stop | language.words.light
    return word.begins and word.text[:1].isupper() and lower not in usual and word.stem not in usual


def whole_numbers(text: str) -> str:
    """A text with its long numbers in one piece."""
    return _BETWEEN_DIGITS.sub("", text)
