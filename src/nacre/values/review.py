"""Values for memory use and review: maturity, verdicts, queue entries, and questions to the user."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from nacre.base.frozen import frozen
from nacre.base.times import shown_day
from nacre.values.memory import Memory

NEUTRAL_QUALITY = 0.5

LEAST_REVIEWED = 0.5
"""Minimum confidence for treating a memory as outdated.

It is then queued for review and omitted from new sessions.
"""

_ID_END_CHARACTERS = 8


UNSAID = "its document does not say it any more"
"""Review reason for a memory whose document no longer states it."""

_CONTRADICTED_LATER = "a later session says otherwise"
_HEAD_END = "): "


class Maturity(StrEnum):
    """How often a memory was used: under 5 times, 5 to 19 times, or at least 20 times."""

    CANDIDATE = "candidate"
    ESTABLISHED = "established"
    PROVEN = "proven"


class Reason(StrEnum):
    """The reason why a memory is queued for review.

    ``proposed``: an agent stored the memory. ``wish``: an agent asks to retire or change the
    memory. ``merge``: a writer considers the memory a duplicate, but rules do not. ``stale``: the
    document that contained the memory has changed, a session changed files that the memory names,
    or a later message makes the memory doubtful.
    """

    LOW_QUALITY = "low_quality"
    CONTRADICTED = "contradicted"
    MANUAL = "manual"
    PROPOSED = "proposed"
    WISH = "wish"
    MERGE = "merge"
    STALE = "stale"


def said_by_agent(words: str, session: str, at: datetime) -> str:
    """Return the reason for reviewing an owner's rule that an agent contradicted.

    The reason quotes the agent.
    """
    return f"{_CONTRADICTED_LATER} (an agent, {shown_day(at)}, {session}{_HEAD_END}{words}"


def as_told(detail: str) -> str:
    """Remove the agent's words from a review reason, so that it can be shown with the memory.

    See :func:`said_by_agent`.
    """
    head, end, _ = detail.partition(_HEAD_END)
    return f"{head})" if end and head.startswith(_CONTRADICTED_LATER) else detail


class Verdict(StrEnum):
    """The role of a memory in a reply.

    ``used``: the reply used the memory. ``unused``: the reply did not use the memory.
    ``corrected``: the memory was wrong.
    """

    USED = "used"
    UNUSED = "unused"
    CORRECTED = "corrected"


@frozen
class Judged:
    """A memory and its role in a reply.

    ``before``, ``after``: quality of the memory (0 to 1) before and after the reply. ``likeness``:
    similarity between the memory and the reply, or None if a person decided. Without vectors, this
    is the share of the memory's words in the reply.
    """

    memory_id: str
    subject: str
    verdict: Verdict
    likeness: float | None
    before: float
    after: float


@frozen
class FeedbackReport:
    """The verdicts derived from a reply.

    ``note``: reason why there are no verdicts. ``by``: ``cosine`` or ``words`` if texts were
    compared, or ``person`` if a person decided.
    """

    judged: tuple[Judged, ...] = ()
    by: str | None = None
    note: str | None = None


@frozen
class QueuedReview:
    """A memory in the review queue, with the reason and the time when it was queued."""

    memory: str
    reason: Reason
    detail: str | None
    since: datetime | None


@frozen
class Usage:
    """How a memory has been used so far.

    Several recalls in one session count once (docs/context.md). ``intervals`` are the times of the
    counted recalls, in epoch milliseconds. ``access_count`` counts every use. ``shown``: number of
    sessions that received the memory in a context. ``followed``, ``broken``: number of these
    sessions that followed or broke it.
    """

    recall_count: int = 0
    last_recalled: datetime | None = None
    intervals: tuple[int, ...] = ()
    contradictions: int = 0
    quality: float = NEUTRAL_QUALITY
    access_count: int = 0
    shown: int = 0
    followed: int = 0
    broken: int = 0


@frozen
class StepsDue:
    """A memory whose importance increases because it was recalled.

    ``earned``: total number of increases that recalls justify. ``taken``: number of increases
    already applied.
    """

    memory: str
    earned: int
    taken: int


class Relates(StrEnum):
    """How the first of two memories relates to the second, according to the user."""

    RELATED_TO = "related_to"
    DEPENDS_ON = "depends_on"
    SPECIALIZES = "specializes"
    PART_OF = "part_of"
    BUILDS_ON = "builds_on"
    ELABORATES = "elaborates"
    ALTERNATIVE_TO = "alternative_to"
    CONTRADICTS = "contradicts"


@frozen
class Question:
    """A question to the user about how two memories are related.

    ``first``: later memory. ``why``: reason for the question. ``contradicts``: True if rules or a
    model found a contradiction between the memories.
    """

    first: Memory
    second: Memory
    why: str
    contradicts: bool = False

    @property
    def id(self) -> str:
        """The final characters of both ids, joined by ``+``."""
        return f"{self.first.id[-_ID_END_CHARACTERS:]}+{self.second.id[-_ID_END_CHARACTERS:]}"


@frozen
class Reflection:
    """Questions, most useful first, and their total number."""

    questions: tuple[Question, ...] = ()
    total: int = 0


@frozen
class Reflected:
    """The effect of the user's answer.

    ``action``: ``linked``, ``stored``, ``settled`` (a contradiction was resolved) or ``skipped``.
    ``first``, ``second``: both memories after the answer. ``stored``: new or known memory that
    contains the user's written answer.
    """

    action: str
    first: Memory
    second: Memory
    stored: Memory | None = None


@frozen
class UnansweredQuestion:
    """A question without an answer, in one or several wordings.

    ``id``: final characters of the latest recorded question's id, for ``nacre review gaps --todo``.
    ``times``: how often the question was asked. ``unsure``: how often the results were too
    uncertain to show.
    """

    id: str
    question: str
    times: int
    unsure: int
    first: datetime
    last: datetime
    projects: tuple[str, ...] = ()
    wordings: tuple[str, ...] = ()


@frozen
class Unanswered:
    """Questions without an answer, most frequent first, and their total number.

    ``closed``: number of earlier questions that can be answered now. ``by``: measure for grouping
    similar questions, ``cosine`` or ``words``.
    """

    gaps: tuple[UnansweredQuestion, ...] = ()
    total: int = 0
    closed: int = 0
    by: str = "cosine"
