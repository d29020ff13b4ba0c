"""Sources by name, and the one that recognises what was named."""

from __future__ import annotations

from functools import cache

from nacre.errors import InvalidInput, NotFound
from nacre.platform.lazy import load
from nacre.portability.sources.source import ImportSource
from nacre.portability.sources.tree import Tree

SOURCES: dict[str, str] = {
    "nacre": "nacre.portability.sources.nacre_export:SOURCE",
    "agenr": "nacre.portability.sources.agenr:SOURCE",
    "claude-mem": "nacre.portability.sources.claude_mem:SOURCE",
    "mcp-memory-service": "nacre.portability.sources.mcp_memory:SOURCE",
    "letta": "nacre.portability.sources.letta:SOURCE",
    "chatgpt": "nacre.portability.sources.accounts:CHATGPT",
    "claude-ai": "nacre.portability.sources.accounts:CLAUDE_AI",
    "mem0": "nacre.portability.sources.mem0:SOURCE",
    "clawxmemory": "nacre.portability.sources.clawxmemory:SOURCE",
    "codex-memories": "nacre.portability.sources.codex_memories:SOURCE",
    "claude-memory": "nacre.portability.sources.claude_memory:SOURCE",
    "basic-memory": "nacre.portability.sources.basic_memory:SOURCE",
    "agent-knowledge": "nacre.portability.sources.agent_knowledge:SOURCE",
    "openclaw": "nacre.portability.sources.openclaw:SOURCE",
    "instructions": "nacre.portability.sources.instructions:SOURCE",
}
"""In the order in which they are asked: the decisive formats first."""


def detect(tree: Tree) -> ImportSource:
    """The source that recognises a tree. Raises InvalidInput when none does."""
    found = next((source for source in map(get_source, SOURCES) if source.recognise(tree)), None)
    if found is None:
        raise InvalidInput(
            f"nothing in {tree.root} is what a known memory writes",
            hint=f"name what it is: --from {', '.join(SOURCES)}; transcripts are read by nacre ingest",
        )
    return found


@cache
def get_source(name: str) -> ImportSource:
    """A source by name. Raises NotFound."""
    if name not in SOURCES:
        raise NotFound(f"no source is called {name!r}", hint=f"one of: {', '.join(SOURCES)}")
    source: ImportSource = load(SOURCES[name])
    return source
