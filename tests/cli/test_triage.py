"""``nacre review`` on a terminal: one item after another, one key each."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre, command, environment, said, write_transcript
from tests.cli.screens import Terminal
from tests.processes import Processes

WORDS = "Exports are compressed."


@pytest.fixture
def triage(processes: Processes) -> Iterator[Callable[..., Terminal]]:
    """``triage()`` runs ``nacre review`` on a terminal and waits for the first item."""
    opened: list[Terminal] = []

    def start(*arguments: str, **environ: str) -> Terminal:
        opened.append(Terminal(processes, "review", *arguments, environ=environ))
        opened[-1].until("help")
        return opened[-1]

    yield start
    for item in opened:
        item.close()


@pytest.fixture
def editor(tmp_path: Path) -> str:
    """An editor that appends :data:`WORDS`."""
    script = tmp_path / "editor.py"
    script.write_text(f"import sys\nopen(sys.argv[1], 'a').write({WORDS!r})\n", encoding="utf-8")
    return f"{sys.executable} {script}"


def memories(nacre: Nacre) -> set[str]:
    return {memory["content"] for memory in nacre("list", "--json").json["memories"]}


def pending(nacre: Nacre) -> list[str]:
    return [
        item["memory"]["content"]
        for item in nacre("review", "--only", "candidate", "--json").json["items"]
    ]


def test_single_keys_keep_drop_or_skip(
    triage: Callable[..., Terminal], nacre: Nacre, waiting: list[str]
) -> None:
    terminal = triage()
    terminal.press("k").until(waiting[1][:40])
    terminal.press("d").until(f"{len(waiting) - 2} left")
    terminal.press(*"s" * (len(waiting) - 2)).until("Nothing is left")
    terminal.press("q")
    assert terminal.end() == 0
    assert "Kept 1, dropped 1" in terminal.shown.decode()
    assert memories(nacre) == {waiting[0]}
    assert pending(nacre) == waiting[2:]
    nacre("ingest", "--force")
    assert waiting[1] not in pending(nacre)


def test_question_mark_explains_the_keys(
    triage: Callable[..., Terminal], nacre: Nacre, waiting: list[str]
) -> None:
    terminal = triage()
    terminal.press("?").until("keep it in other words")
    assert terminal.press("q").end() == 0
    assert pending(nacre) == waiting


def test_candidate_is_shown_with_its_turns(
    triage: Callable[..., Terminal], nacre: Nacre, waiting: list[str]
) -> None:
    terminal = triage()
    assert "where said" in terminal.shown.decode()
    output = terminal.press("w").until("help")
    assert waiting[0][:40] in output
    assert "Where it was said" in output
    assert "you, claude-code" in output
    assert "Where it was said" not in terminal.press("k").until(waiting[1][:40])
    assert terminal.press("q").end() == 0
    assert memories(nacre) == {waiting[0]}


def test_long_text_is_shown_in_full_and_its_turns_are_missing(
    triage: Callable[..., Terminal], nacre: Nacre
) -> None:
    nacre("store", " ".join(f"Stage {number} waits for the one before." for number in range(99)))
    nacre("review", "feedback", nacre("list", "--json").json["memories"][0]["id"], "--bad")
    terminal = triage()
    assert "Stage 98" in terminal.shown.decode()
    terminal.press("w").until("No turn of a session is recorded for it")
    assert terminal.press("q").end() == 0


def test_pasted_text_and_special_keys_decide_nothing(
    triage: Callable[..., Terminal], nacre: Nacre, waiting: list[str]
) -> None:
    terminal = triage()
    terminal.press("dkd\rkk q").until("Pasted text is ignored")
    terminal.press("d" * 99).until("Pasted text is ignored")
    terminal.press("\x1b[A", "\x1b[200~dd\x1b[201~", "k").until(f"{len(waiting) - 1} left")
    assert terminal.press("q").end() == 0
    assert memories(nacre) == {waiting[0]}
    assert pending(nacre) == waiting[1:]


def test_last_decisions_are_undone_in_reverse_order(
    triage: Callable[..., Terminal], nacre: Nacre, waiting: list[str]
) -> None:
    terminal = triage()
    terminal.press(*"ksd").until(f"{len(waiting) - 3} left")
    for number, what in enumerate(("dropped", "skipped", "kept"), 1):
        output = terminal.press("u").until(f"{len(waiting) - 3 + number} left")
        assert f"Undone: {what}" in output
    terminal.press("u").until("Nothing was decided yet")
    assert terminal.press("q").end() == 0
    assert pending(nacre) == waiting
    assert memories(nacre) == set()


def test_candidate_is_kept_as_edited(
    triage: Callable[..., Terminal], nacre: Nacre, waiting: list[str], editor: str
) -> None:
    terminal = triage(VISUAL=editor)
    terminal.press("e").until(f"{len(waiting) - 1} left")
    assert terminal.press("q").end() == 0
    assert memories(nacre) == {f"{waiting[0]}\n{WORDS}"}


def test_edited_text_is_shown_after_keeping(
    triage: Callable[..., Terminal], waiting: list[str], tmp_path: Path
) -> None:
    assert waiting
    script = tmp_path / "other.py"
    script.write_text(f"import sys\nopen(sys.argv[1], 'w').write({WORDS!r})\n", encoding="utf-8")
    terminal = triage(VISUAL=f"{sys.executable} {script}")
    terminal.press("e").until(f"Kept as edited: {WORDS}")
    assert terminal.press("q").end() == 0


def test_failed_or_empty_editing_changes_nothing(
    triage: Callable[..., Terminal], nacre: Nacre, waiting: list[str]
) -> None:
    terminal = triage(VISUAL="true")
    terminal.press("e").until("nothing was changed")
    assert terminal.press("q").end() == 0
    terminal = triage(VISUAL="/nowhere/editor")
    terminal.press("e").until("Editing failed")
    assert terminal.press("q").end() == 0
    assert pending(nacre) == waiting
    assert memories(nacre) == set()


def test_candidate_is_merged_into_a_chosen_memory_and_undone(
    triage: Callable[..., Terminal], nacre: Nacre, waiting: list[str], editor: str
) -> None:
    content = "Uploads go to the bank at night."
    nacre("store", content, "--project", "acme-billing")
    terminal = triage(VISUAL=editor)
    terminal.press("m").until("search for")
    terminal.type("night").until("search for")
    terminal.type("1").until("Merged")
    assert memories(nacre) == {f"{content} {waiting[0]}\n{WORDS}"}
    assert pending(nacre) == waiting[1:]
    terminal.press("u").until("Undone: merged")
    assert terminal.press("q").end() == 0
    assert memories(nacre) == {content}
    assert pending(nacre) == waiting


def test_cancelled_merge_selection_changes_nothing(
    triage: Callable[..., Terminal], nacre: Nacre, waiting: list[str]
) -> None:
    terminal = triage()
    terminal.press("m").until("search for")
    terminal.type("").until("Not merged")
    assert terminal.press("q").end() == 0
    assert pending(nacre) == waiting


def test_contradicted_memory_is_shown_with_its_successor_and_replaced(
    triage: Callable[..., Terminal], nacre: Nacre
) -> None:
    nacre("store", "Uploads may be 10 MB", "--project", "acme")
    nacre("store", "Uploads have changed to 25 MB", "--project", "acme")
    terminal = triage()
    assert "10 MB" in terminal.shown.decode()
    assert "25 MB" in terminal.shown.decode()
    terminal.press("n").until("Replaced")
    assert memories(nacre) == {"Uploads have changed to 25 MB"}
    terminal.press("u").until("1 left")
    terminal.press("o").until("Older kept")
    assert memories(nacre) == {"Uploads may be 10 MB"}
    terminal.press("u").until("1 left")
    terminal.press("k").until("Kept")
    assert memories(nacre) == {"Uploads may be 10 MB", "Uploads have changed to 25 MB"}
    assert nacre("review", "--json").json["total"] == 0
    terminal.press("u").until("1 left")
    terminal.press("d").until("Dropped")
    assert memories(nacre) == {"Uploads have changed to 25 MB"}
    terminal.press("u").until("1 left")
    terminal.press("e").until("in conflict")
    assert terminal.press("q").end() == 0
    assert len(memories(nacre)) == 2
    assert len(nacre("review", "--only", "conflict", "--json").json["items"]) == 1


def test_decision_by_another_process_is_reported_and_skipped(
    triage: Callable[..., Terminal], nacre: Nacre, waiting: list[str]
) -> None:
    terminal = triage()
    memory_id = nacre("review", "--only", "candidate", "--json").json["items"][0]["memory"]["id"]
    nacre("review", "drop", memory_id)
    terminal.press("k").until("there is no memory")
    terminal.press("s").until(waiting[1][:40])
    assert terminal.press("q").end() == 0
    assert memories(nacre) == set()


@pytest.mark.parametrize("ending", ["\x03", "terminate", "\x1b"])
def test_terminal_state_is_restored_on_every_exit(
    triage: Callable[..., Terminal], waiting: list[str], ending: str
) -> None:
    assert waiting
    terminal = triage()
    terminal.press("?").until("help")
    if ending == "terminate":
        os.kill(terminal.process, signal.SIGTERM)
    else:
        terminal.press(ending)
    assert terminal.end() == (0 if ending == "\x1b" else 130)
    assert terminal.after == terminal.before


def test_review_ends_when_its_window_closes(
    triage: Callable[..., Terminal], waiting: list[str], nacre: Nacre
) -> None:
    terminal = triage()
    terminal.close()
    terminal.wait()
    assert pending(nacre) == waiting


def test_text_cannot_control_the_terminal(
    triage: Callable[..., Terminal], nacre: Nacre, user_home: Path
) -> None:
    nacre("store", "Red is the warning lamp")
    memory: Any = nacre("list", "--json").json["memories"][0]
    (file,) = (user_home / ".nacre" / "vault").rglob("red-is*.md")
    steering = "\x1b]0;owned\x07\x1b[2J\u202egnissim\u202c\x9b5n"
    file.write_text(
        file.read_text(encoding="utf-8").replace("Red is", f"Red {steering} is"), encoding="utf-8"
    )
    nacre("review", "feedback", memory["id"], "--bad")
    terminal = triage()
    terminal.press("m").until("search for")
    terminal.type("").until("Not merged")
    assert terminal.press("q").end() == 0
    output = terminal.shown.decode()
    assert "Red" in output
    for mark in ("\x1b]0;", "\x1b[2J", "\u202e", "\x9b", "\x07"):
        assert mark not in output


def test_review_is_a_plain_list_without_a_terminal(
    terminal: Nacre, process: Nacre, waiting: list[str], tmp_path: Path, processes: Processes
) -> None:
    assert f"{len(waiting)} of {len(waiting)} items" in process("review").out
    with (tmp_path / "out").open("wb") as out:
        pty = pytest.importorskip("pty")
        mine, theirs = pty.openpty()
        started = processes.start(
            command("review"), stdin=theirs, stdout=out, stderr=out, env=environment()
        )
        assert started.wait(timeout=60) == 0
        os.close(mine)
        os.close(theirs)
    assert b"keeps one" in (tmp_path / "out").read_bytes()
    assert terminal("review", "--json").json["candidates"] == len(waiting)
    assert "keeps one" in terminal("review", environ={"TERM": "dumb"}).out
    assert "keeps one" in terminal("review", environ={"CLAUDECODE": "1"}).out


def test_candidate_given_as_a_memory_leads_to_its_review(nacre: Nacre, waiting: list[str]) -> None:
    candidate = nacre("review", "--json").json["items"][0]["memory"]["id"]
    error = nacre("show", candidate, "--json", code=3).error
    assert error["hint"] == f"it is a candidate: nacre review keep {candidate} stores it"


def test_all_pending_items_are_counted_and_reviewed(
    triage: Callable[..., Terminal], nacre: Nacre, user_home: Path
) -> None:
    for number in range(12):
        words = [
            f"The exports of {place} {number} should be compressed before the upload, since the line there is slow."
            for place in ("Bergen", "Oslo", "Turku", "Gdansk", "Riga", "Tartu")
        ]
        records = [said("user", text, at, session=f"s{number}") for at, text in enumerate(words)]
        write_transcript(
            user_home / ".claude" / "projects" / "-code-acme" / f"s{number}.jsonl", records
        )
    nacre("ingest")
    total = nacre("review", "--only", "candidate", "--json").json["total"]
    assert total > 50
    assert f"{total} left" in triage().shown.decode()
