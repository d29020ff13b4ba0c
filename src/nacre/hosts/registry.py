"""The hosts that nacre supports: Claude Code, Codex, editors, terminal agents and gateways."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from nacre.base.plain import mapping, string
from nacre.hosts import files as json_text
from nacre.hosts.files import Places, UnparsableFileError
from nacre.hosts.host import (
    FREE_TOOLS,
    READING_TOOLS,
    SERVER,
    Block,
    Host,
    JsonDefault,
    JsonItem,
    JsonKey,
    JsonServer,
    JsonSetting,
    MemoryPlace,
    Piece,
    ServerFile,
    Target,
    TomlServer,
    TomlSetting,
    TomlTables,
    Way,
    WholeFile,
    hook_entries,
    hook_groups,
    instructions,
    words,
)

NAME = "claude-code"
_HOOK_SECONDS = {
    "SessionStart": 10,
    "UserPromptSubmit": 5,
    "PreCompact": 10,
    "Stop": 5,
    "SessionEnd": 5,
}
"""Time limits by event, in seconds. Claude Code's default for ``SessionEnd`` is 1.5 seconds."""

_TOOL = "PreToolUse"
_MATCHERS = {_TOOL: "Bash|Edit|MultiEdit|NotebookEdit|Write"}
"""Tools whose calls run the hook first."""


def settings_folder(places: Places) -> Path:
    """Return the folder with Claude Code's user settings."""
    return places.folder("CLAUDE_CONFIG_DIR", ".claude")


def _targets(way: Way) -> Iterator[Target]:
    seconds = {**_HOOK_SECONDS, _TOOL: 2} if way.wish.tool_hook else _HOOK_SECONDS
    hooks = hook_groups(way, NAME, seconds, _MATCHERS)
    server = JsonServer(("mcpServers", SERVER), {"type": "stdio", **way.programs.mcp_server()})
    tools = (f"mcp__{SERVER}__{tool}" for tool in FREE_TOOLS)
    allowed = (JsonItem(("permissions", "allow"), tool) for tool in tools)
    if way.project:
        folder = way.project / ".claude"
        yield Target(way.project / ".mcp.json", (server,), "MCP server")
        approved = JsonItem(("enabledMcpjsonServers",), SERVER)
        yield Target(
            folder / "settings.local.json", (*hooks, *allowed, approved), "hooks, tools allowed"
        )
    else:
        folder = settings_folder(way.places)
        inside = folder if way.places.environ.get("CLAUDE_CONFIG_DIR") else way.places.user
        yield Target(inside / ".claude.json", (server,), "MCP server")
        yield Target(folder / "settings.json", (*hooks, *allowed), "hooks, tools allowed")
    yield Target(
        folder / "skills" / "nacre-memory" / "SKILL.md", (WholeFile(words("SKILL.md")),), "skill"
    )
    if way.wish.isolates:  # Claude Code then neither loads nor writes its auto memory
        setting = JsonSetting(("autoMemoryEnabled",), False)
        yield Target(folder / "settings.json", (setting,), "own memory off")


def _own_memory(places: Places) -> Sequence[MemoryPlace]:
    folder = settings_folder(places)
    named = _read_setting(folder / "settings.json", "autoMemoryDirectory")
    if isinstance(named, str) and named:
        own = _path(places, named)
        return _claude_memory([own] if own.is_absolute() else [])
    return _claude_memory((folder / "projects").glob("*/memory"))


def _claude_memory(folders: Iterable[Path]) -> Sequence[MemoryPlace]:
    return [MemoryPlace("claude-memory", folder) for folder in sorted(folders)]


def _read_setting(file: Path, *keys: str) -> Any:
    try:
        return json_text.find(file.read_text(encoding="utf-8"), keys)
    except (OSError, UnicodeDecodeError, UnparsableFileError):
        return None


def _path(places: Places, text: str) -> Path:
    return places.user / text[2:] if text.startswith("~/") else Path(text)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _notes(way: Way) -> Sequence[str]:
    note = "It takes effect in new sessions."
    return (note, "It asks once whether you trust the folder.") if way.project else (note,)


HOST = Host(
    NAME,
    "Claude Code",
    ("claude",),
    traces=lambda places: (settings_folder(places), places.user / ".claude.json"),
    targets=_targets,
    notes=_notes,
    own_memory=_own_memory,
)


