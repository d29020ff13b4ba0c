"""Whether one text keeps what others say: numbers, names, denials and words, as they are spelt."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from nacre.dedup.statement import Statement, cues, read, whole_numbers
from nacre.text.passages import identifiers

MOST_LEFT_OUT = 0.5
"""A text that leaves out more of another's topical words than this share does not stand for it."""

_VALUE = re.compile(r"[a-z]*[A-Z0-9](?:[\w.,:%/-]*\w)?")
_KIN = 5
"""Letters that two forms of a word begin with, at least, and more than which their endings do not differ."""


def lost(text: str, kept: Sequence[str]) -> str | None:
    """The first thing of a text that none of those ``kept`` has: a name, an identifier, a number, a denial.

    Spellings count, meanings do not: what is said in other words may be called lost.
    """
    mine, there = read(whole_numbers(text)), [read(whole_numbers(one)) for one in kept]
    whole = " ".join(one.text for one in there).lower()
    stems = {token.stem for one in there for token in one.tokens}
    for name in identifiers(mine.text):
        if not any(name.lower().replace("-", by) in whole for by in ("-", " ", "")):
            return name
    given = {(slot.sort, slot.value) for one in there for slot in one.slots}
    told = {token.stem for slot in mine.slots if (slot.sort, slot.value) in given for token in read(slot.text).tokens}
    for token in mine.tokens:
        if token.stem in stems | told or any(sign in token.text for sign in "-/_."):
            continue
        is_first = token.text[:1].isupper() and token.stem in mine.words and not has_word(stems, token.stem)
        if token.is_name or is_first:
            return token.text
    for slot in mine.slots:
        if (slot.sort, slot.value) not in given:
            return slot.text
    return "a denial" if mine.negations > sum(one.negations for one in there) else None


def leaves_out(text: str, kept: str) -> float:
    """The share of a text's topical words that another one has not: 0 to 1."""
    mine, there = read(text).words, {token.stem for token in read(kept).tokens}
    return sum(not has_word(there, word) for word in mine) / len(mine) if mine else 0.0


def lost_denial(text: str, left: str) -> str | None:
    """That a text denies something and what is left of it nothing; ``None`` where that is not so."""
    return "a denial is lost" if read(text).negations and not read(left).negations else None


def adds(text: str, both: Sequence[str]) -> str | None:
    """The first thing that a text says and none of the others does; ``None`` where it only says what they say."""
    if new := new_word(text, both) or swaps(text, both) or lost(text, both):
        return new
    said, others = read(text), [read(one) for one in both]
    for sort, told in (("firm", "that it has no other case"), ("unsure", "a guess"), ("now", "a change")):
        if said.cues(sort).difference(*(one.cues(sort) for one in others)):
            return told
    return "that something has gone" if said.departures and not any(one.departures for one in others) else None


def new_word(text: str, both: Sequence[str]) -> str | None:
    """The first topical word of a text that none of the others has."""
    said, there = read(text), {token.stem for one in both for token in read(one).tokens}
    return next((one.text for one in said.tokens if one.stem in said.words and not has_word(there, one.stem)), None)


def has_word(there: Set[str], word: str) -> bool:
    """Whether a word is among some, be it with another ending: "expire" and "expiry"."""
    return word in there or (len(word) >= _KIN and word.isalpha() and any(_is_kin(word, one) for one in there))


def _is_kin(word: str, other: str) -> bool:
    shorter, longer = sorted((word, other), key=len)
    is_long = len(shorter) >= _KIN and len(longer) - len(shorter) < _KIN
    return is_long and longer.startswith(shorter[: max(_KIN, len(shorter) - 1)])


def swaps(text: str, others: Sequence[str]) -> str | None:
    """Two things that a text has in each other's place: it says "the hub asks the door" where another says "the door
    asks the hub". ``None`` where it does so nowhere, or says both, as another one does.
    """
    told = {deed for one in others for deed in _deeds(read(one))}
    for first, verb, last in _deeds(read(text)):
        if (last, verb, first) in told and (first, verb, last) not in told:
            return f"{first} and {last} in each other's place"
    return None


def _deeds(one: Statement) -> list[tuple[str, str, str]]:
    """What does what to what: three words that follow each other in a phrase."""
    found: list[tuple[str, str, str]] = []
    run: list[str] = []
    for token in one.tokens:
        run = [] if token.text.lower() in cues().border else [*run, token.stem] if token.stem in one.words else run
        if token.stem in run[-1:] and len(run) > 2 and run[-1] != run[-3]:
            found.append((run[-3], run[-2], run[-1]))
    return found


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
