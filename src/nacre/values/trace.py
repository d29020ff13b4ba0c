"""Traces: what one run of a model, or one answered question, went through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from nacre.values.model_calls import Tokens

NOTHING_FOUND = "nothing found"
NOT_SURE = "nothing that is sure enough to be shown"
"""Outcomes of a case whose question was not answered."""

PROJECTS = "projects"
NARROWED = "narrowed"
"""What a case keeps of the filter: the projects asked about, and the names of other filters."""


class TraceKind(StrEnum):
    """What was run; a ``case`` is one answered question, ``index`` what was read and learned from transcripts."""

    CASE = "case"
    INDEX = "index"
    EXTRACTION = "extraction"
    DEDUP = "dedup"
    CLAIMS = "claims"
    CONTRADICTION = "contradiction"
    TODOS = "todos"
    RECALL = "recall"
    HANDOFF = "handoff"
    DREAM = "dream"
    CHAT = "chat"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what went in and came out in a line each, what it refers to (ids), and how long it took.

    A step that asked a model has its name, tokens and cost in US dollars (``None`` where the price is not known).
    """

    title: str
    input: str = ""
    output: str = ""
    status: str = "done"
    """``done``, ``failed`` or ``skipped``."""
    refs: tuple[str, ...] = ()
    seconds: float = 0.0
    model: str = ""
    tokens: Tokens = Tokens()
    cost: Decimal | None = None
    more: Mapping[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trace:
    """One run. ``subject`` is what it was about: a session's id, a question.

    Of a question, ``session`` tells in which session of a host it was asked: a hash of its id.
    """

    id: str
    kind: TraceKind
    subject: str
    began: datetime
    ended: datetime | None = None
    outcome: str = ""
    steps: tuple[Step, ...] = ()
    session: str = ""
