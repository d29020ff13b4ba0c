"""The words and pairs of words of a text as features of a fixed number: they share their places by hash.

What is learned from them tells how something is said, beside a vector, which tells what it is about.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from itertools import pairwise

PLACES = 2048

_WORD = re.compile(r"\w+|[^\w\s]")
_APOSTROPHE = re.compile("(?<=[a-z])['’](?=[a-z])")


def gram_shares(text: str, *, by_character: bool) -> dict[int, float]:
    """The places, below ``PLACES``, of what a text holds, with shares that make a unit vector.

    ``by_character`` takes characters for words, where a script has no spaces.
    """
    lower = _APOSTROPHE.sub("", text.lower())
    found = [one for one in lower if not one.isspace()] if by_character else _WORD.findall(lower)
    words = ["^", *found, "$"]
    grams = dict.fromkeys([*words, *(" ".join(pair) for pair in pairwise(words))])
    counted = Counter(zlib.crc32(gram.encode("utf-8", "replace")) % PLACES for gram in grams)
    size = math.sqrt(sum(count * count for count in counted.values()))
    return {place: count / size for place, count in counted.items()}
