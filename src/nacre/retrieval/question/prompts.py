"""What a person types to an agent, read as a question to the memory: most prompts are orders, not questions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from nacre.retrieval.question.question import COMMON_TERM_SHARE, Question
from nacre.retrieval.question.question_words import without_particles
from nacre.retrieval.question.synonyms import Reading, reading, synonyms_of
from nacre.text.passages import identifiers, is_unspaced, words
from nacre.text.stems import stem
from nacre.values.memory import Kind

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
    the memory does not know is no sign that it has nothing to say: orders name what is to be made. Where a person asks
    what they themselves have done or wanted, the plain words are what it is about ("which database are we on?"). A list
    of what there is of a time or kind ("open todos") is wanted only where that is asked for.
    """
    text = question.text
    if question.is_open and not _ASKS.search(text):
        question = replace(question, lists=(), window=None)
    other = reading(text)
    if other:
        question = _in_english(question, other)
    synonyms = synonyms_of(text, foreign=bool(other))
    english = other.english_of if other else {}
    plain = frozenset(word for word in question.telling if stem(english.get(word, word)) in _common_terms())
    idle = synonyms.within | {word for name in identifiers(text) for word in words(name) if word.isdecimal()}
    rest = _beside_what_is_left(text)
    leans = () if rest is None else (Kind.TODO,)
    if leans and not question.is_open and not {*question.telling}.intersection(rest or ()) - plain:
        question = replace(question, lists=leans)
    common_terms = plain - {
        word for word, names in synonyms.terms.items() if _common_terms().isdisjoint(map(stem, names))
    }
    return replace(
        question,
        is_prompt=True,
        telling=tuple(word for word in question.telling if word not in idle),
        synonyms={
            word: synonyms.forms[word] if word in common_terms else _sober(synonyms.forms[word])
            for word in question.telling
            if word in synonyms.forms
        },
        common_terms=common_terms,
        is_about_us=_asks_about_us(text),
        is_foreign=other is not None,
        leans=leans,
        proper=question.proper - _to_be_made(text),
    )


def _sober(forms: Mapping[str, float]) -> dict[str, float]:
    """What stands for a word that tells something: a word of everyday work does so less."""
    return {form: share * (COMMON_TERM_SHARE if stem(form) in _common_terms() else 1) for form, share in forms.items()}


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


def is_common_name(name: str) -> bool:
    """Whether a name is made of nothing but words of everyday work."""
    return all(stem(word) in _common_terms() for word in words(name))


def _asks_about_us(text: str) -> bool:
    """Whether it asks what only those who ask can know: what they did, have, decided or wanted."""
    said = set(words(text))
    return any(
        not (said.isdisjoint(asks) or said.isdisjoint(us))
        if text.isascii() or next(iter(us)).isascii()
        else any(word in text for word in asks) and any(word in text for word in us)
        for asks, us in _ways()[0]
    )


def _beside_what_is_left(text: str) -> list[str] | None:
    """The words beside those with which a prompt asks what is still to be done; ``None`` where it does not ask that."""
    said = f" {' '.join(words(text))} " if not is_unspaced(text) else text
    rest = said
    for phrase in _ways()[1]:
        rest = rest.replace(f" {phrase} " if phrase.isascii() else phrase, " ")
    return None if rest == said else words(without_particles(rest))


@cache
def _ways() -> tuple[tuple[tuple[frozenset[str], frozenset[str]], ...], tuple[str, ...]]:
    """How prompts ask: words that ask with words for those who ask, by language; phrases for what is left to do."""
    tables = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8"))
    about_us = (line.split("|") for line in tables["about_us"].strip().splitlines())
    left = (phrase.strip() for phrase in tables["left"].replace("\n", ",").split(","))
    return (
        tuple((frozenset(asks.split()), frozenset(us.split())) for asks, us in about_us),
        tuple(phrase for phrase in left if phrase),
    )


@cache
def _common_terms() -> frozenset[str]:
    tables = tomllib.loads(Path(__file__).with_name("common_terms.toml").read_text(encoding="utf-8"))
    return frozenset(stem(word) for words in tables.values() for word in words.split())
