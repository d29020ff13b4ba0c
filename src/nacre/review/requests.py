"""Requests to settle what waits for a person, and to have it judged."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.memories.requests import Expected
from nacre.platform.request import Request
from nacre.values.review import Relates
from nacre.views import Choice, PendingKind

Item = Annotated[
    str,
    Meta(
        description="An item: a candidate or a memory by its id, a conflict by the ids of both memories, joined by +, "
        "or of one that is in one conflict only."
    ),
]


class ReviewRequest(Request, frozen=True, kw_only=True):
    """Items in review: conflicts first, then doubts, then candidates, the likeliest first."""

    project: Annotated[str | None, Meta(description="Those of one project.")] = None
    only: Annotated[PendingKind | None, Meta(description="Those of one kind.")] = None
    limit: Annotated[int, Meta(description="Items at most; 0 for all.", ge=0)] = 50
    offset: Annotated[int, Meta(description="Items to skip.", ge=0)] = 0


class ReviewDropRequest(Request, frozen=True, kw_only=True):
    """Drop candidates for good, and retire memories in doubt."""

    references: Annotated[tuple[Item, ...], Meta(description="Items, by their ids.", min_length=1)]
    reason: Annotated[str | None, Meta(description="Why memories are retired; that of the review if left out.")] = None


class ReviewKeepRequest(Request, frozen=True, kw_only=True):
    """Keep items: candidates become memories, memories in doubt stay, both memories of a conflict hold."""

    references: Annotated[tuple[Item, ...], Meta(description="Items, by their ids.", min_length=1)]
    content: Annotated[str | None, Meta(description="Keep one item in these words.")] = None
    into: Annotated[str | None, Meta(description="Merge one item into this memory, by its id or subject.")] = None
    expected: Expected = None
    anyway: Annotated[bool, Meta(description="Keep a candidate although a later statement departs from it.")] = False


class ReviewResolveRequest(Request, frozen=True, kw_only=True):
    """Say which of two memories in conflict holds."""

    reference: Item
    choice: Annotated[Choice, Meta(description="Which one holds.")]
    reason: Annotated[str | None, Meta(description="Why; it is kept in the ledger.")] = None


class ReviewUndoRequest(Request, frozen=True, kw_only=True):
    """Take back the last decision about an item: it waits again."""

    reference: Item


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
