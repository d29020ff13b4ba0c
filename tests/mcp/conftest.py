"""A home with memories, and clients of nacre's server in this process and as a process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from anyio.lowlevel import current_token
from mcp.client.client import Client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from nacre.api import open_memory
from nacre.serve.mcp import Face, HomeCalls
from nacre.serve.mcp_protocol import Session
from tests.cli.conftest import environment, said, write_transcript
from tests.processes import Processes

FOLDER = "/code/acme-billing"
SESSION = "7f3a1c2d-0000-4000-8000-000000000001"
TALK = (
    (
        "user",
        "The billing ledger corrupts when two accounts are charged at once. Which database should we take?",
    ),
    ("assistant", "PostgreSQL has transactions across accounts; MongoDB would need them emulated."),
    (
        "user",
        "We decided to use PostgreSQL for billing instead of MongoDB because the ledger needs transactions.",
    ),
    ("assistant", "Done: the billing service now runs on PostgreSQL."),
    ("user", "Always run the linter before you commit."),
    ("assistant", "Understood, the linter runs before each commit."),
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def home(user_home: Path) -> Path:
    """A home that has read a session with a decision about a database."""
    folder = user_home / ".claude" / "projects" / "-code-acme-billing"
    records = [said(role, text, number, cwd=FOLDER) for number, (role, text) in enumerate(TALK)]
    write_transcript(folder / f"{SESSION}.jsonl", records)
    with open_memory() as memory:
        assert memory.ingest(vectors=False).memories
    return user_home / ".nacre"


@dataclass
class ToolAnswer:
    """A tool's answer: its text, whether it failed, and its records."""

    text: str
    failed: bool
    records: dict[str, Any] | None

    @property
    def error(self) -> dict[str, Any]:
        """Return the error."""
        assert self.failed, self.text
        error: dict[str, Any] = json.loads(self.text)["error"]
        return error


@dataclass
class Server:
    """Servers of one home, with all tools by default, and their clients."""

    home: Path
    mode: str = "legacy"
    folder: str | None = FOLDER
    options: dict[str, Any] = field(default_factory=dict)

    def face(self, **more: Any) -> Face:
        return Face(
            HomeCalls(self.home),
            **{"everything": True, "folder": self.folder, **self.options, **more},
        )

    def client(self, face: Face | None = None, **more: Any) -> Client:
        return Client(by_session(face or self.face()), mode=self.mode, **more)

    async def ask(self, tool: str, /, **arguments: Any) -> ToolAnswer:
        """Call a tool once."""
        face = self.face()
        try:
            async with self.client(face) as client:
                return tool_answer(await client.call_tool(tool, arguments))
        finally:
            face.call.close()


@asynccontextmanager
async def by_session(face: Face) -> AsyncIterator[tuple[Any, Any]]:
    """A session of nacre for the official client: the streams of its answers and requests."""
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage](99)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](99)
    loop = current_token()

    def send(message: dict[str, Any]) -> None:
        carried = SessionMessage(
            jsonrpc_message_adapter.validate_python(json.loads(json.dumps(message)))
        )
        anyio.from_thread.run(to_client.send, carried, token=loop)

    session = Session(face, send)

    async def bring() -> None:
        async for carried in from_client:
            line = carried.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
            await anyio.to_thread.run_sync(session.take, line)

    async with to_server, from_client, to_client, from_server, anyio.create_task_group() as tasks:
        tasks.start_soon(bring)
        yield from_server, to_server
        tasks.cancel_scope.cancel()


def tool_answer(result: Any) -> ToolAnswer:
    (block,) = result.content
    return ToolAnswer(block.text, bool(result.is_error), result.structured_content)


@pytest.fixture(params=["legacy", "2026-07-28"])
def server(request: pytest.FixtureRequest, home: Path) -> Server:
    """A server for clients with and without a handshake."""
    return Server(home, request.param)


@dataclass
class Pipe:
    """``nacre mcp`` as a process with line-by-line input and output."""

    process: subprocess.Popen[bytes]
    number: int = 0

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        assert self.process.stdin
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Return the next message; every line must be one."""
        assert self.process.stdout
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert message["jsonrpc"] == "2.0"
        return message

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request, and return its answer."""
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method}
        self.send(message if params is None else {**message, "params": params})
        answer = self.receive()
        assert answer["id"] == self.number
        return answer

    def greet(self, revision: str = "2025-11-25") -> dict[str, Any]:
        about = {"name": "a-test", "version": "1"}
        answer = self.request(
            "initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": about}
        )
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def text_of(self, tool: str, /, **arguments: Any) -> str:
        """Return the text of a tool's answer."""
        result = self.call(tool, **arguments)["result"]
        assert not result["isError"], result
        return str(result["content"][0]["text"])

    def end(self) -> tuple[int, bytes]:
        """Close standard input; return the exit code and the remaining output."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.stdin = None
        rest, _ = self.process.communicate(timeout=60)
        return self.process.returncode, rest


@pytest.fixture
def pipe(home: Path, tmp_path: Path, processes: Processes) -> Callable[..., Pipe]:
    """``pipe("--tools", "all")`` starts ``nacre mcp``."""

    def start(*arguments: str, program: list[str] | None = None, **environ: str) -> Pipe:
        process = processes.start(
            [*(program or [sys.executable, "-m", "nacre"]), "mcp", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=environment({"NACRE_DAEMON_ENABLED": "false", **environ}),
        )
        return Pipe(process)

    return start
