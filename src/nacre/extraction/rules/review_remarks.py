"""Finds, in reports: remarks of a review that were handed over and followed: lessons in the reviewer's words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nacre.extraction.reading.course import changed, refuted, stretches, welcome
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.reports import bare, is_telling, passages
from nacre.extraction.reading.speech import Utterance
from nacre.extraction.rules.classify import Verdict
from nacre.extraction.rules.findings import Finding, to_finding
from nacre.extraction.rules.neighbours import in_a_row, leans
from nacre.values.memory import Kind
from nacre.values.session import Speaker, Turn

MOST = 2
"""Remarks of a session that are told."""

_WEIGHT = 1.0
_QUOTED = re.compile(r"[\"“「](?P<text>[^\"“”「」]{60,1500})[\"”」]|(?P<lines>(?:^>.*(?:\n|\Z))+)", re.MULTILINE)
_MAX_TOGETHER = 400


def reviewed(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> Iterator[Finding]:
    """What a remark says goes wrong and how to do it, once it was followed and met no objection."""
    found: list[Finding] = []
    for stretch in stretches(turns, spoken):
        text = turns[stretch.begin].text
        if not language_of(text).feedback.handed.search(text) or not changed(turns, stretch.begin, stretch.end):
            continue
        welcomed = welcome(turns, spoken, stretch)
        told = _remark(text)
        if welcomed is None or not told or refuted(told, stretch.end, turns, spoken):
            continue
        evidence = (stretch.begin, *([stretch.end] if stretch.end < len(turns) else []))
        verdict = Verdict(told, Kind.LESSON, _WEIGHT + welcomed, _WEIGHT)
        finding = to_finding(verdict, told, evidence, language_of(told), Speaker.AGENT)
        found += [finding] if finding else []
    yield from found[-MOST:]


def _remark(text: str) -> str:
    """The sentence of a quoted remark that says what goes wrong, with the one that says how to do it."""
    for match in _QUOTED.finditer(text):
        quoted = match["text"] or re.sub(r"^>\s?", "", match["lines"], flags=re.MULTILINE)
        language = language_of(quoted)
        cues = language.feedback
        said = [bare(one.text, language) for part in passages(quoted) for one in part.statements]
        said = [one for one in said if one and is_telling(one, language)]
        harm = next((one for one in said if cues.harm.search(one) and not leans(one, language)), "")
        remedy = next((one for one in said if cues.remedy.search(one) and one != harm), "")
        if harm and (remedy or cues.remedy.search(harm)):
            both = in_a_row([one for one in (harm, remedy) if one], language)
            return both if len(both) <= _MAX_TOGETHER else harm
    return ""
