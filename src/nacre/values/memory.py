"""Memories: what is kept, one Markdown file each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Any

from nacre.values.session import Speaker, Trust

MAX_BODY_BYTES = 1_000_000
NAMES = frozenset({"id", "project", "superseded_by", "session", "turns", "rel", "to"})
"""Fields of a memory, and of what it holds, that name something by an id or a slug; all other texts are words."""


class Kind(StrEnum):
    """What sort of knowledge a memory is."""

    FACT = "fact"
    DECISION = "decision"
    PREFERENCE = "preference"
    TODO = "todo"
    RELATIONSHIP = "relationship"
    EVENT = "event"
    LESSON = "lesson"


class Expiry(StrEnum):
    """How long a memory is meant to hold."""

    CORE = "core"
    PERMANENT = "permanent"
    TEMPORARY = "temporary"


class Scope(StrEnum):
    """Who may see a memory: a private request sees all, a personal one personal and public, a public one public."""

    PRIVATE = "private"
    PERSONAL = "personal"
    PUBLIC = "public"


class Confidence(StrEnum):
    """``extracted``: written down on purpose or by a model with evidence; ``inferred``: found by rules."""

    EXTRACTED = "extracted"
    INFERRED = "inferred"


@dataclass(frozen=True, slots=True)
class Validity:
    """When a memory is true in the world, apart from when it was recorded; both ends optional.

    Files and JSON call the ends ``from`` and ``to``.
    """

    since: date | None = field(default=None, metadata={"key": "from"})
    until: date | None = field(default=None, metadata={"key": "to"})


USUAL_STRENGTH = 0.5
"""Of a link that states none (seed facts 2.2)."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a memory comes from: a session id (``<tool>:<id>``), the turns that show it, the transcript file."""

    session: str | None = None
    turns: tuple[str, ...] = ()
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A typed edge that survives in front matter.

    ``rel`` names the relation: ``related_to``, ``supersedes``, ``alternative_to`` and the like. ``reason`` says in a
    few words why it was made, where that is worth knowing, ``origin`` what for (``reflect``: as an answer to a question
    of :mod:`nacre.review.reflection`), where it was not simply drawn. ``strength`` is 0 to 1; ``None`` is the usual
    strength (:data:`USUAL_STRENGTH`). ``valid`` says when it holds; on the day of its end it holds no more.
    """

    rel: str
    to: str
    reason: str | None = None
    origin: str | None = None
    strength: float | None = field(default=None, metadata={"digits": 2})
    valid: Validity = Validity()


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Where and when a memory was said again: a session and its turns, or nothing but the time."""

    at: datetime
    session: str | None = None
    turns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """What a memory says, in four words or so: of which entity, which attribute of it (in snake case), how and what.

    ``confidence`` is 0 to 1. Two memories of one entity and attribute may contradict each other.
    """

    entity: str
    attribute: str
    predicate: str
    object: str
    confidence: float = field(default=0.5, metadata={"digits": 2})

    @property
    def key(self) -> str:
        """``entity/attribute``: what it is a claim about."""
        return f"{self.entity}/{self.attribute}"


UNDONE = "undone"
"""Why a memory is retired that an undone operation had made."""


BESIDE_PASTE = "beside_paste"
"""The front-matter key of a memory that was said in a message with marks of a paste, which may be another's words."""

NODDED = "nodded"
"""The front-matter key of a memory that the owner accepted without words of their own for it, or for what it tells to
be gone, once text from outside was read."""


_NOT_WORDED = frozenset({BESIDE_PASTE, NODDED})


@dataclass(frozen=True, slots=True)
class Retirement:
    """When and why a memory was soft-deleted."""

    at: datetime
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """One piece of knowledge.

    ``id`` is a UUIDv7. ``importance`` is 1 to 10: 7 is what any session of its project should know, 10 is never
    forgotten. ``project`` is a project's slug, or ``None`` for what holds everywhere. ``inbox`` says that its project
    is not settled: until it is, the memory holds nowhere, and only who searches finds it. Times are aware UTC.
    From the day ``expires_on`` recall and context leave it out, whatever it says of the world: ``valid`` tells
    that. ``proposed`` says that an agent stored it, and that the owner neither said nor kept it: it is found by who
    searches, and told to nobody unasked. ``confirmed`` tells where it was said again. ``extra`` holds front-matter keys
    that nacre does not know, untouched.
    """

    id: str
    kind: Kind
    subject: str
    content: str
    created: datetime
    updated: datetime
    importance: int = 7
    expiry: Expiry = Expiry.PERMANENT
    scope: Scope = Scope.PRIVATE
    project: str | None = None
    tags: tuple[str, ...] = ()
    valid: Validity = Validity()
    expires_on: date | None = None
    speaker: Speaker = Speaker.OWNER
    trust: Trust = Trust.TRUSTED
    confidence: Confidence = Confidence.EXTRACTED
    confidence_score: float | None = None
    canonical_key: str | None = None
    claim: Claim | None = None
    evergreen: bool = False
    author: str | None = None
    triggers: tuple[str, ...] = ()
    suppressed_contexts: tuple[str, ...] = ()
    source: Source = Source()
    confirmed: tuple[Confirmation, ...] = ()
    links: tuple[Link, ...] = ()
    superseded_by: str | None = None
    retired: Retirement | None = None
    inbox: bool = False
    proposed: bool = False
    extra: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def is_active(self) -> bool:
        """Whether it holds: it is neither retired nor superseded."""
        return not (self.retired or self.superseded_by)

    @property
    def was_taken_out(self) -> bool:
        """Whether an undo took it out: the owner did not retire it, and who says it again is heard."""
        return self.retired is not None and self.retired.reason == UNDONE and not self.superseded_by

    @property
    def is_learned(self) -> bool:
        """Whether rules or a model found it in a session: nobody wrote it down on purpose."""
        return self.confidence is Confidence.INFERRED or self.confidence_score is not None

    @property
    def is_vouched(self) -> bool:
        """Whether somebody answers for it: it draws on no text from outside, and is no mere proposal of an agent's."""
        return self.trust is Trust.TRUSTED and not self.proposed

    @property
    def is_worded(self) -> bool:
        """Whether it is the owner's in words of their own: what they only nodded to, or may have pasted, ends nothing
        that they said."""
        return self.speaker is Speaker.OWNER and self.extra.keys().isdisjoint(_NOT_WORDED)

    def as_worded(self) -> Memory:
        """The same, once the owner kept it, put it into words of theirs or said it themselves."""
        return replace(self, extra={key: value for key, value in self.extra.items() if key not in _NOT_WORDED})

    @property
    def last_said(self) -> datetime:
        """When it was last said or written down."""
        return max((self.created, self.updated, *(one.at for one in self.confirmed)))

    def shares_place(self, other: Memory) -> bool:
        """Whether both hold in the same project, both everywhere, or both wait in the inbox."""
        return (self.project, self.inbox) == (other.project, other.inbox)

    def is_said_after(self, other: Memory) -> bool:
        """Whether it was said later. At one moment: what was said again after what was new, then by when it was stored
        (ids tell).
        """
        return self._place() > other._place()

    def _place(self) -> tuple[datetime, bool, str]:
        said = self.last_said
        return said, said > self.created, self.id
