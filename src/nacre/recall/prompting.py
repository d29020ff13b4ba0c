"""What a person types to an agent, read as a question to the memory: most prompts are orders, not questions."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

from nacre.recall.question import Question
from nacre.stemming import stem
from nacre.text import identifiers, is_unspaced, words

_BETWEEN = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+|,?\s+(?:and\s+)?then\s+")
_ASKS = re.compile(
    r"^\W*(?:so|and|ok|okay|hey|hi|now|please)?,?\s*(?:what|which|who|when|where|why|how|show|list|any|(?:are|is) there"
    r"|do (?:we|i)|did (?:we|i)|have (?:we|i)|tell me|remind me|summari[sz]e|was|welche|gibt es|quels?|quelles?|hay)\b"
    r"|什么|哪|吗|多少|有没有|列出|总结|なに|何|どの",
    re.IGNORECASE,
)
"""How a question for a list begins, in the languages that the kinds are named in and some near them."""

_SHOUTED = re.compile(r"\b[A-Z]{2,}\b")
_KEPT = (3, 2)
_LEAST_WORDS = 3


def as_prompt(question: Question) -> Question:
    """The question as a prompt asks it.

    The words of everyday work ("add a field to the table") count less than what is particular to it, and a name that
    the memory does not know is no sign that it has nothing to say: orders name what is to be made. A list of what there
    is of a time or kind ("open todos") is wanted only where that is asked for.
    """
    if question.is_open and not _ASKS.search(question.text):
        question = replace(question, lists=(), window=None)
    plain = frozenset(word for word in question.telling if stem(word) in _workaday())
    return replace(question, is_prompt=True, workaday=plain, proper=question.proper - _to_be_made(question.text))


def parts_of(prompt: str) -> list[str]:
    """The sentences of a prompt of several: each may touch something else, and drowns in the whole.

    Of a long prompt the first three and the last two: what it is about stands at its beginning, what is to be done at
    the end.
    """
    found = [part.strip() for part in _BETWEEN.split(prompt) if len(part.split()) >= _LEAST_WORDS or is_unspaced(part)]
    told = [part for part in found if part]
    return [] if len(told) < 2 else told if len(told) <= sum(_KEPT) else told[: _KEPT[0]] + told[-_KEPT[1] :]


def _to_be_made(text: str) -> set[str]:
    """Names of code, and words in capitals alone: no people and places."""
    shouted = (word for word in _SHOUTED.findall(text))
    return {word for name in (*identifiers(text), *shouted) for word in words(name)}


@cache
def _workaday() -> frozenset[str]:
    tables = tomllib.loads(Path(__file__).with_name("workaday.toml").read_text(encoding="utf-8"))
    return frozenset(stem(word) for words in tables.values() for word in words.split())
