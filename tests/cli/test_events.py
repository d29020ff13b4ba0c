"""``nacre admin events``: what changes is told in a terminal and to scripts, with a daemon or without."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nacre.base.ids import utc_now
from nacre.store.gateway import GatewayStore
from nacre.values.gateway import Pairing
from tests.cli.conftest import Nacre, command, environment
from tests.processes import Processes

PATIENCE_SECONDS = 60


class Hearing:
    """``nacre admin events`` as a process; its lines are read one by one."""

    def __init__(self, processes: Processes, *options: str) -> None:
        self.process = processes.start(
            command("admin", "events", *options),
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )

    def until(self, words: str) -> str:
        """The next line with these words."""
        assert self.process.stdout
        return next(line for line in self.process.stdout if words in line)

    def end(self) -> int:
        """Ask it to end, as Ctrl-C does; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode


@pytest.fixture
def hearing(processes: Processes) -> Iterator[Callable[..., Hearing]]:
    """``hearing()`` listens."""
    begun: list[Hearing] = []

    def start(*options: str) -> Hearing:
        begun.append(Hearing(processes, *options))
        begun[-1].until("hello" if "--json" in options else "listening")
        return begun[-1]

    yield start
    for one in begun:
        one.end()


def test_events_show_changes_by_subject(nacre: Nacre, hearing: Callable[..., Hearing]) -> None:
    heard = hearing()
    memory = nacre("store", "The mill stands on the left bank of the river", "--json").json[
        "memory_id"
    ]
    line = heard.until("stored: ")
    assert "The mill stands on the left bank" in line
    assert memory[-8:] in line
    nacre("retire", memory)
    assert "The mill stands" in heard.until("retired: ")
    assert heard.end() == 0


def test_events_show_chat_activity(nacre: Nacre, hearing: Callable[..., Hearing]) -> None:
    nacre("list")
    heard = hearing()
    with closing(GatewayStore.open(Path(os.environ["NACRE_HOME"]))) as store:
        store.ask_pairing(Pairing("telegram", "77", "Ines", "K7QM-2XDP", utc_now()))
    assert heard.until("chat: ").strip().endswith("chat: messages or senders changed")
    assert heard.end() == 0


def test_events_are_json_objects_one_per_line(
    nacre: Nacre, hearing: Callable[..., Hearing]
) -> None:
    heard = hearing("--json")
    memory = nacre("store", "The mill stands on the left bank of the river", "--json").json[
        "memory_id"
    ]
    told: dict[str, Any] = json.loads(heard.until('"memory"'))
    assert (told["kind"], told["change"], told["ids"]) == ("memory", "stored", [memory])
    nacre("admin", "db", "rebuild", "--yes")
    assert json.loads(heard.until("missed"))["kind"] == "missed"
    assert heard.end() == 0
