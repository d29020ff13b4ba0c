"""OpenClaw's gateway, which ends and resets sessions and starts scheduled turns and sub-agents."""

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

from tests.hosts.driving import PromptResult
from tests.hosts.openclaw import OpenClaw
from tests.hosts.programs import command, node_folder
from tests.hosts.stage import ProgramResult, Stage, eventually
from tests.hosts.story import ASKS, COMES_BACK, DECIDED, FILLS, KNOWN, Scene

MAIN = "agent:main:main"
SUBAGENT = "agent:main:subagent:0198"
_READY_SECONDS = 90.0
_END_SECONDS = 30.0


@dataclass
class Gateway:
    """A running gateway."""

    stage: Stage
    process: subprocess.Popen[bytes]

    def openclaw(self, *arguments: str) -> ProgramResult:
        """Run an OpenClaw command that calls the gateway."""
        return self.stage.run([*command("openclaw"), *arguments], _environ(self.stage))

    def say(self, prompt: str, key: str = MAIN) -> Scene:
        """Send one message to the session of a key and return the answered scene."""
        return self._scene("agent", "--session-key", key, "--message", prompt, "--json")

    def run_job(self, prompt: str) -> Scene:
        """Run a scheduled turn in a separate session."""
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
        entry = self.openclaw("cron", "add", *options)
        assert entry.code == 0, entry.err
        return self._scene("cron", "run", str(entry.record["id"]), asks=True)

    def stop(self) -> list[dict[str, Any]]:
        """Stop the gateway as its service does and return the hooks that ran meanwhile."""
        before = len(self.stage.hook_runs())
        self.process.terminate()
        self.process.wait(_END_SECONDS)
        eventually(lambda: len(self.stage.hook_runs()) > before)
        return self.stage.hook_runs()[before:]

    def _scene(self, *arguments: str, asks: bool = False) -> Scene:
        """Run a command and wait for its hooks, since OpenClaw does not. ``asks`` also waits for a
        model call."""
        start, before = len(self.stage.provider.requests), len(self.stage.hook_runs())
        result = self.openclaw(*arguments)
        assert result.code == 0, f"{result.out}\n{result.err}"
        if asks:
            assert eventually(lambda: self.stage.model_requests(start)), "the job was not run"
        eventually(lambda: len(self.stage.hook_runs()) > before, 3.0)
        return Scene(
            PromptResult(result.out, "", result.seconds),
            self.stage.model_requests(start),
            self.stage.hook_runs()[before:],
        )


@dataclass
class Visit:
    """The scenes of a gateway, and the hooks that ran as it stopped."""

    scenes: dict[str, Scene]
    ended: list[dict[str, Any]]
    stage: Stage


def visit(stage: Stage) -> Visit:
    """Run the whole visit once: two resets, a compaction, a sub-agent, a scheduled turn and the
    stop."""
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
        "no handoff was written"
    )


@contextmanager
def _running(stage: Stage) -> Iterator[Gateway]:
    """Run a gateway and stop it with all its child processes."""
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
