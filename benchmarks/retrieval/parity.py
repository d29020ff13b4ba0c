"""Whether a memory on a server answers as one in a file: the same questions to both, filled with the same sessions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Spread, percent, spread
from benchmarks.retrieval.homes import Shelf, open_homes
from benchmarks.retrieval.recipes import FULL, Ranked, Variation, rankers
from benchmarks.retrieval.scoring import score_list, sessions_of
from benchmarks.retrieval.silence import absent_questions, standing_at
from benchmarks.retrieval.suites import ADVERSARIAL, BenchQuestion, Haystack, load_suite
from nacre.errors import NotFound
from nacre.home.home import Home
from nacre.protocols import Embedder
from nacre.recall.recall import recall
from nacre.values.recall import RecallQuery
from nacre.values.reports import OnProgress, Progress

_TEN = 10


@dataclass(frozen=True, slots=True)
class Parity:
    """One suite on both engines, in percent.

    ``hit_file`` and ``hit_server`` are session hit@5 of the questions whose sessions are known; ``overlap`` is what the
    best ten turns have in common, ``same_order`` how often they are the same one by one, ``silence`` how often both
    show something or both nothing, for questions with and without an answer.
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


@dataclass(frozen=True, slots=True)
class ParityResult:
    """The suites that are there; ``absent`` are those whose files are not."""

    suites: tuple[Parity, ...]
    absent: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Pair:
    """What one question found on both sides; hits are ``None`` where its sessions are not known."""

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
    """Fill homes in files and on a server, whose tenants get names of their own, and ask both the same."""
    found, absent = [], []
    for name in names:
        try:
            load_suite(name, data)
        except NotFound:
            absent.append(name)
            continue
        found.append(_measure(name, data, shelf, server, load_embedder, notify))
    return ParityResult(tuple(found), tuple(absent))


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
    both = zip(*(open_homes(suite, one, load_embedder, notify) for one in shelves), strict=True)
    for at, ((haystack, file), (_, on_server)) in enumerate(both):
        pairs += _asked(haystack, file, on_server)
        other = suite.haystacks[(at + 1) % len(suite.haystacks)]
        texts = [one.text for one in haystack.questions]
        texts += [text for _, text in absent_questions(haystack, other, ())]
        alike += _silences(haystack, texts, (file, on_server))
        notify(Progress("homes", at + 1, len(suite.haystacks)))
    hits = [pair.hits for pair in pairs if pair.hits]
    return Parity(
        suite=name,
        homes=len(suite.haystacks),
        questions=len(pairs),
        hit_file=percent([one for one, _ in hits]),
        hit_server=percent([other for _, other in hits]),
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
    found = []
    for question in haystack.questions:
        one, other = (rank(question) for rank in ways)
        hits = (_hit(one, question, session_of), _hit(other, question, session_of))
        is_counted = bool(question.sessions) and question.category != ADVERSARIAL
        found.append(_Pair(one, other, hits if is_counted else None))
    return found


def _hit(ranked: Ranked, question: BenchQuestion, session_of: dict[str, str]) -> float:
    return (score_list(sessions_of(ranked.turns, session_of), question.sessions) or {"hit@5": 0.0})[
        "hit@5"
    ]


def _overlap(pair: _Pair) -> float:
    one, other = set(pair.file.turns[:_TEN]), set(pair.server.turns[:_TEN])
    return len(one & other) / max(len(one), len(other)) if one or other else 1.0


def _silences(haystack: Haystack, texts: Sequence[str], homes: tuple[Home, Home]) -> list[float]:
    asked = [dataclasses.replace(home, clock=standing_at(haystack.asked)) for home in homes]
    return [float(_is_silent(asked[0], text) == _is_silent(asked[1], text)) for text in texts]


def _is_silent(home: Home, text: str) -> bool:
    answer = recall(home, RecallQuery(text, turns=_TEN, update=False))
    return not answer.turns and not answer.hits
