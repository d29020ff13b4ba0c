"""Rank turns for a suite's questions with several recipes and score the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from benchmarks.figures import percentile
from benchmarks.retrieval.homes import Shelf, open_homes
from benchmarks.retrieval.recipes import ABLATIONS, LANES, PLAIN, Variation, rankers
from benchmarks.retrieval.scoring import Gain, Scored, mean, paired_gain, score_list, sessions_of
from benchmarks.retrieval.suites import ADVERSARIAL, BenchQuestion, Haystack, Suite
from nacre.base.frozen import frozen
from nacre.protocols import Embedder
from nacre.values.reports import OnProgress, Progress

Scores = Mapping[str, float]


@frozen
class Level:
    """Measures for turns or sessions in percent, in total and for each category.

    The total excludes adversarial questions.
    """

    overall: Scores | None
    categories: dict[str, Scores]


@frozen
class RecipeResult:
    """The figures for one recipe. ``gains`` are gains over plain FTS5, by level and measure."""

    name: str
    turns: Level
    sessions: Level
    p50_ms: float
    p95_ms: float
    gains: dict[str, Gain]


@frozen
class RetrievalResult:
    """The result for one suite."""

    suite: str
    haystacks: int
    sessions: int
    turns: int
    questions: int
    recipes: tuple[RecipeResult, ...]


def measure(
    suite: Suite,
    shelf: Shelf,
    load_embedder: Callable[[], Embedder],
    *,
    ablations: bool = False,
    questions: int | None = None,
    notify: OnProgress = lambda _: None,
) -> RetrievalResult:
    """Rank the turns in every haystack for its questions with every recipe.

    ``questions`` limits their number.
    """
    variations = _variations(shelf, ablations=ablations)
    chosen = _chosen(suite, questions)
    scored: dict[str, list[Scored]] = {}
    done = 0
    for haystack, context in open_homes(suite, shelf, load_embedder, notify):
        session_of = {
            turn.id: session.id for session in haystack.sessions for turn in session.turns
        }
        ways = rankers(haystack, context, variations)
        for question in chosen[haystack.id]:
            for name, rank in ways.items():
                ranked = rank(question)
                scored.setdefault(name, []).append(
                    Scored(
                        question.category,
                        score_list(ranked.turns, question.turns),
                        score_list(sessions_of(ranked.turns, session_of), question.sessions),
                        ranked.seconds,
                    )
                )
            done += 1
            notify(
                Progress(
                    "questions", done, sum(len(questions_of) for questions_of in chosen.values())
                )
            )
    return RetrievalResult(
        suite=suite.name,
        haystacks=len(suite.haystacks),
        sessions=sum(len(haystack.sessions) for haystack in suite.haystacks),
        turns=sum(
            len(session.turns) for haystack in suite.haystacks for session in haystack.sessions
        ),
        questions=done,
        recipes=tuple(_summary(name, scores, scored[PLAIN]) for name, scores in scored.items()),
    )


def _variations(shelf: Shelf, *, ablations: bool) -> tuple[Variation, ...]:
    variations = (*LANES, *ABLATIONS) if ablations else LANES
    return (
        variations
        if shelf.vectors
        else tuple(variation for variation in variations if not variation.vector)
    )


def _chosen(suite: Suite, count: int | None) -> dict[str, list[BenchQuestion]]:
    every = [
        (haystack.id, question)
        for haystack in suite.haystacks
        for question in _answerable(haystack)
    ]
    if count and count < len(every):
        every = [every[at * len(every) // count] for at in range(count)]
    chosen: dict[str, list[BenchQuestion]] = {haystack.id: [] for haystack in suite.haystacks}
    for haystack_id, question in every:
        chosen[haystack_id].append(question)
    return chosen


def _answerable(haystack: Haystack) -> list[BenchQuestion]:
    return [question for question in haystack.questions if question.turns or question.sessions]


def _summary(name: str, scored: Sequence[Scored], baseline: Sequence[Scored]) -> RecipeResult:
    seconds = [score.seconds for score in scored]
    return RecipeResult(
        name=name,
        turns=_level(scored, lambda score: score.turns),
        sessions=_level(scored, lambda score: score.sessions),
        p50_ms=round(1000 * percentile(seconds, 0.5), 1),
        p95_ms=round(1000 * percentile(seconds, 0.95), 1),
        gains={} if name == PLAIN else _gains(scored, baseline),
    )


def _level(scored: Sequence[Scored], level: Callable[[Scored], Scores | None]) -> Level:
    categories: dict[str, Scores] = {}
    for category in sorted({score.category for score in scored}):
        scores = mean([level(score) for score in scored if score.category == category])
        if scores:
            categories[category] = scores
    return Level(mean([level(score) for score in _counted(scored)]), categories)


def _gains(scored: Sequence[Scored], baseline: Sequence[Scored]) -> dict[str, Gain]:
    ours, theirs = _counted(scored), _counted(baseline)
    measures = {
        "turn recall@10": (lambda score: score.turns, "recall@10"),
        "turn mrr": (lambda score: score.turns, "mrr"),
        "session hit@1": (lambda score: score.sessions, "hit@1"),
        "session hit@5": (lambda score: score.sessions, "hit@5"),
        "session recall@10": (lambda score: score.sessions, "recall@10"),
        "session mrr": (lambda score: score.sessions, "mrr"),
    }
    gains = {
        name: paired_gain(ours, theirs, level, measure)
        for name, (level, measure) in measures.items()
    }
    return {name: gain for name, gain in gains.items() if gain is not None}


def _counted(scored: Sequence[Scored]) -> list[Scored]:
    return [score for score in scored if score.category != ADVERSARIAL]