# -- Codex -----------------------------------------------------------------------------------------
# Codex gets an MCP server in config.toml, hooks, and instructions in AGENTS.md.


NAME_CODEX = "codex"
_CODEX_HOOK_SECONDS = {
    "SessionStart": 10,
    "UserPromptSubmit": 5,
    "PreCompact": 10,
    "Stop": 5,
    "SessionEnd": 3,
}
"""Time limits by event, in seconds.

Codex cancels ``SessionEnd`` hooks after three seconds. With a longer limit, it prints a warning at
every start.
"""

_MATCHERS_CODEX = {_TOOL: "^(Bash|apply_patch)$"}


def folder(places: Places) -> Path:
    """Return Codex's settings folder for the project or the user."""
    return places.project / ".codex" if places.project else places.folder("CODEX_HOME", ".codex")


def users_config(places: Places) -> Path:
    """Return the path of the user's Codex settings, which also list the hooks that are trusted."""
    return places.folder("CODEX_HOME", ".codex") / "config.toml"


def hooks_file(places: Places) -> Path:
    """Return the file that contains Codex's hooks."""
    return folder(places) / "hooks.json"


def _targets_codex(way: Way) -> Sequence[Target]:
    hooks = hooks_file(way.places)
    seconds = {**_CODEX_HOOK_SECONDS, _TOOL: 2} if way.wish.tool_hook else _CODEX_HOOK_SECONDS
    server = {
        **way.programs.mcp_server(),
        "startup_timeout_sec": 20,
        "tools": {tool: {"approval_mode": "approve"} for tool in READING_TOOLS},
    }
    trusted = TomlTables(("hooks", "state"), f"{hooks}:")
    instructed = (way.project or folder(way.places)) / "AGENTS.md"
    put = TomlServer(("mcp_servers", SERVER), server)
    targets = (
        Target(
            folder(way.places) / "config.toml",
            (put,) if way.project else (put, trusted),
            "MCP server",
        ),
        Target(hooks, hook_groups(way, NAME_CODEX, seconds, _MATCHERS_CODEX), "hooks"),
        Target(instructed, (Block(instructions()),), "instructions"),
    )
    if way.project:
        return (*targets, Target(users_config(way.places), (trusted,), "trust"))
    off = Target(
        users_config(way.places), (TomlSetting(("features", "memories"), False),), "own memory off"
    )
    return (*targets, off) if way.wish.isolates else targets


def _notes_codex(way: Way) -> Sequence[str]:
    note = "It only runs trusted hooks: open codex, type /hooks, and trust nacre's"
    if not way.project:
        return (f"{note}; or run nacre init --host codex --trust-hooks",)
    command = f"nacre init --host codex --project {shlex.quote(str(way.project))} --trust-hooks"
    return (f"{note}, after you trusted the folder there; or run {command}",)


CODEX_HOST = Host(
    NAME_CODEX,
    "Codex",
    ("codex",),
    traces=lambda places: (places.folder("CODEX_HOME", ".codex"),),
    targets=_targets_codex,
    notes=_notes_codex,
    own_memory=lambda places: (
        MemoryPlace("codex-memories", places.folder("CODEX_HOME", ".codex") / "memories"),
    ),
)


# -- Editors ---------------------------------------------------------------------------------------
# Cursor, Windsurf, VS Code Copilot, Cline, Roo Code and Continue, and AGENTS.md for other agents.


_CURSOR_HOOK_SECONDS = {
    "sessionStart": 10,
    "beforeSubmitPrompt": 5,
    "stop": 5,
    "preCompact": 5,
    "sessionEnd": 5,
}
_RULE = "description: Long-term memory of earlier sessions\nalwaysApply: true"
_RESTART = ("If it is running, restart it or turn on the server in its MCP settings.",)


def _cursor(way: Way) -> Iterator[Target]:
    folder = (way.project or way.places.user) / ".cursor"
    yield Target(folder / "mcp.json", (_server_editors(way),), "MCP server")
    hooks = hook_entries(way, "cursor", _CURSOR_HOOK_SECONDS)
    yield Target(folder / "hooks.json", (JsonDefault(("version",), 1), *hooks), "hooks")
    if way.project:  # Cursor keeps user rules in the application, not in a file
        yield Target(folder / "rules" / "nacre.mdc", (WholeFile(instructions(_RULE)),), "rule")


