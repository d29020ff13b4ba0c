"""nacre's MCP server passes the official conformance suite and works in the Inspector."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nacre.api import open_memory
from tests.cli.conftest import environment
from tests.hosts.stage import eventually

programs = pytest.importorskip(
    "tests.hosts.programs", reason="tests/hosts/programs.py locates the suite"
)
pytestmark = pytest.mark.hosts

SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
)
"""The scenarios that an ordinary server can pass; docs/mcp.md explains the others."""

SECONDS = 60


def command(name: str) -> list[str]:
    """Return the command line of a program, or skip the test with the reason why it is missing."""
    if reason := programs.missing(name):
        pytest.skip(reason)
    lines: list[str] = programs.command(name)
    return lines


@pytest.fixture
def quiet() -> dict[str, str]:
    """The server's environment, in which no process outlives the test."""
    with open_memory() as memory:
        memory.store("The tide gauge is read at noon.", kind="fact")
    return environment({"NACRE_DAEMON_ENABLED": "false", "NO_PROXY": "127.0.0.1"})


@pytest.fixture
def address(quiet: dict[str, str]) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "nacre", "serve", "--no-watch", "--no-token", "--http", str(port)],
        env={**quiet, "NACRE_MCP_TOOLS": "all"},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        assert eventually(lambda: _listens(port), SECONDS), "the server never listened"
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.terminate()
        server.communicate(timeout=30)


def _listens(port: int) -> bool:
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_conformance_suite_passes(scenario: str, address: str, quiet: dict[str, str]) -> None:
    suite = command("mcp-conformance")
    result = subprocess.run(
        [*suite, "server", "--url", address, "--scenario", scenario],
        env=quiet,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 failed" in result.stdout + result.stderr


def inspector_output(quiet: dict[str, str], *arguments: str, server: list[str]) -> Any:
    """Return the Inspector's output for a server's answer."""
    result = subprocess.run(
        [*command("mcp-inspector"), "--cli", *server, *arguments],
        env=quiet,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_inspector_lists_and_calls_tools(
    way: str, address: str, quiet: dict[str, str], tmp_path: Path
) -> None:
    start = tmp_path / "nacre"
    start.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m nacre mcp --tools all\n', encoding="utf-8"
    )
    start.chmod(0o700)
    server = [str(start)] if way == "stdio" else [address, "--transport", "http"]
    assert len(inspector_output(quiet, "--method", "tools/list", server=server)["tools"]) == 10
    call = (
        "--method",
        "tools/call",
        "--tool-name",
        "memory_search",
        "--tool-arg",
        "query=tide gauge",
    )
    answer = inspector_output(quiet, *call, "--tool-arg", "limit=3", server=server)
    assert answer["isError"] is False
    assert "read at noon" in answer["content"][0]["text"]
