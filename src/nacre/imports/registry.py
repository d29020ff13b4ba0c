"""Sources by name, and the one that recognises what was named."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from nacre.errors import InvalidInput, NotFound
from nacre.imports.found import ImportSource
from nacre.imports.tree import Tree

SOURCES: dict[str, str] = {
    "nacre": "nacre.imports.nacre_export:SOURCE",
    "agenr": "nacre.imports.agenr:SOURCE",
    "chatgpt": "nacre.imports.accounts:CHATGPT",
    "claude-ai": "nacre.imports.accounts:CLAUDE_AI",
    "clawxmemory": "nacre.imports.clawxmemory:SOURCE",
    "codex-memories": "nacre.imports.codex_memories:SOURCE",
    "claude-memory": "nacre.imports.claude_memory:SOURCE",
    "agent-knowledge": "nacre.imports.agent_knowledge:SOURCE",
    "openclaw": "nacre.imports.openclaw:SOURCE",
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
    module, _, attribute = SOURCES[name].partition(":")
    source: ImportSource = getattr(import_module(module), attribute)
    return source
