"""Rankings of turns: the baseline, each lane, full recall, and recall without an ingredient."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.retrieval.plain import PlainFts
from benchmarks.retrieval.suites import BenchQuestion, Haystack
from nacre.base.frozen import frozen
from nacre.base.text import STOP_WORDS, is_unspaced, words
from nacre.home.home import Home
from nacre.home.spending import embedder_of
from nacre.recall.lanes import QueryVector
from nacre.recall.question import Question, read_question, resolve_anchor
from nacre.recall.ranking import DEFAULT, Recipe
from nacre.recall.turns import TurnRecall
from nacre.values.recall import Filter

PLAIN = "plain FTS5"
FULL = "full"
_DEPTH = 400


@frozen
class Ranked:
    """Turn ids, best first, and the duration in seconds."""

    turns: list[str]
    seconds: float


Ranker = Callable[[BenchQuestion], Ranked]
Reading = Callable[[Question], Question]


@frozen
class Variation:
    """A variation of recall: its lanes and ingredients, and how questions and dates are read."""

    name: str
    recipe: Recipe = DEFAULT
    lexical: bool = True
    vector: bool = True
    reading: Reading = lambda question: question
    events: bool = True


def _with_stop_words(question: Question) -> Question:
    return replace(question, words=tuple(dict.fromkeys(words(question.text))))


def _with_names(question: Question) -> Question:
    return replace(question, semantic=question.text)


def _in_one_spelling(question: Question) -> Question:
    written = set(words(question.text))
    return replace(
        question, spellings=(), words=tuple(word for word in question.words if word in written)
    )


def _with_particles(question: Question) -> Question:
    kept = tuple(word for word in dict.fromkeys(words(question.text)) if word not in STOP_WORDS)
    return question if question.text.isascii() else replace(question, words=kept)


LANES = (Variation("lexical", vector=False), Variation("vector", lexical=False), Variation(FULL))

ABLATIONS = (
    Variation("no neighbours' words", replace(DEFAULT, neighbours=0.0)),
    Variation("no neighbours' meaning", replace(DEFAULT, smoothing=0.0)),
    Variation("no session lane", replace(DEFAULT, session=0.0)),
    Variation("no author bonus", replace(DEFAULT, author=0.0)),
    Variation("no presence bonus", replace(DEFAULT, presence=0.0)),
    Variation("no identifier bonus", replace(DEFAULT, name=0.0)),
    Variation("no parts of identifiers", replace(DEFAULT, name=0.0, parts=0)),
    Variation("identifiers in one spelling", reading=_in_one_spelling),
    Variation("no time bonus", replace(DEFAULT, time=0.0)),
    Variation("events are no times", events=False),
    Variation("questions not set back", replace(DEFAULT, asks=0.0)),
    Variation("narration not set back", replace(DEFAULT, narration=0.0)),
    Variation("no doubt of words", replace(DEFAULT, doubt=0.0)),
    Variation("stop words kept", reading=_with_stop_words),
    Variation("Chinese asking words kept", reading=_with_particles),
    Variation("names kept in vector", reading=_with_names),
)


def rankers(
    haystack: Haystack, context: Home, variations: tuple[Variation, ...]
) -> dict[str, Ranker]:
    """Return the baseline and the variations for one home, by name."""
    plain = PlainFts([turn for session in haystack.sessions for turn in session.turns])
    embed = _Embedding(context)

    def rank_plain(question: BenchQuestion) -> Ranked:
        started = time.perf_counter()
        turns = plain.rank(question.text, _DEPTH)
        return Ranked(turns, time.perf_counter() - started)

    recalls = {
        variation.name: _recall(variation, haystack, context, embed) for variation in variations
    }
    return {PLAIN: rank_plain, **recalls}


def _recall(variation: Variation, haystack: Haystack, context: Home, embed: _Embedding) -> Ranker:
    engine = TurnRecall(context.turn_search, context.sessions, context.selection, variation.recipe)
    authors, projects = context.sessions.authors(), context.sessions.projects()

    def rank(bench_question: BenchQuestion) -> Ranked:
        started = time.perf_counter()

        def read(text: str) -> Question:
            return read_question(
                text, now=bench_question.asked or haystack.asked, authors=authors, projects=projects
            )

        question = read(bench_question.text)
        if variation.events:
            question = resolve_anchor(question, lambda event: engine.time_of(read(event), Filter()))
        question = variation.reading(question)
        reading = time.perf_counter() - started
        needs_vector = variation.vector and not (
            variation.lexical and is_unspaced(question.semantic)
        )
        vector, embedding = embed(question.semantic) if needs_vector else (None, 0.0)
        started = time.perf_counter()
        ranked = engine.rank(
            question, Filter(), vector=vector, lexical=variation.lexical, limit=_DEPTH
        )
        seconds = reading + embedding + time.perf_counter() - started
        turns = context.sessions.by_rows([item.row for item in ranked])
        return Ranked([turns[item.row].turn.id for item in ranked], seconds)

    return rank


class _Embedding:
    def __init__(self, context: Home) -> None:
        self._context = context
        self._known: dict[str, tuple[NDArray[np.float32], float]] = {}

    def __call__(self, text: str) -> tuple[QueryVector, float]:
        if text not in self._known:
            embedder = embedder_of(
                self._context
            )  # loaded before the clock starts, to measure a running process
            started = time.perf_counter()
            value = embedder.embed([text])[0]
            self._known[text] = value, time.perf_counter() - started
        value, seconds = self._known[text]
        return QueryVector(
            value, self._context.vectors.of(embedder_of(self._context).name)
        ), seconds
