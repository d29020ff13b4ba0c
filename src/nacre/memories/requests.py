"""Requests about single memories."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from nacre.platform.request import Request
from nacre.values.memory import Expiry, Kind, Scope, Source, Validity
from nacre.values.recall import Filter
from nacre.values.session import Speaker, Trust

Content = Annotated[str, Meta(description="One piece of knowledge that stands by itself.")]
Subject = Annotated[str, Meta(description="A title; made from the content where missing.")]
Importance = Annotated[int, Meta(description="1 to 10; 10 is never forgotten.", ge=1, le=10)]
Expected = Annotated[
    str | None,
    Meta(description="The etag under which it was read: where the file is another one by now, nothing is written."),
]
KindOfMemory = Annotated[Kind, Meta(description="What sort of knowledge it is.")]
Lasting = Annotated[Expiry, Meta(description="How long it is meant to hold.")]
SeenBy = Annotated[Scope, Meta(description="Who may see it.")]
ExpiresOn = Annotated[
    date | None, Meta(description="From this day on recall and context leave it out; its file stays. None: never.")
]
Tags = Annotated[tuple[str, ...], Meta(description="Its tags.")]
Triggers = Annotated[
    tuple[str, ...],
    Meta(description="Words or phrases: with a prompt that says one of them it is told.", max_length=10),
]
Reference = Annotated[
    str, Meta(description="A memory's id, 4 or more characters of its beginning or end, or its subject.")
]
References = Annotated[
    tuple[str, ...], Meta(description="Memories: their ids, 4 or more characters of these, or their subjects.")
]
HostSession = Annotated[
    str | None,
    Meta(description="The session it is for, by the host's own id: what one session uses is used together."),
]
Limit = Annotated[int, Meta(description="Memories at most.", ge=0)]
Offset = Annotated[int, Meta(description="Items to skip.", ge=0)]
Why = Annotated[str | None, Meta(description="Why.")]


@dataclass(frozen=True, slots=True)
class Asking:
    """How a model is asked about new memories.

    ``online`` asks in so many words (or forbids it); left open, it is background work. ``aggressive`` asks about
    memories that are less alike, and shows ten instead of five; left open, the settings tell. ``threshold`` is the
    cosine of the nearest memory from which a model is asked, instead of the calibrated one. ``seconds`` is how long all
    answers together may take; ``None`` waits for each as long as models may take.
    """

    online: bool | None = None
    aggressive: bool | None = None
    threshold: float | None = None
    seconds: float | None = None


class StoreRequest(Request, frozen=True, kw_only=True):
    """One memory to store.

    Without a ``project`` it is that of the ``folder`` where it is said: one that nobody knows yet is made, as for a
    session there. Without a ``speaker`` it is whoever runs nacre: the agent in an agent's shell, else the owner.
    Without a session in its ``source`` it is that agent's, where its host names it. What an agent stores is its
    proposal, unless it has a ``quote`` that the owner typed in that session, and is that sentence, word for word.
    """

    content: Content
    subject: Subject | None = None
    kind: KindOfMemory = Kind.FACT
    importance: Importance = 7
    expiry: Lasting = Expiry.PERMANENT
    expires_on: ExpiresOn = None
    scope: SeenBy = Scope.PRIVATE
    project: Annotated[str | None, Meta(description="The project it belongs to.")] = None
    folder: Annotated[str | None, Meta(description="Where it is said: tells the project where none is named.")] = None
    tags: Tags = ()
    triggers: Triggers = ()
    canonical_key: Annotated[str | None, Meta(description="A canonical key: one memory holds it.")] = None
    speaker: Annotated[Speaker | None, Meta(description="Who says it; by default, whoever runs nacre.")] = None
    trust: Annotated[Trust, Meta(description="Whether it draws on text from outside.")] = Trust.TRUSTED
    quote: Annotated[
        str | None, Meta(description="For agents: the owner's own sentence, if the content is just that.")
    ] = None
    source: Annotated[Source, Meta(description="The session and the turns in which it was said.")] = Source()
    author: Annotated[str | None, Meta(description="The name of who said it.")] = None
    force: Annotated[bool, Meta(description="Store it beside whatever says the same or otherwise.")] = False
    online_dedup: Annotated[
        bool | None, Meta(description="Ask a language model where the rules cannot tell; or never.")
    ] = None
    aggressive: Annotated[bool | None, Meta(description="Ask about memories that are less alike, too.")] = None
    dedup_threshold: Annotated[float, Meta(description="Ask from this cosine on.", ge=0, le=1)] | None = None

    @property
    def asking(self) -> Asking:
        """How a model is asked about it."""
        return Asking(self.online_dedup, self.aggressive, self.dedup_threshold)


class EditRequest(Request, frozen=True, kw_only=True, omit_defaults=True):
    """Fields of a memory that change; those that are not given stay as they are."""

    reference: Reference
    expected: Expected = None
    subject: Subject | UnsetType = UNSET
    content: Content | UnsetType = UNSET
    kind: KindOfMemory | UnsetType = UNSET
    importance: Importance | UnsetType = UNSET
    expiry: Lasting | UnsetType = UNSET
    expires_on: ExpiresOn | UnsetType = UNSET
    scope: SeenBy | UnsetType = UNSET
    project: Annotated[str | UnsetType | None, Meta(description="The project it belongs to; none: everywhere.")] = UNSET
    tags: Annotated[tuple[str, ...] | UnsetType, Meta(description="Tags that replace its tags.")] = UNSET
    add_tags: Annotated[tuple[str, ...] | UnsetType, Meta(description="Tags beside those it has.")] = UNSET
    triggers: Triggers | UnsetType = UNSET
    valid: Annotated[Validity | UnsetType, Meta(description="When it is true in the world.")] = UNSET
    evergreen: Annotated[bool | UnsetType, Meta(description="It does not fade with age, and is never forgotten.")] = (
        UNSET
    )
    suppressed_contexts: Annotated[
        tuple[Literal["session-start", "prompt"], ...] | UnsetType,
        Meta(description="Kinds of context that leave it out; replaces those it has."),
    ] = UNSET


class GetRequest(Request, frozen=True, kw_only=True):
    """One memory."""

    reference: Reference
    update: Annotated[bool, Meta(description="Count this as a use of the memory.")] = True
    session: HostSession = None


class ReferenceRequest(Request, frozen=True, kw_only=True):
    """One memory."""

    reference: Reference


class ReferencesRequest(Request, frozen=True, kw_only=True):
    """Some memories."""

    references: References


class RetireRequest(Request, frozen=True, kw_only=True):
    """Memories to take out of recall: named by id, subject, or a pattern in which ``*`` stands for any text."""

    references: References = ()
    subjects: Annotated[tuple[str, ...], Meta(description="Also memories about exactly this: never an id.")] = ()
    contains: Annotated[tuple[str, ...], Meta(description="Also memories whose subject contains one of these.")] = ()
    like: Annotated[tuple[str, ...], Meta(description="Also memories whose subject is nearly one of these.")] = ()
    reason: Why = None
    persist: Annotated[bool, Meta(description="Also whatever is stored later under such a subject.")] = False


class ListRequest(Request, frozen=True, kw_only=True):
    """Active memories, the newest first."""

    filter: Annotated[Filter, Meta(description="Which memories.")] = Filter()
    words: Annotated[
        str, Meta(description="Only those whose subject, content or tags hold each of these words.", max_length=2_000)
    ] = ""
    limit: Limit = 50
    offset: Offset = 0


class EdgesRequest(Request, frozen=True, kw_only=True):
    """Which memories were used together."""

    reference: Reference | None = None
    limit: Annotated[int, Meta(description="Pairs at most.", ge=1, le=1000)] = 20
