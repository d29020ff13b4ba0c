"""Requests to settle what waits for a person, and to have it judged."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.memories.requests import Expected
from nacre.platform.request import Request
from nacre.values.review import Relates
from nacre.views import Choice

References = Annotated[tuple[str, ...], Meta(description="Memories that wait, by their ids or subjects.", min_length=1)]

Into = Annotated[
    str | None,
    Meta(description="Merge it into this memory, by its id or subject; the content is that of both then."),
]


class ReviewRequest(Request, frozen=True, kw_only=True):
    """Memories that wait for review."""

    references: References


class ReviewKeepRequest(ReviewRequest, frozen=True, kw_only=True):
    """Keep memories that wait for review; in other words, or within another memory, one of them."""

    content: Annotated[str | None, Meta(description="In these words; its own where left out.")] = None
    into: Into = None
    expected: Expected = None


class ReviewUndoRequest(Request, frozen=True, kw_only=True):
    """Take back the last decision about what waited: it waits again."""

    reference: Annotated[str, Meta(description="The candidate that was kept or dropped, or the memory, by its id.")]


class ReviewRetireRequest(ReviewRequest, frozen=True, kw_only=True):
    """Retire memories that wait for review."""

    reason: Annotated[str | None, Meta(description="Why; that of the review where it is left out.")] = None


class CandidatesRequest(Request, frozen=True, kw_only=True):
    """Candidates that wait."""

    project: Annotated[str | None, Meta(description="Those of one project.")] = None
    limit: Annotated[int, Meta(description="Candidates at most; 0 for all.", ge=0)] = 50
    offset: Annotated[int, Meta(description="Candidates to skip.", ge=0)] = 0


class KeepCandidateRequest(Request, frozen=True, kw_only=True):
    """Make a candidate a memory."""

    reference: Annotated[str, Meta(description="The candidate, by its id or four characters of its beginning or end.")]
    content: Annotated[str | None, Meta(description="In these words; its own where left out.")] = None
    into: Into = None


class DropCandidatesRequest(Request, frozen=True, kw_only=True):
    """Do away with candidates."""

    references: Annotated[tuple[str, ...], Meta(description="Candidates, by their ids.", min_length=1)]


class ResolveRequest(Request, frozen=True, kw_only=True):
    """Say which of two memories holds."""

    reference: Annotated[
        str, Meta(description="The pair's id, a memory that is in one pair only, or the ids of both, joined by +.")
    ]
    choice: Annotated[Choice, Meta(description="Which one holds.")]
    reason: Annotated[str | None, Meta(description="Why; it is kept in the ledger.")] = None


class JudgeWaitingRequest(Request, frozen=True, kw_only=True):
    """Have a model judge the memories that wait."""

    background: Annotated[bool, Meta(description="As background work; else what failed is tried at once.")] = True
    seconds: Annotated[float | None, Meta(description="Longest time, in seconds; none: until all are judged.")] = None


class EstimateClaimsRequest(Request, frozen=True, kw_only=True):
    """What a backfill of claims would cost."""

    limit: Annotated[int, Meta(description="Memories at most.", ge=1)] | None = None


class BackfillRequest(EstimateClaimsRequest, frozen=True, kw_only=True):
    """Have a model tell what older memories claim."""

    batch_size: Annotated[int, Meta(description="Claims that are written together.", ge=1, le=1000)] = 10


class ReflectRequest(Request, frozen=True, kw_only=True):
    """What to ask the owner about memories that nothing connects, or that contradict each other."""

    limit: Annotated[int, Meta(description="Questions at most.", ge=1, le=100)] = 5
    project: Annotated[str | None, Meta(description="About one project only.")] = None


class ReflectAnswerRequest(Request, frozen=True, kw_only=True):
    """The owner's answer to one such question: just one of a link, words, a choice, or to skip it."""

    reference: Annotated[
        str, Meta(description="Two memories, by their ids joined by +; a link leads from the first to the second.")
    ]
    text: Annotated[str | None, Meta(description="What connects them, in a sentence: it becomes a memory.")] = None
    link: Annotated[Relates | None, Meta(description="How the first one relates to the second.")] = None
    keep: Annotated[Choice | None, Meta(description="Which one holds, of two that contradict each other.")] = None
    skip: Annotated[bool, Meta(description="Do not ask about them again.")] = False
    lesson: Annotated[bool, Meta(description="The sentence is a lesson; else a fact.")] = False


GapReference = Annotated[str, Meta(description="The gap, by its id, or that of any of its cases.")]


class UnansweredRequest(Request, frozen=True, kw_only=True):
    """Questions that nacre was asked and did not answer, grouped by what they ask."""

    days: Annotated[int, Meta(description="Questions of the last days.", ge=1, le=3650)] = 30
    project: Annotated[str | None, Meta(description="Only questions about this project.")] = None
    min_times: Annotated[int, Meta(description="Asked at least this many times.", ge=1)] = 1
    limit: Annotated[int, Meta(description="Gaps at most.", ge=1, le=100)] = 10


class GapRequest(Request, frozen=True, kw_only=True):
    """One gap."""

    reference: GapReference


class GapTodoRequest(GapRequest, frozen=True, kw_only=True):
    """Store a todo to write down what a gap asks."""

    importance: Annotated[int, Meta(description="1 to 10.", ge=1, le=10)] = 6
