"""Claude Code: a plugin in a marketplace of nacre's own, or its settings alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nacre.hosts import json_text
from nacre.hosts.host import FREE_TOOLS, SERVER, Host, MemoryPlace, Target, Way, hook_groups
from nacre.hosts.json_text import Unparsable
from nacre.hosts.pieces import JsonItem, JsonKey, JsonServer, JsonSetting, WholeFile
from nacre.hosts.places import Places
from nacre.hosts.wording import words

NAME = "claude-code"
PLUGIN = f"{SERVER}@{SERVER}"
_SECONDS = {"SessionStart": 10, "UserPromptSubmit": 5, "PreCompact": 10, "Stop": 5, "SessionEnd": 5}
"""Without a limit of its own a hook at the session's end is cut off after a second and a half."""

_TOOL = "PreToolUse"
_MATCHERS = {_TOOL: "Bash|Edit|MultiEdit|NotebookEdit|Write"}
"""Reading and searching wait for no hook."""


def marketplace(places: Places) -> Path:
    """The folder that Claude Code is told to take plugins from."""
    return places.home / "hosts" / NAME


def settings_folder(places: Places) -> Path:
    """Where Claude Code keeps what is the user's."""
    return places.folder("CLAUDE_CONFIG_DIR", ".claude")


def is_plugin(way: Way) -> bool:
    """Whether the wiring is a plugin: for all of the user's, unless it is to be plain."""
    return way.project is None and not way.plain


def cached(places: Places, version: str) -> Path:
    """Where Claude Code copies the plugin to."""
    return _copies(places)[0] / SERVER / version


def _copies(places: Places) -> tuple[Path, ...]:
    return (settings_folder(places) / "plugins" / "cache" / SERVER,)


def plugin_files(way: Way) -> dict[str, str]:
    """The plugin, by the path of each file. Its version changes with what is in it, or the host would keep the old."""
    files = {
        "hooks/hooks.json": _json({"hooks": _hooks(way)}),
        ".mcp.json": _json({"mcpServers": {SERVER: _server(way)}}),
        "skills/nacre-memory/SKILL.md": words("SKILL.md"),
    }
    content = hashlib.sha256("\0".join(files.values()).encode()).hexdigest()[:8]
    manifest = {
        "name": SERVER,
        "version": f"{_numbers(way.programs.version)}-{content}",
        "description": "Long-term memory: what was settled in earlier sessions, given back when it matters.",
    }
    return {".claude-plugin/plugin.json": _json(manifest), **files}


def _numbers(version: str) -> str:
    """A version as plugins have it: numbers first."""
    return version if version[:1].isdigit() else "0.0.0"


def version_of(files: dict[str, str]) -> str:
    """The version that a plugin's files say."""
    found: str = json.loads(files[".claude-plugin/plugin.json"])["version"]
    return found


def _targets(way: Way) -> Sequence[Target]:
    return (*(_plugin(way) if is_plugin(way) else _plain(way)), *_isolation(way))


def _isolation(way: Way) -> Iterator[Target]:
    """Claude Code's auto memory is turned off by a setting of its own: it is neither loaded nor written then."""
    if way.isolates:
        setting = JsonSetting(("autoMemoryEnabled",), False)
        yield Target(settings_folder(way.places) / "settings.json", (setting,), "own memory off")


def _own_memory(places: Places) -> Sequence[MemoryPlace]:
    """The memory folders of all projects; or the one folder that its settings name."""
    folder = settings_folder(places)
    try:
        named = json_text.find((folder / "settings.json").read_text(encoding="utf-8"), ("autoMemoryDirectory",))
    except (OSError, UnicodeDecodeError, Unparsable):
        named = None
    if isinstance(named, str) and named:
        own = places.user / named.removeprefix("~/") if named.startswith("~/") else Path(named)
        return (MemoryPlace("claude-memory", own),) if own.is_absolute() else ()
    found = sorted((folder / "projects").glob("*/memory"))
    return tuple(MemoryPlace("claude-memory", one) for one in found)


def _plugin(way: Way) -> Iterator[Target]:
    folder = marketplace(way.places)
    listing = {
        "name": SERVER,
        "owner": {"name": SERVER},
        "plugins": [{"name": SERVER, "source": "./plugin", "description": "Long-term memory"}],
    }
    yield Target(folder / ".claude-plugin" / "marketplace.json", (WholeFile(_json(listing)),), "plugin")
    for name, content in plugin_files(way).items():
        yield Target(folder / "plugin" / name, (WholeFile(content),), "plugin")
    yield Target(
        settings_folder(way.places) / "settings.json",
        (
            JsonKey(("extraKnownMarketplaces", SERVER), {"source": {"source": "directory", "path": str(folder)}}),
            JsonKey(("enabledPlugins", PLUGIN), True),
            *_allowed(f"mcp__plugin_{SERVER}_{SERVER}__"),
        ),
        "plugin enabled, tools allowed",
    )


def _plain(way: Way) -> Iterator[Target]:
    hooks = hook_groups(way, NAME, _seconds(way), _MATCHERS)
    server = JsonServer(("mcpServers", SERVER), {"type": "stdio", **_server(way)})
    allowed = _allowed(f"mcp__{SERVER}__")
    if way.project:
        folder = way.project / ".claude"
        yield Target(way.project / ".mcp.json", (server,), "MCP server")
        approved = JsonItem(("enabledMcpjsonServers",), SERVER)
        yield Target(folder / "settings.local.json", (*hooks, *allowed, approved), "hooks, tools allowed")
    else:
        folder = settings_folder(way.places)
        inside = folder if way.places.environ.get("CLAUDE_CONFIG_DIR") else way.places.user
        yield Target(inside / ".claude.json", (server,), "MCP server")
        yield Target(folder / "settings.json", (*hooks, *allowed), "hooks, tools allowed")
    yield Target(folder / "skills" / "nacre-memory" / "SKILL.md", (WholeFile(words("SKILL.md")),), "skill")


def _server(way: Way) -> dict[str, Any]:
    """The MCP server, with its tools in every session from the start.

    Since version 2.1.121 Claude Code defers the tools of servers that do not ask for this; earlier versions ignore it.
    """
    return way.programs.mcp_server(alwaysLoad=True)


def _hooks(way: Way) -> dict[str, Any]:
    return {hook.path[-1]: [hook.value] for hook in hook_groups(way, NAME, _seconds(way), _MATCHERS)}


def _seconds(way: Way) -> dict[str, int]:
    return {**_SECONDS, _TOOL: 2} if way.tool_hook else _SECONDS


def _allowed(prefix: str) -> tuple[JsonItem, ...]:
    return tuple(JsonItem(("permissions", "allow"), prefix + tool) for tool in FREE_TOOLS)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _notes(way: Way) -> Sequence[str]:
    told = "Sessions that run already know nothing of it: start a new one."
    return (told, "It asks once whether the folder is to be trusted.") if way.project else (told,)


HOST = Host(
    NAME, "Claude Code", ("claude",),
    traces=lambda places: (settings_folder(places), places.user / ".claude.json"),
    targets=_targets, notes=_notes, own_memory=_own_memory, copies=_copies,
)  # fmt: skip
