"""The daemon follows sessions as a watcher does, gives way to a watcher, and takes over from one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nacre.care.watcher_install import installation
from nacre.settings import load_settings
from tests.cli.conftest import Nacre
from tests.cli.test_watching import follow, found, say, wait  # noqa: F401 - a fixture, too
from tests.daemon.conftest import Serving, asked, home

Serve = Callable[..., Serving]


def test_what_is_typed_is_searchable_and_what_it_teaches_is_told(
    user_home: Path, serving: Serve, nacre: Nacre
) -> None:
    say(user_home, "The weir is opened at six", 1)
    daemon = serving()
    daemon.until("following the sessions")
    wait(lambda: found(nacre, "weir") == 1)
    say(user_home, "We decided to use cast iron for the wheel instead of oak because oak rots.", 2)
    daemon.until("learned 1 memory")
    hits = asked("recall", {"text": "what is the wheel made of?"})["hits"]
    assert "cast iron" in hits[0]["memory"]["content"]
    assert asked("hello")["follows"] is True
    assert daemon.end() == 0
    assert nacre("admin", "watcher", "status", "--json", code=1).json["state"] == "stopped"


def test_a_daemon_beside_a_watcher_leaves_the_sessions_to_it(
    user_home: Path,
    serving: Serve,
    process: Nacre,
    follow: Callable[..., Any],  # noqa: F811 - the fixture
) -> None:
    watcher = follow()
    daemon = serving()
    daemon.until("another watcher follows the sessions")
    assert asked("hello")["follows"] is False
    assert asked("list")["total"] == 0
    watcher.end()
    assert (
        process("admin", "watcher", "start", "--json").json["health"]["pid"] == daemon.process.pid
    )
    daemon.until("following the sessions")


def test_the_daemons_watcher_is_stopped_and_started_as_any(
    user_home: Path, serving: Serve, process: Nacre
) -> None:
    daemon = serving()
    daemon.until("following the sessions")
    assert process("admin", "watch", "--json", code=4).error["code"] == "conflict"
    assert process("admin", "watcher", "stop", "--json").json["state"] == "stopped"
    daemon.until("stopped")
    assert asked("hello")["follows"] is False
    assert (
        process("admin", "watcher", "start", "--json").json["health"]["pid"] == daemon.process.pid
    )
    daemon.until("following the sessions")


def test_it_follows_nothing_where_that_is_off(serving: Serve, process: Nacre) -> None:
    serving(environ={"NACRE_DAEMON_WATCH": "false"})
    wait(lambda: asked("hello")["is_warm"])
    assert process("admin", "watcher", "status", "--json", code=1).json["state"] == "never"


@pytest.mark.skipif(sys.platform != "linux", reason="systemd")
def test_what_is_installed_for_the_system_to_start_serves(serving: Serve, user_home: Path) -> None:
    unit = installation(load_settings()).text
    line = next(line for line in unit.splitlines() if line.startswith("ExecStart="))
    words = [word.strip('"') for word in line.removeprefix("ExecStart=").split(" ")]
    assert words[-2:] == ["serve", "--log"]
    assert 'Environment="NACRE_HOME=' in unit
    assert home() == user_home / ".nacre"
