"""The status line below Claude Code's prompt appears at once, even with a broken home."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import nacre
from tests.hooks.conftest import PATIENT_MS, SESSION, Hooked, locked_against_readers
from tests.processes import Processes

COMMAND = [sys.executable, "-m", "nacre", "statusline"]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_HOOK_MS", str(PATIENT_MS))


def status_line(value: object = None, *more: str, stdin: bytes | None = None) -> str:
    """Run the status line with Claude Code's input; return its output. It exits with 0 and writes no errors."""
    data = (
        json.dumps({"session_id": SESSION} if value is None else value).encode()
        if stdin is None
        else stdin
    )
    ran = subprocess.run(
        [*COMMAND, *more], input=data, capture_output=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    return ran.stdout.decode()


def test_session_without_output_shows_only_the_name(hooked: Hooked) -> None:
    assert status_line() == "nacre\n"


def test_memories_given_to_the_session_are_counted(hooked: Hooked) -> None:
    hooked.run("UserPromptSubmit")
    assert status_line() == "nacre: 1 told\n"
    assert status_line({"session_id": "another"}) == "nacre\n"


def test_turns_of_the_previous_session_are_not_counted(hooked: Hooked) -> None:
    hooked.run("UserPromptSubmit")
    (file,) = (hooked.home / "run" / "sessions").iterdir()
    state = json.loads(file.read_bytes())
    file.write_text(
        json.dumps({**state, "given": [*state["given"], "claude-code:before#t1"]}), encoding="utf-8"
    )
    assert status_line() == "nacre: 1 told\n"


def test_pending_reviews_are_counted(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    hooked.run("UserPromptSubmit")
    monkeypatch.setenv("CLAUDECODE", "1")
    with nacre.open_memory(hooked.home) as memory:
        proposed = memory.store("The lamp of the lighthouse is an LED")
        memory.store("The keeper of the lighthouse is called Ines")
    monkeypatch.delenv("CLAUDECODE")
    assert status_line() == "nacre: 1 told, 2 to review\n"
    with nacre.open_memory(hooked.home) as memory:
        memory.call("review-keep", references=(proposed.memory_id,))
    assert status_line() == "nacre: 1 told, 1 to review\n"
    assert json.loads(status_line(None, "--json")) == {"told": 1, "to_review": 1}


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"\xff\xfe", b'{"session_id": 7}', b'{"session_id": "../../x"}']
)
def test_every_input_prints_a_line(hooked: Hooked, data: bytes) -> None:
    assert status_line(stdin=data) == "nacre\n"


def test_missing_home_is_not_created(
    hooked: Hooked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_HOME", str(tmp_path / "nowhere"))
    assert status_line() == "nacre\n"
    assert not (tmp_path / "nowhere").exists()


@pytest.fixture
def _broken(hooked: Hooked) -> None:
    (hooked.home / "nacre.db").write_bytes(b"no database")
    (hooked.home / "config.toml").write_text("[nonsense", encoding="utf-8")


@pytest.mark.usefixtures("_broken")
def test_broken_home_only_loses_the_count(hooked: Hooked) -> None:
    state = hooked.home / "run" / "sessions" / f"claude-code=3a={SESSION}.json"
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps({"given": ["a", "b"]}), encoding="utf-8")
    assert status_line() == "nacre: 2 told\n"
    state.write_text("{", encoding="utf-8")
    assert status_line() == "nacre\n"


def test_lock_is_not_awaited(hooked: Hooked) -> None:
    hooked.run("UserPromptSubmit")
    with locked_against_readers(hooked.home):
        began = time.monotonic()
        assert status_line() == "nacre: 1 told\n"
        assert time.monotonic() - began < PATIENT_MS / 1000


def test_host_that_never_completes_its_input_is_not_awaited(
    hooked: Hooked, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NACRE_HOOK_MS")
    started = processes.start(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert started.stdin
    started.stdin.write(b'{"session_id":')
    started.stdin.flush()
    assert started.wait(timeout=30) == 0
    assert started.stdout
    assert started.stdout.read().startswith(b"nacre")


def test_statusline_loads_neither_command_line_nor_model(hooked: Hooked) -> None:
    loud = [sys.executable, "-X", "importtime", "-m", "nacre", "statusline"]
    ran = subprocess.run(
        loud, input=b'{"session_id": "a"}', capture_output=True, text=False, timeout=60, check=True
    )
    loaded = {line.rpartition(b"|")[2].strip().decode() for line in ran.stderr.splitlines()}
    assert "nacre.store.sqlite" in loaded
    assert not loaded & {
        "click",
        "msgspec",
        "numpy",
        "nacre.cli.command",
        "tomllib",
        "nacre.llm.local_model",
        "dataclasses",
    }
