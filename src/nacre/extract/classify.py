"""Which kind of memory a statement is, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.extract.cues import Language
from nacre.model.memory import Kind

THRESHOLD = 0.999  # sums of tenths

DETAIL = 0.7

REMEMBERED = 2.0  # what was to be remembered goes before everything that was only said


@dataclass(frozen=True, slots=True)
class Verdict:
    """A statement's kind and weight; ``cue`` is the weight of its heaviest cue alone."""

    text: str
    kind: Kind
    score: float
    cue: float
    strong: bool = False
    remembered: bool = False
    with_request: bool = False
    despite: frozenset[str] = frozenset()

    @property
    def kept(self) -> bool:
        """Whether the statement weighs enough."""
        return self.score >= THRESHOLD


def classify(
    text: str, language: Language, *, bonus: float = 0.0, in_request: bool = False, remembered: bool = False
) -> Verdict | None:
    """Weigh a statement; ``None`` when nothing in it says what it is.

    ``in_request`` says that the message began by asking for something: what it says a thing should be are
    then the details of one piece of work.
    """
    trimmed = language.trim(text)
    confirmed = language.lesson.confirmation.match(trimmed)
    if confirmed:
        trimmed = language.trim(trimmed[confirmed.end() :])
    corrected = language.correction.match(trimmed)
    if corrected:
        trimmed = language.trim(trimmed[corrected.end() :])
    remember = language.remember.strip.match(trimmed)
    asking = trimmed
    if remember and trimmed[remember.end() :].strip():
        trimmed = trimmed[remember.end() :].strip()
    cues = [cue for cue in language.cue if cue.pattern.search(trimmed) or (remember and cue.pattern.search(asking))]
    if not (cues or remember or corrected or remembered):
        return None
    if corrected:
        bonus += THRESHOLD
    if remember or remembered:
        bonus += REMEMBERED
    marks = {mark.name: mark.weight for mark in language.mark if mark.pattern.search(trimmed)}
    if any(topic.search(trimmed) for topic in language.topics.values()):
        bonus += language.score.topical
    heaviest = max(cues, key=lambda cue: cue.weight, default=None)
    weight = heaviest.weight if heaviest else 0.0
    if in_request and heaviest and heaviest.kind is Kind.DECISION and weight <= DETAIL:
        bonus += language.score.specification
    return Verdict(
        text=trimmed,
        kind=heaviest.kind if heaviest else _remembered_kind(marks),
        score=weight + sum(marks.values()) + bonus,
        cue=weight,
        strong=bool(language.importance.strong.search(trimmed)),
        remembered=remembered or bool(remember),
        with_request=bool(heaviest and heaviest.with_request),
        despite=heaviest.despite if heaviest else frozenset(),
    )


def _remembered_kind(marks: dict[str, float]) -> Kind:
    return Kind.PREFERENCE if "imperative" in marks else Kind.FACT
