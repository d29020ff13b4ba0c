"""Arguments of the MCP tools.

Limits and help come from the operations' requests (:func:`nacre.base.bounds.bounds_of`). Only the
differences for agents are defined here, such as names, examples and lower limits.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from nacre.base.bounds import bounds, bounds_of
from nacre.base.plain import JsonObject
from nacre.learn import requests
from nacre.memories.graph import NewLink, Relation, TraverseRequest, Way
from nacre.memories.requests import ListRequest, RetireRequest, StoreRequest
from nacre.serve.catalogue import request_of
from nacre.sessions.find import DidQuery, SessionRequest
from nacre.values.memory import Expiry, Kind, Scope, SessionFilter
from nacre.values.recall import DEFAULT_TURNS, Filter, RecallQuery

DEFAULT_BUDGET = 2_000

_MORE = "more"
MORE = Meta(extra_json_schema={_MORE: True})
"""Marks arguments that are listed only with ``--tools all``, because each costs tokens."""

Id = Annotated[
    str,
    bounds(
        "A memory's id, or 4 or more characters of its beginning or end.",
        min_length=4,
        max_length=200,
    ),
]
Word = Annotated[str, Meta(min_length=1, max_length=200)]
Kinds = tuple[Kind, ...]
Tags = Annotated[tuple[Word, ...], bounds_of(Filter, "tags")]
Budget = Annotated[int, bounds_of(RecallQuery, "budget_tokens", ge=200, le=20_000)]
Project = Annotated[
    str | None,
    bounds('Slug or name. Default: the project of the folder and global memories. "*": all.'),
]
Cursor = Annotated[str | None, bounds("The cursor at the end of the previous answer.")]
Since = Annotated[
    str | None, bounds_of(Filter, "since", examples=["2026-11-20", "3d", "last week"])
]
Until = Annotated[str | None, bounds_of(Filter, "until")]
Session = Annotated[
    str, bounds_of(SessionRequest, "reference", "A session's id, or its beginning.", min_length=4)
]


Strength = Annotated[float, bounds_of(NewLink, "strength")] | None
ValidFrom = Annotated[date | None, bounds_of(NewLink, "since")]
ValidTo = Annotated[date | None, bounds_of(NewLink, "until")]
Reason = Annotated[str, bounds_of(NewLink, "reason")] | None
Aspect = Literal["all", "errors", "plans", "configs", "tools", "files", "decisions"]
Role = Literal["all", "owner", "agent"]


class _Arguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base class that rejects unknown fields."""


class Search(_Arguments):
    """The arguments of ``memory_search``."""

    query: Annotated[
        str,
        bounds_of(
            RecallQuery,
            "text",
            "A question or keywords. Empty: browse by importance and date.",
            max_length=4_000,
            examples=["which database does billing use and why"],
        ),
    ] = ""
    limit: Annotated[int, bounds_of(RecallQuery, "limit", ge=1, le=50)] = 8
    kinds: Kinds = ()
    tags: Tags = ()
    project: Project = None
    channel: Annotated[
        str | None,
        bounds_of(
            Filter,
            "tools",
            "Only sessions with this agent tool; with chats, only this chat channel.",
            examples=["claude-code", "telegram"],
        ),
        MORE,
    ] = None
    since: Since = None
    until: Until = None
    around: Annotated[
        str | None,
        bounds_of(
            RecallQuery, "around", "Only content from about this time.", examples=["in march"]
        ),
        MORE,
    ] = None
    around_days: Annotated[float, bounds_of(RecallQuery, "radius_days", le=3650), MORE] = 14
    ignore_time: Annotated[bool, bounds_of(RecallQuery, "ignore_time"), MORE] = False
    threshold: Annotated[float, bounds_of(RecallQuery, "threshold"), MORE] = 0
    context: Annotated[
        Literal["default", "session-start", "browse", "chats"],
        bounds(
            "session-start: what to know before working in this folder; browse: by "
            "importance and date; chats: verbatim passages from chat channels."
        ),
    ] = "default"
    turns: Annotated[int, bounds_of(RecallQuery, "turns", le=20), MORE] = DEFAULT_TURNS
    deep: Annotated[
        bool,
        bounds(
            "Whole memories of the one project that the question is about, selected "
            "more carefully; takes seconds."
        ),
        MORE,
    ] = False
    cursor: Cursor = None
    budget: Annotated[Budget, MORE] = DEFAULT_BUDGET


