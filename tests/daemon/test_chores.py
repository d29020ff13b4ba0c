"""What hooks leave to be done, the daemon has done."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from nacre.link.address import chores_folder
from tests.cli.conftest import SESSION, Nacre, environment
from tests.daemon.conftest import Serving, asked, home
from tests.daemon.test_life import wait

Serve = Callable[..., Serving]


def hook(event: str, transcript: Path) -> None:
    """What Claude Code runs as a session ends."""
    given = {"session_id": SESSION, "transcript_path": str(transcript), "cwd": "/code/acme-billing", "reason": "other"}
    subprocess.run(
        [sys.executable, "-m", "nacre.hooks.process", "claude-code", event], input=json.dumps(given), text=True,
        env=environment(), check=True, timeout=60,
    )  # fmt: skip


def test_a_session_that_ends_is_read_and_handed_over(serving: Serve, transcript: Path) -> None:
    daemon = serving("--no-watch")
    assert asked("search-sessions", {"text": "ledger"})["turns"] == []
    hook("SessionEnd", transcript)
    wait(lambda: bool(asked("search-sessions", {"text": "ledger"})["turns"]))
    wait(lambda: not list(Path(chores_folder(str(home()))).glob("*.json")))
    assert daemon.end() == 0


def test_what_was_left_while_no_daemon_ran_is_done_by_the_next(
    serving: Serve, transcript: Path, process: Nacre
) -> None:
    process("list")
    process("config", "set", "daemon.enabled", "false")
    folder = Path(chores_folder(str(home())))
    folder.mkdir(parents=True)
    (folder / "one.json").write_text(json.dumps({"kind": "nonsense", "session": "x:1", "at": 1.0}))
    serving("--no-watch")
    wait(lambda: len(list((folder / "given-up").glob("*.json"))) == 1 and not list(folder.glob("*.json")))
