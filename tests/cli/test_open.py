"""``nacre open``, and the first reading of the agents' sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nacre.base import link
from nacre.base.link import DaemonAwayError
from nacre.cli.command import Run
from tests.cli.conftest import Nacre


@pytest.mark.parametrize(
    ("is_read", "is_terminal", "options"),
    [(False, False, ("--no-watch",)), (False, True, ()), (True, False, ())],
)
def test_open_reads_sessions_of_a_new_home_after_consent(
    nacre: Nacre,
    transcript: Path,
    monkeypatch: Any,
    is_read: bool,
    is_terminal: bool,
    options: tuple[str, ...],
) -> None:
    started: list[tuple[str, ...]] = []

    def ask(*_: object, **__: object) -> str:
        if not started:
            raise DaemonAwayError("no daemon")
        return "http://127.0.0.1:1/open"

    if is_read:
        nacre("ingest", "--json")
    monkeypatch.setattr(link, "ask", ask)
    monkeypatch.setattr(
        link, "start_daemon", lambda _home, _environ, *arguments: started.append(arguments)
    )
    monkeypatch.setattr(Run, "is_interactive", is_terminal)
    monkeypatch.setattr("click.confirm", lambda *_, **__: True)
    nacre("open", "--print", "--json")
    assert started == [options]