def _windsurf(way: Way) -> Iterator[Target]:
    folder = way.places.user / ".codeium" / "windsurf"
    yield Target(folder / "mcp_config.json", (_server_editors(way),), "MCP server")
    if way.project:
        rule = way.project / ".windsurf" / "rules" / "nacre.md"
        yield Target(rule, (WholeFile(instructions("trigger: always_on")),), "rule")
    else:
        yield Target(folder / "memories" / "global_rules.md", (Block(instructions()),), "rules")


def _vscode(way: Way) -> Iterator[Target]:
    folder = way.project / ".vscode" if way.project else way.places.editor
    server = {"type": "stdio", **way.programs.mcp_server()}
    yield Target(folder / "mcp.json", (JsonServer(("servers", SERVER), server),), "MCP server")
    if way.project:
        yield Target(
            way.project / ".github" / "copilot-instructions.md",
            (Block(instructions()),),
            "instructions",
        )
    else:
        words = instructions('applyTo: "**"')
        yield Target(
            folder / "prompts" / "nacre.instructions.md", (WholeFile(words),), "instructions"
        )


def _cline(way: Way) -> Iterator[Target]:
    old = way.places.extension("saoudrizwan.claude-dev") / "settings" / "cline_mcp_settings.json"
    new = way.places.folder("CLINE_DIR", ".cline") / "data" / "settings" / "cline_mcp_settings.json"
    settings = new if new.exists() or not old.parent.is_dir() else old
    yield Target(
        settings,
        (_server_editors(way, disabled=False, autoApprove=list(FREE_TOOLS)),),
        "MCP server",
    )
    if way.project:
        rules = way.project / ".clinerules"
    else:
        rules = way.places.user / "Documents" / "Cline" / "Rules"
        if not rules.is_dir():
            rules = way.places.folder("CLINE_DIR", ".cline") / "rules"
    if way.project and rules.is_file():
        yield Target(rules, (Block(instructions()),), "rules")
    else:
        yield Target(rules / "nacre.md", (WholeFile(instructions()),), "rule")


def _roo(way: Way) -> Iterator[Target]:
    if way.project:
        settings = way.project / ".roo" / "mcp.json"
    else:
        settings = (
            way.places.extension("rooveterinaryinc.roo-cline") / "settings" / "mcp_settings.json"
        )
    yield Target(
        settings,
        (_server_editors(way, disabled=False, alwaysAllow=list(FREE_TOOLS)),),
        "MCP server",
    )
    rule = (way.project or way.places.user) / ".roo" / "rules" / "nacre.md"
    yield Target(rule, (WholeFile(instructions()),), "rule")


def _continue(way: Way) -> Iterator[Target]:
    folder = (
        way.project / ".continue"
        if way.project
        else way.places.folder("CONTINUE_GLOBAL_DIR", ".continue")
    )
    command, arguments = way.programs.mcp
    lines = [
        "name: nacre",
        "version: 0.0.1",
        "schema: v1",
        "mcpServers:",
        "  - name: nacre",
        f"    command: {json.dumps(command)}",
        f"    args: {json.dumps(arguments)}",
    ]
    if way.programs.given_environ:
        lines.append(f"    env: {json.dumps(way.programs.given_environ)}")
    yield Target(
        folder / "mcpServers" / "nacre.yaml", (ServerFile("\n".join(lines) + "\n"),), "MCP server"
    )
    rule = instructions("name: Long-term memory\nalwaysApply: true")
    yield Target(folder / "rules" / "nacre.md", (WholeFile(rule),), "rule")


def _generic(way: Way) -> Iterator[Target]:
    above = way.project or way.places.user
    yield Target(above / "AGENTS.md", (Block(instructions()),), "instructions")
    yield Target(above / ".mcp.json", (_server_editors(way),), "MCP server")


def _server_editors(way: Way, **more: object) -> JsonServer:
    return JsonServer(("mcpServers", SERVER), way.programs.mcp_server(**more))