class Get(_Arguments):
    """The arguments of ``memory_get``."""

    ids: Annotated[
        tuple[Id, ...],
        bounds("Ids of memories or turns as shown to you.", min_length=1, max_length=10),
    ]
    line: Annotated[int, bounds("Line of the content to begin with.", ge=1)] = 1
    budget: Annotated[Budget, MORE] = DEFAULT_BUDGET


class NewEntry(_Arguments):
    """A memory to store."""

    content: Annotated[
        str,
        bounds_of(
            StoreRequest,
            "content",
            "One self-contained piece of knowledge: the fact, its reason, full names. No secrets.",
            min_length=1,
            max_length=100_000,
            examples=[
                "Billing runs on PostgreSQL, not MongoDB, because the ledger needs transactions."
            ],
        ),
    ]
    subject: Annotated[
        Annotated[str, bounds_of(StoreRequest, "subject", max_length=200)] | None, MORE
    ] = None
    kind: Annotated[Kind, bounds_of(StoreRequest, "kind")] = Kind.FACT
    importance: Annotated[
        int,
        bounds_of(
            StoreRequest,
            "importance",
            "7: every session should know it. 6: one area only. 8 (maximum, with a quote): the "
            "person asked to remember it.",
        ),
    ] = 7
    expiry: Annotated[
        Expiry,
        bounds_of(StoreRequest, "expiry", "temporary: useful for weeks. core: always true."),
        MORE,
    ] = Expiry.PERMANENT
    expires_on: Annotated[date | None, bounds_of(StoreRequest, "expires_on"), MORE] = None
    tags: Annotated[tuple[Word, ...], bounds_of(StoreRequest, "tags", max_length=20), MORE] = ()
    triggers: Annotated[
        tuple[str, ...],
        bounds_of(
            StoreRequest,
            "triggers",
            "Show it at these phrases, paths (billing/) or commands ($ git push). The quote names "
            "them.",
        ),
        MORE,
    ] = ()
    scope: Annotated[Scope, bounds_of(StoreRequest, "scope"), MORE] = Scope.PRIVATE
    quote: Annotated[
        str | None,
        bounds_of(
            StoreRequest,
            "quote",
            "The person's own sentence, copied from their message. The content must repeat it word "
            "for word. Without it, the entry is your proposal, never shown unasked.",
        ),
    ] = None
    from_outside: Annotated[
        bool, bounds("True if it is based on a web page, mail, issue or other people's text.")
    ] = False


class Store(_Arguments):
    """The arguments of ``memory_store``."""

    entries: Annotated[tuple[NewEntry, ...], Meta(min_length=1, max_length=20)]
    project: Annotated[
        str | None,
        bounds(
            'Slug or name. Default: the project of the working folder. "global": valid everywhere.'
        ),
    ] = None


class Retire(_Arguments):
    """The arguments of ``memory_retire``."""

    ids: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=20)]
    reason: (
        Annotated[
            str, bounds_of(RetireRequest, "reason", "Why it is no longer true.", max_length=500)
        ]
        | None
    ) = None
    persist: Annotated[bool, bounds_of(RetireRequest, "persist"), MORE] = False


class List(_Arguments):
    """The arguments of ``memory_list``."""

    query: Annotated[
        str,
        bounds_of(ListRequest, "words", "Words that the subject, content or tags must contain."),
    ] = ""
    beliefs: Annotated[
        bool,
        bounds(
            'The statements about the project that nacre considers true, with quotes. "*": about '
            "the person."
        ),
    ] = False
    kinds: Kinds = ()
    tags: Tags = ()
    project: Project = None
    since: Since = None
    until: Until = None
    min_importance: Annotated[int, bounds_of(Filter, "min_importance")] | None = None
    limit: Annotated[int, bounds_of(ListRequest, "limit", ge=1, le=100)] = 20
    cursor: Cursor = None
    budget: Budget = DEFAULT_BUDGET


