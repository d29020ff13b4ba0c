"""Agents' own commands as writers: nacre asks them about a finished session and they call the
provider."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from nacre.values.models import OWN_CALL
from tests.cli.conftest import said, write_transcript
from tests.fakes.provider import Reply, Request
from tests.fakes.wire_formats import Call
from tests.hosts.claude_code import ClaudeCode
from tests.hosts.codex import Codex
from tests.hosts.driving import Driver
from tests.hosts.gemini_cli import GeminiCli
from tests.hosts.opencode import OpenCode
from tests.hosts.programs import command
from tests.hosts.stage import ProgramResult, Stage

WORDS = "For the invoices let us take the numbers from the database, two servers gave out the same number once."
RULE = "Invoices get their numbers from the database, because two servers gave out the same number once."
TRAP = "NOT-FOR-THE-WRITER"
"""Contained in all of the owner's files for the agent; nacre's prompts must not contain it."""

_MEMORY = {
    "kind": "decision",
    "subject": "Numbers of invoices",
    "content": RULE,
    "quote": WORDS[:60],
    "always": True,
}

_FOUND: Mapping[str, Mapping[str, Any]] = {
    "memories": {"memories": [_MEMORY], "over": []},
    "verdicts": {"verdicts": [{"number": 1, "support": WORDS, "finding": "holds", "wrong": []}]},
    "metal": {"metal": "Mercury"},
}

Answers = Callable[[Request], Reply]


@dataclass(frozen=True)
class Writer:
    """A program as a writer: its driver, its model name, and the owner's files in its home.

    ``environ`` contains the owner's sign-in. ``address`` contains arguments with the provider's address, for programs
    that ignore their own configuration here.
    """

    driver: Driver
    model: str
    environ: Callable[[str], Mapping[str, str]]
    address: Callable[[str], Sequence[str]] = lambda _: ()
    texts: Mapping[str, str] = field(default_factory=dict)
    """The files in the owner's home by path. ``%HOOK%`` and ``%SERVER%`` are programs that leave a
    mark, and ``%OWN%`` is the text that the driver wrote."""
    own: frozenset[str] = frozenset()
    """The tools that its prompts may offer its model."""
    extra_chars: int = 0
    """The number of characters that it may add to a prompt: the answer's schema and its tools."""


def _hooks(*events: str) -> str:
    hooks = [{"hooks": [{"type": "command", "command": "%HOOK%"}]}]
    return json.dumps({"hooks": dict.fromkeys(events, hooks)})


_SERVER = '{"mcp": {"trap": {"type": "local", "command": ["%SERVER%"], "enabled": true}}}'
_PLUGIN = "import { execSync } from 'child_process'\nexport const Trap = async () => { execSync('%HOOK%'); return {} }\n"  # noqa: E501
_SKILL = f"---\nname: trap\ndescription: {TRAP}\n---\n{TRAP}\n"

