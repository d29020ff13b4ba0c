"""Score the memories of sessions against labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.extraction.credit import assign_credit
from benchmarks.extraction.labels import Label, Labelled
from benchmarks.extraction.terms import holds, plain
from nacre.base.frozen import frozen

LONG = 700
"""Maximum sensible length of a memory in characters."""


@frozen
class Kept:
    """A learned memory with the ids of its sessions, files and turns."""

    kind: str
    subject: str
    content: str
    importance: float | None = None
    sessions: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()


@frozen
class CreditedLabel:
    """A label and the memory assigned to it. Their kinds can differ."""

    label: Label
    memory: Kept


@frozen
class Skipped:
    """A memory that should not exist, and the reason."""

    memory: Kept
    reason: str


@frozen
class SessionScore:
    """A session's score. Shares are from 0 to 1, or ``None`` if the total is 0.

    ``recall`` is the weight found divided by the total weight; ``recall_any_kind`` ignores kinds,
    ``must_recall`` counts only labels with weight 1. ``precision`` is the share of memories that
    match a label. ``off`` is how many memories there are above the range (or below, if negative).
    """

    session: Labelled
    kept: tuple[Kept, ...]
    found: tuple[CreditedLabel, ...]
    wrong_kind: tuple[CreditedLabel, ...]
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
        return len(self.kept) - len(self.junk)


@frozen
class Totals:
    """Totals for several sessions: shares over all labels and memories, the mean score, and sums."""

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


@frozen
class KindTotals:
    """The number of labels whose first kind is this one, and how many were found with the right or any kind."""

    labels: int
    found: int
    found_any_kind: int


def score_session(session: Labelled, kept: Sequence[Kept]) -> SessionScore:
    """Score a session's memories against its labels."""
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
        found=tuple(CreditedLabel(labels[label], kept[at]) for label, at in strict.items()),
        wrong_kind=tuple(
            CreditedLabel(labels[label], kept[at])
            for label, at in lenient.items()
            if label not in strict
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
        texts = (memory.subject, memory.content, f"{memory.subject}. {memory.content}")
        hit = next(
            (skip for skip in session.skips if any(skip.pattern.search(text) for text in texts)),
            None,
        )
        if hit:
            yield Skipped(memory, hit.reason)


def _off(session: Labelled, count: int) -> int:
    return max(0, count - session.most) + min(0, count - session.least)


def _score(
    session: Labelled, credited: Sequence[int], kept: int, matching: int, skipped: int, clumsy: int
) -> float:
    """Return a score from 0 to 1: F1 of recall and precision, reduced for junk, repetition, length and wrong number.

    Here, all labels with a weight below 1 together count at most half as much as the others. If no
    label is required, it is perfect to learn nothing.
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
    recall, precision = _sum(scaled, credited) / sum(scaled), matching / kept
    f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0.0
    return f1 * clean * (1 - 0.5 * min(kept, clumsy) / kept) * _number_factor(session, kept)


def _number_factor(session: Labelled, kept: int) -> float:
    if kept > session.most:
        return float((session.most / kept) ** 0.5)
    return (kept + 1) / (session.least + 1) if kept < session.least else 1.0


def _sum(values: Sequence[float], places: Iterable[int]) -> float:
    return sum(values[at] for at in places)


def total(scores: Sequence[SessionScore]) -> Totals:
    """Return totals: recall and precision over all labels and memories, and the mean score."""
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
    """Return the totals for each tool's sessions."""
    tools = sorted({score.session.tool for score in scores})
    return {
        tool: total([score for score in scores if score.session.tool == tool]) for tool in tools
    }


def total_by_kind(scores: Sequence[SessionScore]) -> dict[str, KindTotals]:
    """Return the number of labels found for each kind."""
    labels = [label.kinds[0] for score in scores for label in score.session.labels]
    strict = [match.label.kinds[0] for score in scores for match in score.found]
    missed = [label.kinds[0] for score in scores for label in score.missed]
    return {
        kind: KindTotals(
            labels.count(kind), strict.count(kind), labels.count(kind) - missed.count(kind)
        )
        for kind in sorted(set(labels))
    }


def ratio(part: float, whole: float) -> float | None:
    """Return a share, or ``None`` if the whole is 0."""
    return part / whole if whole else None
