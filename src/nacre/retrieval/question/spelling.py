"""Words of a question that nothing in the home holds, read as the nearest words that something does hold.

Opt-in: what is unknown is often just that, and a word that merely looks alike would make an answer of silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from nacre.home.home import Home
from nacre.storage.filters import Clause
from nacre.storage.search.full_text import Term
from nacre.text.passages import STOP_WORDS, words
from nacre.values.recall import Filter, Lane, LaneState

LEAST_CHARACTERS = 4
"""Shorter words have too many neighbours."""

_TWO_SLIPS_FROM = 7
"""From so many characters on a word may differ in two places, below in one."""

_WORD = re.compile(r"[^\W\d_]+")
_MOST_WORDS = 12
_TEXTS = 3


def spelled(home: Home, text: str) -> tuple[str, Lane]:
    """A question with misspelt words as the home knows them, and which these are."""
    unknown = _unknown(home, text)
    found = {word: near for word in unknown if (near := _nearest(home, word))}
    if not found:
        return text, Lane("spelling", LaneState.RAN, "no unknown word is near a known one" if unknown else None)
    corrected = _WORD.sub(lambda match: found.get(match.group().lower(), match.group()), text)
    note = "; ".join(f"{word} read as {near}" for word, near in found.items())
    return corrected, Lane("spelling", LaneState.RAN, note)


def _unknown(home: Home, text: str) -> list[str]:
    """The words that neither a memory nor a turn holds, nor a person or project is called by."""
    asked = [match.group().lower() for match in _WORD.finditer(text)]
    asked = [word for word in dict.fromkeys(asked) if word.isascii() and len(word) >= LEAST_CHARACTERS]
    authors, projects = home.selection.names_known()
    known = {word for name in (*authors, *projects) for word in words(name)} | STOP_WORDS
    wanted = [word for word in asked if word not in known][:_MOST_WORDS]
    terms = home.memory_search.terms(wanted)
    in_memories = home.memory_search.corpus(terms).frequencies
    in_turns = home.turn_search.corpus(terms).frequencies
    return [term.word for term, *counts in zip(terms, in_memories, in_turns, strict=True) if not any(counts)]


def _nearest(home: Home, word: str) -> str | None:
    """The known word that differs least, the commonest of several; ``None`` where none is near."""
    stem = home.memory_search.terms([word])[0].stem
    slips = 2 if len(word) >= _TWO_SLIPS_FROM else 1
    least, most = max(3, len(stem) - slips), len(stem) + slips
    counts: dict[str, int] = {}
    for search in (home.memory_search, home.turn_search):
        for known, count in search.vocabulary(least, most):
            counts[known] = counts.get(known, 0) + count
    near = _within(stem, counts, slips)
    if not near:
        return None
    best = min(near, key=lambda known: (near[known], known[0] != stem[0], -counts[known], known))
    return _as_written(home, best, word)


def _within(stem: str, known: Iterable[str], slips: int) -> Mapping[str, int]:
    """The known stems that so many slips at most lie between, by how many do."""
    pairs = _pairs(stem)
    alike = (one for one in known if one.isalpha() and len(pairs & _pairs(one)) >= len(pairs) - 2 * slips - 1)
    found = {one: slip_count(stem, one) for one in alike}
    return {one: count for one, count in found.items() if count <= slips}


def _pairs(word: str) -> set[str]:
    framed = f" {word} "
    return {framed[at : at + 2] for at in range(len(framed) - 1)}


def slip_count(one: str, other: str) -> int:
    """Letters added, left out, exchanged or swapped with their neighbour (optimal string alignment)."""
    before: Sequence[int] = ()
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        line = [row]
        for column, against in enumerate(other, start=1):
            cost = min(line[-1] + 1, last[column] + 1, last[column - 1] + (letter != against))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == against:
                cost = min(cost, before[column - 2] + 1)
            line.append(cost)
        before, last = last, line
    return last[-1]


def _as_written(home: Home, stem: str, asked: str) -> str:
    """The word behind a stem, as a text that holds it writes it; the stem where none is found by it."""
    texts = _memories_with(home, stem) or _turns_with(home, stem)
    written = {word for text in texts for word in words(text) if stem in home.database.stems(word)}
    return min(written, key=lambda word: (slip_count(asked, word), word), default=stem)


def _memories_with(home: Home, stem: str) -> list[str]:
    matches = home.memory_search.match([Term(stem, stem)], Clause("1"), _TEXTS)
    found = home.memories.by_rows([match.row for match in matches])
    return [f"{memory.subject} {memory.content} {' '.join(memory.tags)}" for memory in found.values()]


def _turns_with(home: Home, stem: str) -> list[str]:
    found = home.turn_search.match([Term(stem, stem)], Filter(), _TEXTS, idf=[1.0], average_length=1.0)
    rows = [match.row for match in found]
    return [stored.turn.text for stored in home.sessions.by_rows(rows).values()]
