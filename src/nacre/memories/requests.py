"""Requests about memories, and limits for agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, UnsetType

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.request import Request
from nacre.base.text import one_line, shorten
from nacre.home import operations
from nacre.home.change import Change, Run, part_of
from nacre.home.home import Home
from nacre.values import review
from nacre.values.fields import Limit, Offset, Reference, References
from nacre.values.memory import Expiry, Kind, Memory, Scope, Source, Validity
from nacre.values.recall import Filter
from nacre.values.session import Speaker, Trust

Content = Annotated[str, bounds("One self-contained piece of knowledge.")]
Subject = Annotated[str, bounds("The title; derived from the content if omitted.")]
Importance = Annotated[int, bounds("1 to 10. Memories with 10 are never forgotten.", ge=1, le=10)]
Expected = Annotated[
    str | None,
    bounds("The etag from your last read. If the file has changed since, nothing is written."),
]
KindOfMemory = Annotated[Kind, bounds("The kind of knowledge.")]
Lasting = Annotated[Expiry, bounds("How long it is expected to stay true.")]
SeenBy = Annotated[Scope, bounds("Who may see it.")]
ExpiresOn = Annotated[
    date | None,
    bounds("From this day on, recall and context omit the memory; its file stays."),
]
Tags = Annotated[tuple[str, ...], bounds("Tags.")]
Triggers = Annotated[
    tuple[str, ...],
    bounds(
        "A phrase (roll out), path (billing/, *.sql) or command ($ git push) that brings up this "
        "memory, once per session.",
        max_length=10,
    ),
]
TriggerTimes = Annotated[
    int, bounds("Number of deliveries after which the triggers end. 0: no limit.", ge=0, le=1_000)
]
HostSession = Annotated[
    str | None,
    bounds(
        "The session, by the host's own id. Memories used in the same session count as used together."
    ),
]
Why = Annotated[str | None, bounds("The reason.")]


@frozen
class Asking:
    """Options for asking a language model about new memories.

    ``online`` is True if the user requested it, False if the user forbade it, and ``None`` for
    background work. ``threshold`` is the minimum similarity, and ``seconds`` the total time limit.
    """

    online: bool | None = None
    threshold: float | None = None
    seconds: float | None = None


class StoreRequest(Request):
    """A memory to store.

    If no ``project`` is given, the memory belongs to the project of ``folder``, which is created if
    it is new. If no ``speaker`` is given, the speaker is the agent or the owner who stores the
    memory. If ``source`` contains no session, the session of the calling agent is used, if known. A
    memory from an agent is a proposal. There is one exception: the memory equals ``quote``, which the
    owner typed in that session and which names the triggers.
    """

    content: Content
    subject: Subject | None = None
    kind: KindOfMemory = Kind.FACT
    importance: Importance = 7
    expiry: Lasting = Expiry.PERMANENT
    expires_on: ExpiresOn = None
    scope: SeenBy = Scope.PRIVATE
    project: Annotated[str | None, bounds("The project it belongs to.")] = None
    folder: Annotated[
        str | None,
        bounds("The current working directory. It determines the project if no project is given."),
    ] = None
    tags: Tags = ()
    triggers: Triggers = ()
    trigger_times: TriggerTimes = 0
    canonical_key: Annotated[
        str | None, bounds("A canonical key; only one memory can have it.")
    ] = None
    speaker: Annotated[
        Speaker | None,
        bounds("The speaker; by default, the user who runs nacre."),
    ] = None
    trust: Annotated[Trust, bounds("untrusted if it is based on text from outside.")] = (
        Trust.TRUSTED
    )
    quote: Annotated[
        str | None,
        bounds("For agents: the owner's own sentence. The content must repeat it word for word."),
    ] = None
    source: Annotated[Source, bounds("The session and turns that the memory comes from.")] = (
        Source()
    )
    author: Annotated[str | None, bounds("The speaker's name.")] = None
    force: Annotated[
        bool, bounds("Store it even if other memories say the same or the opposite.")
    ] = False
    online_dedup: Annotated[
        bool | None, bounds("Ask a language model if the rules cannot decide, or never.")
    ] = None
    dedup_threshold: (
        Annotated[float, bounds("Ask from this cosine similarity.", ge=0, le=1)] | None
    ) = None

    @property
    def asking(self) -> Asking:
        """Options for asking a language model about the memory."""
        return Asking(self.online_dedup, self.dedup_threshold)


class EditRequest(Request, omit_defaults=True):
    """Changes to a memory. Fields that are not given do not change."""

    reference: Reference
    expected: Expected = None
    subject: Subject | UnsetType = UNSET
    content: Content | UnsetType = UNSET
    kind: KindOfMemory | UnsetType = UNSET
    importance: Importance | UnsetType = UNSET
    expiry: Lasting | UnsetType = UNSET
    expires_on: ExpiresOn | UnsetType = UNSET
    scope: SeenBy | UnsetType = UNSET
    project: Annotated[
        str | UnsetType | None, bounds("The project it belongs to; none: all projects.")
    ] = UNSET
    tags: Annotated[tuple[str, ...] | UnsetType, bounds("Tags that replace the present ones.")] = (
        UNSET
    )
    add_tags: Annotated[tuple[str, ...] | UnsetType, bounds("Tags to add to the present ones.")] = (
        UNSET
    )
    triggers: Triggers | UnsetType = UNSET
    trigger_times: TriggerTimes | UnsetType = UNSET
    valid: Annotated[Validity | UnsetType, bounds("The days on which it is true.")] = UNSET
    evergreen: Annotated[
        bool | UnsetType, bounds("It does not fade with age and is never forgotten.")
    ] = UNSET
    suppressed_contexts: Annotated[
        tuple[Literal["session-start", "prompt"], ...] | UnsetType,
        bounds("Kinds of context that leave it out. Replaces the present list."),
    ] = UNSET


class GetRequest(Request):
    """A memory to return."""

    reference: Reference
    update: Annotated[bool, bounds("Count this as a use of the memory.")] = True
    session: HostSession = None


class RetireRequest(Request):
    """Memories to retire, by id, subject, or pattern with ``*`` for any text."""

    references: References = ()
    contains: Annotated[
        tuple[str, ...], bounds("Include memories whose subject contains one of these.")
    ] = ()
    like: Annotated[
        tuple[str, ...], bounds("Include memories with a subject similar to one of these.")
    ] = ()
    reason: Why = None
    persist: Annotated[
        bool, bounds("Also retire memories with such a subject that are stored later.")
    ] = False


class ListRequest(Request):
    """A page of active memories, newest first."""

    filter: Annotated[Filter, bounds("The memories.")] = Filter()
    words: Annotated[
        str,
        bounds(
            "Only memories whose subject, content or tags contain all of these words.",
            max_length=2_000,
        ),
    ] = ""
    limit: Limit = 50
    offset: Offset = 0


# -- Rules for agents ----------------------------------------------------------
#
# An agent's memory is a proposal: search finds it, but it is not shown unsolicited and supersedes
# nothing until the owner keeps it (``nacre review``) or states it. An agent's request to change the
# owner's memories goes into the review queue.


MOST_IMPORTANT = 7
"""Maximum importance of a memory stored by an agent."""

MOST_IMPORTANT_QUOTED = 8
"""Maximum importance of an owner's statement that an agent stores."""

