"""Values for memory use and review: maturity, verdicts, queue entries, and unanswered questions."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from nacre.base.frozen import frozen
from nacre.base.times import shown_day

NEUTRAL_QUALITY = 0.5

LEAST_REVIEWED = 0.5
"""Minimum confidence for treating a memory as outdated.

Such memories are queued for review and omitted from new sessions.
"""

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
    """The reason for reviewing a memory.

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
    """Return the reason to review an owner's rule that an agent contradicted, quoting the agent."""
    return f"{_CONTRADICTED_LATER} (an agent, {shown_day(at)}, {session}{_HEAD_END}{words}"


def as_told(detail: str) -> str:
    """Return a reason from :func:`said_by_agent` without the agent's words, for display."""
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
    """A memory that was in an agent's context, and whether the reply used it.

    ``before``, ``after``: its quality (0 to 1) before and after this verdict.
    ``likeness``: its similarity to the reply, or None if a person decided.
    """

    memory_id: str
    subject: str
    verdict: Verdict
    likeness: float | None
    before: float
    after: float


@frozen
class FeedbackReport:
    """The memories that an agent's reply used or contradicted.

    ``by`` says how this was decided: ``cosine``, ``words`` or ``person``. ``note`` explains why
    there are no verdicts.
    """

    judged: tuple[Judged, ...] = ()
    by: str | None = None
    note: str | None = None


@frozen
class QueuedReview:
    """A memory waiting for review, with the reason and the time when it was queued."""

    memory: str
    reason: Reason
    detail: str | None
    since: datetime | None


@frozen
class Usage:
    """A memory's usage. Several recalls in one session count once (docs/context.md).

    ``intervals``: times of the counted recalls, in epoch milliseconds.
    ``access_count``: number of all uses.
    ``shown``: number of sessions that received the memory.
    ``followed``, ``broken``: number of these sessions that followed or violated it.
    """

    recall_count: int = 0
    last_recalled: datetime | None = None
    intervals: tuple[int, ...] = ()
    quality: float = NEUTRAL_QUALITY
    access_count: int = 0
    shown: int = 0
    followed: int = 0
    broken: int = 0


@frozen
class StepsDue:
    """A memory whose importance should rise because it was recalled often.

    ``earned`` is the number of increases that it deserves, and ``applied`` the number already made.
    """

    memory: str
    earned: int
    applied: int


@frozen
class UnansweredQuestion:
    """A question that recall could not answer, possibly asked in several wordings.

    ``id``: final characters of the id of the latest time it was asked.
    ``times``: how often it was asked.
    ``unsure``: how often the results were too uncertain to show.
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
    """Unanswered questions, most frequent first, and their number.

    ``closed``: number of earlier questions that can be answered now.
    ``by``: how similar questions were grouped, ``cosine`` or ``words``.
    """

    gaps: tuple[UnansweredQuestion, ...] = ()
    total: int = 0
    closed: int = 0
    by: str = "cosine"
