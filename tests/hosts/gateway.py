"""OpenClaw behind its gateway: there alone sessions end, are reset, and are begun by others than people."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tests.hosts.driving import Said
from tests.hosts.openclaw import OpenClaw
from tests.hosts.programs import command, node_folder
from tests.hosts.stage import Ran, Stage, eventually
from tests.hosts.story import ASKS, COMES_BACK, DECIDED, FILLS, KNOWN, Scene

MAIN = "agent:main:main"
SUBAGENT = "agent:main:subagent:0198"
_READY_SECONDS = 90.0
_END_SECONDS = 30.0


@dataclass
class Gateway:
    """A gateway that runs."""

    stage: Stage
    process: subprocess.Popen[bytes]

    def openclaw(self, *arguments: str) -> Ran:
        """A command of OpenClaw's, which asks the gateway."""
        return self.stage.run([*command("openclaw"), *arguments], _environ(self.stage))

    def say(self, prompt: str, key: str = MAIN) -> Scene:
        """One message in the session that a key stands for; it has an answer."""
        return self._scene("agent", "--session-key", key, "--message", prompt, "--json")

    def run_job(self, prompt: str) -> Scene:
        """A scheduled turn in a session of its own."""
        options = (
            "--name",
            "tides",
            "--every",
            "10h",
            "--session",
            "isolated",
            "--message",
            prompt,
            "--json",
        )
        added = self.openclaw("cron", "add", *options)
        assert added.code == 0, added.err
        return self._scene("cron", "run", str(added.record["id"]), asks=True)

    def stop(self) -> list[dict[str, Any]]:
        """End it as its service does; the hooks that ran as it ended."""
        before = len(self.stage.hook_runs())
        self.process.terminate()
        self.process.wait(_END_SECONDS)
        eventually(lambda: len(self.stage.hook_runs()) > before)
        return self.stage.hook_runs()[before:]

    def _scene(self, *arguments: str, asks: bool = False) -> Scene:
        """``asks`` waits until the model was asked. What ends with a turn is waited for: OpenClaw waits for no hook."""
        asked, before = len(self.stage.provider.requests), len(self.stage.hook_runs())
        ran = self.openclaw(*arguments)
        assert ran.code == 0, f"{ran.out}\n{ran.err}"
        if asks:
            assert eventually(lambda: self.stage.asked(asked)), "the job was not run"
        eventually(lambda: len(self.stage.hook_runs()) > before, 3.0)
        return Scene(
            Said(ran.out, "", ran.seconds), self.stage.asked(asked), self.stage.hook_runs()[before:]
        )


@dataclass
class Visit:
    """What happened at a gateway."""

    scenes: dict[str, Scene]
    ended: list[dict[str, Any]]
    stage: Stage


def visit(stage: Stage) -> Visit:
    """All of it, once: two resets, a compaction, a sub-agent's turn and a scheduled one, and the gateway's end."""
    driver = OpenClaw()
    stage.install(driver.program, command(driver.name))
    driver.set_up(stage)
    stage.nacre("store", KNOWN, "--kind", "fact", "--subject", "Retries of the mailer")
    stage.nacre("init", "--host", driver.name, "--yes")
    with _running(stage) as gateway:
        scenes = {"first": gateway.say(DECIDED), "reset": gateway.say("/reset")}
        _until_handed_over(stage)
        scenes["after"] = gateway.say(COMES_BACK)
        scenes["new"] = gateway.say("/new")
        scenes["again"] = gateway.say(ASKS)
        scenes["full"] = gateway.say(FILLS)
        scenes["compaction"] = gateway.say(COMES_BACK)
        scenes["sub-agent"] = gateway.say(COMES_BACK, SUBAGENT)
        scenes["job"] = gateway.run_job(COMES_BACK)
        return Visit(scenes, gateway.stop(), stage)


def _until_handed_over(stage: Stage) -> None:
    assert eventually(lambda: "NATS" in stage.nacre("context", "--handoff").out, 60.0), (
        "nothing was handed over"
    )


@contextmanager
def _running(stage: Stage) -> Iterator[Gateway]:
    """A gateway that answers, ended with all that it started."""
    port = _free_port()
    _configure(stage, port)
    with (stage.folder / "gateway.log").open("wb") as log:
        process = subprocess.Popen(
            [*command("openclaw"), "gateway", "run", "--port", str(port)],
            cwd=stage.project,
            env={**stage.environ, **_environ(stage)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        gateway = Gateway(stage, process)
        try:
            is_ready = eventually(
                lambda: gateway.openclaw("gateway", "call", "health").code == 0, _READY_SECONDS
            )
            assert is_ready, (stage.folder / "gateway.log").read_text()
            yield gateway
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _configure(stage: Stage, port: int) -> None:
    path = stage.home / ".openclaw" / "openclaw.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["gateway"]["port"] = port
    path.write_text(json.dumps(config, indent=2), encoding="utf-8")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _environ(stage: Stage) -> dict[str, str]:
    return {"PATH": f"{node_folder('openclaw')}:{stage.environ['PATH']}"}
