"""Programs at a gateway that runs."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2

from gateway.sites import SECRET, client_of, hello, run, signed
from gateway.stage import Stage

PAGE = Path(__file__).parents[4] / "docs" / "gateway-channels.md"


def channel(port: int) -> tuple[str, str]:
    """The settings of a webhook: of the gateway, and of the channel."""
    hook = f'[gateway.channels.hook]\nkind = "webhook"\nsecret = "{SECRET}"\nallow = ["otto"]\n'
    return f'listen = "127.0.0.1:{port}"\n', hook


def free_port() -> int:
    """A port at which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def is_open(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) == 0


def test_programs_are_answered_and_replays_are_ignored(tmp_path: Path) -> None:
    port = free_port()
    listen, hook = channel(port)
    script = tmp_path / "ask.py"
    client = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert client
    script.write_text(client[1], encoding="utf-8")

    def ask(text: str) -> str:
        environ = {
            "HOOK_URL": f"http://127.0.0.1:{port}/hook",
            "HOOK_SECRET": SECRET,
            "NO_PROXY": "*",
        }
        command = [sys.executable, str(script), text]
        return subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    async def post(message: dict[str, Any], times: int) -> list[httpx2.Response]:
        body = json.dumps(message).encode()
        headers = signed(body, int(time.time())) | {"Prefer": "wait=30"}
        async with client_of(f"http://127.0.0.1:{port}") as link:
            return [await link.post("/hook", content=body, headers=headers) for _ in range(times)]

    with Stage(tmp_path, listen) as stage:
        stage.configure(listen, club=hook)
        process = stage.start()
        stage.agent.wait_for(lambda: "answers in" in stage.log)
        stage.agent.wait_for(lambda: is_open(port))
        assert (
            ask("what about uploads?") == "Answer to > otto (not the owner): what about uploads?\n"
        )
        first, second = run(post(hello(id="again", text="Replayed words"), 2))
        assert (
            first.json()["parts"][0]["text"] == "Answer to > Otto (not the owner): Replayed words"
        )
        assert (second.status_code, second.json()) == (202, {"accepted": True, "duplicate": True})
        (stranger,) = run(post(hello(id="a1", sender={"id": "anna"}), 1))
        assert "nacre gateway pair" in stranger.json()["parts"][0]["text"]
        assert stage.agent.count("Replayed words") == 1
        assert [one["content"] for one in stage.said("hook:otto") if one["role"] == "user"] == [
            "what about uploads?",
            "Replayed words",
        ]
        assert stage.stop(process) == 0
        assert SECRET not in stage.log
