"""The daemon runs the chores that hooks leave."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from nacre.base.link import CHORES_LOCK, chores_folder
from nacre.base.locks import FileLock
from nacre.setup.chores import pending_chores
from tests.cli.conftest import SESSION, Nacre, environment
from tests.daemon.conftest import Serving, call_daemon, home
from tests.processes import wait

Serve = Callable[..., Serving]
OTHER_SESSION = "0b9d2f64-0000-4000-8000-00000000abac"


def hook(event: str, transcript: Path) -> None:
    """Run Claude Code's hook for the end of a turn or a session."""
    fields = {
        "session_id": transcript.stem,
        "transcript_path": str(transcript),
        "cwd": "/code/acme-billing",
    }
    subprocess.run(
        [sys.executable, "-m", "nacre.serve.hook_process", "claude-code", event],
        input=json.dumps(fields),
        text=True,
        env=environment(),
        check=True,
        timeout=60,
    )


def test_ended_session_is_read_and_handed_over(serving: Serve, transcript: Path) -> None:
    daemon = serving("--no-watch")
    assert call_daemon("search-sessions", {"text": "ledger"})["turns"] == []
    hook("SessionEnd", transcript)
    wait(lambda: bool(call_daemon("search-sessions", {"text": "ledger"})["turns"]))
    wait(lambda: not list(Path(chores_folder(str(home()))).glob("*.json")))
    assert daemon.end() == 0


def test_turn_end_starts_no_process_for_followed_sessions(
    serving: Serve, transcript: Path, tmp_path: Path
) -> None:
    daemon = serving()
    daemon.until("following the sessions")
    other_transcript = tmp_path / f"{OTHER_SESSION}.jsonl"
    other_transcript.write_text(
        transcript.read_text().replace(SESSION, OTHER_SESSION).replace("ledger", "abacus")
    )
    with FileLock(home() / CHORES_LOCK):  # so that such a process cannot do anything
        hook("Stop", other_transcript)
        hook("Stop", transcript)
        wait(
            lambda: (
                [chore.transcript for chore in pending_chores(home())] == [str(other_transcript)]
            )
        )
    wait(lambda: bool(call_daemon("search-sessions", {"text": "ledger"})["turns"]))
    wait(lambda: pending_chores(home()) == [])
    assert call_daemon("search-sessions", {"text": "abacus"})["turns"] == []


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
