"""The words of people who say plainly what is to be kept, in many languages at once. Data in ``cues.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_CLAUSE = (
    r"(?:^|[,;:.!?—–)-]\s*"
    r"|\b(?:and|but|so|ok(?:ay)?|please|pls|kindly|btw|do|also|just|und|aber|bitte|et|mais|y|e|mas|i|и|ve|en|och)\s+)"
)
"""Where an order may begin."""

_BEGINNING = "^"
_BEFORE = {"remember": _CLAUSE, "decided": _CLAUSE, "changed": _CLAUSE, "ordered": _BEGINNING, "definite": _BEGINNING}


@dataclass(frozen=True, slots=True)
class Cues:
    """Expressions, each of which stands for a list of the table."""

    remember: re.Pattern[str]
    requested: re.Pattern[str]
    not_remembered: re.Pattern[str]
    rule: re.Pattern[str]
    ordered: re.Pattern[str]
    lasting: re.Pattern[str]
    place: re.Pattern[str]
    standing: re.Pattern[str]
    preferred: re.Pattern[str]
    decided: re.Pattern[str]
    changed: re.Pattern[str]
    practice: re.Pattern[str]
    definite: re.Pattern[str]
    passing: re.Pattern[str]
    step: re.Pattern[str]
    supposed: re.Pattern[str]
    taken_back: re.Pattern[str]
    irony: re.Pattern[str]
    asking: re.Pattern[str]
    pointing: re.Pattern[str]


def reads_as_rule(text: str) -> bool:
    """Whether a text says anywhere, in the words of a standing rule, that it is to hold, of whatever kind it is told to
    be.
    """
    known = cues()
    return any(one.search(text) for one in (known.rule, known.lasting, known.place))


@cache
def cues() -> Cues:
    """The table."""
    table = tomllib.loads((files(__package__) / "cues.toml").read_text(encoding="utf-8"))
    table["lasting"] = table["ordered"]
    return Cues(**{name: _pattern(lists, before=_BEFORE.get(name, "")) for name, lists in table.items()})


def _pattern(lists: Mapping[str, str], before: str = "") -> re.Pattern[str]:
    spaced, unspaced = ("|".join(lists.get(name, "").split("\n")[:-1]) for name in ("spaced", "unspaced"))
    parts = [rf"{before}(?<![\w-])(?:{spaced})(?![\w])"] if spaced else []
    parts += [rf"{before if before == _BEGINNING else ''}(?:{unspaced})"] if unspaced else []
    return re.compile("|".join(parts), re.IGNORECASE)