class Extract(_Arguments):
    """The arguments of ``memory_extract``."""

    text: Annotated[str, bounds_of(requests.ExtractRequest, "text")] | None = None
    session: Session | None = None
    by_model: Annotated[bool, bounds("False: use rules, without the language model.")] = True
    budget: Budget = DEFAULT_BUDGET


class Sessions(_Arguments):
    """The arguments of ``memory_sessions``."""

    action: Annotated[
        Literal["list", "read", "summary", "search"],
        bounds(
            "list: newest sessions. read: turns of a session. summary: its requests, "
            "outcome and open ends. search: find turns."
        ),
    ] = "list"
    session: Annotated[Session | None, bounds("For read and summary.")] = None
    query: Annotated[str | None, bounds("For search: words; for list: words of the title.")] = None
    match: Annotated[
        Literal["all", "words", "meaning", "regex"],
        bounds("For search. regex: a regular expression; searches for at most three seconds."),
    ] = "all"
    scope: Annotated[Aspect, bounds("For search: only turns about this.")] = "all"
    role: Annotated[Role, bounds("For search: only words of the person (owner) or of agents.")] = (
        "all"
    )
    include_tools: Annotated[
        bool, bounds("For read: include the input and output of tool calls.")
    ] = False
    project: Project = None
    channel: Annotated[
        str | None, bounds_of(SessionFilter, "tool", "Only sessions with this agent tool.")
    ] = None
    since: Since = None
    until: Until = None
    from_turn: (
        Annotated[
            int,
            bounds_of(
                SessionRequest,
                "first",
                "For read: the first turn. Default: the end of the session.",
            ),
        ]
        | None
    ) = None
    limit: Annotated[
        int, bounds_of(SessionRequest, "limit", "Number of sessions or turns.", ge=1, le=100)
    ] = 10
    cursor: Cursor = None
    budget: Budget = DEFAULT_BUDGET


class NewEdge(_Arguments):
    """A link to create."""

    id: Id
    relation: Annotated[Relation, bounds_of(NewLink, "relation")]
    to: Annotated[
        str, bounds_of(NewLink, "target", "The other memory's id.", min_length=4, max_length=500)
    ]
    strength: Strength = None
    valid_from: ValidFrom = None
    valid_to: ValidTo = None
    reason: Reason = None


class Graph(_Arguments):
    """The arguments of ``memory_graph``."""

    action: Annotated[
        Literal[
            "traverse",
            "list",
            "link",
            "unlink",
            "invalidate",
            "bulk_link",
            "callers",
            "importers",
            "about",
            "impact",
        ],
        bounds(
            "traverse: follow links from id. list: all links, or those of id. link: "
            "create a link from id. unlink: delete it. invalidate: keep it, marked as no "
            "longer true. bulk_link: create all of links, or none. For code, by name: callers of "
            "a symbol, importers of a file or module, memories about a symbol or file, impact of "
            "a change to a file."
        ),
    ] = "traverse"
    id: (
        Annotated[Id, bounds("The memory from which to start, or from which a link starts.")] | None
    ) = None
    relation: (
        Annotated[str, bounds("The relation of id to the other memory.", max_length=60)] | None
    ) = None
    to: (
        Annotated[
            str,
            bounds_of(
                NewLink, "target", "The memory at the other end of the link.", max_length=500
            ),
        ]
        | None
    ) = None
    name: (
        Annotated[
            str,
            bounds(
                "A symbol (pay, Order.pay, src/orders.py#Order.pay) or a file.",
                min_length=1,
                max_length=500,
            ),
        ]
        | None
    ) = None
    symbol: Annotated[str, bounds("For impact: a symbol of the file.", max_length=500)] | None = (
        None
    )
    strength: Strength = None
    valid_from: ValidFrom = None
    valid_to: ValidTo = None
    reason: Reason = None
    at: Annotated[date | None, bounds_of(request_of("graph-unlink"), "at")] = None
    links: Annotated[
        tuple[NewEdge, ...],
        bounds_of(request_of("graph-link"), "links", "For bulk_link.", min_length=0),
    ] = ()
    depth: Annotated[int, bounds_of(TraverseRequest, "depth")] = 1
    direction: Annotated[Way, bounds_of(TraverseRequest, "direction")] = "both"
    relations: Annotated[tuple[Word, ...], bounds_of(TraverseRequest, "relations")] = ()
    origins: Annotated[
        tuple[Word, ...],
        bounds_of(request_of("graph-list"), "origins", "For list: only of these origins."),
    ] = ()
    as_of: Annotated[date | None, bounds_of(TraverseRequest, "as_of")] = None
    limit: Annotated[
        int, bounds_of(TraverseRequest, "limit", "Number of links or memories.", le=200)
    ] = 40
    budget: Budget = DEFAULT_BUDGET


