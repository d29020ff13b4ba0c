"""All adapters, from nacre and plugins, and the tools' rules for deleting transcripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from nacre.base.environment import install_hint
from nacre.base.lazy import load
from nacre.base.plugins import READERS, load_plugins
from nacre.errors import NotFoundError, UnreadableTranscriptError
from nacre.readers.adapter import HEAD_BYTES, Adapter, Head, read_head, read_later

_SPECIFIC: dict[str, str] = {
    "claude-code": "nacre.readers.claude_code:ADAPTER",
    "codex": "nacre.readers.codex:ADAPTER",
    "nacre-chat": "nacre.readers.nacre_chat:ADAPTER",
    "openclaw": "nacre.readers.openclaw:ADAPTER",
    "gemini-cli": "nacre.readers.gemini_cli:ADAPTER",
    "copilot-cli": "nacre.readers.copilot:ADAPTER_CLI",
    "copilot-chat": "nacre.readers.copilot:ADAPTER",
    "roo-code": "nacre.readers.cline:ADAPTER_ROO",
    "kilo-code-tasks": "nacre.readers.cline:ADAPTER_KILO",
    "cline": "nacre.readers.cline:ADAPTER",
    "cline-sessions": "nacre.readers.cline:ADAPTER_SESSIONS",
    "cursor-transcripts": "nacre.readers.cursor:ADAPTER_TRANSCRIPTS",
    "cursor-text": "nacre.readers.cursor:ADAPTER",
    "openclaw-store": "nacre.readers.openclaw:ADAPTER_STORE",
    "kilo-code": "nacre.readers.opencode:ADAPTER_KILO",
    "opencode": "nacre.readers.opencode:ADAPTER",
    "opencode-files": "nacre.readers.opencode:ADAPTER_FILES",
    "cursor-state": "nacre.readers.cursor_state:ADAPTER",
    "cursor-store": "nacre.readers.cursor_state:ADAPTER_STORE",
    "copilot-chat-state": "nacre.readers.copilot:ADAPTER_EDITOR_STATE",
    "chatgpt": "nacre.readers.accounts:ADAPTER",
    "claude-ai": "nacre.readers.accounts:ADAPTER_CLAUDE_AI",
}
_GENERAL: dict[str, str] = {
    "jsonl": "nacre.readers.generic:ADAPTER",
    "markdown": "nacre.readers.generic:ADAPTER_MARKDOWN",
    "text": "nacre.readers.generic:ADAPTER_PLAIN_TEXT",
}
"""Adapters by name: the tool, or ``<tool>-<format>``.

Strict formats come before permissive ones.
"""

TOOLS = frozenset(
    form for name in _SPECIFIC for form in (name.partition("-")[0], name.replace("-", "_"))
) - {"nacre"}
"""Names of agents, such as ``claude`` and ``claude_code``."""


@cache
def adapters() -> Mapping[str, Adapter]:
    """Return all adapters by name, in the order in which they are tried.

    A plugin's adapter replaces a built-in adapter with the same name. Adapters that only guess a
    file's format are tried last. Raises UnavailableError if a plugin's adapter cannot be loaded.
    """
    return dict(_iter_adapters())


def find_adapter(head: Head) -> Adapter | None:
    """Return the first adapter that recognises a file's content, or None.

    If the start of the file does not show the format, for example because the first record contains
    images, later lines are tried. Raises UnreadableTranscriptError if a plugin is missing.
    """
    match = _first(head)
    if (match is None or match.guesses) and load("nacre.readers.claude_code:is_qwen")(head):
        message = f"{head.path} is a chat of Qwen Code, which is not read"
        raise UnreadableTranscriptError(message, hint=install_hint("extras"))
    if match or head.database is not None or len(head.data) < HEAD_BYTES:
        return match
    later = read_later(head.path)
    return _first(later) if later else None


def _first(head: Head) -> Adapter | None:
    return next((adapter for _, adapter in _iter_adapters() if adapter.sniff(head)), None)


def adapters_of(tool: str) -> list[Adapter]:
    """Return the adapters of a tool, one for each format."""
    return [adapter for adapter in adapters().values() if adapter.tool == tool]


def get_adapter(tool: str) -> Adapter:
    """Return the first adapter of a tool. Raises NotFoundError."""
    for adapter in adapters_of(tool):
        return adapter
    raise NotFoundError(f"no adapter for {tool!r}", hint=f"known tools: {', '.join(tools())}")


def adapter_of(tool: str, path: Path) -> Adapter | None:
    """Return the adapter for a file that was already read as a transcript of ``tool``.

    If no specific adapter of the tool recognises the file, all adapters are tried.
    """
    candidates = adapters_of(tool)
    if len(candidates) == 1 and not candidates[0].guesses:
        return candidates[0]
    head = read_head(path)
    specific = (adapter for adapter in candidates if not adapter.guesses and adapter.sniff(head))
    return next(specific, None) or find_adapter(head)


def is_guess(tool: str) -> bool:
    """Return True if a file of this tool might belong to another tool."""
    return any(adapter.guesses for adapter in adapters_of(tool))


def tools() -> Iterator[str]:
    """Return the distinct names of all tools that have an adapter."""
    return iter(dict.fromkeys(adapter.tool for adapter in adapters().values()))


def environment() -> frozenset[str]:
    """Return the environment variables that determine where tools keep their transcripts."""
    return frozenset(name for adapter in adapters().values() for name in adapter.environment)


def parts_of(path: Path) -> Iterator[Path]:
    """Yield the other files that belong to a transcript, such as a database log."""
    for side_files in _side_file_functions():
        yield from side_files(path)


@cache
def _side_file_functions() -> tuple[Callable[[Path], Iterable[Path]], ...]:
    """Return the functions that list a transcript's other files."""
    return tuple(dict.fromkeys(adapter.beside for adapter in adapters().values() if adapter.beside))


def _iter_adapters() -> Iterator[tuple[str, Adapter]]:
    """Yield names and adapters. Built-in ones are loaded when needed."""
    installed = load_plugins(READERS, Adapter)
    general = {name: adapter for name, adapter in installed.items() if adapter.guesses}
    yield from ((name, adapter) for name, adapter in installed.items() if not adapter.guesses)
    for group in (_SPECIFIC, _GENERAL):
        yield from ((name, load(path)) for name, path in group.items() if name not in installed)
        if group is _SPECIFIC:
            yield from general.items()
