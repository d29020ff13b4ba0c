"""Editors and their extensions: Cursor, Windsurf, VS Code Copilot, Cline, Roo Code, Continue; and AGENTS.md for any."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from nacre.hosts.host import FREE_TOOLS, SERVER, Host, Target, Way, hook_entries
from nacre.hosts.pieces import Block, JsonDefault, JsonServer, ServerFile, WholeFile
from nacre.hosts.places import Places
from nacre.hosts.wording import instructions

_CURSOR_SECONDS = {"sessionStart": 10, "beforeSubmitPrompt": 5, "stop": 5, "preCompact": 5, "sessionEnd": 5}
_RULE = "description: Long-term memory of earlier sessions\nalwaysApply: true"
_RESTART = ("Restart it, or switch the server on in its MCP settings, if it runs.",)


def _cursor(way: Way) -> Iterator[Target]:
    folder = (way.project or way.places.user) / ".cursor"
    yield Target(folder / "mcp.json", (_server(way),), "MCP server")
    hooks = hook_entries(way, "cursor", _CURSOR_SECONDS)
    yield Target(folder / "hooks.json", (JsonDefault(("version",), 1), *hooks), "hooks")
    if way.project:  # rules for all of the user's are kept in the application, where no file reaches them
        yield Target(folder / "rules" / "nacre.mdc", (WholeFile(instructions(_RULE)),), "rule")


def _windsurf(way: Way) -> Iterator[Target]:
    folder = way.places.user / ".codeium" / "windsurf"
    yield Target(folder / "mcp_config.json", (_server(way),), "MCP server")
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
        yield Target(way.project / ".github" / "copilot-instructions.md", (Block(instructions()),), "instructions")
    else:
        words = instructions('applyTo: "**"')
        yield Target(folder / "prompts" / "nacre.instructions.md", (WholeFile(words),), "instructions")


def _cline(way: Way) -> Iterator[Target]:
    old = way.places.extension("saoudrizwan.claude-dev") / "settings" / "cline_mcp_settings.json"
    new = way.places.folder("CLINE_DIR", ".cline") / "data" / "settings" / "cline_mcp_settings.json"
    settings = new if new.exists() or not old.parent.is_dir() else old
    yield Target(settings, (_server(way, disabled=False, autoApprove=list(FREE_TOOLS)),), "MCP server")
    if way.project:
        rules = way.project / ".clinerules"
        one = Target(rules, (Block(instructions()),), "rules")
        yield one if rules.is_file() else Target(rules / "nacre.md", (WholeFile(instructions()),), "rule")
    else:
        documents = way.places.user / "Documents" / "Cline" / "Rules"
        rules = documents if documents.is_dir() else way.places.folder("CLINE_DIR", ".cline") / "rules"
        yield Target(rules / "nacre.md", (WholeFile(instructions()),), "rule")


def _roo(way: Way) -> Iterator[Target]:
    if way.project:
        settings = way.project / ".roo" / "mcp.json"
    else:
        settings = way.places.extension("rooveterinaryinc.roo-cline") / "settings" / "mcp_settings.json"
    yield Target(settings, (_server(way, disabled=False, alwaysAllow=list(FREE_TOOLS)),), "MCP server")
    rule = (way.project or way.places.user) / ".roo" / "rules" / "nacre.md"
    yield Target(rule, (WholeFile(instructions()),), "rule")


def _continue(way: Way) -> Iterator[Target]:
    folder = way.project / ".continue" if way.project else way.places.folder("CONTINUE_GLOBAL_DIR", ".continue")
    command, arguments = way.programs.mcp
    lines = [
        "name: nacre", "version: 0.0.1", "schema: v1", "mcpServers:", "  - name: nacre",
        f"    command: {json.dumps(command)}", f"    args: {json.dumps(arguments)}",
    ]  # fmt: skip
    if way.programs.given_environ:
        lines.append(f"    env: {json.dumps(way.programs.given_environ)}")
    yield Target(folder / "mcpServers" / "nacre.yaml", (ServerFile("\n".join(lines) + "\n"),), "MCP server")
    rule = instructions("name: Long-term memory\nalwaysApply: true")
    yield Target(folder / "rules" / "nacre.md", (WholeFile(rule),), "rule")


def _generic(way: Way) -> Iterator[Target]:
    above = way.project or way.places.user
    yield Target(above / "AGENTS.md", (Block(instructions()),), "instructions")
    yield Target(above / ".mcp.json", (_server(way),), "MCP server")


def _server(way: Way, **more: object) -> JsonServer:
    return JsonServer(("mcpServers", SERVER), way.programs.mcp_server(**more))


def _roo_traces(places: Places) -> Sequence[Path]:
    return (places.extension("rooveterinaryinc.roo-cline"), places.user / ".roo")


HOSTS = (
    Host(
        "cursor", "Cursor", ("cursor", "cursor-agent"), lambda places: (places.user / ".cursor",),
        lambda way: tuple(_cursor(way)), notes=lambda _: _RESTART,
    ),
    Host(
        "windsurf", "Windsurf", ("windsurf",),
        lambda places: (places.user / ".codeium" / "windsurf", places.user / ".windsurf"),
        lambda way: tuple(_windsurf(way)), notes=lambda _: _RESTART,
    ),
    Host(
        "vscode", "VS Code Copilot", ("code", "code-insiders"), lambda places: (places.editor,),
        lambda way: tuple(_vscode(way)),
        notes=lambda _: ("It asks once whether it is to start the server.",),
    ),
    Host(
        "cline", "Cline", (),
        lambda places: (
            places.extension("saoudrizwan.claude-dev"), places.user / ".cline", places.user / ".clinerules",
        ),
        lambda way: tuple(_cline(way)),
    ),
    Host("roo", "Roo Code", (), _roo_traces, lambda way: tuple(_roo(way))),
    Host(
        "continue", "Continue", ("cn",), lambda places: (places.user / ".continue",),
        lambda way: tuple(_continue(way)),
    ),
    Host(
        "generic", "any agent that reads AGENTS.md and .mcp.json", (), lambda _: (), lambda way: tuple(_generic(way)),
        by_user=False,
    ),
)  # fmt: skip
