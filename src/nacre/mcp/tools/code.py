"""What ``memory_graph`` tells of code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nacre.code.requests import CallersRequest, CodeRequest, ImpactRequest, StaleRequest
from nacre.errors import InvalidInput
from nacre.mcp import arguments
from nacre.mcp.answers import Answer, fitting, framed, indented, short_id, title_of
from nacre.mcp.desk import Desk
from nacre.text.passages import harmless, one_line, shorten
from nacre.values.codec import plain

if TYPE_CHECKING:
    from nacre.code.values import CodeAnswer, CodeLink, CodeMemory, StaleMemory, Staleness

_LIMIT = 40
_WORDS = 300


def ask_code(desk: Desk, asked: arguments.Graph) -> Answer:
    """One of four questions about the code of repositories."""
    if not (asked.name or "").strip():
        raise InvalidInput(f"{asked.action} needs a name", hint="the name of a symbol, or the path of a file")
    fields: dict[str, Any] = {"name": asked.name, "near": desk.place(None).project, "limit": _LIMIT}
    if asked.action == "callers":
        request: CodeRequest = CallersRequest(**fields, depth=asked.depth)
    elif asked.action == "impact":
        request = ImpactRequest(**fields, symbol=asked.symbol, depth=max(2, asked.depth))
    else:
        request = CodeRequest(**fields)
    found: CodeAnswer = desk.call(f"graph-{asked.action}", request)
    return _answer(found, asked.budget)


def _answer(found: CodeAnswer, budget: int) -> Answer:
    records = {
        "nodes": plain(found.nodes), "choices": plain(found.choices), "links": plain(found.links),
        "memories": [one.memory.id for one in found.memories],
    }  # fmt: skip
    if found.choices:
        listed = [f"- {harmless(one.path)}#{harmless(one.name)} ({one.kind})" for one in found.choices]
        shown = fitting(listed, budget)
        return Answer(framed("It may mean several; name one of them:", "\n".join(listed[:shown])), records)
    head = ", ".join(f"{one.path}#{one.name}".rstrip("#") for one in found.nodes)
    blocks = [*map(_memory, found.memories), *map(_link, found.links)]
    shown = fitting(blocks, budget)
    more = "There is more." if found.more or shown < len(blocks) else ""
    return Answer(framed(harmless(head), "\n".join(blocks[:shown]) or "Nothing was found.", more), records)


def _link(link: CodeLink) -> str:
    name = f"#{link.node.name}" if link.node.name else ""
    via = f" {link.via.partition('/')[2]}" if link.via else ""
    return harmless(f"- {link.node.path}{name}, line {link.line}: {link.rel}{via}{f' {link.note}' * bool(link.note)}")


def _memory(one: CodeMemory) -> str:
    mark = " (UNTRUSTED)" if one.memory.trust.value == "untrusted" else ""
    text = indented(shorten(one_line(one.memory.content), _WORDS))
    return f"- memory [{short_id(one.memory.id)}] {title_of(one.memory)}{mark}\n{text}"


def stale(desk: Desk, asked: arguments.Analyze) -> Answer:
    """Memories whose files were changed since, the surest first."""
    found: Staleness = desk.call("graph-stale", StaleRequest(limit=asked.limit, folder=desk.folder))
    blocks = [_out_of_date(one) for one in found.memories]
    shown = fitting(blocks, asked.budget)
    records = [
        {"id": one.memory.id, "confidence": one.confidence, "files": [file.path for file in one.files],
         "missing": list(one.missing)}
        for one in found.memories[:shown]
    ]  # fmt: skip
    more = f"{found.total - shown} more: a higher limit or budget shows them." if shown < found.total else ""
    told = "\n".join(blocks[:shown]) or "No file that a memory names was changed in a session since."
    return Answer(framed(told, more), {"stale": records, "total": found.total})


def _out_of_date(one: StaleMemory) -> str:
    return f"- {one.confidence:.2f} [{short_id(one.memory.id)}] {title_of(one.memory)}\n  {harmless(one.why)}"
