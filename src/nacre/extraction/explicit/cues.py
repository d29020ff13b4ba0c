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
    r"|\b(?:and|but|so|ok(?:ay)?|please|pls|btw|do|also|just|und|aber|bitte|et|mais|y|e|mas|i|и|ve|en|och)\s+)"
)
"""Where an order may begin."""

_BEGINNING = "^"


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
    decided: re.Pattern[str]
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
    return Cues(
        remember=_pattern(table["remember"], before=_CLAUSE), requested=_pattern(table["requested"]),
        not_remembered=_pattern(table["not_remembered"]), rule=_pattern(table["rule"]),
        ordered=_pattern(table["ordered"], before=_BEGINNING), lasting=_pattern(table["ordered"]),
        place=_pattern(table["place"]), decided=_pattern(table["decided"], before=_CLAUSE),
        supposed=_pattern(table["supposed"]), taken_back=_pattern(table["taken_back"]), irony=_pattern(table["irony"]),
        asking=_pattern(table["asking"]), pointing=_pattern(table["pointing"]),
    )  # fmt: skip


def _pattern(lists: Mapping[str, str], before: str = "") -> re.Pattern[str]:
    spaced, unspaced = ("|".join(lists.get(name, "").split("\n")[:-1]) for name in ("spaced", "unspaced"))
    parts = [rf"{before}(?<![\w-])(?:{spaced})(?![\w])"] if spaced else []
    parts += [rf"{before if before == _BEGINNING else ''}(?:{unspaced})"] if unspaced else []
    return re.compile("|".join(parts), re.IGNORECASE)
