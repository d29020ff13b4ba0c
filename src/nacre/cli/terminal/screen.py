"""A screen of lines that is drawn anew with each key. It is left as it was, however it is left."""

from __future__ import annotations

import binascii
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import click

from nacre.cli.paper import Paper, cells, dim
from nacre.cli.run import Run
from nacre.cli.terminal.keys import LEAVE_PASTES, MARK_PASTES, Keys

_ENTER = f"\x1b[?1049h\x1b[?7l\x1b[?25l{MARK_PASTES}"
_LEAVE = f"{LEAVE_PASTES}\x1b[?25h\x1b[?7h\x1b[?1049l"
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_USUAL_SIZE = os.terminal_size((80, 24))


class Screen:
    """Where keys are read and lines are shown: a heading, what scrolls, and what stands at the bottom."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.keys = Keys()
        self._top = 0
        self._last_page = 0

    @contextmanager
    def open(self) -> Iterator[Screen]:
        """Take the terminal. In the end it shows what it showed before."""
        with self.keys.listening():
            try:
                _write(_ENTER)
                yield self
            finally:
                with suppress(OSError):
                    _write(_LEAVE)

    @property
    def rows(self) -> int:
        """Lines of the terminal, at present."""
        return _size().lines

    @property
    def columns(self) -> int:
        """Columns of the terminal that are used."""
        return self._run.paper().width

    def page(self, render: Callable[[Paper], object]) -> list[str]:
        """Lines that a function puts on paper as wide as the terminal."""
        paper = self._run.paper()
        render(paper)
        return paper.text().split("\n")[:-1]

    def draw(self, head: Sequence[str], body: Sequence[str], foot: Sequence[str], typed_at: int | None = None) -> None:
        """Show lines; of a long body a part, which scrolls. ``typed_at``: the column of the cursor in the first line.

        The head and foot must fit.
        """
        rows = self.rows
        room = max(1, rows - len(head) - len(foot))
        is_long = len(body) > room
        seen = room - is_long
        self._last_page = len(body) - seen if is_long else 0
        self._top = min(self._top, self._last_page)
        shown = list(body[self._top :][:seen])
        if is_long:
            below = len(body) - self._top - seen
            more = f"↓ {below} more" if below else "↑ the end"
            shown += self.page(lambda paper: paper.line(dim(f"  {more}")))[:1]
        lines = [*head, *shown, *[""] * (room - len(shown)), *foot][:rows]
        cursor = f"\x1b[1;{typed_at + 1}H\x1b[?25h" if typed_at is not None else ""
        _write("\x1b[?25l\x1b[H" + "\r\n".join(f"{line}\x1b[0m\x1b[K" for line in lines) + "\x1b[J" + cursor)

    def draw_first(self, line: str, typed_at: int) -> None:
        """Show the first line anew, with the cursor in this column; the rest follows when it is known."""
        _write(f"\x1b[?25l\x1b[H{line}\x1b[0m\x1b[K\x1b[1;{typed_at + 1}H\x1b[?25h")

    def scroll(self, key: str) -> bool:
        """Whether a key scrolls the body; the next drawing shows it."""
        step = {"up": -1, "down": 1, "page-up": -8, "page-down": 8}.get(key)
        if step is None:
            return False
        self._top = max(0, min(self._last_page, self._top + step))
        return True

    def scroll_to(self, line: int) -> None:
        """The next drawing begins with this line of its body, where not all of it fits."""
        self._top = line

    def rule(self) -> str:
        """A line across."""
        return self.page(lambda paper: paper.line(dim("─" * paper.width)))[0]

    def bar(self, left: str, right: str) -> str:
        """A line with something at both ends; where it is too narrow, only the left one."""
        gap = self._run.paper().width - width(left) - width(right)
        return f"{left}{' ' * gap}{right}" if gap > 1 else left

    def edit(self, text: str) -> str | None:
        """Have a text edited in the person's editor; ``None`` where it was not saved. Raises ClickException."""
        with self._lent():
            return click.edit(text, extension=".md")

    def open_file(self, path: str) -> None:
        """Open a file in the person's editor. Raises ClickException."""
        with self._lent():
            click.edit(filename=path)

    @contextmanager
    def _lent(self) -> Iterator[None]:
        """An editor has the terminal."""
        _write(_LEAVE)
        try:
            with self.keys.given_back():
                yield
        finally:
            _write(_ENTER)


def width(inked: str) -> int:
    """Columns of a line with its styles."""
    return cells(_STYLE.sub("", inked))


def copy(text: str) -> None:
    """Ask the terminal to put a text on the clipboard (OSC 52); also through ssh. Not every terminal does."""
    encoded = binascii.b2a_base64(text.encode("utf-8", "replace"), newline=False).decode()
    _write(f"\x1b]52;c;{encoded}\x07")


def can_be_drawn(run: Run) -> bool:
    """Whether a person can be shown a screen: on a terminal, outside an agent, and where JSON is not wanted."""
    is_terminal = run.is_interactive and bool(sys.stdout and sys.stdout.isatty()) and run.environ.get("TERM") != "dumb"
    return is_terminal and not run.as_json and not run.settings.actor.is_agent


def _size() -> os.terminal_size:
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        return _USUAL_SIZE
    return size if size.lines else _USUAL_SIZE


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
