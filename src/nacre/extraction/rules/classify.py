"""Weighs: which kind of memory a statement is, and how sure that is."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from nacre.extraction.reading.cue_sets import Cue
from nacre.extraction.reading.cues import Language
from nacre.extraction.reading.meaning import PLAIN, Affinity
from nacre.values.memory import Kind

THRESHOLD = 0.999  # sums of tenths

DETAIL = 0.7

QUESTION = "question"  # the reason for refusal that nearly no cue outweighs

REMEMBERED = 2.0  # what was to be remembered goes before everything that was only said

PROVEN = 1.4  # what the course of the session bears out: asked for thrice, a cause that was confirmed

_SURE = 0.75  # how certain meaning must be of a kind to settle it against a light cue
_CLEAR = 0.5
_JUNK = 0.3  # below this worth a statement sounds like junk, whatever its cue
_LIGHT = 0.8
_AGREED = 0.2
_OF_A_REQUEST = 1.0
_FROM_AFAR = 0.1  # so much below the worth of what needs no cue, marks may still make up for it


_QUOTED = re.compile(r"[\"“”`][^\"“”`]*[\"“”`]")


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
    affinity: Affinity | None = None,
) -> Verdict | None:
    """Weigh a statement; ``None`` when nothing in it says what it is.

    ``in_request`` says that the message began by asking for something: what it says a thing should be are
    then the details of one piece of work; so is all that is said of the thing asked for, ``detail``. ``affinity`` is
    what the statement means, where that is known.
    """
    trimmed, asking, led = _bare(text, language)
    remembered = remembered or led.remember
    cues = _cues(trimmed, asking, language)
    marks = {mark.name: mark.weight for mark in language.mark if mark.pattern.search(trimmed)}
    if language.topical.search(trimmed):
        bonus += language.score.topical
    if not (cues or remembered or led.corrected):
        return _meant(trimmed, language, marks, bonus, affinity)
    bonus += REMEMBERED if remembered else 0.0
    bonus += THRESHOLD if led.corrected else 0.0
    heaviest = max(cues, key=lambda cue: cue.weight, default=None)
    weight = heaviest.weight if heaviest else 0.0
    wished = in_request and heaviest and heaviest.kind is Kind.DECISION and weight <= DETAIL
    if wished or (detail and weight <= _OF_A_REQUEST):
        bonus += language.score.specification
    if affinity:
        bonus += affinity.weight * min(0.0, affinity.worth - _JUNK)
        agrees = heaviest and heaviest.kind is affinity.kind and weight >= _LIGHT and affinity.worth >= _SURE
        bonus += _AGREED if agrees else 0.0
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


def _meant(
    text: str, language: Language, marks: dict[str, float], bonus: float, affinity: Affinity | None
) -> Verdict | None:
    """A statement that only its meaning speaks for; what it is said with counts all the same."""
    alone = language.alone
    if affinity is None or affinity.worth < affinity.alone - _FROM_AFAR or alone.refuse.search(text):
        return None
    own = _QUOTED.sub("", text)
    if alone.trouble.search(own) and not alone.because.search(own):
        return None
    said = min(_FROM_AFAR, sum(marks.values()) + bonus)
    if affinity.worth + said < affinity.alone:
        return None
    kind = affinity.kind if affinity.certainty >= _CLEAR else affinity.plain
    return Verdict(text, kind, THRESHOLD, 0.0, strong=bool(language.importance.strong.search(text)))


def settled(verdict: Verdict, affinity: Affinity | None) -> Verdict:
    """The kind that meaning is sure of, where only a light cue speaks for another."""
    light = 0 < verdict.cue <= _LIGHT and verdict.kind in PLAIN
    if not affinity or not light or affinity.kind not in PLAIN or min(affinity.certainty, affinity.worth) < _SURE:
        return verdict
    return replace(verdict, kind=affinity.kind)


def _remembered_kind(marks: dict[str, float]) -> Kind:
    return Kind.PREFERENCE if "imperative" in marks else Kind.FACT
