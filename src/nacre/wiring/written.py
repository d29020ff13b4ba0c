"""What hosts' files hold of nacre: what stands there is told, not what should."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nacre.hosts import claude_code, files, json_text
from nacre.hosts.files import Untouchable
from nacre.hosts.host import SERVER, Target, Way
from nacre.hosts.json_text import Unparsable
from nacre.hosts.pieces import OWN_COMMANDS, JsonHook, JsonServer, ServerPiece
from nacre.hosts.servers import Server
from nacre.settings import Settings
from nacre.values.wiring import WiringWish
from nacre.wiring.commands import installed_version
from nacre.wiring.ways import targets_of, way_of


@dataclass(frozen=True, slots=True)
class Written:
    """What a host's files hold of nacre: hook command lines by event, and MCP servers."""

    hooks: Sequence[tuple[str, str]]
    servers: Sequence[Server]


def written(settings: Settings, wish: WiringWish) -> Written:
    """Read from the files what the host will run."""
    hooks: dict[tuple[str, str], None] = {}
    servers: list[Server] = []
    for target in _holders(settings, wish):
        text = text_of(target.path)
        if any(isinstance(piece, JsonHook) for piece in target.pieces):
            hooks |= dict.fromkeys(_hooks_in(json_in(text)))
        servers += [found for piece in target.pieces if (found := _server_in(text, piece))]
    return Written(tuple(hooks), servers)


def text_of(path: Path) -> str:
    """What is in a file; nothing where it cannot be read, or is a pipe, which nobody may ever write to."""
    try:
        return files.read(path).words
    except Untouchable:
        return ""


def json_in(text: str) -> Any:
    """What a JSON text holds; nothing where it is none."""
    try:
        return json_text.read(text)
    except Unparsable:
        return {}


def _holders(settings: Settings, wish: WiringWish) -> Iterator[Target]:
    """The files that hold hooks or a server: those of a plugin where Claude Code reads them."""
    way = way_of(settings, wish)
    if wish.host != claude_code.NAME or not claude_code.is_plugin(way):
        yield from targets_of(settings, wish)
        return
    folder = _plugin_folder(way)
    yield Target(folder / "hooks" / "hooks.json", (JsonHook((), {}),), "hooks")
    yield Target(folder / ".mcp.json", (JsonServer(("mcpServers", SERVER), {}),), "MCP server")


def _plugin_folder(way: Way) -> Path:
    """Where Claude Code has copied the plugin to; where it has not yet, the folder it will copy."""
    version = installed_version(way)
    copied = claude_code.cached(way.places, version) if version else None
    return copied if copied and copied.is_dir() else claude_code.marketplace(way.places) / "plugin"


def _server_in(text: str, piece: object) -> Server | None:
    try:
        found = piece.server(text) if isinstance(piece, ServerPiece) else None
    except Unparsable:
        return None
    return found if found and found.words else None


def _hooks_in(held: Any) -> Iterator[tuple[str, str]]:
    events = held.get("hooks") if isinstance(held, dict) else None
    for event, groups in events.items() if isinstance(events, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            for entry in group.get("hooks", [group]) if isinstance(group, dict) else ():
                command = str(entry.get("command", "")) if isinstance(entry, dict) else ""
                if any(name in command for name in OWN_COMMANDS):
                    yield event, command
