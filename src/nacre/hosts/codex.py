"""Codex: an MCP server in config.toml, hooks, and AGENTS.md."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from nacre.hosts.host import READING_TOOLS, SERVER, Host, MemoryPlace, Target, Way, hook_groups
from nacre.hosts.pieces import Block, TomlServer, TomlSetting, TomlTables
from nacre.hosts.places import Places
from nacre.hosts.wording import instructions

NAME = "codex"
_SECONDS = {"SessionStart": 10, "UserPromptSubmit": 5, "PreCompact": 10, "Stop": 5, "SessionEnd": 3}
"""More than three seconds for a session's end are cut, with a warning at every start."""

_TOOL = "PreToolUse"
_MATCHERS = {_TOOL: "^(Bash|apply_patch)$"}


def folder(places: Places) -> Path:
    """Where Codex keeps what is the user's, or what is a project's."""
    return places.project / ".codex" if places.project else places.folder("CODEX_HOME", ".codex")


def users_config(places: Places) -> Path:
    """The user's settings: whom Codex trusts stands there, for hooks of projects, too."""
    return places.folder("CODEX_HOME", ".codex") / "config.toml"


def hooks_file(places: Places) -> Path:
    """The file with the hooks."""
    return folder(places) / "hooks.json"


def _targets(way: Way) -> Sequence[Target]:
    hooks = hooks_file(way.places)
    seconds = {**_SECONDS, _TOOL: 2} if way.tool_hook else _SECONDS
    server = {
        **way.programs.mcp_server(),
        "startup_timeout_sec": 20,
        "tools": {tool: {"approval_mode": "approve"} for tool in READING_TOOLS},
    }
    trusted = TomlTables(("hooks", "state"), f"{hooks}:")
    instructed = (way.project or folder(way.places)) / "AGENTS.md"
    put = TomlServer(("mcp_servers", SERVER), server)
    targets = (
        Target(folder(way.places) / "config.toml", (put,) if way.project else (put, trusted), "MCP server"),
        Target(hooks, hook_groups(way, NAME, seconds, _MATCHERS), "hooks"),
        Target(instructed, (Block(instructions()),), "instructions"),
    )
    if way.project:
        return (*targets, Target(users_config(way.places), (trusted,), "trust"))
    off = Target(users_config(way.places), (TomlSetting(("features", "memories"), False),), "own memory off")
    return (*targets, off) if way.isolates else targets


def _own_memory(places: Places) -> Sequence[MemoryPlace]:
    return (MemoryPlace("codex-memories", places.folder("CODEX_HOME", ".codex") / "memories"),)


def _notes(way: Way) -> Sequence[str]:
    told = "It runs no hook that it was not told to trust: open codex, type /hooks, and trust those of nacre"
    if not way.project:
        return (f"{told}; or nacre init --host codex --trust-hooks does it.",)
    command = f"nacre init --host codex --project {shlex.quote(str(way.project))} --trust-hooks"
    return (f"{told}, once you said there that the folder may be trusted; or {command} does it.",)


HOST = Host(
    NAME, "Codex", ("codex",), traces=lambda places: (places.folder("CODEX_HOME", ".codex"),),
    targets=_targets, notes=_notes, own_memory=_own_memory,
)  # fmt: skip
