"""Finds, in reports: why a plan is as it is: the design decision and its reason, never the steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nacre.extraction.reading.course import objects
from nacre.extraction.reading.cues import Language, language_of
from nacre.extraction.reading.reports import Passage, bare, is_certain, passages
from nacre.extraction.reading.speech import Utterance, is_content
from nacre.extraction.rules.classify import Verdict
from nacre.extraction.rules.findings import Finding, to_finding
from nacre.extraction.rules.neighbours import in_a_row, leans
from nacre.values.memory import Kind
from nacre.values.session import Speaker, Trust, Turn

MOST = 2
"""Plans of a session whose reasons are told."""

_WEIGHT = 1.05
_HEADINGS = 2
_OPENING = 300
_MAX_TOGETHER = 400
_MAX_LEAD = 140
_TELLING_WORDS = 3
_ASIDE = re.compile(r"\s*[(（][^()（）]*[)）]")
_APPROVED = "ok"
_PLAN_CALL = "ExitPlanMode"


def planned(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> Iterator[Finding]:
    """The reasons of plans that the owner handed over or approved, and did not object to afterwards."""
    found: dict[str, Finding] = {}
    for index, speaker in _plans(turns):
        after = next((one for one in spoken if one.index > index), None)
        if after and objects(after, language_of(after.text)):
            continue
        finding = _finding(turns[index].text, index, speaker)
        if finding:
            found[finding.content] = finding
    yield from list(found.values())[-MOST:]


def _plans(turns: Sequence[Turn]) -> Iterator[tuple[int, Speaker]]:
    for index, turn in enumerate(turns):
        if turn.trust is Trust.UNTRUSTED or not is_content(turn):
            continue
        if turn.speaker is Speaker.OWNER and _is_plan(turn.text):
            yield index, Speaker.OWNER
        approved = any(call.name == _PLAN_CALL and call.outcome == _APPROVED for call in turn.tool_calls)
        if turn.speaker is Speaker.AGENT and approved:
            yield index, Speaker.AGENT


def _is_plan(text: str) -> bool:
    opening = text[:_OPENING]
    headed = sum(bool(one.heading) for one in passages(text)) >= _HEADINGS
    return headed and bool(language_of(opening).plan.opening.search(opening))


def _finding(text: str, index: int, speaker: Speaker) -> Finding | None:
    told = _reasoned(text)
    if told is None:
        return None
    verdict = Verdict(told, Kind.DECISION, _WEIGHT, _WEIGHT)
    return to_finding(verdict, told, (index,), language_of(told), speaker)


@dataclass(frozen=True, slots=True)
class _Said:
    """A sentence of a plan: the heading above it, and whether it is prose rather than an item of a list."""

    text: str
    heading: str


def _reasoned(text: str) -> str | None:
    """What a plan decides and why; ``None`` where it says no reason."""
    parts = passages(text)
    language = language_of(text)
    title = next((language.plan.title.sub("", one.heading) for one in parts if one.heading), "")
    said = [one for part in parts for one in _prose(part, language)]
    reasons = [one for one in said if language.plan.reason.search(one.text)]
    if not reasons:
        return None
    reason = max(reasons, key=lambda one: bool(language.plan.design.search(f"{one.heading} {one.text}")))
    decision = next((one for one in said if language.plan.solution.search(one.heading) and one is not reason), None)
    told = [decision.text] if decision and not leans(decision.text, language) else []
    led = in_a_row([*told, reason.text], language)
    lead = title if (not told and leans(reason.text, language)) or len(title) + len(led) < _MAX_TOGETHER else ""
    if leans(reason.text, language) and reason.heading and not language.plan.section.search(reason.heading):
        lead, led = _headed(title, reason), reason.text
    if len(lead) > _MAX_LEAD or len(lead) + len(led) > _MAX_TOGETHER:
        return None if leans(led, language) else led
    return f"{lead}{':' if language.joiner else '：'}{language.joiner}{led}" if lead else led


def _headed(title: str, reason: _Said) -> str:
    """The heading above a reason without what stands in brackets; the title where that says too little by itself."""
    heading = _ASIDE.sub("", reason.heading).strip()
    return heading if len(heading.split()) >= _TELLING_WORDS or not title else title


def _prose(part: Passage, language: Language) -> list[_Said]:
    """The sentences of a part of a plan that say how things are to be, outside of steps, files and checks."""
    cues = language.plan
    if cues.steps.search(part.heading):
        return []
    told = [bare(one.text, language) for one in part.statements if not cues.step.search(one.text)]
    return [
        _Said(one, part.heading) for one in told if one and is_certain(one, language) and not cues.before.search(one)
    ]
