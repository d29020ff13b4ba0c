"""How good the memories of a session are, by its labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.extraction.credit import assign_credit
from benchmarks.extraction.labels import Label, Labelled
from benchmarks.extraction.terms import holds, plain

LONG = 700
"""Characters beyond which a memory is too long."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory that was kept, and where it comes from: ids of sessions, files, turns."""

    kind: str
    subject: str
    content: str
    importance: float | None = None
    sessions: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A label and the memory credited with it; the kind is right or is not."""

    label: Label
    memory: Kept


@dataclass(frozen=True, slots=True)
class Skipped:
    """A memory that should not be, and why."""

    memory: Kept
    reason: str


@dataclass(frozen=True, slots=True)
class SessionScore:
    """What became of one session. Shares are from 0 to 1, ``None`` where there is nothing to divide by.

    ``recall`` is the weight of the labels found by the weight of all; ``recall_any_kind`` is lenient about kinds,
    ``must_recall`` counts labels of weight 1 only. ``precision`` is the share of memories that match a label.
    ``off`` says by how many memories the range was missed, below zero where there are too few.
    """

    session: Labelled
    kept: tuple[Kept, ...]
    found: tuple[Found, ...]
    wrong_kind: tuple[Found, ...]
    missed: tuple[Label, ...]
    junk: tuple[Kept, ...]
    repeats: tuple[Kept, ...]
    skipped: tuple[Skipped, ...]
    found_any_kind: int
    weight: float
    weight_found: float
    weight_found_any_kind: float
    recall: float | None
    recall_any_kind: float | None
    must_recall: float | None
    precision: float | None
    musts: int
    musts_found: int
    long: int
    off: int
    score: float
    importance_fits: int
    importance_judged: int

    @property
    def matched(self) -> int:
        """How many memories match a label."""
        return len(self.kept) - len(self.junk)


@dataclass(frozen=True, slots=True)
class Totals:
    """Several sessions taken together: shares over all labels and memories, the mean score, sums of the rest."""

    sessions: int
    memories: int
    recall: float | None
    recall_any_kind: float | None
    must_recall: float | None
    precision: float | None
    duplicates: int
    skip_hits: int
    long: int
    sessions_out_of_range: int
    importance_in_range: float | None
    score: float | None


@dataclass(frozen=True, slots=True)
class KindTotals:
    """The labels whose most natural kind is this one, and how many were found: so, and lenient about the kind."""

    labels: int
    found: int
    found_any_kind: int


def score_session(session: Labelled, kept: Sequence[Kept]) -> SessionScore:
    """Hold the memories of a session against its labels."""
    labels = session.labels
    texts = [plain(f"{memory.subject} . {memory.content}") for memory in kept]
    fits = [[at for at, text in enumerate(texts) if holds(text, label.groups)] for label in labels]
    fits_kind = [
        [at for at in places if kept[at].kind in label.kinds]
        for label, places in zip(labels, fits, strict=True)
    ]
    weights = [label.weight for label in labels]
    strict, lenient = assign_credit(weights, fits_kind), assign_credit(weights, fits)
    matching = {at for places in fits for at in places}
    credited = {*strict.values(), *lenient.values()}
    skipped = tuple(_skipped(session, kept))
    repeats = tuple(kept[at] for at in sorted(matching - credited))
    long = sum(len(memory.content) > LONG for memory in kept)
    total = sum(weights)
    musts, musts_found = (
        sum(weight >= 1 for weight in weights),
        sum(weights[at] >= 1 for at in strict),
    )
    judged = [
        (labels[label].importance, importance)
        for label, at in strict.items()
        if (importance := kept[at].importance) is not None
    ]
    return SessionScore(
        session=session,
        kept=tuple(kept),
        found=tuple(Found(labels[label], kept[at]) for label, at in strict.items()),
        wrong_kind=tuple(
            Found(labels[label], kept[at]) for label, at in lenient.items() if label not in strict
        ),
        missed=tuple(label for at, label in enumerate(labels) if at not in lenient),
        junk=tuple(memory for at, memory in enumerate(kept) if at not in matching),
        repeats=repeats,
        skipped=skipped,
        found_any_kind=len(lenient),
        weight=total,
        weight_found=_sum(weights, strict),
        weight_found_any_kind=_sum(weights, lenient),
        recall=ratio(_sum(weights, strict), total),
        recall_any_kind=ratio(_sum(weights, lenient), total),
        must_recall=ratio(musts_found, musts),
        precision=ratio(len(matching), len(kept)),
        musts=musts,
        musts_found=musts_found,
        long=long,
        off=_off(session, len(kept)),
        score=_score(
            session, list(strict), len(kept), len(matching), len(skipped), len(repeats) + long
        ),
        importance_fits=sum(low <= importance <= high for (low, high), importance in judged),
        importance_judged=len(judged),
    )


def _skipped(session: Labelled, kept: Sequence[Kept]) -> Iterable[Skipped]:
    for memory in kept:
        said = (memory.subject, memory.content, f"{memory.subject}. {memory.content}")
        hit = next(
            (skip for skip in session.skips if any(skip.pattern.search(text) for text in said)),
            None,
        )
        if hit:
            yield Skipped(memory, hit.reason)


def _off(session: Labelled, count: int) -> int:
    return max(0, count - session.most) + min(0, count - session.least)


def _score(
    session: Labelled, found: Sequence[int], kept: int, matching: int, skipped: int, clumsy: int
) -> float:
    """One figure from 0 to 1: F1 of recall and precision, less for junk, repetition, length, and the wrong number.

    For the recall of this figure all labels of less weight than 1 count at most half of what the others count. Where
    nothing must be found, keeping nothing is perfect.
    """
    weights = [label.weight for label in session.labels]
    musts = sum(weight >= 1 for weight in weights)
    clean = 1 - 0.5 * skipped / kept if kept else 1.0
    if not weights:
        return max(0.0, 1 - kept / (session.most + 1)) * clean
    if not kept:
        return 0.0 if musts else 1.0
    nice = sum(weights) - musts
    scale = 1.0
    if musts and nice > musts / 2:
        scale = musts / (2 * nice)
    scaled = [weight if weight >= 1 else weight * scale for weight in weights]
    recall, precision = _sum(scaled, found) / sum(scaled), matching / kept
    f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0.0
    return f1 * clean * (1 - 0.5 * min(kept, clumsy) / kept) * _number_factor(session, kept)


def _number_factor(session: Labelled, kept: int) -> float:
    if kept > session.most:
        return float((session.most / kept) ** 0.5)
    return (kept + 1) / (session.least + 1) if kept < session.least else 1.0


def _sum(values: Sequence[float], places: Iterable[int]) -> float:
    return sum(values[at] for at in places)


def total(scores: Sequence[SessionScore]) -> Totals:
    """Sessions taken together; recall and precision over all labels and memories, the score as a mean."""
    weight, memories = (
        sum(score.weight for score in scores),
        sum(len(score.kept) for score in scores),
    )
    return Totals(
        sessions=len(scores),
        memories=memories,
        recall=ratio(sum(score.weight_found for score in scores), weight),
        recall_any_kind=ratio(sum(score.weight_found_any_kind for score in scores), weight),
        must_recall=ratio(
            sum(score.musts_found for score in scores), sum(score.musts for score in scores)
        ),
        precision=ratio(sum(score.matched for score in scores), memories),
        duplicates=sum(len(score.repeats) for score in scores),
        skip_hits=sum(len(score.skipped) for score in scores),
        long=sum(score.long for score in scores),
        sessions_out_of_range=sum(score.off != 0 for score in scores),
        importance_in_range=ratio(
            sum(score.importance_fits for score in scores),
            sum(score.importance_judged for score in scores),
        ),
        score=ratio(sum(score.score for score in scores), len(scores)),
    )


def total_by_tool(scores: Sequence[SessionScore]) -> dict[str, Totals]:
    """The totals of each tool's sessions."""
    tools = sorted({score.session.tool for score in scores})
    return {
        tool: total([score for score in scores if score.session.tool == tool]) for tool in tools
    }


def total_by_kind(scores: Sequence[SessionScore]) -> dict[str, KindTotals]:
    """How much of each kind was found."""
    labels = [label.kinds[0] for score in scores for label in score.session.labels]
    strict = [found.label.kinds[0] for score in scores for found in score.found]
    missed = [label.kinds[0] for score in scores for label in score.missed]
    return {
        kind: KindTotals(
            labels.count(kind), strict.count(kind), labels.count(kind) - missed.count(kind)
        )
        for kind in sorted(set(labels))
    }


def ratio(part: float, whole: float) -> float | None:
    """A share, or ``None`` of nothing."""
    return part / whole if whole else None
