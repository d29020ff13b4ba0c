"""The MCP tool actions that answer questions about code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nacre.base.text import harmless, one_line, shorten
from nacre.errors import InvalidInputError
from nacre.serve.mcp import Desk, count_fitting, frame, indent, short_id, title_of

if TYPE_CHECKING:
    from nacre.serve import mcp_arguments
    from nacre_code.ask import CodeAnswer, CodeLink, CodeMemory, Staleness

_MAX_NODES = 40
_MAX_CHARACTERS = 300


def ask_code(desk: Desk, arguments: mcp_arguments.Graph) -> str:
    """Answer a question about the code of repositories."""
    if not (arguments.name or "").strip():
        raise InvalidInputError(
            f"{arguments.action} needs a name",
            hint="give the name of a symbol or the path of a file",
        )
    fields: dict[str, Any] = {
        "name": arguments.name,
        "near": desk.place(None).project,
        "limit": _MAX_NODES,
    }
    if arguments.action == "callers":
        fields["depth"] = arguments.depth
    elif arguments.action == "impact":
        fields |= {"symbol": arguments.symbol, "depth": max(2, arguments.depth)}
    answer: CodeAnswer = desk.call(f"graph-{arguments.action}", **fields)
    if answer.choices:
        lines = [
            f"- {harmless(node.path)}#{harmless(node.name)} ({node.kind})"
            for node in answer.choices
        ]
        visible = count_fitting(lines, arguments.budget)
        return frame("The name is ambiguous; use one of these:", "\n".join(lines[:visible]))
    head = ", ".join(f"{node.path}#{node.name}".rstrip("#") for node in answer.nodes)
    blocks = [*map(_memory, answer.memories), *map(_link, answer.links)]
    visible = count_fitting(blocks, arguments.budget)
    more = "There is more." if answer.more or visible < len(blocks) else ""
    return frame(harmless(head), "\n".join(blocks[:visible]) or "Nothing was found.", more)


def _link(link: CodeLink) -> str:
    name = f"#{link.node.name}" if link.node.name else ""
    via = f" {link.via.partition('/')[2]}" if link.via else ""
    return harmless(
        f"- {link.node.path}{name}, line {link.line}: {link.rel}{via}{f' {link.note}' * bool(link.note)}"
    )


def _memory(item: CodeMemory) -> str:
    mark = " (UNTRUSTED)" if item.memory.trust.value == "untrusted" else ""
    text = indent(shorten(one_line(item.memory.content), _MAX_CHARACTERS))
    return f"- memory [{short_id(item.memory.id)}] {title_of(item.memory)}{mark}\n{text}"


def stale(desk: Desk, arguments: mcp_arguments.Analyze) -> str:
    """List memories that may be outdated because their files changed, most certain first."""
    staleness: Staleness = desk.call("graph-stale", limit=arguments.limit, folder=desk.folder)
    blocks = [
        f"- {item.confidence:.2f} [{short_id(item.memory.id)}] {title_of(item.memory)}\n  {harmless(item.why)}"
        for item in staleness.memories
    ]
    visible = count_fitting(blocks, arguments.budget)
    more = (
        f"{staleness.total - visible} more: a higher limit or budget shows them."
        if visible < staleness.total
        else ""
    )
    text = "\n".join(blocks[:visible]) or "No session has changed a file that a memory names since."
    return frame(text, more)
