"""Ask an MCP server for its tools, as a host does when it starts."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from nacre.hosts.servers import Server
from nacre.settings import Settings
from nacre.wiring.dry_runs import quiet

_MCP_SECONDS = 15.0


def list_tools(settings: Settings, server: Server, folder: Path) -> tuple[list[str], str | None]:
    """Start an MCP server, and ask for its tools; returns their names, and what is wrong."""
    try:
        process = subprocess.Popen(
            server.words, env={**quiet(settings), **server.environ}, cwd=folder, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip
    except OSError as error:
        return [], f"it cannot be started ({error.strerror})"
    lines: SimpleQueue[str | None] = SimpleQueue()

    def listen() -> None:
        for line in process.stdout or ():
            lines.put(line)
        lines.put(None)

    threading.Thread(target=listen, daemon=True).start()
    try:
        return _converse(process, lines)
    finally:
        _end(process)


def _converse(process: subprocess.Popen[str], lines: SimpleQueue[str | None]) -> tuple[list[str], str | None]:
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "nacre", "version": "0"}}
    messages = (
        {"id": 1, "method": "initialize", "params": opening}, {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    )  # fmt: skip
    stream = process.stdin
    if stream is None:
        return [], "it takes no input"
    for message in messages:
        try:
            stream.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            stream.flush()
        except OSError:
            return [], _last_words(process)
        if "id" not in message:
            continue
        answer = _answer_to(message["id"], lines)
        if isinstance(answer, str):
            return [], _last_words(process) if answer == "ended" else answer
    tools = answer.get("tools", []) if isinstance(answer, dict) else []
    return [str(tool.get("name")) for tool in tools if isinstance(tool, dict)], None


def _answer_to(number: object, lines: SimpleQueue[str | None]) -> dict[str, Any] | str:
    """The result of a request, or what is wrong."""
    until = time.monotonic() + _MCP_SECONDS
    while True:
        try:
            line = lines.get(timeout=max(0.01, until - time.monotonic()))
        except Empty:
            return f"no answer within {_MCP_SECONDS:.0f} seconds"
        if line is None:
            return "ended"
        try:
            message = json.loads(line)
        except ValueError:
            return "it writes what is no JSON-RPC"
        if isinstance(message, dict) and message.get("id") == number:
            result = message.get("result")
            return result if isinstance(result, dict) else "it refuses"


def _last_words(process: subprocess.Popen[str]) -> str:
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=2)
    said = process.stderr.read() if process.stderr and process.poll() is not None else ""
    return "it ended" + (f": {' '.join(said.split())[-200:]}" if said.strip() else "")


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin:
        with suppress(OSError):  # it ended before it was asked
            process.stdin.close()
    try:
        process.wait(timeout=3)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
