"""What a person types to an agent, read as a question to the memory: most prompts are orders, not questions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from nacre.model.memory import Kind
from nacre.recall.kindred import Reading, kin_of, reading
from nacre.recall.question import Question
from nacre.stemming import stem
from nacre.text import identifiers, is_unspaced, words

_BETWEEN = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+|,?\s+(?:and\s+)?then\s+")
_SHOUTED = re.compile(r"\b[A-Z]{2,}\b")
_KEPT = (3, 2)
_LEAST_WORDS = 3


def as_prompt(question: Question) -> Question:
    """The question as a prompt asks it.

    The words of everyday work ("add a field to the table") count less than what is particular to it, and a name that
    the memory does not know is no sign that it has nothing to say: orders name what is to be made. Where a person asks
    what they themselves have done or wanted, the plain words are what it is about ("which database are we on?"). A list
    of what there is of a time or kind ("open todos") is wanted only where that is asked for.
    """
    text = question.text
    if question.is_open and not _asks("for_a_list", text):
        question = replace(question, lists=(), window=None)
    other = reading(text)
    if other:
        question = _in_english(question, other)
    kin = kin_of(text, foreign=bool(other))
    english = other.english_of if other else {}
    plain = frozenset(word for word in question.telling if stem(english.get(word, word)) in _workaday())
    if _asks("about_us", text):
        plain = frozenset()
    counted = {word for name in identifiers(text) for word in words(name) if word.isdecimal()}
    leans = (Kind.TODO,) if _asks("left", text) else ()
    if leans and not question.is_open and set(question.telling) <= plain:
        question = replace(question, lists=leans)
    return replace(
        question,
        is_prompt=True,
        telling=tuple(word for word in question.telling if word not in counted),
        kin={word: kin.forms[word] for word in question.telling if word in kin.forms},
        workaday=plain - kin.terms,
        leans=leans,
        proper=question.proper - _to_be_made(text),
    )


def _in_english(question: Question, read: Reading) -> Question:
    """A prompt in another language, read word by word; that a noun is written large is no sign of a name there."""
    return replace(
        question,
        words=tuple(word for word in question.words if word not in read.fillers),
        telling=tuple(word for word in question.telling if word not in read.fillers),
        proper=frozenset(),
        semantic=read.english or question.semantic,
    )


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


def _asks(what: str, text: str) -> bool:
    return _ways()[what].search(text) is not None


@cache
def _ways() -> Mapping[str, re.Pattern[str]]:
    """How prompts ask for a list, for what only those who ask can know, and for what is left to do."""
    tables = tomllib.loads(Path(__file__).with_name("prompting.toml").read_text(encoding="utf-8"))
    return {
        what: re.compile("|".join(way for found in languages.values() for way in found), re.IGNORECASE)
        for what, languages in tables.items()
    }


@cache
def _workaday() -> frozenset[str]:
    tables = tomllib.loads(Path(__file__).with_name("workaday.toml").read_text(encoding="utf-8"))
    return frozenset(stem(word) for words in tables.values() for word in words.split())
