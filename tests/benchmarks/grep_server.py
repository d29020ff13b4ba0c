"""An MCP server for tests of the card that stores lines and returns those with a word of the
query."""

from __future__ import annotations

import re

from mcp.server.mcpserver import MCPServer

server = MCPServer("grep")
lines: list[str] = []


@server.tool()
def keep(text: str) -> str:
    lines.append(text)
    return "kept"


@server.tool()
def find(query: str, most: int) -> str:
    words = set(re.findall(r"\w{3,}", query.lower()))
    matches = [line for line in lines if words & set(re.findall(r"\w+", line.lower()))]
    return "\n".join([*matches[:1], "unsure:", *matches[1:most]])


server.run()