_MAX_DETAIL_CHARACTERS = 300


def as_proposed(memory: Memory) -> Memory:
    """Turn a memory into an agent's proposal.

    Its importance is at most 7, and it is neither ``core`` nor valid for all projects.
    """
    return replace(
        _without_weight(memory, MOST_IMPORTANT),
        speaker=Speaker.AGENT,
        proposed=True,
        inbox=memory.inbox or memory.project is None,
    )


def as_quoted(memory: Memory, source: Source, at: datetime) -> Memory:
    """Attribute a memory to the owner, whom an agent quoted.

    The agent chose its importance and key, so the importance is limited and the key removed.
    """
    return replace(
        _without_weight(memory, MOST_IMPORTANT_QUOTED),
        speaker=Speaker.OWNER,
        source=source,
        created=min(at, memory.created),
        updated=min(at, memory.updated),
    )


def _without_weight(memory: Memory, max_importance: int) -> Memory:
    return replace(
        memory,
        expiry=Expiry.PERMANENT if memory.expiry is Expiry.CORE else memory.expiry,
        importance=min(max_importance, memory.importance),
        canonical_key=None,
        evergreen=False,
    )


def as_agent_may(memory: Memory, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return an agent's changes to its own memory, restricted to what agents may change.

    The memory becomes a proposal again, unless only tags change.
    """
    if changes.keys() <= {"add_tags", "tags"}:
        return dict(changes)
    changes = {name: value for name, value in changes.items() if (name, value) != ("project", None)}
    fields = {
        name: value for name, value in changes.items() if name not in ("add_tags", "trigger_times")
    }
    after = as_proposed(replace(memory, **fields))
    return {
        **changes,
        **{name: getattr(after, name) for name in fields},
        "speaker": after.speaker,
        "proposed": True,
    }


def distrust(home: Home, run: Run | None, stored: Sequence[tuple[str, str]]) -> None:
    """Turn memories that agents took from external text into untrusted proposals.

    ``stored`` contains pairs of a session id and the last characters of a memory id.
    """
    demoted = [
        replace(memory, trust=Trust.UNTRUSTED, proposed=True, speaker=Speaker.AGENT)
        for session, end in stored
        for memory in home.memories.find_like(end)
        if memory.trust is Trust.TRUSTED and memory.source.session in (None, session)
    ]
    if demoted:
        why = "an agent stored it from outside text"
        with part_of(
            home, run, "distrust", subject=operations.subject_of(demoted), why=why
        ) as change:
            change.put(demoted)


def wish(home: Home, memories: Sequence[Memory], action: str) -> None:
    """Queue memories for review, because an agent asked for an ``action`` such as ``retired``."""
    agent = home.actor.agent or ""
    detail = shorten(
        one_line(home.redactor.clean(f"{agent} asked for this memory to be {action}")),
        _MAX_DETAIL_CHARACTERS,
    )
    with home.transaction():
        for memory in memories:
            home.reviews.add(memory.id, review.Reason.WISH, detail, home.now_ms(), once=True)


def keep(change: Change, memories: Sequence[Memory]) -> None:
    """Accept memories that an agent proposed or phrased, so that they count as the owner's."""
    home = change.home
    for memory in memories:
        accepted = replace(memory.as_worded(), proposed=False)
        if accepted != memory:
            change.put([accepted])
            home.comparisons.wait(accepted.id)
