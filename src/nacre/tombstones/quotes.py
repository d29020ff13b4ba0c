"""Tells whether a text quotes one that is to be forgotten: all of it, a sentence, or a run of words from anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nacre.text.passages import is_unspaced, normalise, one_line

QUOTED = 40
"""Characters in a row, without punctuation, that nobody writes by chance; half as many where words have no spaces."""

_LEAST_SENTENCE = 20
"""Of a sentence that is known wherever it stands; half as many, as above."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


class Quotes:
    """The texts that are to be forgotten, to be asked of many others.

    A run of ``QUOTED`` characters holds a whole block of half as many, wherever the text is cut into such: the blocks
    are looked up at each place of another text, and what is around one that was found is compared.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._wholes: set[str] = set()
        self._sentences: set[str] = set()
        self._blocks: dict[int, dict[str, list[tuple[str, int]]]] = {}
        for text in texts:
            plain, short = normalise(text), is_unspaced(text)
            self._wholes.add(one_line(text).lower())
            self._sentences.update(_sentences(text, _LEAST_SENTENCE // 2 if short else _LEAST_SENTENCE))
            self._cut(plain, QUOTED // 4 if short else QUOTED // 2)
        self._wholes.discard("")

    def _cut(self, plain: str, size: int) -> None:
        blocks = self._blocks.setdefault(size, {})
        for at in range(0, len(plain) - size + 1, size):
            blocks.setdefault(plain[at : at + size], []).append((plain, at))

    def are_in(self, text: str) -> bool:
        """Whether a text quotes any of them."""
        said, lowered = normalise(text), one_line(text).lower()
        if any(one in lowered for one in self._wholes) or any(one in said for one in self._sentences):
            return True
        return any(
            _run(said, at, plain, start) >= 2 * size
            for size, blocks in self._blocks.items()
            for at in range(len(said) - size + 1)
            for plain, start in blocks.get(said[at : at + size], ())
        )


def _sentences(text: str, least: int) -> Iterator[str]:
    yield from (plain for one in _SENTENCE.split(text) if len(plain := normalise(one)) >= least)


def _run(said: str, at: int, plain: str, start: int) -> int:
    """How many characters around two places are the same in both texts."""
    before = next((n for n in range(min(at, start)) if said[at - n - 1] != plain[start - n - 1]), min(at, start))
    room = min(len(said) - at, len(plain) - start)
    after = next((n for n in range(room) if said[at + n] != plain[start + n]), room)
    return before + after
