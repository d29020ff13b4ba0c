"""``memory_get``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nacre.errors import NacreError
from nacre.mcp import arguments
from nacre.mcp.answers import (
    Answer,
    cut,
    framed,
    indented,
    origin_of,
    record_of,
    refusal,
    said_in,
    short_id,
    short_session,
    title_of,
)
from nacre.mcp.desk import Desk
from nacre.memories.requests import GetRequest
from nacre.text.passages import count_tokens, harmless, one_line, shorten

if TYPE_CHECKING:
    from nacre.views import LinkView, MemoryView

_LEAST_TOKENS = 80
_MOST_LINKS = 8
_EVIDENCE_CHARACTERS = 160


def get(desk: Desk, asked: arguments.Get) -> Answer:
    """Whole memories, with where they were said and what they are linked with."""
    room = max(_LEAST_TOKENS, (asked.budget - 60) // len(asked.ids))
    blocks, records, errors = [], [], []
    for reference in asked.ids:
        try:
            view = _look(desk, reference, update=True)
        except NacreError as error:
            errors.append(error)
            blocks.append(f"{harmless(shorten(reference, 40))}: {one_line(harmless(error.message))}")
            records.append({"asked": reference} | refusal(error))
            continue
        blocks.append(_block(view, asked.line, room))
        links = [_link_record(link) for link in view.links]
        records.append(record_of(view.memory) | {"doubt": view.doubt, "links": links})
    if len(errors) == len(asked.ids):
        raise errors[0]
    return Answer(framed("\n\n".join(blocks)), {"memories": records})


def _look(desk: Desk, reference: str, *, update: bool) -> MemoryView:
    with desk.naming("memory_search shows the ids of memories"):
        view: MemoryView = desk.call("look", GetRequest(reference=reference, update=update, session=desk.session))
    return view


def _block(view: MemoryView, line: int, room: int) -> str:
    memory = view.memory
    lines = memory.content.strip().splitlines()
    wanted = "\n".join(lines[line - 1 :])
    facts = [
        f"[{memory.id}] {title_of(memory)}",
        f"  ({origin_of(memory)}; {memory.expiry.value}; {said_in(memory)})",
        f"  may be out of date: {one_line(harmless(view.doubt))}" if view.doubt else "",
        f"  tags: {harmless(', '.join(memory.tags))}" if memory.tags else "",
        *(_evidence(view) if line == 1 else ()),
        *(_link(link) for link in view.links[:_MOST_LINKS] if line == 1),
    ]
    told = [fact for fact in facts if fact]
    left = max(_LEAST_TOKENS, room - count_tokens("\n".join(told)))
    shown = cut(wanted, left)
    if shown != wanted:
        at = line + max(1, shown.count("\n"))
        long_line = " and a higher budget" if at >= len(lines) else ""
        told.append(f"  (cut: memory_get {short_id(memory.id)} with line {min(at, len(lines))}{long_line} goes on)")
    return "\n".join([told[0], indented(shown) or "  (nothing from that line on)", *told[1:]])


def _evidence(view: MemoryView) -> Sequence[str]:
    return [
        f"  {one.speaker.value} in {short_session(one.session_id)}: "
        f"{harmless(shorten(one.excerpt, _EVIDENCE_CHARACTERS))}"
        for one in view.evidence[:2]
        if one_line(one.excerpt) != one_line(view.memory.content)
    ]


def _link(link: LinkView) -> str:
    arrow = f"{link.rel} →" if link.is_outgoing else f"← {link.rel}"
    why = ", ".join(filter(None, (link.origin, link.reason)))
    return "  " + one_line(
        harmless(f"{arrow} [{short_id(link.other)}] {shorten(link.subject or 'unknown', 80)} ({why})")
    )


def _link_record(link: LinkView) -> dict[str, Any]:
    return {
        "rel": link.rel, "id": link.other, "outgoing": link.is_outgoing, "origin": link.origin, "reason": link.reason,
    }  # fmt: skip
