"""What a project is, from the request that begins it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacre.extract.classify import Verdict
from nacre.extract.context import leans
from nacre.extract.cues import language_of
from nacre.extract.findings import Finding, to_finding
from nacre.extract.speech import Utterance
from nacre.model.memory import Kind

_WEIGHT = 1.0
_FIRST = 2
_STATEMENTS = 4
_MAX_CHARACTERS = 300


def begun(spoken: Sequence[Utterance]) -> Iterator[Finding]:
    """The request to build a whole thing that says what with or what for, at the beginning of a session."""
    for utterance in spoken[:_FIRST]:
        for one in utterance.statements[:_STATEMENTS]:
            language = language_of(one.text)
            text = language.trim(one.text)
            if len(text) > _MAX_CHARACTERS or not language.opening.whole.search(text) or leans(text, language):
                continue
            if language.opening.part.search(text) or text.endswith(("?", "？")):
                continue
            finding = to_finding(Verdict(text, Kind.FACT, _WEIGHT, _WEIGHT), text, (utterance.index,), language)
            if finding:
                yield finding
                return
