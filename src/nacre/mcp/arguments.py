"""What each tool may be given: one table for the schemas that models read and for the check of what they send."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

DEFAULT_BUDGET = 2_000

Kind = Literal["fact", "decision", "preference", "todo", "relationship", "event", "lesson"]
Expiry = Literal["core", "permanent", "temporary"]
Scope = Literal["private", "personal", "public"]
Id = Annotated[
    str,
    Meta(description="A memory's id, or 4 or more characters of its beginning or end.", min_length=4, max_length=200),
]
Words = Annotated[str, Meta(min_length=1, max_length=200)]
Budget = Annotated[int, Meta(description="Tokens the answer may take.", ge=200, le=20_000)]
Project = Annotated[
    str | None,
    Meta(description='Slug or name. Default: the project of the working folder, and what is global. "*": all.'),
]
Cursor = Annotated[str | None, Meta(description="From the end of the answer before: goes on there.")]
Moment = str | None
Session = Annotated[
    str, Meta(description="A session's id, or its beginning.", examples=["claude-code:7f3a1c2d"], min_length=4)
]


class _Arguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Nothing that is not named."""


class Search(_Arguments):
    """What ``memory_search`` takes."""

    query: Annotated[
        str,
        Meta(
            description="A question or key words. Empty: browse by importance and date.",
            max_length=4_000,
            examples=["which database does billing use and why"],
        ),
    ] = ""
    limit: Annotated[int, Meta(description="Memories at most.", ge=1, le=50)] = 8
    kinds: Annotated[tuple[Kind, ...], Meta(description="Only these kinds.")] = ()
    tags: Annotated[tuple[Words, ...], Meta(description="Only memories with one of these tags.")] = ()
    project: Project = None
    channel: Annotated[
        str | None,
        Meta(description="Only what was said in this agent tool.", examples=["claude-code", "codex", "openclaw"]),
    ] = None
    since: Annotated[Moment, Meta(description="Said from then on.", examples=["2026-11-20", "3d", "last week"])] = None
    until: Annotated[Moment, Meta(description="Said before then.")] = None
    around: Annotated[Moment, Meta(description="Prefer what was said about then.", examples=["in march"])] = None
    turns: Annotated[int, Meta(description="Also so many turns of past sessions, word for word.", ge=0, le=20)] = 2
    deep: Annotated[
        bool,
        Meta(description="Whole memories of the one project the question is about, chosen with care; takes seconds."),
    ] = False
    cursor: Cursor = None
    budget: Budget = DEFAULT_BUDGET


class Get(_Arguments):
    """What ``memory_get`` takes."""

    ids: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=10, description="Ids as memory_search shows them.")]
    line: Annotated[int, Meta(description="Line of the content to begin with.", ge=1)] = 1
    budget: Budget = DEFAULT_BUDGET


class NewEntry(_Arguments):
    """One memory to be stored."""

    content: Annotated[
        str,
        Meta(
            description="One piece of knowledge that stands by itself: what holds, why, names in full. No secrets.",
            min_length=1,
            max_length=100_000,
            examples=["Billing runs on PostgreSQL, not MongoDB, because the ledger needs transactions."],
        ),
    ]
    subject: Annotated[str, Meta(description="A title; made of the content if missing.", max_length=200)] | None = None
    kind: Kind = "fact"
    importance: Annotated[
        int, Meta(description="7: lasts. 8: matters to agents at work now. 10: never forgotten; rare.", ge=1, le=10)
    ] = 7
    expiry: Annotated[Expiry, Meta(description="temporary: of use for weeks. core: always true.")] = "permanent"
    tags: Annotated[tuple[Words, ...], Meta(max_length=20)] = ()
    scope: Annotated[Scope, Meta(description="Who may see it.")] = "private"
    from_outside: Annotated[
        bool, Meta(description="True if it draws on a web page, mail, issue or other people's text.")
    ] = False


class Store(_Arguments):
    """What ``memory_store`` takes."""

    entries: Annotated[tuple[NewEntry, ...], Meta(min_length=1, max_length=20)]
    project: Annotated[
        str | None,
        Meta(description='Slug or name. Default: the project of the working folder. "global": it holds everywhere.'),
    ] = None


class Retire(_Arguments):
    """What ``memory_retire`` takes."""

    ids: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=20)]
    reason: Annotated[str, Meta(description="Why it no longer holds.", max_length=500)] | None = None
    persist: Annotated[bool, Meta(description="Also retire whatever is stored later under the same subject.")] = False


class List(_Arguments):
    """What ``memory_list`` takes."""

    kinds: tuple[Kind, ...] = ()
    tags: tuple[Words, ...] = ()
    project: Project = None
    since: Moment = None
    until: Moment = None
    min_importance: Annotated[int, Meta(ge=1, le=10)] | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    cursor: Cursor = None
    budget: Budget = DEFAULT_BUDGET


class Extract(_Arguments):
    """What ``memory_extract`` takes."""

    text: (
        Annotated[str, Meta(description="A transcript or notes, as plain text or Markdown.", max_length=400_000)] | None
    ) = None
    session: Session | None = None
    by_model: Annotated[bool, Meta(description="False: by rules, without the language model.")] = True
    budget: Budget = DEFAULT_BUDGET


class Sessions(_Arguments):
    """What ``memory_sessions`` takes."""

    action: Annotated[
        Literal["list", "read", "summary", "search"],
        Meta(description="list: the newest. read: the turns of one. summary: what one came to. search: find turns."),
    ] = "list"
    session: Annotated[Session | None, Meta(description="For read and summary.")] = None
    query: Annotated[str | None, Meta(description="For search: words; for list: words of the title.")] = None
    project: Project = None
    channel: Annotated[str | None, Meta(description="Only sessions with this agent tool.")] = None
    since: Moment = None
    until: Moment = None
    from_turn: Annotated[int, Meta(description="For read: from this turn on. Default: the end.", ge=0)] | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    cursor: Cursor = None
    budget: Budget = DEFAULT_BUDGET


class Graph(_Arguments):
    """What ``memory_graph`` takes."""

    id: Id
    depth: Annotated[int, Meta(description="How many links away.", ge=1, le=3)] = 1
    direction: Annotated[
        Literal["both", "outbound", "inbound"], Meta(description="outbound: links that the memory has to others.")
    ] = "both"
    relations: Annotated[tuple[Words, ...], Meta(description="Only these, e.g. supersedes, contradicts.")] = ()
    budget: Budget = DEFAULT_BUDGET


class Analyze(_Arguments):
    """What ``memory_analyze`` takes."""

    about: Annotated[
        Literal["brief", "central", "unlinked", "conflicts", "review", "file", "error"],
        Meta(
            description="brief: what there is, in short. central: memories with the most links. unlinked: with none, "
            "the most used first. conflicts: memories that cannot both hold. review: memories of little use. "
            "file: who changed it, when, for what. error: what mended it before."
        ),
    ]
    subject: Annotated[str, Meta(description="The path, or the error's text.", max_length=20_000)] | None = None
    limit: Annotated[int, Meta(ge=1, le=50)] = 5
    budget: Budget = DEFAULT_BUDGET


class Admin(_Arguments):
    """What ``memory_admin`` takes."""

    action: Annotated[
        Literal["status", "overview", "flush", "dream"],
        Meta(
            description="status: what works. overview: what is remembered. "
            "flush: read what agents wrote since, now. dream: consolidate."
        ),
    ] = "overview"
    budget: Budget = DEFAULT_BUDGET
