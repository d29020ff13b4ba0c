"""Finds, in words: what a project is, from the request that begins it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.speech import Utterance
from nacre.extraction.rules.classify import Verdict
from nacre.extraction.rules.findings import Finding, to_finding
from nacre.extraction.rules.neighbours import leans
from nacre.values.memory import Kind

_WEIGHT = 1.0
_FIRST = 2
_STATEMENTS = 4
_MAX_CHARACTERS = 300


def begun(spoken: Sequence[Utterance]) -> Iterator[Finding]:
    """What is built, with what or for what, where a session begins with it: said of the project, not as a request."""
    for utterance in spoken[:_FIRST]:
        for one in utterance.statements[:_STATEMENTS]:
            language = language_of(one.text)
            text = language.trim(one.text)
            if len(text) > _MAX_CHARACTERS or not language.opening.whole.search(text) or leans(text, language):
                continue
            if language.opening.part.search(text) or text.endswith(("?", "？")):
                continue
            thing = language.opening.asking.sub("", text, count=1)
            verdict = Verdict(thing, Kind.FACT, _WEIGHT, _WEIGHT)
            finding = to_finding(verdict, f"{language.opening.says}{thing}", (utterance.index,), language)
            if finding:
                yield finding
                return
