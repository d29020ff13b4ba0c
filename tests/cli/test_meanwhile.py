"""Processes that change a memory while another waits for a model, and a killed process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.cli.conftest import Nacre, command, environment
from tests.fakes.provider import FakeProvider, Request
from tests.processes import Processes

pytestmark = [
    pytest.mark.embedding,
    pytest.mark.skipif(sys.platform == "win32", reason="it kills by signal"),
]

OLD = "The ferry timetable is printed by the office in Holm"
NEW = "Yellow paper is what Holm takes for timetables of ferries"
BOTH = "The ferry timetable is printed by the office in Holm, on yellow paper"
EDITED = "The ferry timetable is painted on the harbour wall"
PATIENCE = 60.0

CHANGES: dict[str, Callable[[str], list[str]]] = {
    "edit": lambda memory: ["edit", memory, "--content", EDITED],
    "retire": lambda memory: ["retire", memory, "--yes"],
    "forget": lambda memory: ["forget", "--memory", memory, "--yes"],
}
LEFT = {"edit": {EDITED, NEW}, "retire": {NEW}, "forget": {NEW}}


@dataclass
class Provider:
    """A provider that delays some answers until released."""

    answer: Callable[[str], Any]
    thinks_about: str
    is_asked: Event = field(default_factory=Event)
    may_answer: Event = field(default_factory=Event)

    def __call__(self, request: Request) -> Any:
        prompt = json.dumps(request.body)
        if self.thinks_about in prompt:
            self.is_asked.set()
            self.may_answer.wait(PATIENCE)
        return self.answer(prompt)


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(processes: Processes) -> Start:
    """``start("store", …)`` runs a process in the background."""

    def run(*arguments: str) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return processes.start(command(*arguments), env=environment(), text=True, **pipes)

    return run


def configure(user_home: Path, provider: FakeProvider, more: str = "") -> None:
    config = provider.config(more=more) + f"\n[dedup]\nmodel_seconds = {PATIENCE}\n"
    (user_home / ".nacre" / "config.toml").write_text(config, encoding="utf-8")


def active(nacre: Nacre) -> set[str]:
    return {memory["content"] for memory in nacre("list", "--json").json["memories"]}


def store_new(start: Start) -> subprocess.Popen[str]:
    return start("store", NEW, "--online-dedup", "--dedup-threshold", "0.3", "--json")


def merge(_: str) -> dict[str, Any]:
    return {"reason": "adds the paper", "action": "UPDATE", "target": 1, "merged": BOTH}


@pytest.mark.parametrize("change", CHANGES)
def test_concurrent_change_is_checked_before_applying_a_decision(
    nacre: Nacre, user_home: Path, start: Start, change: str
) -> None:
    old = nacre("store", OLD, "--json").json["memory_id"]
    thinking = Provider(merge, NEW)
    with FakeProvider(thinking) as provider:
        configure(user_home, provider)
        waits = store_new(start)
        assert thinking.is_asked.wait(PATIENCE)
        nacre(*CHANGES[change](old))
        assert waits.poll() is None
        thinking.may_answer.set()
        out, errors = waits.communicate(timeout=PATIENCE)
    assert waits.returncode == 0, errors
    assert json.loads(out)["action"] == "stored"
    assert active(nacre) == LEFT[change]
    assert nacre("admin", "doctor", "--deep", "--json").code == 0


def test_process_killed_while_waiting_leaves_nothing_behind(
    nacre: Nacre, user_home: Path, start: Start
) -> None:
    nacre("store", OLD)
    thinking = Provider(merge, NEW)
    with FakeProvider(thinking) as provider:
        configure(user_home, provider)
        waits = store_new(start)
        assert thinking.is_asked.wait(PATIENCE)
        waits.send_signal(signal.SIGKILL)
        waits.wait(PATIENCE)
        assert active(nacre) == {OLD}
        thinking.may_answer.set()
        again = nacre("store", NEW, "--online-dedup", "--dedup-threshold", "0.3", "--json").json
    assert again["action"] == "updated"
    assert active(nacre) == {BOTH}
