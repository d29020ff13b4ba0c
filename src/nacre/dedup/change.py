"""How likely it is that a later statement replaces an earlier one: a few signs, each with a weight.

The weights were fitted by ``scripts/learn_changes.py`` (logistic regression), once with the cosine of the vectors and
once without; ``weights.toml`` has them.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from nacre.dedup.announcements import announces
from nacre.dedup.pair import Pair, held

_MOST = 3


def signs(pair: Pair, *, by_words: bool, other_value: bool) -> dict[str, float]:
    """The signs of a change by name.

    ``by_words``: its words say what it replaces; ``other_value``: both answer one question, and differently.
    """
    old, new = pair.old, pair.new
    cosine = pair.cosine if pair.cosine is not None else 0.0
    announced = announces(new.whole)
    return {
        "constant": 1.0,
        "cosine": cosine,
        "about": float(min(_MOST, len(pair.telling))),
        "likeness": pair.likeness,
        "share": pair.share,
        "topic": _share_held(new.topic, pair),
        "two topics": float(pair.is_two_sided),
        "title": float(pair.same_subject),
        "amount": float(pair.other_amount() is not None),
        "name": float(pair.other_name is not None),
        "thing": float(pair.other_kind_of_thing is not None),
        "words of change": float(bool(new.turns)),
        "older change": float(bool(old.turns)),
        "says so": float(by_words),
        "other value": float(other_value),
        "announced": announced,
        "announced and alike": announced * (cosine or pair.likeness),
    }


def _share_held(topic: frozenset[str], pair: Pair) -> float:
    return sum(held(word, pair.old) for word in topic) / max(1, len(topic))


def log_odds(pair: Pair, found: dict[str, float]) -> float:
    """The log odds of a change, given its signs."""
    weights = _weights()["words" if pair.cosine is None else "vectors"]
    return sum(weight * found[name] for name, weight in weights.items())


@cache
def _weights() -> dict[str, dict[str, float]]:
    return tomllib.loads((files(__package__) / "weights.toml").read_text(encoding="utf-8"))
