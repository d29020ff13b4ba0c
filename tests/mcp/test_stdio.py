"""``nacre mcp`` is a process that speaks only JSON-RPC over its standard streams."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.cli.conftest import SOURCE, environment
from tests.mcp.conftest import Pipe

Start = Callable[..., Pipe]
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_client_of_any_revision_is_answered_in_its_revision(pipe: Start, revision: str) -> None:
    server = pipe()
    assert server.greet(revision)["result"]["protocolVersion"] == revision
    assert len(server.request("tools/list")["result"]["tools"]) == 4
    assert (
        "PostgreSQL"
        in server.call("memory_search", query="which database?", project="*")["result"]["content"][
            0
        ]["text"]
    )
    assert server.end() == (0, b"")


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
async def test_official_client_works_in_every_mode(mode: str, home: Path, tmp_path: Path) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "nacre", "mcp", "--tools", "all"],
        cwd=str(tmp_path),
        env=environment({"NACRE_DAEMON_ENABLED": "false"}),
    )
    async with Client(server, mode=mode) as client:
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        assert len((await client.list_tools()).tools) == 10
        answer = await client.call_tool(
            "memory_search", {"query": "which database does billing use?", "project": "*"}
        )
        assert "PostgreSQL" in answer.content[0].text


def test_concurrent_requests_are_all_answered_before_input_ends(
    pipe: Start,
) -> None:
    server = pipe()
    about = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "tools/call",
            "params": {"name": "memory_search", "arguments": {}},
        },
        {"jsonrpc": "2.0", "id": 4, "method": "ping"},
    ]
    server.send(b"\n".join(json.dumps(message).encode() for message in messages))
    code, rest = server.end()
    answers = [json.loads(line) for line in rest.splitlines()]
    assert code == 0
    assert {answer["id"] for answer in answers} == {1, 2, 3, 4}
    assert len(answers) == 4
    assert all("result" in answer for answer in answers)


def test_closed_input_ends_the_server_before_loading(pipe: Start) -> None:
    assert pipe().end() == (0, b"")


def test_server_ends_when_its_client_is_gone(pipe: Start) -> None:
    server = pipe()
    server.greet()
    assert server.process.stdout
    server.process.stdout.close()
    server.send({"jsonrpc": "2.0", "id": 100, "method": "ping"})
    assert server.process.wait(timeout=30) == 0


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        (b"this is not JSON", None, -32700),
        (b"[" * 100_000, None, -32700),
        (b'"\xff"', None, -32700),
        (b"[]", None, -32600),
        (b'{"jsonrpc": "1.0", "id": 77, "method": "ping"}', 77, -32600),
        (b'{"jsonrpc": "2.0", "id": 77, "method": 5}', 77, -32600),
        (
            b'{"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": 5}}',
            77,
            -32602,
        ),
        (b'{"jsonrpc": "2.0", "id": 77, "method": "no/such"}', 77, -32601),
    ],
)
def test_invalid_request_gets_an_error_and_keeps_the_connection(
    pipe: Start, line: bytes, number: int | None, code: int
) -> None:
    server = pipe()
    server.greet()
    server.send(line)
    answer = server.receive()
    assert (answer["id"], answer["error"]["code"]) == (number, code)
    assert server.request("ping")["result"] == {}


def test_lone_surrogate_is_replaced_and_answered(pipe: Start) -> None:
    server = pipe()
    server.greet()
    entry = b'{"entries": [{"content": "The half \\ud83d of a smile and \\u0007 a bell."}]}'
    server.send(
        b'{"jsonrpc": "2.0", "id": "s", "method": "tools/call", "params": {"name": "memory_store", "arguments": '
        + entry
        + b"}}"
    )
    answer = server.receive()
    assert answer["id"] == "s"
    assert answer["result"]["isError"] is False


def test_printed_output_never_reaches_stdout(pipe: Start, tmp_path: Path) -> None:
    noisy = tmp_path / "noisy.py"
    noisy.write_text(
        "import dataclasses, functools, os, subprocess, sys\n"
        "import nacre.recall.recall as recalling\n"
        "real = recalling.recall\n"
        "@functools.wraps(real)\n"
        "def recall(*given, **named):\n"
        "    print('printed'); sys.stdout.write('written'); os.write(1, b'straight to the descriptor')\n"
        "    child = 'import sys; print(repr(sys.stdin.read()))'\n"
        "    subprocess.run([sys.executable, '-c', child], check=True)\n"
        "    return real(*given, **named)\n"
        "vars(real)['operation'] = dataclasses.replace(vars(real)['operation'], function=recall)\n"
        "sys.argv[0] = 'nacre'\n"
        "from nacre.__main__ import main\n"
        "main()\n",
        encoding="utf-8",
    )
    server = pipe("--tools", "all", program=[sys.executable, str(noisy)])
    server.greet()
    assert "PostgreSQL" in server.text_of("memory_search", query="which database?", project="*")
    assert server.end() == (0, b"")


def test_the_home_can_be_given_on_the_command_line(pipe: Start, tmp_path: Path) -> None:
    server = pipe("--home", str(tmp_path / "other"))
    server.greet()
    assert "PostgreSQL" not in server.text_of("memory_search", query="which database?", project="*")
    assert (tmp_path / "other" / "nacre.db").exists()


def test_home_is_not_opened_before_the_first_call(pipe: Start, tmp_path: Path) -> None:
    server = pipe("--home", str(tmp_path / "other"))
    server.greet()
    server.request("tools/list")
    server.request("ping")
    assert not (tmp_path / "other").exists()


def test_log_lists_called_tools_without_content(pipe: Start, home: Path) -> None:
    server = pipe()
    server.greet()
    server.call("memory_search", query="which database?", project="*")
    server.call("memory_get", ids=["nowhere-to-be-found"])
    lines = (home / "logs" / "mcp.log").read_text(encoding="utf-8").splitlines()
    assert [line.split()[2] for line in lines] == ["memory_search", "memory_get"]
    assert [line.split()[-1] for line in lines] == ["ok", "not_found"]
    assert not any("database" in line or "nowhere" in line for line in lines)


def test_session_named_by_the_host_becomes_the_source(pipe: Start, home: Path) -> None:
    server = pipe(CLAUDE_CODE_SESSION_ID="5e55-0001")
    server.greet()
    answer = server.text_of("memory_store", entries=[{"content": "The ferry leaves at seven."}])
    memory = answer.partition("[")[2].partition("]")[0]
    assert "proposed by agent in claude-code:5e55-0001" in server.text_of(
        "memory_get", ids=[memory]
    )
    search_answer = server.text_of(
        "memory_search", query="when does the ferry leave?", channel="claude-code", project="*"
    )
    assert "ferry leaves at seven" in search_answer
    assert "proposed by agent" in search_answer


def test_server_needs_no_protocol_library(pipe: Start, tmp_path: Path) -> None:
    for name in ("mcp", "mcp_types", "pydantic", "starlette", "uvicorn"):
        (tmp_path / "torn" / name).mkdir(parents=True)
        (tmp_path / "torn" / name / "__init__.py").write_text(
            "raise ImportError('torn')\n", encoding="utf-8"
        )
    server = pipe("--tools", "all", PYTHONPATH=f"{tmp_path / 'torn'}:{SOURCE}")
    server.greet()
    assert "PostgreSQL" in server.text_of("memory_search", query="which database?", project="*")
    assert server.end() == (0, b"")


def test_a_setting_offers_all_tools(pipe: Start) -> None:
    server = pipe(NACRE_MCP_TOOLS="all")
    server.greet()
    assert len(server.request("tools/list")["result"]["tools"]) == 10


def test_cancelled_call_is_not_awaited(pipe: Start) -> None:
    server = pipe("--tools", "all")
    server.greet()
    server.call("memory_list")
    call = {"name": "memory_admin", "arguments": {"action": "flush"}}
    server.send({"jsonrpc": "2.0", "id": 60, "method": "tools/call", "params": call})
    server.send(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 60}}
    )
    answer = server.request("ping")
    assert answer["result"] == {}


def test_request_with_an_invalid_id_is_refused(pipe: Start) -> None:
    server = pipe()
    server.greet()
    server.call("memory_list")  # from here on, answers keep the order of the requests
    server.send(
        b'{"jsonrpc": "2.0", "id": 7.5, "method": "ping"}\n{"jsonrpc": "2.0", "id": 8, "method": "ping"}'
    )
    assert server.receive()["error"]["code"] == -32600
    assert server.receive()["id"] == 8


def test_invalid_cancellation_is_ignored(pipe: Start) -> None:
    server = pipe()
    server.greet()
    server.send(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}}
    )
    assert server.request("ping")["result"] == {}


def test_signal_ends_the_server(pipe: Start) -> None:
    server = pipe()
    server.greet()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=30) != 0


def test_parallel_calls_get_every_answer_once(pipe: Start) -> None:
    server = pipe()
    server.greet()
    numbers = range(200, 230)
    sender = threading.Thread(
        target=lambda: [
            server.send(
                {
                    "jsonrpc": "2.0",
                    "id": number,
                    "method": "tools/call",
                    "params": {
                        "name": "memory_search",
                        "arguments": {"query": f"database {number}", "project": "*"},
                    },
                }
            )
            for number in numbers
        ]
    )
    sender.start()
    answers = [server.receive() for _ in numbers]
    sender.join()
    assert sorted(answer["id"] for answer in answers) == list(numbers)
    assert all(not answer["result"]["isError"] for answer in answers)
