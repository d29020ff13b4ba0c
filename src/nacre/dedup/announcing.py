"""Whether a sentence announces that something is another way than it was: learned from sentences that do and do not.

``announcements.toml`` has the sentences, ``announcements.bin`` what ``scripts/learn_changes.py`` made of them: one
coefficient for each place that words and pairs of words share by hash, and a constant.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise

PLACES = 2048

_WORD = re.compile(r"\w+|[^\w\s]")
_UNSPACED = re.compile(r"[\u3400-\u9fff]")


@lru_cache(maxsize=4096)
def announces(text: str) -> float:
    """The log odds that a text announces a change; 0 is undecided."""
    coefficients = _learned()
    return sum(share * coefficients[place] for place, share in places(text).items()) + coefficients[PLACES]


def places(text: str) -> dict[int, float]:
    """The places of a text's words and pairs of words (in Chinese, characters), with shares that make a unit vector."""
    lower = re.sub(r"(?<=[a-z])['’](?=[a-z])", "", text.lower())
    found = [one for one in lower if not one.isspace()] if _UNSPACED.search(text) else _WORD.findall(lower)
    words = ["^", *found, "$"]
    counted: dict[int, float] = {}
    for gram in {*words, *(" ".join(pair) for pair in pairwise(words))}:
        place = zlib.crc32(gram.encode()) % PLACES
        counted[place] = counted.get(place, 0.0) + 1.0
    size = math.sqrt(sum(count * count for count in counted.values()))
    return {place: count / size for place, count in counted.items()}


@cache
def _learned() -> tuple[float, ...]:
    return struct.unpack(f"<{PLACES + 1}e", (files(__package__) / "announcements.bin").read_bytes())