HOSTS = (
    Host(
        "cursor",
        "Cursor",
        ("cursor", "cursor-agent"),
        lambda places: (places.user / ".cursor",),
        _cursor,
        notes=lambda _: _RESTART,
    ),
    Host(
        "windsurf",
        "Windsurf",
        ("windsurf",),
        lambda places: (places.user / ".codeium" / "windsurf", places.user / ".windsurf"),
        _windsurf,
        notes=lambda _: _RESTART,
    ),
    Host(
        "vscode",
        "VS Code Copilot",
        ("code", "code-insiders"),
        lambda places: (places.editor,),
        _vscode,
        notes=lambda _: ("It asks once whether to start the server.",),
    ),
    Host(
        "cline",
        "Cline",
        (),
        lambda places: (
            places.extension("saoudrizwan.claude-dev"),
            places.user / ".cline",
            places.user / ".clinerules",
        ),
        _cline,
    ),
    Host(
        "roo",
        "Roo Code",
        (),
        lambda places: (places.extension("rooveterinaryinc.roo-cline"), places.user / ".roo"),
        _roo,
    ),
    Host("continue", "Continue", ("cn",), lambda places: (places.user / ".continue",), _continue),
    Host(
        "generic",
        "any agent that reads AGENTS.md and .mcp.json",
        (),
        lambda _: (),
        _generic,
        by_user=False,
    ),
)


# -- Terminal agents and gateways ------------------------------------------------------------------
# Gemini CLI, OpenCode, OpenClaw.


OPENCLAW = "openclaw"
PROGRAMS_FILE = "nacre.json"
"""File next to a plugin that contains the paths of nacre's programs."""

_OPENCLAW_MEMORY = (
    ("plugins", "entries", "memory-core", "enabled"),
    ("agents", "defaults", "compaction", "memoryFlush", "enabled"),
    ("agents", "defaults", "startupContext", "enabled"),
    ("hooks", "internal", "entries", "session-memory", "enabled"),
)
"""Settings of the features that use OpenClaw's own memory.

No setting keeps ``MEMORY.md`` and ``USER.md`` out of prompts, so nacre's plugin removes them.
"""

_GEMINI_MILLISECONDS = {
    "SessionStart": 10_000,
    "BeforeAgent": 5_000,
    "AfterAgent": 5_000,
    "PreCompress": 5_000,
    "SessionEnd": 5_000,
}


def _gemini(way: Way) -> Sequence[Target]:
    folder = (way.project or way.places.user) / ".gemini"
    hooks = hook_groups(
        way, "gemini-cli", _GEMINI_MILLISECONDS, dict.fromkeys(_GEMINI_MILLISECONDS, "*")
    )
    server = JsonServer(("mcpServers", SERVER), way.programs.mcp_server(trust=True))
    return (
        Target(folder / "settings.json", (server, *hooks), "MCP server, hooks"),
        Target((way.project or folder) / "GEMINI.md", (Block(instructions()),), "instructions"),
    )


def _opencode(way: Way) -> Iterator[Target]:
    folder = way.project / ".opencode" if way.project else way.places.xdg_config / "opencode"
    above = way.project or folder
    names = ("opencode.jsonc", "opencode.json", "config.json")
    settings = next(
        (above / name for name in names if (above / name).exists()), above / "opencode.json"
    )
    command, arguments = way.programs.mcp
    server = {"type": "local", "command": [command, *arguments], "enabled": True}
    if way.programs.given_environ:
        server["environment"] = way.programs.given_environ
    yield Target(settings, (JsonServer(("mcp", SERVER), server),), "MCP server")
    yield Target(above / "AGENTS.md", (Block(instructions()),), "instructions")
    yield from plugin(way, "opencode", folder / "plugin")
    # In a folder of its own, because OpenCode loads every file next to the plugin as a plugin.
    library = (files("nacre.hosts") / "plugins" / "openclaw" / "lib" / "link.js").read_text("utf-8")
    yield Target(folder / "plugin" / "nacre" / "link.js", (WholeFile(library),), "plugin")


