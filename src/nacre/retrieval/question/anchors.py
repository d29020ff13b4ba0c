"""Times told by what happened: "before the migration", "迁移之后".

When it happened is looked up: the time of the turn that speaks of it most surely. The window only nudges turns, as any
time does, and narrows memories where that leaves an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from nacre.retrieval.question.question import Question
from nacre.text.time_expressions import Window

_ENGLISH = re.compile(
    r"\b(?P<side>before|after|since|until)\s+(?:the|our|my|we|i|they)\s+(?P<event>[^?.,;!\n]{3,60})", re.IGNORECASE
)
_CHINESE = re.compile(r"(?P<event>[^\s,，。？?！!；;、]{2,12}?)(?P<side>之前|以前|之后|以后)")
_SAME_DAY = timedelta(days=1)
"""What led to an event and what followed at once is told with it."""

_BEFORE = ("before", "until", "之前", "以前")


@dataclass(frozen=True, slots=True)
class Anchor:
    """What happened, in the question's words, and on which side of it the question lies."""

    event: str
    side: str
    words: str


def find_anchor(question: Question) -> Anchor | None:
    """The event a question is told by; ``None`` when it names a time itself, or none."""
    if question.window:
        return None
    match = _ENGLISH.search(question.text) or _CHINESE.search(question.text)
    return Anchor(match["event"].strip(), match["side"].lower(), match.group()) if match else None


def anchored(question: Question, when: Callable[[str], datetime | None]) -> Question:
    """The question with the window that its event gives; ``when`` finds the time of an event."""
    anchor = find_anchor(question)
    moment = when(anchor.event) if anchor else None
    if anchor is None or moment is None:
        return question
    before = anchor.side in _BEFORE
    window = (
        Window(None, moment + _SAME_DAY, anchor.words) if before else Window(moment - _SAME_DAY, None, anchor.words)
    )
    return replace(question, window=window)
