"""Words of a question that nothing in the home holds, read as the nearest words that something does hold.

Opt-in: what is unknown is often just that, and a word that merely looks alike would make an answer of silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from nacre.home.home import Home
from nacre.text.passages import STOP_WORDS, words
from nacre.values.recall import Lane, LaneState

LEAST_CHARACTERS = 4
"""Shorter words have too many neighbours."""

_TWO_SLIPS_FROM = 7
"""From so many characters on a word may differ in two places, below in one."""

_WORD = re.compile(r"[^\W\d_]+")
_MOST_WORDS = 12
_TEXTS = 20
_ENDINGS = ("", "e", "s", "es", "ed", "ing", "ion", "ions", "ate", "ated", "ation", "er", "ers", "ly", "ment", "y")
"""What the index takes off words: a slip within an ending keeps it from being taken off."""

_LONGEST_ENDING = max(map(len, _ENDINGS))


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
    slips = 2 if len(word) >= _TWO_SLIPS_FROM else 1
    least, most = max(LEAST_CHARACTERS - 1, len(word) - _LONGEST_ENDING - 1), len(word) + slips
    counts: dict[str, int] = {}
    for search in (home.memory_search, home.turn_search):
        for initial in {word[0], word[1]}:  # the first letter is the one that people rarely miss, but may swap
            for known, count in search.vocabulary(initial, least, most):
                counts[known] = counts.get(known, 0) + count
    near = _within(word, counts, slips)
    if not near:
        return None
    best = min(near, key=lambda known: (near[known], -counts[known], known))
    return _as_written(home, best, word)


def _within(word: str, stems: Iterable[str], slips: int) -> Mapping[str, int]:
    """The known stems that so many slips at most lie between, with one of the endings of words, by how many do."""
    pairs = _pairs(word)
    found = {}
    for stem in stems:
        own = _pairs(stem)
        if not stem.isalpha() or len(pairs & own) < len(own) - 2 * slips - 1:
            continue
        forms = [stem + ending for ending in _ENDINGS if abs(len(stem) + len(ending) - len(word)) <= slips]
        apart = min((slip_count(word, form) for form in forms), default=slips + 1)
        if apart <= slips:
            found[stem] = apart
    return found


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
    texts = [*_memories_with(home, stem), *_turns_with(home, stem)]
    written = {word for text in texts for word in words(text) if stem in home.database.stems(word)}
    return min(written, key=lambda word: (slip_count(asked, word), word), default=stem)


def _memories_with(home: Home, stem: str) -> list[str]:
    found = home.memories.by_rows(home.memory_search.rows_of_stem(stem, _TEXTS))
    return [f"{memory.subject} {memory.content} {' '.join(memory.tags)}" for memory in found.values()]


def _turns_with(home: Home, stem: str) -> list[str]:
    found = home.sessions.by_rows(home.turn_search.rows_of_stem(stem, _TEXTS))
    return [stored.turn.text for stored in found.values()]
