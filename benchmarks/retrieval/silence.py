"""Measure when recall shows nothing, for questions with and without an answer.

Recall is called through the public API. Questions without an answer come from a file, from the
suite itself, or from another home of the suite.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.figures import percent
from benchmarks.retrieval.homes import Shelf, open_homes
from benchmarks.retrieval.scoring import score_list, sessions_of
from benchmarks.retrieval.suites import ADVERSARIAL, BenchQuestion, Haystack, Suite
from nacre.base.frozen import frozen
from nacre.base.ids import Clock
from nacre.errors import NotFoundError
from nacre.home.home import Home
from nacre.protocols import Embedder
from nacre.recall.recall import recall, search_sessions
from nacre.values.recall import HitConfidence, Mode, RecallQuery, RecallResult
from nacre.values.reports import OnProgress, Progress

_DEPTH = 10
_BORDERS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_OF_OTHERS = 4
"""Of another home's questions, one in this number is asked."""


@frozen
class Silent:
    """Questions without an answer from one source, and for how many no likely answer was shown, in percent."""

    kind: str
    asked: int
    silent: float


@frozen
class Trade:
    """A border of confidence, and its effects.

    The effects are the percentage of questions without an answer for which nothing is shown, and
    the points of recall@10 lost for other questions.
    """

    border: float
    silent: float
    lost: float


@frozen
class SilenceResult:
    """The result for one suite.

    ``found`` is recall@10 for all matches, ``answered`` for those shown, in percent. They count
    turns if the suite labels them, otherwise sessions.
    """

    silent: tuple[Silent, ...]
    questions: int
    found: float
    answered: float
    curve: tuple[Trade, ...]


@frozen
class _Asked:
    """A question and its results. ``sure`` is the highest confidence of a turn.

    ``found`` and ``answered`` are ``None`` if there is no answer.
    """

    kind: str
    silent: bool
    sure: float
    found: float | None = None
    answered: float | None = None


def measure_silence(
    suite: Suite,
    shelf: Shelf,
    load_embedder: Callable[[], Embedder],
    absent: Sequence[Path],
    notify: OnProgress = lambda _: None,
) -> SilenceResult:
    """Ask all questions with and without an answer. Raises NotFoundError for an invalid file."""
    from_files = [(path.stem, entry) for path in absent for entry in _read(path)]
    results: list[_Asked] = []
    for at, (haystack, context) in enumerate(open_homes(suite, shelf, load_embedder, notify)):
        mode = Mode.HYBRID if shelf.vectors else Mode.LEXICAL
        ask = _Asker(dataclasses.replace(context, clock=fixed_clock(haystack.asked)), mode)
        results += ask.ask_present(haystack)
        other = suite.haystacks[(at + 1) % len(suite.haystacks)]
        results += ask.ask_absent(absent_questions(haystack, other, from_files))
        notify(Progress("homes", at + 1, len(suite.haystacks)))
    return _summary(results)


def fixed_clock(moment: datetime) -> Clock:
    """Return a clock that is fixed at a moment."""
    return lambda: moment


class _Asker:
    """Asks questions in one home."""

    def __init__(self, context: Home, mode: Mode) -> None:
        self._context = context
        self._mode = mode

    def ask_absent(self, questions: Iterator[tuple[str, str]]) -> list[_Asked]:
        results = []
        for kind, text in questions:
            answer = self._recall(text)
            results.append(
                _Asked(kind, not answer.turns and not answer.hits, _surest(self._search(text)))
            )
        return results

    def ask_present(self, haystack: Haystack) -> list[_Asked]:
        session_of = {
            turn.id: session.id for session in haystack.sessions for turn in session.turns
        }
        results = []
        for question in haystack.questions:
            if question.category == ADVERSARIAL or not (question.turns or question.sessions):
                continue
            every, shown = self._search(question.text), self._recall(question.text)
            full_recall, shown_recall = (
                _recall_at_ten(result, question, session_of) for result in (every, shown)
            )
            results.append(
                _Asked("real", not shown.turns, _surest(every), full_recall, shown_recall)
            )
        return results

    def _recall(self, text: str) -> RecallResult:
        """Return the hits if one is a likely answer. Weak hits do not count."""
        answer = recall(
            self._context, RecallQuery(text, mode=self._mode, turns=_DEPTH, update=False)
        )
        shown = [hit.confidence for hit in answer.hits] + [hit.confidence for hit in answer.turns]
        is_likely = any(turn is not HitConfidence.WEAK for turn in shown)
        return answer if is_likely else dataclasses.replace(answer, hits=(), turns=())

    def _search(self, text: str) -> RecallResult:
        return search_sessions(self._context, RecallQuery(text, mode=self._mode, limit=_DEPTH))


def _surest(result: RecallResult) -> float:
    return max((hit.components["sure"] for hit in result.turns), default=0.0)


def _recall_at_ten(
    result: RecallResult, question: BenchQuestion, session_of: dict[str, str]
) -> float:
    turns = [hit.turn.id for hit in result.turns]
    scores = score_list(turns, question.turns) or score_list(
        sessions_of(turns, session_of), question.sessions
    )
    return scores["recall@10"] if scores else 0.0


def absent_questions(
    haystack: Haystack, other: Haystack, from_files: Sequence[tuple[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Yield the kind and text of every question that has no answer in this home."""
    for kind, entry in from_files:
        conversation = entry.get("conversation") if isinstance(entry, dict) else None
        if conversation is None or haystack.id.endswith(str(conversation)):
            yield kind, str(entry["question"] if isinstance(entry, dict) else entry)
    for text in haystack.absent:
        yield "the suite's own", text
    if other.id != haystack.id:
        theirs = [question for question in other.questions if question.category != ADVERSARIAL]
        for question in theirs[::_OF_OTHERS]:
            yield "another home's", question.text


def _read(path: Path) -> list[Any]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        entries = None
    if not isinstance(entries, list) or not all(
        isinstance(entry, str) or "question" in entry for entry in entries
    ):
        raise NotFoundError(
            f"{path} is not a list of questions", hint='expected [{"question": "…"}, …] or ["…", …]'
        )
    return entries


def _summary(results: Sequence[_Asked]) -> SilenceResult:
    absent = [item for item in results if item.found is None]
    real = [item for item in results if item.found is not None]
    kinds = dict.fromkeys(item.kind for item in absent)
    return SilenceResult(
        silent=tuple(
            _silent(kind, [item for item in absent if item.kind == kind]) for kind in kinds
        ),
        questions=len(real),
        found=percent([item.found or 0.0 for item in real]),
        answered=percent([item.answered or 0.0 for item in real]),
        curve=tuple(
            Trade(
                border,
                percent([float(item.sure < border) for item in absent]),
                percent([(item.found or 0.0) * (item.sure < border) for item in real]),
            )
            for border in _BORDERS
        ),
    )


def _silent(kind: str, results: Sequence[_Asked]) -> Silent:
    return Silent(kind, len(results), percent([float(item.silent) for item in results]))
