"""How surely a statement is explicit, and of which kind: a multinomial logistic regression over its signs.

The weights (``weights.tsv``) are fitted by ``scripts/fit_explicit.py`` to messages that several hands
wrote and labelled.
"""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from nacre.values.memory import Kind

KINDS = (Kind.DECISION, Kind.PREFERENCE, Kind.FACT)
"""The columns of the table, beside the sign."""

HUNDREDTHS = 100
SCALE = 3.0
"""The signs of a statement count this much together, however many they are: divided by the root of their number."""

BIAS = "*"

Weights = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """The likeliest kind, the log-odds that the statement is explicit at all, and the share of its words that are
    known: of a language without examples the odds say nothing.
    """

    kind: Kind
    odds: float
    known: float = 1.0


def judge(signs: Set[str]) -> Judged:
    """How a statement with these signs is judged."""
    table = _table()
    scale = SCALE / math.sqrt(max(1, sum(sign in table for sign in signs)))
    known = [table[sign] for sign in signs if sign in table]
    sums = [bias + scale * sum(one[at] for one in known) for at, bias in enumerate(table[BIAS])]
    kind = KINDS[max(range(len(sums)), key=sums.__getitem__)]
    words = [sign for sign in signs if sign.isalpha()]
    share = sum(sign in table for sign in words) / max(1, len(words))
    return Judged(kind, math.log(sum(map(math.exp, sums))), share)


@cache
def _table() -> dict[str, Weights]:
    lines = (files(__package__) / "weights.tsv").read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return {sign: tuple(int(one) / HUNDREDTHS for one in numbers) for sign, *numbers in rows}