def _openclaw(way: Way) -> Iterator[Target]:
    folder = way.places.home / "hosts" / "openclaw" / SERVER
    entry = ("plugins", "entries", SERVER)
    pieces: list[Piece] = [
        JsonItem(("plugins", "load", "paths"), str(folder)),
        JsonKey((*entry, "enabled"), True),
        JsonKey((*entry, "hooks"), {"allowConversationAccess": True, "allowPromptInjection": True}),
        JsonDefault((*entry, "config"), {}, is_own=True),
    ]
    if way.wish.slot:
        pieces.append(JsonKey(("plugins", "slots", "memory"), SERVER))
    yield Target(_openclaw_settings(way.places), tuple(pieces), "plugin enabled")
    if way.wish.isolates:
        off = tuple(JsonSetting(path, False) for path in _OPENCLAW_MEMORY)
        yield Target(_openclaw_settings(way.places), off, "own memory off")
    yield from plugin(way, "openclaw", folder)


def _openclaw_memory(places: Places) -> Sequence[MemoryPlace]:
    named = ("MEMORY.md", "USER.md", "memory")
    return tuple(
        MemoryPlace(OPENCLAW, folder / name) for folder in _workspaces(places) for name in named
    )


def _workspaces(places: Places) -> Sequence[Path]:
    usual = places.environ.get("OPENCLAW_WORKSPACE_DIR") or str(
        _openclaw_folder(places) / "workspace"
    )
    agents = _read_setting(_openclaw_settings(places), "agents")
    entries = mapping(agents, "entries")
    named = (
        string(entry, "workspace") for entry in (mapping(agents, "defaults"), *entries.values())
    )
    above = [_path(places, text) for text in (*named, usual) if text]
    above += sorted(_openclaw_folder(places).glob("workspace-*"))
    below = (folder / name for folder in above for name in entries)
    return [
        folder
        for folder in dict.fromkeys((*above, *below))
        if folder.is_absolute() and folder.is_dir()
    ]


def _openclaw_folder(places: Places) -> Path:
    return places.folder("OPENCLAW_STATE_DIR", ".openclaw")


def _openclaw_settings(places: Places) -> Path:
    named = places.environ.get("OPENCLAW_CONFIG_PATH")
    return Path(named) if named else _openclaw_folder(places) / "openclaw.json"


def plugin(way: Way, host: str, folder: Path) -> Iterator[Target]:
    """Yield a bundled plugin's files, and a file with the paths of nacre's programs."""
    source = files("nacre.hosts") / "plugins" / host
    for name, content in _shipped_files(source):
        # OpenClaw only loads this kind of plugin if it has the memory slot.
        if way.wish.slot and name == "openclaw.plugin.json":
            content = _json({**json.loads(content), "kind": "memory"})
        yield Target(folder / name, (WholeFile(content),), "plugin")
    programs = way.programs
    record = {
        "version": programs.version,
        "home": programs.home,
        "nacre": list(programs.nacre),
        "hook": list(programs.hook),
        "env": dict(programs.environ),
        **({"isolates": True} if way.wish.isolates else {}),
    }
    yield Target(folder / PROGRAMS_FILE, (WholeFile(_json(record)),), "plugin")


def _shipped_files(source: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    for item in sorted(source.iterdir(), key=lambda entry: entry.name):
        if item.is_dir():
            yield from _shipped_files(item, f"{above}{item.name}/")
        else:
            yield above + item.name, item.read_text(encoding="utf-8")


TERMINAL_HOSTS = (
    Host(
        "gemini-cli",
        "Gemini CLI",
        ("gemini",),
        lambda places: (places.user / ".gemini",),
        _gemini,
        own_memory=lambda places: _claude_memory((places.user / ".gemini/tmp").glob("*/memory")),
        can_isolate=False,  # no setting stops Gemini CLI from loading its memory
    ),
    Host(
        "opencode",
        "OpenCode",
        ("opencode",),
        lambda places: (
            places.xdg_config / "opencode",
            places.user / ".local" / "share" / "opencode",
            places.user / ".opencode",
        ),
        _opencode,
    ),
    Host(
        OPENCLAW,
        "OpenClaw",
        ("openclaw",),
        lambda places: (_openclaw_folder(places),),
        _openclaw,
        notes=lambda _: ("Restart the gateway: openclaw gateway restart.",),
        by_project=False,
        own_memory=_openclaw_memory,
    ),
)


# -- All hosts -------------------------------------------------------------------------------------


ALL_HOSTS: Mapping[str, Host] = {
    host.name: host for host in (HOST, CODEX_HOST, *HOSTS[:3], *TERMINAL_HOSTS, *HOSTS[3:])
}
