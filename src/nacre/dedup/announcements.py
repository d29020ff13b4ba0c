"""Whether a sentence announces that something is another way than it was: learned from sentences that do and do not.

``announcements.toml`` has the sentences, ``announcements.bin`` what ``scripts/learn_changes.py`` made of them: one
coefficient for each place that words and pairs of words share by hash, and a constant.
"""

from __future__ import annotations

import re
import struct
from functools import cache, lru_cache
from importlib.resources import files

from nacre.text.shingles import PLACES, gram_shares

_UNSPACED = re.compile(r"[\u3400-\u9fff]")


@lru_cache(maxsize=4096)
def announces(text: str) -> float:
    """The log odds that a text announces a change; 0 is undecided."""
    coefficients = _learned()
    return sum(share * coefficients[place] for place, share in places(text).items()) + coefficients[PLACES]


def places(text: str) -> dict[int, float]:
    """The features of a text; any Chinese makes it one of characters."""
    return gram_shares(text, by_character=bool(_UNSPACED.search(text)))


@cache
def _learned() -> tuple[float, ...]:
    return struct.unpack(f"<{PLACES + 1}e", (files(__package__) / "announcements.bin").read_bytes())
