"""A hanging daemon does not delay commands."""

from __future__ import annotations

import socket
import time

from nacre.cli import options
from nacre.serve.mcp import HomeCalls
from tests.cli.conftest import Nacre
from tests.daemon.conftest import home
from tests.hooks.conftest import listening


def test_recall_asks_a_hanging_daemon_once_for_a_second(nacre: Nacre) -> None:
    nacre("store", "The harbour crane lifts 40 tonnes.")
    connections: list[socket.socket] = []
    with listening(home(), connections.append):
        assert "40 tonnes" in nacre("recall", "What does the harbour crane lift?").out
        assert nacre("recall", "zebra").code == 0
    assert len(connections) == 2
    assert options._DAEMON_SECONDS <= 1


def test_agent_waits_a_second_for_a_hanging_daemon(nacre: Nacre) -> None:
    nacre("store", "The harbour crane lifts 40 tonnes.")
    connections: list[socket.socket] = []
    calls = HomeCalls(home())
    began = time.monotonic()
    with listening(home(), connections.append):
        answer = calls("recall", text="What does the harbour crane lift?")
    calls.close()
    assert [hit.memory.content for hit in answer.hits] == ["The harbour crane lifts 40 tonnes."]
    assert len(connections) == 1
    assert time.monotonic() - began < 15
