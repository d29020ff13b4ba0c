"""The data: words by which a message that holds a paste is read. Data in ``pasted.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def self_words() -> re.Pattern[str]:
    """Who types speaks of themselves."""
    return _either(_data()["self"])


@cache
def shared_words() -> re.Pattern[str]:
    """Who types speaks of a "we", and to a "you"."""
    return _either(_data()["shared"])


@cache
def kept_words() -> re.Pattern[str]:
    """Who types says what is to be kept."""
    return _either(_data()["kept"])


@cache
def polite_words() -> re.Pattern[str]:
    """Who types asks for something."""
    return _either(_data()["polite"])


@cache
def forwarded_words() -> re.Pattern[str]:
    """Who forwards says so first."""
    words = _data()["forwarded"]
    found = rf"\W*(?:{_one_of(words['words'])}\b|{_one_of(words['marks'])}\s?[:：])"
    return re.compile(found, re.IGNORECASE)


@cache
def announcing_words() -> re.Pattern[str]:
    """Who types announces what is to hold: "Two rules for this repository:"."""
    return _either(_data()["announcing"])


@cache
def labelled_words() -> re.Pattern[str]:
    """How a text of somebody else's is named before a colon: "Issue: …", "Bug report from a user: …"."""
    words = _data()["labels"]
    found = rf"\W*(?:\w+\W+){{0,2}}(?:{_one_of(words['words'])}\b[^:：.!?]{{0,40}}|{_one_of(words['anywhere'])})[:：]"
    return re.compile(found, re.IGNORECASE)


@cache
def pointing_words() -> re.Pattern[str]:
    """Words that point at a text of somebody else's: "the reviewer", "comment by", "says"."""
    words = _data()["pointing"]
    pointers, texts, by, saying = (_one_of(words[name]) for name in ("pointers", "texts", "by", "saying"))
    found = rf"\b{pointers}\b.{{0,40}}\b{texts}\b|\b{texts}\s+{by}\b|\b{saying}\b|{_one_of(words['anywhere'])}"
    return re.compile(found, re.IGNORECASE)


def _either(words: dict[str, list[str]]) -> re.Pattern[str]:
    return re.compile(rf"\b{_one_of(words['words'])}\b|{_one_of(words['anywhere'])}", re.IGNORECASE)


def _one_of(words: Sequence[str]) -> str:
    return f"(?:{'|'.join(words)})"


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "pasted.toml").read_text(encoding="utf-8"))
