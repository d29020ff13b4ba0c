"""Find adapters by name, and the one that reads a file. Built-ins and third parties use the same door."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from nacre.base.lazy import load
from nacre.errors import NotFound, Unavailable
from nacre.readers.adapter import HEAD_BYTES, Adapter, Head, Places, read_head, read_later

GROUP = "nacre.readers"
"""The entry-point group in which a third party registers ``<tool> = "<module>:<adapter record>"``."""

BUILTINS: dict[str, str] = {
    "claude-code": "nacre.readers.claude_code:ADAPTER",
    "codex": "nacre.readers.codex:ADAPTER",
    "nacre-chat": "nacre.readers.nacre_chat:ADAPTER",
    "openclaw": "nacre.readers.openclaw:ADAPTER",
    "gemini-cli": "nacre.readers.gemini_cli:ADAPTER",
    "copilot-cli": "nacre.readers.copilot:ADAPTER_CLI",
    "copilot-chat": "nacre.readers.copilot:ADAPTER",
    "continue": "nacre.readers.continue_dev:ADAPTER",
    "roo-code": "nacre.readers.cline:ROO_MESSAGES",
    "cline": "nacre.readers.cline:ADAPTER",
    "roo-code-history": "nacre.readers.cline:ROO_MODEL_HISTORY",
    "cline-history": "nacre.readers.cline:ADAPTER_MODEL_HISTORY",
    "cursor-transcripts": "nacre.readers.cursor:ADAPTER_TRANSCRIPTS",
    "cursor-text": "nacre.readers.cursor:ADAPTER",
    "aider": "nacre.readers.aider:ADAPTER",
    "aider-llm": "nacre.readers.aider:ADAPTER_LLM_HISTORY",
    "openclaw-store": "nacre.readers.openclaw:ADAPTER_STORE",
    "opencode": "nacre.readers.opencode:ADAPTER",
    "opencode-files": "nacre.readers.opencode:ADAPTER_FILES",
    "cursor-state": "nacre.readers.cursor_state:ADAPTER",
    "cursor-store": "nacre.readers.cursor_state:ADAPTER_STORE",
    "copilot-chat-state": "nacre.readers.copilot:ADAPTER_EDITOR_STATE",
    "chatgpt": "nacre.readers.accounts:ADAPTER",
    "claude-ai": "nacre.readers.accounts:ADAPTER_CLAUDE_AI",
    "plaud": "nacre.readers.plaud:ADAPTER",
    "jsonl": "nacre.readers.generic:ADAPTER",
    "markdown": "nacre.readers.generic:ADAPTER_MARKDOWN",
    "text": "nacre.readers.generic:ADAPTER_PLAIN_TEXT",
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
    return (
        next((adapter for adapter in _one_by_one() if adapter.sniff(later)), None)
        if later
        else None
    )


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
        raise Unavailable(
            f"{point.value} is not an adapter", hint="mend or uninstall the package it comes with"
        )
    return adapter


def _load(path: str) -> Adapter:
    adapter: Adapter = load(path)
    return adapter


# ----------------------------------------------------------------------------
# When agent tools delete transcripts by themselves, as their settings on this machine say, or their
# code.


CLAUDE_CODE_DAYS = 30
"""What Claude Code keeps when its settings are silent."""
COPILOT_CHAT_SESSIONS = 400
"""What VS Code keeps of the chats of one workspace, whatever its settings say; older versions kept 25."""

_MOST_BYTES = 1_000_000
_LENGTH = re.compile(r"(\d+)\s*([hdwm])")
_DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0, "m": 30.0}


@dataclass(frozen=True, slots=True)
class Retention:
    """A tool deletes transcripts that did not change for so many ``days``, or what goes beyond the newest ``files`` of
    a folder; ``setting`` is what says so, and where."""

    tool: str
    label: str
    days: float | None
    setting: str
    files: int | None = None


def retentions(places: Places) -> list[Retention]:
    """The tools that delete. Settings that cannot be read count as silent."""
    found = [_claude_code(places), _gemini_cli(places), _COPILOT_CHAT]
    return [one for one in found if one]


_COPILOT_CHAT = Retention(
    "copilot-chat",
    "VS Code Copilot Chat",
    None,
    "no setting: what VS Code keeps of a workspace",
    COPILOT_CHAT_SESSIONS,
)


def _claude_code(places: Places) -> Retention:
    file = (
        Path(places.environ.get("CLAUDE_CONFIG_DIR") or places.home / ".claude") / "settings.json"
    )
    days = _settings(file).get("cleanupPeriodDays")
    days = (
        days
        if isinstance(days, int | float) and not isinstance(days, bool) and days >= 0
        else CLAUDE_CODE_DAYS
    )
    return Retention("claude-code", "Claude Code", float(days), f"cleanupPeriodDays in {file}")


def _gemini_cli(places: Places) -> Retention | None:
    """It deletes where that is turned on."""
    file = places.home / ".gemini" / "settings.json"
    general = _settings(file).get("general")
    kept = general.get("sessionRetention") if isinstance(general, dict) else None
    if not isinstance(kept, dict) or kept.get("enabled") is not True:
        return None
    length = _LENGTH.fullmatch(str(kept.get("maxAge", "")).strip())
    if not length:
        return None
    days = int(length.group(1)) * _DAYS[length.group(2)]
    return Retention("gemini-cli", "Gemini CLI", days, f"general.sessionRetention.maxAge in {file}")


def _settings(file: Path) -> Mapping[str, Any]:
    try:
        with file.open("rb") as opened:
            values = json.loads(opened.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
