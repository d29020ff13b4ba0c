"""Agents of the terminal and gateways: Gemini CLI, OpenCode, OpenClaw."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from nacre.hosts import json_text
from nacre.hosts.host import SERVER, Host, MemoryPlace, Target, Way, hook_groups
from nacre.hosts.json_text import Unparsable
from nacre.hosts.pieces import Block, JsonDefault, JsonItem, JsonKey, JsonServer, JsonSetting, Piece, WholeFile
from nacre.hosts.places import Places
from nacre.hosts.wording import instructions

OPENCLAW = "openclaw"
PLUGIN_TOLD = "nacre.json"
"""The file beside a plugin that tells it where nacre is."""

_OPENCLAW_MEMORY = (
    ("plugins", "entries", "memory-core", "enabled"),
    ("agents", "defaults", "compaction", "memoryFlush", "enabled"),
    ("agents", "defaults", "startupContext", "enabled"),
    ("hooks", "internal", "entries", "session-memory", "enabled"),
)
"""What reads and writes OpenClaw's own memory, besides prompts: out of those nacre's plugin keeps ``MEMORY.md`` and
``USER.md``."""

_GEMINI_MILLISECONDS = {
    "SessionStart": 10_000, "BeforeAgent": 5_000, "AfterAgent": 5_000, "PreCompress": 5_000, "SessionEnd": 5_000,
}  # fmt: skip


def _gemini(way: Way) -> Sequence[Target]:
    folder = (way.project or way.places.user) / ".gemini"
    hooks = hook_groups(way, "gemini-cli", _GEMINI_MILLISECONDS, dict.fromkeys(_GEMINI_MILLISECONDS, "*"))
    server = JsonServer(("mcpServers", SERVER), way.programs.mcp_server(trust=True))
    return (
        Target(folder / "settings.json", (server, *hooks), "MCP server, hooks"),
        Target((way.project or folder) / "GEMINI.md", (Block(instructions()),), "instructions"),
    )


def _opencode(way: Way) -> Iterator[Target]:
    folder = way.project / ".opencode" if way.project else way.places.xdg_config / "opencode"
    above = way.project or folder
    names = ("opencode.jsonc", "opencode.json", "config.json")
    settings = next((above / name for name in names if (above / name).exists()), above / "opencode.json")
    command, arguments = way.programs.mcp
    server = {"type": "local", "command": [command, *arguments], "enabled": True}
    if way.programs.given_environ:
        server["environment"] = way.programs.given_environ
    yield Target(settings, (JsonServer(("mcp", SERVER), server),), "MCP server")
    yield Target(above / "AGENTS.md", (Block(instructions()),), "instructions")
    yield from plugin(way, "opencode", folder / "plugin")


def _openclaw(way: Way) -> Iterator[Target]:
    folder = way.places.home / "hosts" / "openclaw" / SERVER
    entry = ("plugins", "entries", SERVER)
    pieces: list[Piece] = [
        JsonItem(("plugins", "load", "paths"), str(folder)),
        JsonKey((*entry, "enabled"), True),
        JsonKey((*entry, "hooks"), {"allowConversationAccess": True, "allowPromptInjection": True}),
        JsonDefault((*entry, "config"), {}, is_own=True),
    ]
    if way.slot:
        pieces.append(JsonKey(("plugins", "slots", "memory"), SERVER))
    yield Target(_openclaw_settings(way.places), tuple(pieces), "plugin enabled")
    if way.isolates:
        off = tuple(JsonSetting(path, False) for path in _OPENCLAW_MEMORY)
        yield Target(_openclaw_settings(way.places), off, "own memory off")
    yield from plugin(way, "openclaw", folder)


def _openclaw_memory(places: Places) -> Sequence[MemoryPlace]:
    """The pages and daily notes of each agent's workspace."""
    named = ("MEMORY.md", "USER.md", "memory")
    return tuple(MemoryPlace(OPENCLAW, folder / name) for folder in _workspaces(places) for name in named)


def _workspaces(places: Places) -> Sequence[Path]:
    usual = places.environ.get("OPENCLAW_WORKSPACE_DIR") or str(_openclaw_folder(places) / "workspace")
    try:
        agents = json_text.find(_openclaw_settings(places).read_text(encoding="utf-8"), ("agents",))
    except (OSError, UnicodeDecodeError, Unparsable):
        agents = None
    agents = agents if isinstance(agents, dict) else {}
    entries = agents.get("entries")
    held = [agents.get("defaults"), *(entries.values() if isinstance(entries, dict) else ())]
    named = [one["workspace"] for one in held if isinstance(one, dict) and isinstance(one.get("workspace"), str)]
    above = [places.user / one[2:] if one.startswith("~/") else Path(one) for one in (*named, usual)]
    above += sorted(_openclaw_folder(places).glob("workspace-*"))
    below = [folder / name for folder in above for name in (entries if isinstance(entries, dict) else ())]
    return [folder for folder in dict.fromkeys((*above, *below)) if folder.is_absolute() and folder.is_dir()]


def _openclaw_folder(places: Places) -> Path:
    return places.folder("OPENCLAW_STATE_DIR", ".openclaw")


def _openclaw_settings(places: Places) -> Path:
    named = places.environ.get("OPENCLAW_CONFIG_PATH")
    return Path(named) if named else _openclaw_folder(places) / "openclaw.json"


def plugin(way: Way, host: str, folder: Path) -> Iterator[Target]:
    """The files of a plugin that is shipped, and beside them what it has to know of this machine."""
    source = files("nacre.hosts") / "plugins" / host
    if not source.is_dir():
        return
    for name, content in _shipped(source):
        if way.slot and name == "openclaw.plugin.json":  # one that may take the slot is not loaded without it
            content = json.dumps({**json.loads(content), "kind": "memory"}, indent=2, ensure_ascii=False) + "\n"
        yield Target(folder / name, (WholeFile(content),), "plugin")
    said = {**way.programs.told(), **({"isolates": True} if way.isolates else {})}
    told = json.dumps(said, indent=2, ensure_ascii=False) + "\n"
    yield Target(folder / PLUGIN_TOLD, (WholeFile(told),), "plugin")


def _shipped(source: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    for one in sorted(source.iterdir(), key=lambda found: found.name):
        if one.name.startswith((".", "_")) or ".test." in one.name or one.name in ("node_modules", "test", "tests"):
            continue
        if one.is_dir():
            yield from _shipped(one, f"{above}{one.name}/")
        else:
            yield above + one.name, one.read_text(encoding="utf-8")


HOSTS = (
    Host("gemini-cli", "Gemini CLI", ("gemini",), lambda places: (places.user / ".gemini",), _gemini),
    Host(
        "opencode", "OpenCode", ("opencode",),
        lambda places: (
            places.xdg_config / "opencode", places.user / ".local" / "share" / "opencode", places.user / ".opencode",
        ),
        lambda way: tuple(_opencode(way)),
    ),
    Host(
        OPENCLAW, "OpenClaw", ("openclaw",), lambda places: (_openclaw_folder(places),),
        lambda way: tuple(_openclaw(way)),
        notes=lambda _: ("Restart the gateway: openclaw gateway restart.",), by_project=False,
        own_memory=_openclaw_memory,
    ),
)  # fmt: skip
