"""What is known of a memory's use, in words: how mature it is, what a reply said of it, why it is to be reviewed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from nacre.base.times import shown_day
from nacre.values.memory import Memory

NEUTRAL_QUALITY = 0.5

LEAST_REVIEWED = 0.5
"""Least confidence that a memory is out of date at which it waits for review, and no session starts with it."""

_REFERENCE = 8


UNSAID = "its document does not say it any more"
"""Why a memory waits that was read in a document."""

_OTHERWISE = "a later session says otherwise"
_END = "): "


class Maturity(StrEnum):
    """How much use a memory has seen: under 5 accesses, from 5, from 20."""

    CANDIDATE = "candidate"
    ESTABLISHED = "established"
    PROVEN = "proven"


class Reason(StrEnum):
    """Why a memory is to be reviewed.

    ``proposed``: an agent stored it. ``wish``: an agent wants it to end, or to say something else. ``merge``: a writer
    takes it for the same as another, and code does not. ``stale``: the document it was read in does not say it any
    more, sessions changed the files that it names, or a writer doubts it by what was said later.
    """

    LOW_QUALITY = "low_quality"
    CONTRADICTED = "contradicted"
    MANUAL = "manual"
    PROPOSED = "proposed"
    WISH = "wish"
    MERGE = "merge"
    STALE = "stale"


def said_by_agent(words: str, session: str, at: datetime) -> str:
    """Why a rule of the owner's waits of which an agent says otherwise: the words are shown who reviews it."""
    return f"{_OTHERWISE} (an agent, {shown_day(at)}, {session}{_END}{words}"


def as_told(detail: str) -> str:
    """What is told beside a memory of why it waits: none of an agent's words of :func:`said_by_agent`."""
    head, end, _ = detail.partition(_END)
    return f"{head})" if end and head.startswith(_OTHERWISE) else detail


class Verdict(StrEnum):
    """What a reply, or a person, said of a memory: it was used, it was not, it was wrong or had to be said anew."""

    USED = "used"
    UNUSED = "unused"
    CORRECTED = "corrected"


@dataclass(frozen=True, slots=True)
class Judged:
    """One memory on which a verdict fell, and its quality (0 to 1) before and after.

    ``likeness`` is what decided: a cosine where vectors are compared, else the share of the memory's words; ``None``
    where a person judged.
    """

    memory_id: str
    subject: str
    verdict: Verdict
    likeness: float | None
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class FeedbackReport:
    """What became of a reply: the verdicts, and why there are none where there are none.

    ``by`` says what judged: ``cosine``, ``words`` or ``person``; ``None`` where nothing did.
    """

    judged: tuple[Judged, ...] = ()
    by: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class QueuedReview:
    """A pending entry: which memory, why, and since when."""

    memory: str
    reason: Reason
    detail: str | None
    since: datetime | None


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """How a model judged a pair: the relation, how sure it was (0 to 1), which model, when."""

    relation: str
    confidence: float
    model: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Usage:
    """How a memory was used so far; a session's recalls count once (docs/context.md).

    ``intervals`` are the times of the recalls that count, in epoch milliseconds. ``access_count`` counts every use.
    """

    recall_count: int = 0
    last_recalled: datetime | None = None
    intervals: tuple[int, ...] = ()
    contradictions: int = 0
    quality: float = NEUTRAL_QUALITY
    access_count: int = 0


@dataclass(frozen=True, slots=True)
class StepsDue:
    """A memory, the steps of importance its recalls have earned, and how many of them it has taken."""

    memory: str
    earned: int
    taken: int


class Relates(StrEnum):
    """How the first of two memories relates to the second, as the owner says when asked."""

    RELATED_TO = "related_to"
    DEPENDS_ON = "depends_on"
    SPECIALIZES = "specializes"
    PART_OF = "part_of"
    BUILDS_ON = "builds_on"
    ELABORATES = "elaborates"
    ALTERNATIVE_TO = "alternative_to"
    CONTRADICTS = "contradicts"


@dataclass(frozen=True, slots=True)
class Question:
    """What the owner may be asked: how two memories, the later one first, stand to each other, and why that is asked.

    ``contradicts`` says that both cannot hold, so far as rules or a model can tell.
    """

    first: Memory
    second: Memory
    why: str
    contradicts: bool = False

    @property
    def id(self) -> str:
        """The ends of both ids, joined by ``+``."""
        return f"{self.first.id[-_REFERENCE:]}+{self.second.id[-_REFERENCE:]}"


@dataclass(frozen=True, slots=True)
class Reflection:
    """Some questions, the most worth asking first, and how many there are in all."""

    questions: tuple[Question, ...] = ()
    total: int = 0


@dataclass(frozen=True, slots=True)
class Reflected:
    """What became of an answer: ``linked``, ``stored``, ``settled`` or ``skipped``, and the memories as they are now.

    ``stored`` is the memory that an answer in words became, or the one that says so already.
    """

    action: str
    first: Memory
    second: Memory
    stored: Memory | None = None


@dataclass(frozen=True, slots=True)
class UnansweredQuestion:
    """What was asked, in one wording or several, and not answered.

    ``id`` is the end of the id of its latest case: ``nacre traces show`` tells that one. ``unsure`` counts those of the
    ``times`` it was asked for which something was found and nothing was sure enough to be shown. ``wordings`` are the
    other ways in which it was asked.
    """

    id: str
    question: str
    times: int
    unsure: int
    first: datetime
    last: datetime
    projects: tuple[str, ...] = ()
    wordings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Questions without an answer, the one asked most first, and how many there are in all.

    ``closed`` counts those that are answered by now, among the ones that were looked at; ``by`` says what was compared
    to group questions: ``cosine`` or ``words``.
    """

    gaps: tuple[UnansweredQuestion, ...] = ()
    total: int = 0
    closed: int = 0
    by: str = "cosine"
