"""Find adapters by name, and the one that reads a file. Built-ins and third parties use the same door."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from nacre.errors import NotFound, Unavailable
from nacre.platform.lazy import load
from nacre.transcripts.adapter import HEAD_BYTES, Adapter, Head
from nacre.transcripts.file_source import read_head, read_later

GROUP = "nacre.transcripts"
"""The entry-point group in which a third party registers ``<tool> = "<module>:<adapter record>"``."""

BUILTINS: dict[str, str] = {
    "claude-code": "nacre.transcripts.claude_code.transcript:ADAPTER",
    "codex": "nacre.transcripts.codex.rollout:ADAPTER",
    "nacre-chat": "nacre.transcripts.tools.nacre_chat:ADAPTER",
    "openclaw": "nacre.transcripts.openclaw.session_file:ADAPTER",
    "gemini-cli": "nacre.transcripts.tools.gemini_cli:ADAPTER",
    "copilot-cli": "nacre.transcripts.copilot.cli:ADAPTER",
    "copilot-chat": "nacre.transcripts.copilot.chat:ADAPTER",
    "continue": "nacre.transcripts.tools.continue_dev:ADAPTER",
    "roo-code": "nacre.transcripts.cline.messages:ROO",
    "cline": "nacre.transcripts.cline.messages:ADAPTER",
    "roo-code-history": "nacre.transcripts.cline.model_history:ROO",
    "cline-history": "nacre.transcripts.cline.model_history:ADAPTER",
    "cursor-transcripts": "nacre.transcripts.cursor.transcripts:ADAPTER",
    "cursor-text": "nacre.transcripts.cursor.text:ADAPTER",
    "aider": "nacre.transcripts.aider.chat_history:ADAPTER",
    "aider-llm": "nacre.transcripts.aider.llm_history:ADAPTER",
    "openclaw-store": "nacre.transcripts.openclaw.store:ADAPTER",
    "opencode": "nacre.transcripts.opencode.database:ADAPTER",
    "opencode-files": "nacre.transcripts.opencode.files:ADAPTER",
    "cursor-state": "nacre.transcripts.cursor.state:ADAPTER",
    "cursor-store": "nacre.transcripts.cursor.store:ADAPTER",
    "copilot-chat-state": "nacre.transcripts.copilot.editor_state:ADAPTER",
    "chatgpt": "nacre.transcripts.accounts.chatgpt:ADAPTER",
    "claude-ai": "nacre.transcripts.accounts.claude_ai:ADAPTER",
    "plaud": "nacre.transcripts.tools.plaud:ADAPTER",
    "jsonl": "nacre.transcripts.generic.jsonl:ADAPTER",
    "markdown": "nacre.transcripts.generic.markdown:ADAPTER",
    "text": "nacre.transcripts.generic.plain_text:ADAPTER",
}
"""By name (the tool's, or ``<tool>-<format>``), in the order in which they are asked: the decisive formats first, the
ones that take anything last."""


@cache
def adapters() -> tuple[Adapter, ...]:
    """All adapters: third parties' first, so that one may take over a built-in's files, then the built-ins.

    Raises Unavailable when a third party's cannot be loaded.
    """
    return tuple(_one_by_one())


@cache
def builtins() -> dict[str, Adapter]:
    """nacre's own adapters by name, in the order in which they are asked."""
    return {name: _load(path) for name, path in BUILTINS.items()}


def find_adapter(head: Head) -> Adapter | None:
    """The first adapter that recognises a file by its content; ``None`` when none does.

    Of one whose beginning tells nothing, as its first record holds pictures, later lines are looked at.
    """
    found = next((adapter for adapter in _one_by_one() if adapter.sniff(head)), None)
    if found or head.database is not None or len(head.data) < HEAD_BYTES:
        return found
    later = read_later(head.path)
    return next((adapter for adapter in _one_by_one() if adapter.sniff(later)), None) if later else None


def get_adapter(tool: str) -> Adapter:
    """The adapter of a tool, the first where it has several. Raises NotFound."""
    adapter = next((adapter for adapter in _one_by_one() if adapter.tool == tool), None)
    if adapter:
        return adapter
    raise NotFound(f"no adapter for {tool!r}", hint=f"known tools: {', '.join(tools())}")


def adapter_of(tool: str, path: Path) -> Adapter | None:
    """The adapter that reads a file which was read as a tool's before: of several, the one that recognises it.

    What was only a guess is made again: a file that was hardly begun may have looked like a note.
    """
    known = [adapter for adapter in adapters() if adapter.tool == tool]
    if len(known) == 1 and not known[0].guesses:
        return known[0]
    head = read_head(path)
    sure = (adapter for adapter in known if not adapter.guesses)
    return next((adapter for adapter in sure if adapter.sniff(head)), None) or find_adapter(head)


def is_guess(tool: str) -> bool:
    """Whether a file that is read as this tool's may turn out to be another's."""
    return any(adapter.guesses for adapter in adapters() if adapter.tool == tool)


def tools() -> Iterator[str]:
    """The names of all tools that have an adapter, each once."""
    return iter(dict.fromkeys(adapter.tool for adapter in adapters()))


def environment() -> frozenset[str]:
    """The names of the environment's variables that say where tools keep their transcripts."""
    return frozenset(name for adapter in adapters() for name in adapter.environment)


def parts_of(path: Path) -> Iterator[Path]:
    """The files that belong to a transcript, without itself: the log of a database, the messages of a session."""
    for beside in _beside():
        yield from beside(path)


@cache
def _beside() -> tuple[Callable[[Path], Iterable[Path]], ...]:
    """What tells of a transcript's other files; every transcript is asked about, so each once."""
    return tuple(dict.fromkeys(adapter.beside for adapter in adapters() if adapter.beside))


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


def _load(path: str) -> Adapter:
    adapter: Adapter = load(path)
    return adapter
