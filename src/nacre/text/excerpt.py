"""The part of a long text that a question is about."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from nacre.text.passages import one_line, shorten

EXCERPT_CHARACTERS = 280
_BEGINNING = 60
"""Characters of words by which they are looked for as they are."""


def excerpt(text: str, terms: Iterable[str], characters: int = EXCERPT_CHARACTERS, *, wanted: str = "") -> str:
    """The stretch of a text that holds most of the terms, on one line, with ellipses where it was cut; where the words
    ``wanted`` stand in it as they are, the stretch with these.
    """
    text = one_line(text)
    if len(text) <= characters:
        return text
    lowered = text.lower()
    beginning = one_line(wanted).lower()[:_BEGINNING]
    as_it_is = lowered.find(beginning) if beginning else -1
    if as_it_is >= 0:
        return _from(text, as_it_is, characters)
    places = sorted(place for term in dict.fromkeys(terms) for place in _places(lowered, term))
    if not places:
        return shorten(text, characters)
    reach = characters - 60
    counts = [bisect_left(places, start + reach) - number for number, start in enumerate(places)]
    return _from(text, places[counts.index(max(counts))], characters)


def _from(text: str, place: int, characters: int) -> str:
    start = max(0, place - 40)
    start = text.rfind(" ", 0, start) + 1 if start else 0
    cut = shorten(text[start:], characters - 1)
    return f"…{cut}" if start else cut


def _places(lowered: str, term: str) -> list[int]:
    beginning = term[: max(3, len(term) - 2)] if term.isascii() and len(term) > 4 else term
    found: list[int] = []
    at = lowered.find(beginning)
    while at >= 0 and len(found) < 20:
        found.append(at)
        at = lowered.find(beginning, at + 1)
    return found
