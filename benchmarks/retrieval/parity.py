"""Compare recall from a server with recall from a file, with the same sessions and questions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.figures import Spread, percent, spread
from benchmarks.retrieval.homes import Shelf, open_homes
from benchmarks.retrieval.recipes import FULL, Ranked, Variation, rankers
from benchmarks.retrieval.scoring import score_list, sessions_of
from benchmarks.retrieval.suites import (
    ADVERSARIAL,
    BenchQuestion,
    Haystack,
    load_suite,
    questions_of,
)
from nacre.base.frozen import frozen
from nacre.errors import NotFoundError
from nacre.home.home import Home
from nacre.protocols import Embedder
from nacre.recall.recall import recall
from nacre.values.recall import RecallQuery
from nacre.values.reports import OnProgress, Progress

_TEN = 10


@frozen
class Parity:
    """The results for one suite on both engines, in percent.

    ``hit_file`` and ``hit_server`` are session hit@5 for questions with labelled sessions.
    ``overlap`` is the common part of the top ten turns, ``same_order`` the share of identical top
    tens. ``silence`` is how often both or neither show something, for questions with and without an
    answer.
    """

    suite: str
    homes: int
    questions: int
    hit_file: float
    hit_server: float
    overlap: float
    same_order: float
    asked: int
    silence: float
    file: Spread
    server: Spread


@frozen
class ParityResult:
    """The suites that were measured. ``absent`` lists those without data."""

    suites: tuple[Parity, ...]
    absent: tuple[str, ...]


@frozen
class _Pair:
    """The results for one question on both engines.

    ``hits`` is ``None`` without labelled sessions.
    """

    file: Ranked
    server: Ranked
    hits: tuple[float, float] | None


def measure_parity(
    names: Sequence[str],
    data: Path,
    shelf: Shelf,
    server: str,
    load_embedder: Callable[[], Embedder],
    notify: OnProgress = lambda _: None,
) -> ParityResult:
    """Fill homes in files and on a server (new tenants), and ask the same questions on both."""
    measured, absent = [], []
    for name in names:
        try:
            load_suite(name, data)
        except NotFoundError:
            absent.append(name)
            continue
        measured.append(_measure(name, data, shelf, server, load_embedder, notify))
    return ParityResult(tuple(measured), tuple(absent))


def _measure(
    name: str,
    data: Path,
    shelf: Shelf,
    server: str,
    load_embedder: Callable[[], Embedder],
    notify: OnProgress,
) -> Parity:
    suite = load_suite(name, data)
    pairs: list[_Pair] = []
    alike: list[float] = []
    shelves = shelf, dataclasses.replace(shelf, server=server)
    both = zip(*(open_homes(suite, place, load_embedder, notify) for place in shelves), strict=True)
    for at, ((haystack, file), (_, on_server)) in enumerate(both):
        pairs += _asked(haystack, file, on_server)
        other = suite.haystacks[(at + 1) % len(suite.haystacks)]
        texts = [question.text for _, question in questions_of(haystack, other)]
        alike += _silences(haystack, texts, (file, on_server))
        notify(Progress("homes", at + 1, len(suite.haystacks)))
    hits = [pair.hits for pair in pairs if pair.hits]
    return Parity(
        suite=name,
        homes=len(suite.haystacks),
        questions=len(pairs),
        hit_file=percent([file_hit for file_hit, _ in hits]),
        hit_server=percent([server_hit for _, server_hit in hits]),
        overlap=percent([_overlap(pair) for pair in pairs]),
        same_order=percent(
            [float(pair.file.turns[:_TEN] == pair.server.turns[:_TEN]) for pair in pairs]
        ),
        asked=len(alike),
        silence=percent(alike),
        file=spread(pair.file.seconds for pair in pairs),
        server=spread(pair.server.seconds for pair in pairs),
    )


def _asked(haystack: Haystack, file: Home, server: Home) -> list[_Pair]:
    session_of = {turn.id: session.id for session in haystack.sessions for turn in session.turns}
    way = (Variation(FULL),)
    ways = [rankers(haystack, home, way)[FULL] for home in (file, server)]
    pairs = []
    for question in haystack.questions:
        from_file, from_server = (rank(question) for rank in ways)
        hits = (_hit(from_file, question, session_of), _hit(from_server, question, session_of))
        is_counted = bool(question.sessions) and question.category != ADVERSARIAL
        pairs.append(_Pair(from_file, from_server, hits if is_counted else None))
    return pairs


def _hit(ranked: Ranked, question: BenchQuestion, session_of: dict[str, str]) -> float:
    return (score_list(sessions_of(ranked.turns, session_of), question.sessions) or {"hit@5": 0.0})[
        "hit@5"
    ]


def _overlap(pair: _Pair) -> float:
    file_turns, server_turns = set(pair.file.turns[:_TEN]), set(pair.server.turns[:_TEN])
    return (
        len(file_turns & server_turns) / max(len(file_turns), len(server_turns))
        if file_turns or server_turns
        else 1.0
    )


def _silences(haystack: Haystack, texts: Sequence[str], homes: tuple[Home, Home]) -> list[float]:
    homes_then = [dataclasses.replace(home, clock=lambda: haystack.asked) for home in homes]
    return [
        float(_is_silent(homes_then[0], text) == _is_silent(homes_then[1], text)) for text in texts
    ]


def _is_silent(home: Home, text: str) -> bool:
    answer = recall(home, RecallQuery(text, turns=_TEN, update=False))
    return not answer.turns and not answer.hits
