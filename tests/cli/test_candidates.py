"""``nacre review candidates``: what waits, and one key for each."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import SESSION, Nacre, command, environment, said, write_transcript
from tests.processes import Processes

SAID = (
    "The exports should be compressed before the upload, since the line to the bank is slow.",
    "The reports should be rendered as one page each, since the printers of the office jam on more.",
    "The invoices should be numbered per year, since the auditors ask for each year by itself.",
)


@pytest.fixture
def waiting(nacre: Nacre, user_home: Path) -> list[str]:
    """What waits in a home that read a session, the likeliest first."""
    records = [said("user", text, 2 * at) for at, text in enumerate(SAID)]
    answers = [said("assistant", "Understood, I will see to it now.", 2 * at + 1) for at in range(len(SAID))]
    both = [one for pair in zip(records, answers, strict=True) for one in pair]
    write_transcript(user_home / ".claude" / "projects" / "-code-acme" / "s.jsonl", both)
    report = nacre("ingest")
    assert "(nacre review candidates)" in report.out
    return [one["content"] for one in nacre("review", "candidates", "--json").json["candidates"]]


@pytest.fixture
def keys(processes: Processes) -> Callable[[Sequence[str]], str]:
    """Go through what waits on a pseudo-terminal: each key is pressed when one is waited for, or several at once."""
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")

    def press(pressed: Sequence[str]) -> str:
        mine, theirs = pty.openpty()
        started = processes.start(
            command("review", "candidates"), stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True,
            env=environment({"TERM": "xterm-256color"}),
        )  # fmt: skip
        os.close(theirs)
        shown, asked = b"", 0
        with contextlib.suppress(OSError):
            while read := os.read(mine, 4096):
                shown += read
                while asked < len(pressed) and shown.count(b"[q]uit") > asked:
                    while termios.tcgetattr(mine)[3] & termios.ICANON:
                        pass  # a key pressed before it listens for one would be lost
                    os.write(mine, pressed[asked].encode())
                    asked += 1
        os.close(mine)
        assert started.wait(timeout=60) == 0, shown.decode()
        return shown.decode()

    return press


def memories(nacre: Nacre) -> set[str]:
    return {one["content"] for one in nacre("list", "--json").json["memories"]}


def left(nacre: Nacre) -> list[str]:
    return [one["content"] for one in nacre("review", "candidates", "--json").json["candidates"]]


def test_they_are_told_to_nobody_until_somebody_keeps_them(nacre: Nacre, waiting: list[str]) -> None:
    assert waiting
    assert memories(nacre) == set()
    assert not nacre("recall", waiting[0], "--json").json["hits"]
    assert waiting[0] not in nacre("context", waiting[0], "--moment", "start").out


def test_one_key_keeps_drops_or_skips(keys: Callable[[Sequence[str]], str], nacre: Nacre, waiting: list[str]) -> None:
    assert len(waiting) >= 2
    assert "Kept 1, dropped 1" in keys("kd" + "s" * (len(waiting) - 2))
    assert memories(nacre) == {waiting[0]}
    assert left(nacre) == waiting[2:]
    nacre("ingest", "--force")
    assert waiting[1] not in left(nacre)


def test_keys_that_are_pressed_at_once_count_one_after_the_other(
    keys: Callable[[Sequence[str]], str], nacre: Nacre, waiting: list[str]
) -> None:
    keys(["kdq"])
    assert memories(nacre) == {waiting[0]}
    assert left(nacre) == waiting[2:]


def test_a_question_mark_shows_what_the_keys_mean(
    keys: Callable[[Sequence[str]], str], nacre: Nacre, waiting: list[str]
) -> None:
    assert "d  drop it for good" in keys("?q")
    assert left(nacre) == waiting


def test_who_quits_leaves_the_rest(keys: Callable[[Sequence[str]], str], nacre: Nacre, waiting: list[str]) -> None:
    keys("q")
    assert left(nacre) == waiting


def test_they_are_kept_and_dropped_by_id_elsewhere(nacre: Nacre, waiting: list[str]) -> None:
    found = nacre("review", "candidates", "--json").json["candidates"]
    nacre("review", "keep", found[0]["id"])
    nacre("review", "drop", *[one["id"] for one in found[1:]])
    assert memories(nacre) == {waiting[0]}
    assert left(nacre) == []
    assert "No candidate waits" in nacre("review", "candidates").out


def test_what_is_said_again_elsewhere_is_a_memory(nacre: Nacre, user_home: Path, waiting: list[str]) -> None:
    again = [
        said("user", waiting[0], 0, session="5e55aaaa-again", day="2026-11-19"),
        said("assistant", "Understood, I will see to it now.", 1, session="5e55aaaa-again", day="2026-11-19"),
    ]
    write_transcript(user_home / ".claude" / "projects" / "-code-acme" / "again.jsonl", again)
    nacre("ingest")
    assert memories(nacre) == {waiting[0]}
    assert waiting[0] not in left(nacre)


def test_a_rebuild_keeps_those_that_wait_and_brings_back_none_that_was_dropped(
    nacre: Nacre, waiting: list[str]
) -> None:
    before = nacre("review", "candidates", "--json").json["candidates"]
    assert len(before) >= 2
    nacre("review", "drop", before[0]["id"])
    nacre("db", "rebuild", "--yes")
    assert nacre("review", "candidates", "--json").json["candidates"] == before[1:]
    nacre("ingest", "--force")
    assert left(nacre) == waiting[1:]


def test_a_rebuild_keeps_none_of_a_session_that_another_machine_forgot(
    nacre: Nacre, user_home: Path, tmp_path: Path, waiting: list[str]
) -> None:
    assert waiting
    home, here = user_home / ".nacre", tmp_path / "here"
    shutil.copytree(home, here)
    nacre("forget", "--session", SESSION, "--yes")
    shutil.copy(home / "vault" / "ledger.jsonl", here / "vault" / "ledger.jsonl")
    shutil.rmtree(home)
    here.rename(home)
    nacre("db", "rebuild", "--yes")
    assert left(nacre) == []


def test_a_rebuild_says_that_candidates_cannot_be_read_any_more(
    nacre: Nacre, user_home: Path, waiting: list[str]
) -> None:
    assert waiting
    with contextlib.closing(sqlite3.connect(user_home / ".nacre" / "nacre.db")) as database, database:
        database.execute("UPDATE candidates SET memory = '{}'")
    assert "candidates could not be read any more" in " ".join(nacre("db", "rebuild", "--yes").out.split())
    assert left(nacre) == []
