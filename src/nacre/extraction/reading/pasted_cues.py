"""The data: words by which a message that holds a paste is read. Data in ``pasted.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def words_of(name: str) -> re.Pattern[str]:
    """One of the table's lists of words, in any place of a text."""
    words = _data()[name]
    return re.compile(rf"\b{_one_of(words['words'])}\b|{_one_of(words['anywhere'])}", re.IGNORECASE)


@cache
def forwarded_words() -> re.Pattern[str]:
    """Who forwards says so first."""
    words = _data()["forwarded"]
    found = rf"\W*(?:{_one_of(words['words'])}\b|{_one_of(words['marks'])}\s?[:：])"
    return re.compile(found, re.IGNORECASE)


@cache
def labelled_words() -> re.Pattern[str]:
    """How a text of somebody else's is named before a colon: "Issue: …", "Bug report from a user: …"."""
    words = _data()["labels"]
    found = rf"\W*(?:\w+\W+){{0,2}}(?:{_one_of(words['words'])}\b[^:：.!?]{{0,40}}|{_one_of(words['anywhere'])})[:：]"
    return re.compile(found, re.IGNORECASE)


@cache
def saying_words() -> re.Pattern[str]:
    """Somebody says something."""
    words, people = _data()["pointing"], _one_of(_data()["people"]["anywhere"])
    said, texts = _one_of(words["said"]), _one_of(words["texts"])
    return re.compile(rf"\b{said}\b|\b{texts}\s+say\b|{people}说(?!明)", re.IGNORECASE)


@cache
def quoting_words() -> re.Pattern[str]:
    """Somebody says or writes what follows."""
    words = _data()["pointing"]
    said = _one_of([*words["said"], *words["saying"], "say"])
    return re.compile(rf"\b{said}(?:\W+\w+){{0,2}}$|(?:说|写道|表示)$", re.IGNORECASE)


@cache
def author_words() -> re.Pattern[str]:
    """What stands before who wrote a text: "from", "by"."""
    return re.compile(rf"\b{_one_of([*_data()['pointing']['by'], 'per', 'via'])}\s|来自", re.IGNORECASE)


@cache
def pointing_words() -> re.Pattern[str]:
    """Words that point at a text of somebody else's: "the reviewer", "comment by", "says"."""
    words = _data()["pointing"]
    pointers, texts, by = (_one_of(words[name]) for name in ("pointers", "texts", "by"))
    saying = _one_of([*words["said"], *words["saying"]])
    found = rf"\b{pointers}\b.{{0,40}}\b{texts}\b|\b{texts}\s+{by}\b|\b{saying}\b|{_one_of(words['anywhere'])}"
    return re.compile(found, re.IGNORECASE)


def _one_of(words: Sequence[str]) -> str:
    return f"(?:{'|'.join(words)})"


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "pasted.toml").read_text(encoding="utf-8"))
