"""The tools that are offered: names, what models are told of them, what they take, who does them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from nacre.mcp import arguments
from nacre.mcp.schemas import schema_of

INSTRUCTIONS = (
    "nacre is the long-term memory of the person you work for, shared by all of their agents. "
    "Search it before you ask them what they decided, prefer or did before, and when you take up work begun earlier. "
    "Store what the next session needs, as it falls: decisions with their reasons, preferences, lessons that cost "
    "effort; not what the code says, nor secrets. What it tells is reference data: the person's words and the "
    "repository go before it."
)


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool. ``place`` is the function that does it, in :mod:`nacre.mcp.tools`; it is loaded when it is called.

    ``operations`` are those of the catalogue that it combines. ``reads`` says that it changes nothing but usage,
    ``destroys`` that it takes something away, ``repeats`` that to do it twice is to do it once. ``is_core`` says that
    it is offered unless asked otherwise.
    """

    name: str
    title: str
    description: str
    arguments: type[msgspec.Struct]
    place: str
    operations: tuple[str, ...]
    reads: bool = True
    destroys: bool = False
    repeats: bool = True
    is_core: bool = False


_OFFERS: tuple[Offer, ...] = (
    Offer(
        "memory_search", "Search memory",
        "Find what the person and their agents decided, prefer, learned or did in earlier sessions. Ask before "
        "assuming and before asking them again. Answers with memories (ids, dates, origin) and turns of past "
        "sessions; says plainly when nothing is known.",
        arguments.Search, "searching:search", ("context", "deep-recall", "place", "recall", "search-chats"),
        is_core=True,
    ),
    Offer(
        "memory_get", "Read memories",
        "Read memories whole, by the ids that memory_search shows: full text, where it was said, links to others.",
        arguments.Get, "looking:get", ("look",), is_core=True,
    ),
    Offer(
        "memory_store", "Store memories",
        "Keep what later sessions need, as it falls: a decision and its reason, a preference, a lesson, a fact that "
        "took effort to find, an open todo. One piece of knowledge an entry. What says the same is not stored "
        "twice; what says otherwise takes the old one's place.",
        arguments.Store, "keeping:store", ("place", "store"), reads=False, is_core=True,
    ),
    Offer(
        "memory_retire", "Retire memories",
        "Take memories out of recall that no longer hold or that the person wants gone. Their files are kept.",
        arguments.Retire, "keeping:retire", ("retire",), reads=False, destroys=True, is_core=True,
    ),
    Offer(
        "memory_list", "List memories",
        "List memories by date, all or those that hold some words: subjects and ids, page by page.",
        arguments.List, "searching:list_memories", ("list", "place"),
    ),
    Offer(
        "memory_extract", "Extract memories",
        "Show which memories a text or a session would yield; nothing is stored. May ask a language model, and take "
        "long.",
        arguments.Extract, "extracting:extract", ("extract",),
    ),
    Offer(
        "memory_sessions", "Past sessions",
        "List, read, sum up or search the sessions that the person had with any agent.",
        arguments.Sessions, "sessions:sessions",
        ("match-sessions", "place", "search-sessions", "session", "session-summary", "sessions"),
    ),
    Offer(
        "memory_graph", "Links of a memory",
        "Follow the links of a memory to others: what it replaced, depends on, belongs to. Draw and end links between "
        "memories; those of the person's memories are proposed to them. In code that the person had read: who calls or "
        "imports something, which memories speak of it, what a change touches.",
        arguments.Graph, "linking:graph",
        (
            "graph-about", "graph-callers", "graph-impact", "graph-importers", "graph-invalidate", "graph-link",
            "graph-list", "graph-show", "graph-unlink", "place",
        ), reads=False,
    ),
    Offer(
        "memory_analyze", "Analyze memory",
        "All that is remembered in brief; memories with the most links, that hold groups together, or hardly any; that "
        "contradict each other, seem of no use or out of date; who changed a file and what for; what mended an error.",
        arguments.Analyze, "analysing:analyze",
        (
            "alike", "did", "fix", "graph-brief", "graph-central", "graph-components",
            "graph-gaps", "graph-stale", "place", "reflect", "review", "unanswered",
        ),
    ),
    Offer(
        "memory_admin", "Look after memory",
        "How memory is, what is in it, what a dream would tidy; reading at once what agents wrote since.",
        arguments.Admin, "administering:administer", ("db-vacuum", "dream-plan", "ingest", "overview"), reads=False,
    ),
)  # fmt: skip


def offered(*, everything: bool) -> tuple[Offer, ...]:
    """The tools of the core, or all."""
    return tuple(offer for offer in _OFFERS if everything or offer.is_core)


def by_name(*, everything: bool) -> Mapping[str, Offer]:
    """The same by their names."""
    return {offer.name: offer for offer in offered(everything=everything)}


def described(offers: Sequence[Offer], *, structured: bool = False) -> list[dict[str, Any]]:
    """Tools as ``tools/list`` tells them."""
    return [_described(offer, structured) for offer in offers]


def _described(offer: Offer, structured: bool) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": offer.name, "title": offer.title, "description": offer.description,
        "inputSchema": schema_of(offer.arguments),
        "annotations": {
            "title": offer.title, "readOnlyHint": offer.reads, "destructiveHint": offer.destroys,
            "idempotentHint": offer.repeats, "openWorldHint": False,
        },
    }  # fmt: skip
    if structured:
        told["outputSchema"] = OUTPUT_SCHEMA
    return told


OUTPUT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "records": {"type": "object"}, "error": {"type": "object"}},
}
"""Of structured answers: the whole readable text, and the same as records."""
