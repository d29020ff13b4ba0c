"""Agents' own commands as writers: nacre asks them about a session that is over, and they ask the provider."""

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
from tests.hosts.stage import Ran, Stage

WORDS = "For the invoices let us take the numbers from the database, two servers gave out the same number once."
RULE = "Invoices get their numbers from the database, because two servers gave out the same number once."
TRAP = "NOT-FOR-THE-WRITER"
"""Stands in all that the owner keeps for the agent, and has no place in a question of nacre's."""

_TOLD = {
    "kind": "decision",
    "subject": "Numbers of invoices",
    "content": RULE,
    "quote": WORDS[:60],
    "always": True,
}

_FOUND: Mapping[str, Mapping[str, Any]] = {
    "memories": {"memories": [_TOLD], "over": []},
    "verdicts": {"verdicts": [{"number": 1, "support": WORDS, "finding": "holds", "wrong": []}]},
    "metal": {"metal": "Mercury"},
}

Answers = Callable[[Request], Reply]


@dataclass(frozen=True)
class Writer:
    """One program as a writer: its driver as a host, its name as a model, and what its home holds of the owner's.

    ``environ`` is the owner's sign-in, by which it finds the provider as well; ``address`` are arguments that say where
    that is, to a program which does not heed its own configuration here.
    """

    driver: Driver
    model: str
    environ: Callable[[str], Mapping[str, str]]
    address: Callable[[str], Sequence[str]] = lambda _: ()
    texts: Mapping[str, str] = field(default_factory=dict)
    """What stands in the owner's home, by path; ``%HOOK%`` and ``%SERVER%`` are programs that leave a
    mark, ``%OWN%`` is what the driver wrote there."""
    own: frozenset[str] = frozenset()
    """The tools that its questions may offer its model."""
    beside: int = 0
    """The characters that it may add to a question: the form of the answer, and its tools."""


def _hooks(*events: str) -> str:
    given = [{"hooks": [{"type": "command", "command": "%HOOK%"}]}]
    return json.dumps({"hooks": dict.fromkeys(events, given)})


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
    beside=4_000,
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
    beside=17_000,
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
    beside=2_000,
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
    beside=2_000,
)

BY_SIGN_IN = replace(CODEX, address=lambda url: _at(url, "requires_openai_auth=true"))
"""Codex as it is where its owner is signed in with ChatGPT."""


def writing(answer: Any = None, otherwise: Answers | None = None) -> Answers:
    """What the provider answers: a writer's question with a memory and its verdict, or as told; anything else as told.

    A command that is to call a tool with its answer is done when it has called it.
    """

    def reply(request: Request) -> Reply:
        asked = json.dumps(request.body)
        if OWN_CALL not in asked and otherwise:
            return otherwise(request)
        if isinstance(answer, Reply):
            return answer
        given = answer if isinstance(answer, str) else json.dumps(_FOUND[_wanted(request)])
        is_offered = "StructuredOutput" in tools(request) and not isinstance(answer, str)
        return Reply(Call("StructuredOutput", given) if is_offered else given)

    return reply


def _wanted(request: Request) -> str:
    """The one thing that the form of the answer asks for."""
    asked = json.dumps(request.body).replace('\\"', '"')
    return next(name for name in ("verdicts", "metal", "memories") if f'"{name}": {{' in asked)


def tools(request: Request) -> set[str]:
    """The names of the tools that a request offers, wherever they stand in it."""
    found: set[str] = set()
    given = [*request.body.get("tools", []), *_more(request.body)]
    while given:
        tool = given.pop()
        inner = tool.get("tools", tool.get("functionDeclarations"))
        given += inner or []
        if inner is None:
            found.add(str(tool.get("name") or tool.get("type")))
    return found


def _more(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    items = body.get("input", [])
    return [tool for item in items if isinstance(item, dict) for tool in item.get("tools", [])]


def set_up(writer: Writer, stage: Stage) -> None:
    """The program, its owner's home full of what is no business of a writer's, and nacre wired to it."""
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


def ran(stage: Stage) -> set[str]:
    """Which of the owner's own programs ran."""
    return {name for name in ("hook", "server") if (stage.folder / f"{name}.ran").exists()}


def session_over(stage: Stage, name: str = "0123abcd-0000") -> Path:
    """Lay down a session of the owner's that has been over for a while."""
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
    """The owner's yes, for sessions that are over already, too."""
    stage.nacre("writer", "set", writer.model, "--tokens-per-day", "100000")
    stage.nacre("config", "set", "writer.since", "2026-01-01T00:00:00Z")
    stage.nacre("config", "set", "models.timeout_seconds", str(seconds))


def contents(stage: Stage) -> list[str]:
    """What is remembered."""
    return [memory["content"] for memory in stage.nacre("list", "--json").record["memories"]]


def check(stage: Stage, name: str) -> Any:
    """What ``doctor`` says about something."""
    found: Ran = stage.run([str(stage.programs / "nacre"), "admin", "doctor", "--json"])
    return next(one for one in found.record["checks"] if one["name"] == name)


@dataclass
class SignIn:
    """A sign-in with ChatGPT that has run out, and the server that renews it once."""

    server: ThreadingHTTPServer
    renewed: list[str] = field(default_factory=list)

    @property
    def environ(self) -> dict[str, str]:
        """What has Codex renew there."""
        return {
            "CODEX_REFRESH_TOKEN_URL_OVERRIDE": f"http://127.0.0.1:{self.server.server_address[1]}/oauth/token"
        }

    @property
    def file(self) -> str:
        """``auth.json``, as Codex keeps it."""
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
    """A server on loopback that gives out another token for each."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            made.renewed.append(asked["refresh_token"])
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
            """Say nothing."""

    made = SignIn(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
    thread = Thread(target=made.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
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
