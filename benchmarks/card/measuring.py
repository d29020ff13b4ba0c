"""Measure a system on a suite: hits, silence at the same setting, stale answers, tokens, time and size."""

from __future__ import annotations

import dataclasses
import json
import re
import resource
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import anyio

from benchmarks.card.systems import (
    Description,
    marked,
    opened,
    shown_marks,
)
from benchmarks.figures import percent, percentile
from benchmarks.retrieval.scoring import mean, score_list
from benchmarks.retrieval.suites import (
    ANSWERED,
    FOREIGN,
    NEAR_MISS,
    BenchQuestion,
    Haystack,
    Suite,
    questions_of,
)
from nacre.base.frozen import frozen
from nacre.base.text import count_tokens
from nacre.values.reports import OnProgress, Progress

_UPDATED = "knowledge-update"
"""LongMemEval's category of questions about a value that changed."""


@frozen
class Asked:
    """A question with the marks that an answer showed, in order.

    ``sort``: whether the home has an answer, the question is about another home, or it only looks
    like an answered one. ``sure_turns`` and ``sure_sessions``: the marks that the system did not
    itself mark as uncertain.
    """

    sort: str
    text: str
    category: str
    gold_turns: tuple[str, ...]
    gold_sessions: tuple[str, ...]
    turns: tuple[str, ...]
    sessions: tuple[str, ...]
    sure_turns: tuple[str, ...]
    sure_sessions: tuple[str, ...]
    answer_tokens: int
    seconds: float


@frozen
class Setting:
    """Figures in percent for all results, or for those that the system calls certain.

    ``stale_first``: how often an outdated session precedes the current one, for questions about
    changed values.
    """

    name: str
    sessions: dict[str, float] | None
    turns: dict[str, float] | None
    silent_foreign: float | None
    silent_near_miss: float | None
    stale_first: float | None


@frozen
class Card:
    """The figures of one system on one suite.

    ``megabytes_memory``: the largest process that was started, not counting this one.
    """

    system: str
    version: str
    suite: str
    questions: dict[str, int]
    settings: tuple[Setting, ...]
    answer_tokens: float
    schema_tokens: int
    p50_ms: float
    p95_ms: float
    load_seconds: float
    megabytes_disk: float
    megabytes_memory: float


def measure_card(
    name: str,
    version: str,
    description: Description | None,
    suite: Suite,
    folder: Path,
    *,
    every: int = 1,
    notify: OnProgress = lambda _: None,
) -> Card:
    """Ask a system the questions of a suite. Each haystack gets a new home below ``folder``.

    With ``every`` 5, only each fifth question of each sort is asked. Each question's result is
    written to ``folder/questions``.
    """
    weak = re.compile(description.weak) if description and description.weak else None
    asked: list[Asked] = []
    load_seconds, size, schema_tokens = 0.0, 0, 0
    results = folder / "questions"
    results.mkdir(parents=True)
    homes = list(zip(suite.haystacks, (*suite.haystacks[1:], suite.haystacks[0]), strict=True))
    total = sum(len([*questions_of(*pair, every)]) for pair in homes)
    for haystack, other in homes:
        home = folder / "home"
        home.mkdir()

        async def ask_all(
            haystack: Haystack = haystack, other: Haystack = other, home: Path = home
        ) -> tuple[float, int]:
            sessions, marks = marked(haystack)
            started = time.perf_counter()
            async with opened(description, sessions, home) as system:
                loaded = time.perf_counter() - started
                for sort, question in questions_of(haystack, other, every):
                    item, answer = await _ask(system.ask, sort, question, haystack, marks, weak)
                    asked.append(item)
                    record = {**dataclasses.asdict(item), "answer": answer}
                    (results / f"{len(asked):05}.json").write_text(
                        json.dumps(record, ensure_ascii=False, indent=1), encoding="utf-8"
                    )
                    notify(Progress("questions", len(asked), total))
            return loaded, system.schema_tokens

        loaded, schema_tokens = anyio.run(ask_all)
        load_seconds += loaded
        size += sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
        shutil.rmtree(home)
    seconds = [item.seconds for item in asked]
    return Card(
        system=name,
        version=version,
        suite=suite.name,
        questions={
            sort: sum(item.sort == sort for item in asked)
            for sort in (ANSWERED, FOREIGN, NEAR_MISS)
        },
        settings=tuple(
            _setting(asked, sure=sure) for sure in ((False, True) if weak else (False,))
        ),
        answer_tokens=median([item.answer_tokens for item in asked] or [0]),
        schema_tokens=schema_tokens,
        p50_ms=round(1000 * percentile(seconds, 0.5), 1),
        p95_ms=round(1000 * percentile(seconds, 0.95), 1),
        load_seconds=round(load_seconds, 1),
        megabytes_disk=round(size / 1e6, 1),
        megabytes_memory=round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000, 1),
    )


async def _ask(
    ask: Callable[[str], Awaitable[str]],
    sort: str,
    question: BenchQuestion,
    haystack: Haystack,
    marks: Mapping[str, str],
    weak: re.Pattern[str] | None,
) -> tuple[Asked, str]:
    started = time.perf_counter()
    answer = await ask(question.text)
    seconds = time.perf_counter() - started
    doubt = weak.search(answer) if weak else None
    turns, sessions = shown_marks(answer)
    sure_turns, sure_sessions = shown_marks(answer[: doubt.start()] if doubt else answer)
    in_order = [session.id for session in haystack.sessions if session.id in question.sessions]
    return (
        Asked(
            sort,
            question.text,
            question.category,
            tuple(sorted(marks[turn] for turn in question.turns)),
            tuple(marks[session] for session in in_order),
            tuple(turns),
            tuple(sessions),
            tuple(sure_turns),
            tuple(sure_sessions),
            count_tokens(answer),
            seconds,
        ),
        answer,
    )


def _setting(asked: Sequence[Asked], *, sure: bool) -> Setting:
    answered = [item for item in asked if item.sort == ANSWERED]

    def sessions(item: Asked) -> tuple[str, ...]:
        return item.sure_sessions if sure else item.sessions

    def silent(sort: str) -> float | None:
        questions = [item for item in asked if item.sort == sort]
        return percent([float(not sessions(item)) for item in questions]) if questions else None

    firsts = [
        (next((session for session in sessions(item) if session in item.gold_sessions), ""), item)
        for item in answered
        if item.category == _UPDATED and len(item.gold_sessions) > 1
    ]
    stale = [float(first != item.gold_sessions[-1]) for first, item in firsts if first]
    return Setting(
        "certain results" if sure else "all results",
        mean([score_list(sessions(item), frozenset(item.gold_sessions)) for item in answered]),
        mean(
            [
                score_list(item.sure_turns if sure else item.turns, frozenset(item.gold_turns))
                for item in answered
            ]
        ),
        silent(FOREIGN),
        silent(NEAR_MISS),
        percent(stale) if stale else None,
    )