CLAUDE = Writer(
    ClaudeCode(),
    "claude-cli:haiku",
    lambda url: {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-fake"},
    texts={
        ".claude/CLAUDE.md": TRAP,
        "CLAUDE.md": TRAP,
        "../tmp/CLAUDE.md": TRAP,
        ".claude/skills/trap/SKILL.md": _SKILL,
        ".claude/AGENTS.md": TRAP,
        "AGENTS.md": TRAP,
        "../tmp/AGENTS.md": TRAP,
        ".claude/commands/trap.md": _SKILL,
        ".claude/agents/trap.md": _SKILL,
        ".claude/settings.json": _hooks("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"),
        ".claude.json": '{"mcpServers": {"trap": {"type": "stdio", "command": "%SERVER%", "args": []}}}',
    },
    own=frozenset({"StructuredOutput"}),
    extra_chars=4_000,
)


def _at(url: str, sign_in: str) -> Sequence[str]:
    provider = (
        f'name="fake",base_url="{url}/v1",wire_api="responses",supports_websockets=false,{sign_in}'
    )
    tries = "request_max_retries=0,stream_max_retries=0"
    return [
        "--config",
        "model_provider=fake",
        "--config",
        f"model_providers.fake={{{provider},{tries}}}",
    ]


CODEX = Writer(
    Codex(),
    "codex-cli:gpt-6-luna",
    lambda _: {"CODEX_API_KEY": "sk-fake"},
    lambda url: _at(url, 'env_key="CODEX_API_KEY"'),
    texts={
        ".codex/AGENTS.md": TRAP,
        "AGENTS.md": TRAP,
        "../tmp/AGENTS.md": TRAP,
        ".codex/skills/trap/SKILL.md": _SKILL,
        ".codex/hooks.json": _hooks("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"),
        ".codex/config.toml": f'developer_instructions = "{TRAP}"\n%OWN%\n[mcp_servers.trap]\ncommand = "%SERVER%"\n',
    },
    own=frozenset({"exec", "wait", "request_user_input", "request_user_input_async"}),
    extra_chars=17_000,
)


GEMINI = Writer(
    GeminiCli(),
    "gemini-cli:gemini-2.5-flash",
    lambda url: {"GEMINI_API_KEY": "fake", "GOOGLE_GEMINI_BASE_URL": url},
    texts={
        ".gemini/GEMINI.md": TRAP,
        "GEMINI.md": TRAP,
        "../tmp/GEMINI.md": TRAP,
        ".gemini/skills/trap/SKILL.md": _SKILL,
        ".gemini/settings.json": json.dumps(
            {
                "security": {
                    "auth": {"selectedType": "gemini-api-key"},
                    "folderTrust": {"enabled": False},
                },
                "mcpServers": {"trap": {"command": "%SERVER%"}},
                "context": {"fileName": "GEMINI.md"},
                "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "%HOOK%"}]}]},
            }
        ),
        ".gemini/extensions/trap/gemini-extension.json": json.dumps(
            {
                "name": "trap",
                "version": "1.0.0",
                "contextFileName": "T.md",
                "mcpServers": {"t": {"command": "%SERVER%"}},
            }
        ),
        ".gemini/extensions/trap/T.md": TRAP,
    },
    extra_chars=2_000,
)

OPENCODE = Writer(
    OpenCode(),
    "opencode-cli:openai/gpt-5-nano",
    lambda url: {"OPENAI_API_KEY": "fake", "OPENAI_BASE_URL": f"{url}/v1"},
    texts={
        ".config/opencode/AGENTS.md": TRAP,
        ".claude/CLAUDE.md": TRAP,
        "../tmp/AGENTS.md": TRAP,
        ".claude/skills/trap/SKILL.md": _SKILL,
        ".config/opencode/skills/trap/SKILL.md": _SKILL,
        ".opencode/opencode.json": _SERVER,
        ".config/opencode/opencode.json": _SERVER,
        ".config/opencode/plugin/trap.js": _PLUGIN,
        ".opencode/plugin/trap.js": _PLUGIN,
        ".opencode/agent/nacre.md": f"---\nmode: primary\n---\n{TRAP}\n",
    },
    extra_chars=2_000,
)

BY_SIGN_IN = replace(CODEX, address=lambda url: _at(url, "requires_openai_auth=true"))
"""Codex with an owner who is signed in with ChatGPT."""


def writing(answer: Any = None, otherwise: Answers | None = None) -> Answers:
    """Return the provider's answers: a memory and its verdict to a writer's question, or ``answer``.

    Other requests get ``otherwise``. A command that calls a tool with its answer is done after the call.
    """

    def reply(request: Request) -> Reply:
        body = json.dumps(request.body)
        if OWN_CALL not in body and otherwise:
            return otherwise(request)
        if isinstance(answer, Reply):
            return answer
        text = answer if isinstance(answer, str) else json.dumps(_FOUND[_requested_field(request)])
        is_offered = "StructuredOutput" in tools(request) and not isinstance(answer, str)
        return Reply(Call("StructuredOutput", text) if is_offered else text)

    return reply


def _requested_field(request: Request) -> str:
    """Return the name of the field that the answer's schema requires."""
    body = json.dumps(request.body).replace('\\"', '"')
    return next(name for name in ("verdicts", "metal", "memories") if f'"{name}": {{' in body)


def tools(request: Request) -> set[str]:
    """Return the names of the tools that a request offers at any depth."""
    names: set[str] = set()
    pending = [*request.body.get("tools", []), *_more(request.body)]
    while pending:
        tool = pending.pop()
        inner = tool.get("tools", tool.get("functionDeclarations"))
        pending += inner or []
        if inner is None:
            names.add(str(tool.get("name") or tool.get("type")))
    return names


def _more(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    items = body.get("input", [])
    return [tool for item in items if isinstance(item, dict) for tool in item.get("tools", [])]


def set_up(writer: Writer, stage: Stage) -> None:
    """Install the program, fill its owner's home with unrelated files and connect nacre."""
    url = stage.provider.url
    stage.install(writer.driver.program, [*command(writer.driver.name), *writer.address(url)])
    stage.environ.update(writer.environ(url))
    writer.driver.set_up(stage)
    marks = {f"%{name.upper()}%": str(_marking(stage, name)) for name in ("hook", "server")}
    for name, text in writer.texts.items():
        path = stage.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = text.replace("%OWN%", path.read_text(encoding="utf-8") if path.exists() else "")
        for mark, program in marks.items():
            text = text.replace(mark, program)
        path.write_text(text, encoding="utf-8")


def _marking(stage: Stage, name: str) -> Path:
    path = stage.folder / f"{name}.sh"
    path.write_text(
        f"#!/bin/sh\necho {TRAP} | tee -a '{stage.folder}/{name}.ran'\n", encoding="utf-8"
    )
    path.chmod(0o755)
    return path


def programs_run(stage: Stage) -> set[str]:
    """Return which of the owner's own programs ran."""
    return {name for name in ("hook", "server") if (stage.folder / f"{name}.ran").exists()}


def session_over(stage: Stage, name: str = "0123abcd-0000") -> Path:
    """Write a session of the owner's that ended a while ago."""
    ended = (datetime.now(UTC) - timedelta(minutes=31)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    folder = str(stage.project)
    records = [
        {**said(role, text, at, session=name, cwd=folder), "timestamp": ended}
        for at, (role, text) in enumerate((("user", WORDS), ("assistant", "Done.")))
    ]
    return write_transcript(
        stage.home / ".claude" / "projects" / "-code-harbour" / f"{name}.jsonl", records
    )


def let_write(writer: Writer, stage: Stage, seconds: int = 60) -> None:
    """Give the owner's consent, including for sessions that are already over."""
    stage.nacre("writer", "set", writer.model, "--tokens-per-day", "100000")
    stage.nacre("config", "set", "writer.since", "2026-01-01T00:00:00Z")
    stage.nacre("config", "set", "models.timeout_seconds", str(seconds))


def contents(stage: Stage) -> list[str]:
    return [memory["content"] for memory in stage.nacre("list", "--json").record["memories"]]


def check(stage: Stage, name: str) -> Any:
    """Return what ``doctor`` reports about a check."""
    result: ProgramResult = stage.run([str(stage.programs / "nacre"), "admin", "doctor", "--json"])
    return next(item for item in result.record["checks"] if item["name"] == name)


@dataclass
class SignIn:
    """An expired ChatGPT sign-in and the server that renews it once."""

    server: ThreadingHTTPServer
    renewed: list[str] = field(default_factory=list)

    @property
    def environ(self) -> dict[str, str]:
        """Return the variables that make Codex renew its sign-in there."""
        return {
            "CODEX_REFRESH_TOKEN_URL_OVERRIDE": f"http://127.0.0.1:{self.server.server_address[1]}/oauth/token"
        }

    @property
    def file(self) -> str:
        """Return ``auth.json`` in Codex's format."""
        tokens = {
            "id_token": _token(1),
            "access_token": _token(1),
            "refresh_token": "first",
            "account_id": "a",
        }
        return json.dumps(
            {"auth_mode": "chatgpt", "tokens": tokens, "last_refresh": "2026-01-01T00:00:00Z"}
        )


@contextmanager
def sign_in() -> Iterator[SignIn]:
    """A local server that exchanges tokens."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            payload = json.loads(self.rfile.read(int(self.headers["content-length"])))
            service.renewed.append(payload["refresh_token"])
            fresh = _token(4_102_444_800)
            body = json.dumps(
                {"id_token": fresh, "access_token": fresh, "refresh_token": "second"}
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Log nothing."""

    service = SignIn(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
    thread = Thread(target=service.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.server.shutdown()
        service.server.server_close()
        thread.join()


def _token(until: int) -> str:
    claims = {
        "exp": until,
        "https://api.openai.com/auth": {"chatgpt_account_id": "a", "chatgpt_plan_type": "plus"},
    }
    parts = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({}, claims)
    )
    return f"{'.'.join(parts)}.c2ln"
