"""What hooks leave to be done, the daemon has done."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from nacre.base.link import CHORES_LOCK, chores_folder
from nacre.base.locks import FileLock
from nacre.setup.chores import waiting
from tests.cli.conftest import SESSION, Nacre, environment
from tests.daemon.conftest import Serving, asked, home
from tests.processes import wait

Serve = Callable[..., Serving]
OTHER_SESSION = "0b9d2f64-0000-4000-8000-00000000abac"


def hook(event: str, transcript: Path) -> None:
    """What Claude Code runs as a turn or a session ends."""
    given = {
        "session_id": transcript.stem,
        "transcript_path": str(transcript),
        "cwd": "/code/acme-billing",
    }
    subprocess.run(
        [sys.executable, "-m", "nacre.serve.hook_process", "claude-code", event],
        input=json.dumps(given),
        text=True,
        env=environment(),
        check=True,
        timeout=60,
    )


def test_ended_session_is_read_and_handed_over(serving: Serve, transcript: Path) -> None:
    daemon = serving("--no-watch")
    assert asked("search-sessions", {"text": "ledger"})["turns"] == []
    hook("SessionEnd", transcript)
    wait(lambda: bool(asked("search-sessions", {"text": "ledger"})["turns"]))
    wait(lambda: not list(Path(chores_folder(str(home()))).glob("*.json")))
    assert daemon.end() == 0


def test_turn_end_starts_no_process_for_followed_sessions(
    serving: Serve, transcript: Path, tmp_path: Path
) -> None:
    daemon = serving()
    daemon.until("following the sessions")
    apart = tmp_path / f"{OTHER_SESSION}.jsonl"
    apart.write_text(
        transcript.read_text().replace(SESSION, OTHER_SESSION).replace("ledger", "abacus")
    )
    with FileLock(home() / CHORES_LOCK):  # no such process gets anything done
        hook("Stop", apart)
        hook("Stop", transcript)
        wait(lambda: [chore.transcript for chore in waiting(home())] == [str(apart)])
    wait(lambda: bool(asked("search-sessions", {"text": "ledger"})["turns"]))
    wait(lambda: waiting(home()) == [])
    assert asked("search-sessions", {"text": "abacus"})["turns"] == []


def test_chores_left_without_a_daemon_are_run_by_the_next(
    serving: Serve, transcript: Path, process: Nacre
) -> None:
    process("list")
    process("config", "set", "daemon.enabled", "false")
    folder = Path(chores_folder(str(home())))
    folder.mkdir(parents=True)
    (folder / "one.json").write_text(json.dumps({"kind": "nonsense", "session": "x:1", "at": 1.0}))
    serving("--no-watch")
    wait(
        lambda: (
            len(list((folder / "given-up").glob("*.json"))) == 1 and not list(folder.glob("*.json"))
        )
    )
