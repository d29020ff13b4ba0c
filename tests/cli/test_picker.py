"""``nacre recall`` without a question on a terminal: type, see, open, copy."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Nacre
from tests.cli.screens import Terminal
from tests.processes import Processes

FERRY = "The ferry to the island runs every hour in summer."
LAMPS = "Lanterns hang above the quay, and are lit at dusk."


@pytest.fixture
def picker(processes: Processes, nacre: Nacre) -> Iterator[Callable[..., Terminal]]:
    """``picker()`` is ``nacre recall`` on a terminal, in a home of two memories."""
    nacre("store", FERRY, "--project", "island")
    nacre("store", LAMPS, "--project", "quay")
    opened: list[Terminal] = []

    def start(*arguments: str, **environ: str) -> Terminal:
        opened.append(Terminal(processes, "recall", *arguments, environ=environ))
        opened[-1].until("Esc quit")
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_picker_shows_newest_memories_before_typing(picker: Callable[..., Terminal]) -> None:
    terminal = picker()
    shown = terminal.shown.decode()
    assert 0 < shown.index("Lanterns hang") < shown.index("The ferry")
    assert terminal.press("\x1b").end() == 0


def test_typed_text_matches_word_prefixes(
    picker: Callable[..., Terminal],
) -> None:
    terminal = picker()
    found = terminal.press("islan").until("Esc quit")
    assert FERRY in found
    assert "Lanterns" not in found
    assert "Lanterns" in terminal.press("\x7f" * 5 + "dusk").until("Esc quit")
    assert terminal.press("\x1b").end() == 0


def test_pasted_text_is_entered_on_a_single_line(picker: Callable[..., Terminal]) -> None:
    terminal = picker()
    found = terminal.press("\x1b[200~ferry\r\nisland\x1b[201~").until("Esc quit")
    assert "Recall: ferry island" in found
    assert FERRY in found
    assert terminal.press("\x1b").end() == 0


def test_unmatched_words_find_nothing(picker: Callable[..., Terminal]) -> None:
    terminal = picker()
    terminal.press("zzyzx").until("No memory contains these words")
    terminal.press("\r").until("Esc quit")
    assert "Lanterns" in terminal.press("\x15").until("The ferry")
    assert terminal.press("\x1b").end() == 0


def test_filter_applies_in_the_picker(picker: Callable[..., Terminal]) -> None:
    terminal = picker("--project", "quay")
    assert "ferry" not in terminal.shown.decode()
    assert terminal.press("ferry").until("Esc quit").count("island") == 0
    assert terminal.press("\x1b").end() == 0


def test_enter_shows_a_full_memory_and_keys_navigate(
    picker: Callable[..., Terminal], nacre: Nacre
) -> None:
    terminal = picker()
    terminal.press("\x1b[B").until("Esc quit")
    shown = terminal.press("\r").until("o open")
    assert "2 of 2" in shown
    assert "said by" in shown
    assert "1 of 2" in terminal.press("k").until("o open")
    assert "The ferry" in terminal.press("j").until("o open")
    terminal.press("\x1b").until("Esc quit")
    terminal.press("\r").until("o open")
    assert terminal.press("q").end() == 0
    nacre("admin", "doctor")  # what was looked at is counted then
    ids = [one["id"] for one in nacre("list", "--json").json["memories"]]
    assert all(
        nacre("show", one, "--no-update", "--json").json["usage"]["access_count"] for one in ids
    )


def test_memory_is_opened_in_the_editor_and_reloaded(
    picker: Callable[..., Terminal], nacre: Nacre, tmp_path: Path
) -> None:
    script = tmp_path / "editor.py"
    script.write_text(
        "import pathlib, sys\npath = pathlib.Path(sys.argv[1])\n"
        "path.write_text(path.read_text().replace('at dusk', 'at midnight'))\n",
        encoding="utf-8",
    )
    terminal = picker(VISUAL=f"{sys.executable} {script}")
    terminal.press("\x0f").until("at midnight")
    assert terminal.press("\x1b").end() == 0
    assert "at midnight" in nacre("list", "--json").out


def test_memory_is_copied_by_the_terminal(picker: Callable[..., Terminal]) -> None:
    terminal = picker()
    terminal.press("\r").until("o open")
    terminal.press("c").until("Copied")
    assert f"\x1b]52;c;{base64.b64encode(LAMPS.encode()).decode()}\x07" in terminal.shown.decode()
    assert terminal.press("q").end() == 0


def test_wide_characters_and_narrow_windows_fit(
    picker: Callable[..., Terminal], nacre: Nacre
) -> None:
    nacre("store", "我们决定用 PostgreSQL 存储账单，因为多个账户会同时扣款。" * 9)
    terminal = picker()
    terminal.resize(30, 10)
    assert len(terminal.until("type to").replace("\r", "").split("\n")) == 10
    assert "存储账单" in terminal.press("账单").until("type to").replace("\r\n", "")
    assert terminal.press("\x1b").end() == 0


def test_terminal_state_is_restored(picker: Callable[..., Terminal]) -> None:
    terminal = picker()
    assert terminal.after != terminal.before
    assert terminal.press("\x03").end() == 130
    assert terminal.after == terminal.before


def test_recall_without_terminal_requires_a_question(nacre: Nacre, terminal: Nacre) -> None:
    assert "the question is empty" in nacre("recall", code=2).err
    assert nacre("recall", "--json", code=2).error["code"] == "query_invalid"
    assert terminal("recall", "--json").error["code"] == "query_invalid"
    assert "\x1b[?1049h" not in terminal("recall", environ={"CLAUDECODE": "1"}).out
