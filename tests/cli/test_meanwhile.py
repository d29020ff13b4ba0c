"""Processes that change a memory while another one waits for a model's word about it, and one that is killed."""

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
    """A provider that thinks about some questions until it is let."""

    answer: Callable[[str], Any]
    thinks_about: str
    is_asked: Event = field(default_factory=Event)
    may_answer: Event = field(default_factory=Event)

    def __call__(self, request: Request) -> Any:
        asked = json.dumps(request.body)
        if self.thinks_about in asked:
            self.is_asked.set()
            self.may_answer.wait(PATIENCE)
        return self.answer(asked)


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(processes: Processes) -> Start:
    """``start("store", …)``: a process that goes on by itself."""

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
        out, told = waits.communicate(timeout=PATIENCE)
    assert waits.returncode == 0, told
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


def judge(asked: str) -> dict[str, Any]:
    if "The others:" in asked:
        told = {
            "number": 1,
            "relation": "supersedes",
            "confidence": 0.95,
            "explanation": "it is on paper now",
        }
        return {"verdicts": [told]}
    return {
        "entity": "ferry",
        "attribute": "timetable",
        "predicate": "is",
        "object": "x" if OLD in asked else "y",
        "confidence": 0.9,
    }


@pytest.mark.parametrize("change", CHANGES)
def test_concurrent_change_is_checked_before_applying_a_judgement(
    nacre: Nacre, user_home: Path, start: Start, change: str
) -> None:
    thinking = Provider(judge, "The others:")
    with FakeProvider(thinking) as provider:
        old = stored_both(nacre, user_home, provider)
        waits = start("review", "judge", "--json")
        assert thinking.is_asked.wait(PATIENCE)
        nacre(*CHANGES[change](old))
        thinking.may_answer.set()
        out, told = waits.communicate(timeout=PATIENCE)
        assert waits.returncode == 0, told
        report = json.loads(out)
        assert (report["superseded"], report["waiting"]) == (0, int(change == "edit"))
        assert active(nacre) == LEFT[change]
        nacre("review", "judge")
        asked_again = EDITED in json.dumps(provider.calls[-1].body)
    assert asked_again is (change == "edit")  # it waits anew, and is asked about as it is now


def test_killed_judge_leaves_the_queue_for_the_next_run(
    nacre: Nacre, user_home: Path, start: Start
) -> None:
    thinking = Provider(judge, "The others:")
    with FakeProvider(thinking) as provider:
        old = stored_both(nacre, user_home, provider)
        waits = start("review", "judge", "--json")
        assert thinking.is_asked.wait(PATIENCE)
        assert nacre("review", "judge", "--json").json["waiting"] > 0
        waits.send_signal(signal.SIGKILL)
        waits.wait(PATIENCE)
        assert active(nacre) == {OLD, NEW}
        thinking.may_answer.set()
        report = nacre("review", "judge", "--json").json
    assert (report["superseded"], report["waiting"]) == (1, 0)
    assert nacre("show", old, "--json").json["memory"]["superseded_by"]


def stored_both(nacre: Nacre, user_home: Path, provider: FakeProvider) -> str:
    """The id of the older one of two memories, which both wait to be judged by hand."""
    (user_home / ".nacre").mkdir(exist_ok=True)
    more = 'background = true\ndedup = "none"\n'
    configure(user_home, provider, more)
    old = nacre("store", OLD, "--json").json["memory_id"]
    nacre("store", NEW)
    return str(old)


def test_interrupted_judge_stops_promptly_and_leaves_the_queue(
    nacre: Nacre, user_home: Path, start: Start
) -> None:
    thinking = Provider(judge, "The others:")
    with FakeProvider(thinking) as provider:
        stored_both(nacre, user_home, provider)
        waits = start("review", "judge")
        assert thinking.is_asked.wait(PATIENCE)
        waits.send_signal(signal.SIGINT)
        _, told = waits.communicate(timeout=PATIENCE)
        assert not thinking.may_answer.is_set()
        assert "Traceback" not in told
        assert waits.returncode not in (0, -signal.SIGKILL)
        thinking.may_answer.set()
        assert nacre("review", "judge", "--json").json["superseded"] == 1
