"""Weighs: which kind of memory a statement is, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.extraction.reading.cue_sets import Cue
from nacre.extraction.reading.cues import Language
from nacre.values.memory import Kind

THRESHOLD = 0.999  # sums of tenths

DETAIL = 0.7

QUESTION = "question"  # the reason for refusal that nearly no cue outweighs

REMEMBERED = 2.0  # what was to be remembered goes before everything that was only said


_OF_A_REQUEST = 1.0


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
    text: str,
    language: Language,
    *,
    bonus: float = 0.0,
    in_request: bool = False,
    detail: bool = False,
    remembered: bool = False,
) -> Verdict | None:
    """Weigh a statement; ``None`` when nothing in it says what it is.

    ``in_request`` says that the message began by asking for something: what it says a thing should be are
    then the details of one piece of work; so is all that is said of the thing asked for, ``detail``.
    """
    trimmed, asking, led = _bare(text, language)
    remembered = remembered or led.remember
    cues = _cues(trimmed, asking, language)
    marks = {mark.name: mark.weight for mark in language.mark if mark.pattern.search(trimmed)}
    if language.topical.search(trimmed):
        bonus += language.score.topical
    if not (cues or remembered or led.corrected):
        return None
    bonus += REMEMBERED if remembered else 0.0
    bonus += THRESHOLD if led.corrected else 0.0
    heaviest = max(cues, key=lambda cue: cue.weight, default=None)
    weight = heaviest.weight if heaviest else 0.0
    wished = in_request and heaviest and heaviest.kind is Kind.DECISION and weight <= DETAIL
    if wished or (detail and weight <= _OF_A_REQUEST):
        bonus += language.score.specification
    return Verdict(
        text=trimmed,
        kind=heaviest.kind if heaviest else _remembered_kind(marks),
        score=weight + sum(marks.values()) + bonus,
        cue=weight,
        strong=bool(language.importance.strong.search(trimmed)),
        remembered=remembered,
        with_request=bool(heaviest and heaviest.with_request),
        despite=heaviest.despite if heaviest else frozenset(),
    )


def _cues(text: str, asking: str | None, language: Language) -> list[Cue]:
    """The cues of a statement; of a question only those that speak for one."""
    wanted = [cue for cue in language.cue if QUESTION in cue.despite] if is_question(text, language) else language.cue
    return [cue for cue in wanted if cue.pattern.search(text) or (asking and cue.pattern.search(asking))]


def is_question(text: str, language: Language) -> bool:
    """Whether a statement asks rather than states."""
    return bool(language.reject[QUESTION].search(text))


@dataclass(frozen=True, slots=True)
class _Led:
    """What a statement was led in by: "remember that", "that's wrong"."""

    remember: bool
    corrected: bool


def _bare(text: str, language: Language) -> tuple[str, str | None, _Led]:
    """The statement itself; the same with "remember …" where that goes before; what led into it."""
    trimmed = language.trim(text)
    confirmed = language.lesson.confirmation.match(trimmed)
    if confirmed:
        trimmed = language.trim(trimmed[confirmed.end() :])
    corrected = language.correction.match(trimmed)
    if corrected:
        trimmed = language.trim(trimmed[corrected.end() :])
    remember = language.remember.strip.match(trimmed)
    asking = trimmed if remember else None
    if remember and trimmed[remember.end() :].strip():
        trimmed = trimmed[remember.end() :].strip()
    return trimmed, asking, _Led(bool(remember), bool(corrected))


def _remembered_kind(marks: dict[str, float]) -> Kind:
    return Kind.PREFERENCE if "imperative" in marks else Kind.FACT