class Analyze(_Arguments):
    """The arguments of ``memory_analyze``."""

    about: Annotated[
        Literal[
            "brief", "central", "gaps", "review", "file", "error", "alike", "unanswered", "stale"
        ],
        bounds(
            "brief: short overview. central: most links. gaps: at most one link, most proven "
            "first. review: contradictory or doubtful. file: who "
            "changed a file, when and why. error: earlier fixes of an error. alike: "
            "groups of similar memories. unanswered: questions without an answer. stale: memories that name "
            "files changed since."
        ),
    ]
    subject: (
        Annotated[str, bounds_of(DidQuery, "path", "The path, or the error message.")] | None
    ) = None
    project: Annotated[
        str | None, bounds("For brief, central and gaps: only this project. Default: all.")
    ] = None
    limit: Annotated[int, bounds_of(request_of("graph-gaps"), "limit", "Items at most.", le=50)] = 5
    budget: Budget = DEFAULT_BUDGET


class Admin(_Arguments):
    """The arguments of ``memory_admin``."""

    action: Annotated[
        Literal["status", "overview", "flush", "dream", "vacuum"],
        bounds(
            "status: health checks. overview: contents of the memory. flush: read new "
            "transcripts and compute missing vectors now. dream: preview of a "
            "consolidation, which only the person can run. vacuum: shrink the "
            "database; takes seconds."
        ),
    ] = "overview"
    budget: Budget = DEFAULT_BUDGET


# -- JSON schemas ----------------------------------------------------------------------------------


_OMITTED = ("title", "description")
_LENGTHS = frozenset({"minLength", "maxLength", "minItems", "maxItems"})
_NO_DEFAULTS: tuple[object, ...] = (None, (), [])


def schema_of(arguments: type[msgspec.Struct], *, everything: bool = True) -> JsonObject:
    """Return a compact JSON schema of a tool's arguments, without nested definitions.

    It does not mention length limits or, unless ``everything`` is set, arguments marked by
    :data:`MORE`. nacre accepts these anyway, and checks the limits.
    """
    (root,), components = msgspec.json.schema_components([arguments])
    schema: JsonObject = _flat(root, components, everything)
    for word in _OMITTED:
        schema.pop(word, None)
    return schema


def _flat(schema: Any, components: JsonObject, everything: bool) -> Any:
    if isinstance(schema, list):
        return [_flat(item, components, everything) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        target = {
            key: value
            for key, value in components[schema["$ref"].rpartition("/")[2]].items()
            if key not in _OMITTED
        }
        return _flat(target | siblings, components, everything)
    flat = {
        key: _flat(value, components, everything)
        for key, value in schema.items()
        if key not in _LENGTHS
        and (everything or not (isinstance(value, dict) and value.get(_MORE)))
    }
    flat.pop(_MORE, None)
    if "anyOf" in flat:
        options = [option for option in flat.pop("anyOf") if option != {"type": "null"}]
        flat = {**options[0], **flat} if len(options) == 1 else {**flat, "anyOf": options}
    if "default" in flat and flat["default"] in _NO_DEFAULTS:
        del flat["default"]
    if flat.get("enum") and "type" not in flat:
        flat["type"] = "string"
    return flat
