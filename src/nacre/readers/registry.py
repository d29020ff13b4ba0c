"""The adapters of nacre and its plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from nacre.base.environment import install_hint
from nacre.base.lazy import load
from nacre.base.plugins import READERS, load_plugins
from nacre.errors import NotFoundError, UnreadableTranscriptError
from nacre.readers.adapter import (
    HEAD_BYTES,
    Adapter,
    Head,
    log_of,
    read_head,
    read_later,
)

_SPECIFIC = {
    "claude-code": "claude_code",
    "codex": "codex",
    "nacre-chat": "nacre_chat",
    "openclaw": "openclaw",
    "gemini-cli": "gemini_cli",
    "copilot-cli": "copilot:CLI",
    "copilot-chat": "copilot",
    "roo-code": "cline:ROO",
    "kilo-code-tasks": "cline:KILO",
    "cline": "cline",
    "cline-sessions": "cline:SESSIONS",
    "cursor-transcripts": "cursor:TRANSCRIPTS",
    "cursor-text": "cursor",
    "openclaw-store": "openclaw:STORE",
    "kilo-code": "opencode:KILO",
    "opencode": "opencode",
    "opencode-files": "opencode:FILES",
    "cursor-state": "cursor:STATE",
    "cursor-store": "cursor:STORE",
    "chatgpt": "accounts",
    "claude-ai": "accounts:CLAUDE_AI",
}
_GENERAL = {
    "jsonl": "generic",
    "markdown": "generic:MARKDOWN",
    "text": "generic:PLAIN_TEXT",
}
"""The module of each adapter. The adapter's name is the tool or ``<tool>-<format>``.

A colon precedes the suffix of the ``ADAPTER`` constant. Strict formats come before lenient ones.
"""

IN_EXTRAS = {
    "aider": ".aider.chat.history.md",
    "amp": ".local/share/amp/threads/T-*.json",
    "antigravity": ".gemini/antigravity*/brain/*/.system_generated/logs/transcript.jsonl",
    "continue": ".continue/sessions/*.json",
    "crush": ".crush/crush.db",
    "droid": ".factory/sessions/*/*.jsonl",
    "goose": ".local/share/goose/sessions/sessions.db",
    "gptme": ".local/share/gptme/logs/*/conversation.jsonl",
    "grok": ".grok/sessions/*/*/*.jsonl",
    "hermes": ".hermes/state.db",
    "iflow": ".iflow/projects/*/*.jsonl",
    "kimi": ".kimi*/sessions/*/*/*.jsonl",
    "kiro": ".local/share/kiro-cli/data.sqlite3",
    "qwen-code": ".qwen/projects/*/chats/*.jsonl",
    "zed": ".local/share/zed/threads/threads.db",
}
"""Paths, in the user's home or a project, of transcripts that only nacre-extras can read."""

TOOLS = frozenset(
    form for name in _SPECIFIC for form in (name.partition("-")[0], name.replace("-", "_"))
) - {"nacre"}
"""Names of agents in headings, such as ``claude`` and ``claude_code``."""


@cache
def adapters() -> Mapping[str, Adapter]:
    """Return all adapters by name, in the order in which nacre tries them.

    A plugin's adapter replaces the built-in one of the same name. Raises UnavailableError if a
    plugin's adapter cannot be loaded.
    """
    return dict(_iter_adapters())


def find_adapter(head: Head) -> Adapter | None:
    """Return the first adapter that recognises the content of a file, or None.

    Later lines are examined if the start does not show the format. Raises UnreadableTranscriptError
    if the file needs a missing plugin.
    """
    match = _first(head)
    if match is None or match.guesses:
        for tool, pattern in IN_EXTRAS.items():
            if head.path.match(pattern) and tool not in adapters():
                message = f"{head.path} is a transcript of {tool}, which nacre alone cannot read"
                raise UnreadableTranscriptError(message, hint=install_hint("extras"))
    if match or len(head.data) < HEAD_BYTES or not head.data.startswith(b"{"):
        return match
    later = read_later(head.path)
    return _first(later) if later else None


def _first(head: Head) -> Adapter | None:
    return next((adapter for _, adapter in _iter_adapters() if adapter.sniff(head)), None)


def adapters_of(tool: str) -> list[Adapter]:
    """Return a tool's adapters, one for each of its formats."""
    return [adapter for adapter in adapters().values() if adapter.tool == tool]


def get_adapter(tool: str) -> Adapter:
    """Return the first adapter of a tool. Raises NotFoundError if there is none."""
    for adapter in adapters_of(tool):
        return adapter
    raise NotFoundError(f"no adapter for {tool!r}", hint=f"known tools: {', '.join(tools())}")


def adapter_of(tool: str, path: Path) -> Adapter | None:
    """Return the adapter for a file that is known to be a transcript of ``tool``.

    If none of the tool's specific adapters recognises the file, all adapters are tried.
    """
    candidates = adapters_of(tool)
    if len(candidates) == 1 and not candidates[0].guesses:
        return candidates[0]
    head = read_head(path)
    specific = (adapter for adapter in candidates if not adapter.guesses and adapter.sniff(head))
    return next(specific, None) or find_adapter(head)


def is_guess(tool: str) -> bool:
    """Return True if an adapter of the tool also accepts files of other tools."""
    return any(adapter.guesses for adapter in adapters_of(tool))


def tools() -> Iterator[str]:
    """Return the names of all tools that have an adapter."""
    return iter(dict.fromkeys(adapter.tool for adapter in adapters().values()))


def parts_of(path: Path) -> Iterator[Path]:
    """Yield the side files of a transcript, such as a database's write-ahead log."""
    yield from log_of(path)
    for side_files in _side_file_functions():
        yield from side_files(path)


@cache
def _side_file_functions() -> tuple[Callable[[Path], Iterable[Path]], ...]:
    return tuple(dict.fromkeys(adapter.beside for adapter in adapters().values() if adapter.beside))


def _iter_adapters() -> Iterator[tuple[str, Adapter]]:
    installed = load_plugins(READERS, Adapter)
    general = {name: adapter for name, adapter in installed.items() if adapter.guesses}
    yield from ((name, adapter) for name, adapter in installed.items() if not adapter.guesses)
    # Built-in adapters are imported on demand, until one matches.
    for group in (_SPECIFIC, _GENERAL):
        yield from ((name, _load(at)) for name, at in group.items() if name not in installed)
        if group is _SPECIFIC:
            yield from general.items()


def _load(place: str) -> Adapter:
    module, _, end = place.partition(":")
    adapter: Adapter = load(f"nacre.readers.{module}:ADAPTER{end and '_'}{end}")
    return adapter
