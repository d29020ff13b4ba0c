"""Find adapters by name, and the one that reads a file. Built-ins and third parties use the same door."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from nacre.errors import NotFound, Unavailable
from nacre.transcripts.adapter import Adapter, Head

GROUP = "nacre.transcripts"
"""The entry-point group in which a third party registers ``<tool> = "<module>:<adapter record>"``."""

BUILTINS: dict[str, str] = {
    "claude-code": "nacre.transcripts.claude_code:ADAPTER",
    "codex": "nacre.transcripts.codex:ADAPTER",
    "openclaw": "nacre.transcripts.openclaw:ADAPTER",
    "chatgpt": "nacre.transcripts.chatgpt:ADAPTER",
    "claude-ai": "nacre.transcripts.claude_ai:ADAPTER",
    "plaud": "nacre.transcripts.plaud:ADAPTER",
    "jsonl": "nacre.transcripts.generic_jsonl:ADAPTER",
    "markdown": "nacre.transcripts.markdown:ADAPTER",
    "text": "nacre.transcripts.plain_text:ADAPTER",
}
"""In the order in which they are asked: the decisive formats first, the ones that take anything last."""


@cache
def adapters() -> tuple[Adapter, ...]:
    """All adapters: third parties' first, so that one may take over a built-in's files, then the built-ins.

    Raises Unavailable when a third party's cannot be loaded.
    """
    return tuple(_one_by_one())


def find_adapter(head: Head) -> Adapter | None:
    """The first adapter that recognises a file by its content; ``None`` when none does."""
    return next((adapter for adapter in _one_by_one() if adapter.sniff(head)), None)


def find_adapter_of(tool: str) -> Adapter | None:
    """The adapter of a tool; ``None`` where there is none any more."""
    return next((adapter for adapter in _one_by_one() if adapter.tool == tool), None)


def get_adapter(tool: str) -> Adapter:
    """The adapter of a tool. Raises NotFound."""
    adapter = find_adapter_of(tool)
    if adapter:
        return adapter
    raise NotFound(f"no adapter for {tool!r}", hint=f"known tools: {', '.join(tools())}")


def tools() -> Iterator[str]:
    """The names of all tools that have an adapter."""
    return (adapter.tool for adapter in adapters())


def _one_by_one() -> Iterator[Adapter]:
    """All adapters in order, each loaded when it is its turn: most files are of the first tools."""
    yield from _outside()
    yield from map(_load, BUILTINS.values())


@cache
def _outside() -> tuple[Adapter, ...]:
    return tuple(_load_outside(point) for point in entry_points(group=GROUP))


def _load_outside(point: EntryPoint) -> Adapter:
    try:
        adapter = point.load()
    except (ImportError, AttributeError, SyntaxError) as error:
        raise Unavailable(
            f"the adapter {point.name!r} ({point.value}) cannot be loaded: {error}",
            hint="mend or uninstall the package it comes with",
        ) from error
    if not isinstance(adapter, Adapter):
        raise Unavailable(f"{point.value} is not an adapter", hint="mend or uninstall the package it comes with")
    return adapter


@cache
def _load(path: str) -> Adapter:
    module, _, name = path.partition(":")
    adapter: Adapter = getattr(import_module(module), name)
    return adapter
