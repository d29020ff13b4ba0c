"""Full-screen terminal interface: keys, the screen, the memory picker, and the review of pending items."""

from __future__ import annotations

import binascii
import codecs
import os
import re
import select
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from types import FrameType
from typing import TYPE_CHECKING, Any, Concatenate

import click

from nacre.base import text
from nacre.base.text import shorten
from nacre.cli import hits
from nacre.cli.command import P, Paper, Run, Span, bold, cells, cut, dim, joined, printable
from nacre.cli.memories import render_evidence, render_memory
from nacre.cli.operations import ask, perform, resumable
from nacre.cli.options import (
    count,
    day,
    kind_span,
    place_name,
    short_id,
    short_session,
    speaker_name,
    split_session,
    when,
)
from nacre.errors import NacreError
from nacre.home import views
from nacre.home.views import Choice, Pending, PendingKind
from nacre.memories import decision, usage
from nacre.review import contradictions, queue
from nacre.values import recall
from nacre.values import session as values_session

if TYPE_CHECKING:
    from nacre.values.memory import Memory


RESIZE = "resize"
"""Event name for a resized terminal."""

END = "end"
"""Event name for a closed terminal."""

PASTE = "paste"
"""Event name for pasted text. See :attr:`Keys.pasted`."""

MARK_PASTES, LEAVE_PASTES = ("", "") if sys.platform == "win32" else ("\x1b[?2004h", "\x1b[?2004l")
"""Sequences that turn bracketed paste on and off. On terminals without this feature, pasted text arrives as keys."""

_BEGIN_OF_PASTE, _END_OF_PASTE = "\x1b[200~", "\x1b[201~"

_NAMED = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x1b": "escape",
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[5~": "page-up",
    "\x1b[6~": "page-down",
    "\xe0H": "up",
    "\xe0P": "down",
    "\xe0I": "page-up",
    "\xe0Q": "page-down",
}
_KEY = re.compile(r"\x1b\[[0-9;?<=>]*[ -/]*[@-~]|\x1bO[^\x1b]|\x1b[^\x1b]|.", re.DOTALL)
_PART_OF_KEY = re.compile(r"\x1b(?:\[[0-9;?<=>]*[ -/]*|O)?\Z")
_SECONDS_OF_ESCAPE = 0.05
"""Time in seconds to wait for the end of an escape sequence."""

_SIGNALS = ("SIGTERM", "SIGHUP")


class Keys:
    """A reader of single keys. Keys have names, such as ``a``, ``up``, ``enter`` and ``ctrl-u``."""

    def __init__(self) -> None:
        self.pasted = ""
        self._waiting: deque[str] = deque()
        self._is_pasted = False
        self._text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._wake_pipe: tuple[int, int] | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Inside the context, read keys unbuffered and without echo. The terminal is always restored at the end."""
        before = {
            name: signal.signal(getattr(signal, name), _stop)
            for name in _SIGNALS
            if hasattr(signal, name)
        }
        try:
            with self._resizes(), _key_mode():
                yield
        finally:
            for name, handler in before.items():
                signal.signal(getattr(signal, name), handler)

    @contextmanager
    def given_back(self) -> Iterator[None]:
        """Inside the context, restore the terminal's original mode for a different program."""
        with _line_mode():
            yield

    def read(self) -> str:
        """Wait for the next key and return its name. A paste counts as one key."""
        key = self._next()
        return self._paste() if key == _BEGIN_OF_PASTE else _name(key)

    def has_more(self) -> bool:
        """Return True if a key is waiting."""
        return bool(self._waiting) or _is_ready(0)

    def _next(self) -> str:
        while not self._waiting:
            self._receive()
        return self._waiting.popleft()

    def _paste(self) -> str:
        """Read all of the pasted text, even if it arrives slowly."""
        pasted: list[str] = []
        meanwhile: list[str] = []
        self._is_pasted = True
        while (key := self._next()) not in (_END_OF_PASTE, END):
            (meanwhile if key == RESIZE else pasted).append(key)
        self._is_pasted = False
        self._waiting.extendleft([key] if key == END else meanwhile[:1])
        self.pasted = "".join(pasted)
        return PASTE

    def _receive(self) -> None:
        if sys.platform == "win32":
            self._waiting.append(click.getchar())
            return
        if (
            self._wake_pipe
            and self._wake_pipe[0]
            in select.select([sys.stdin.fileno(), self._wake_pipe[0]], [], [])[0]
        ):
            os.read(self._wake_pipe[0], 1024)
            self._waiting.append(RESIZE)
            return
        self._take(_read())
        while (
            self._text
            and END not in self._waiting
            and (self._is_pasted or _is_ready(_SECONDS_OF_ESCAPE))
        ):
            self._take(_read())
        self._waiting.extend(_KEY.findall(self._text))
        self._text = ""

    def _take(self, data: bytes) -> None:
        """Decode bytes from the terminal, and queue the keys. An incomplete key is kept for the next call."""
        if not data:
            self._waiting.append(END)
        text = self._text + self._decoder.decode(data)
        part = _PART_OF_KEY.search(text)
        self._text = part[0] if part else ""
        self._waiting.extend(_KEY.findall(text[: part.start()] if part else text))

    @contextmanager
    def _resizes(self) -> Iterator[None]:
        """Interrupt the wait for a key when the terminal is resized, even if a different thread gets the signal."""
        if not hasattr(signal, "SIGWINCH"):
            yield
            return
        reader, writer = self._wake_pipe = os.pipe()
        os.set_blocking(writer, False)
        before = signal.signal(signal.SIGWINCH, lambda *_: None)
        woken_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(woken_before)
            signal.signal(signal.SIGWINCH, before)
            self._wake_pipe = None
            os.close(reader)
            os.close(writer)


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a handler's signature
    raise KeyboardInterrupt


def _name(key: str) -> str:
    if key in _NAMED:
        return _NAMED[key]
    if len(key) == 1 and key < " ":
        return f"ctrl-{chr(ord(key) + 96)}"
    return key


if sys.platform == "win32":
    import msvcrt

    def _is_ready(seconds: float) -> bool:  # noqa: ARG001 - a key is there or is not
        return bool(msvcrt.kbhit())

    def _read() -> bytes:
        return b""

    @contextmanager
    def _key_mode() -> Iterator[None]:
        yield

    _line_mode = _key_mode
else:
    import termios

    def _is_ready(seconds: float) -> bool:
        return bool(select.select([sys.stdin.fileno()], [], [], seconds)[0])

    def _read() -> bytes:
        try:
            return os.read(sys.stdin.fileno(), 4096)
        except OSError:  # the window was closed
            return b""

    _before: list[Any] = []

    @contextmanager
    def _key_mode() -> Iterator[None]:
        """Read keys immediately and without echo. Only Ctrl-C still interrupts the process."""
        descriptor = sys.stdin.fileno()
        _before.append(termios.tcgetattr(descriptor))
        try:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, _unbuffered(descriptor))
            yield
        finally:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, _before.pop())

    @contextmanager
    def _line_mode() -> Iterator[None]:
        descriptor = sys.stdin.fileno()
        mine = termios.tcgetattr(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, _before[-1])
        try:
            yield
        finally:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, mine)

    def _unbuffered(descriptor: int) -> list[Any]:
        attributes = termios.tcgetattr(descriptor)
        attributes[0] &= ~termios.IXON
        attributes[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
        control = list(attributes[6])
        for name in (termios.VSUSP, termios.VQUIT):
            control[name] = os.fpathconf(descriptor, "PC_VDISABLE").to_bytes(1, "big")
        control[termios.VMIN], control[termios.VTIME] = b"\x01", b"\x00"
        return [*attributes[:6], control]


# ----------------------------------------------------------------------------
# A screen that is redrawn after each key. The terminal is always restored at the end.


_ENTER = f"\x1b[?1049h\x1b[?7l\x1b[?25l{MARK_PASTES}"
_LEAVE = f"{LEAVE_PASTES}\x1b[?25h\x1b[?7h\x1b[?1049l"
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_USUAL_SIZE = os.terminal_size((80, 24))


class Screen:
    """A full screen with a heading, a scrolling body and a footer."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.keys = Keys()
        self._top = 0
        self._last_page = 0

    @contextmanager
    def open(self) -> Iterator[Screen]:
        """Use the alternate screen inside the context. At the end, the terminal shows its earlier content."""
        with self.keys.listening():
            try:
                _write(_ENTER)
                yield self
            finally:
                with suppress(OSError):
                    _write(_LEAVE)

    @property
    def rows(self) -> int:
        """Return the current number of terminal lines."""
        return _size().lines

    @property
    def columns(self) -> int:
        """Return the number of terminal columns in use."""
        return self._run.paper().width

    def page(
        self, render: Callable[Concatenate[Paper, P], object], *args: P.args, **kwargs: P.kwargs
    ) -> list[str]:
        """Return the lines that ``render(paper, …)`` writes at the terminal's width."""
        paper = self._run.paper()
        render(paper, *args, **kwargs)
        return paper.text().split("\n")[:-1]

    def draw(
        self,
        head: Sequence[str],
        body: Sequence[str],
        foot: Sequence[str],
        typed_at: int | None = None,
    ) -> None:
        """Show lines. A long body scrolls. ``typed_at`` is the cursor's column in the first line.

        The head and foot must fit on the screen.
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
            shown += self.page(Paper.note, f"  {more}")[:1]
        lines = [*head, *shown, *[""] * (room - len(shown)), *foot][:rows]
        cursor = f"\x1b[1;{typed_at + 1}H\x1b[?25h" if typed_at is not None else ""
        _write(
            "\x1b[?25l\x1b[H"
            + "\r\n".join(f"{line}\x1b[0m\x1b[K" for line in lines)
            + "\x1b[J"
            + cursor
        )

    def draw_first(self, line: str, typed_at: int) -> None:
        """Redraw the first line, with the cursor in the column ``typed_at``."""
        _write(f"\x1b[?25l\x1b[H{line}\x1b[0m\x1b[K\x1b[1;{typed_at + 1}H\x1b[?25h")

    def scroll(self, key: str) -> bool:
        """Change the scroll position if the key scrolls. Return False for other keys."""
        step = {"up": -1, "down": 1, "page-up": -8, "page-down": 8}.get(key)
        if step is None:
            return False
        self._top = max(0, min(self._last_page, self._top + step))
        return True

    def scroll_to(self, line: int) -> None:
        """Scroll the body, so that the next drawing starts with this line."""
        self._top = line

    def rule(self) -> str:
        """Return a horizontal rule."""
        return self.page(lambda paper: paper.note("─" * paper.width))[0]

    def bar(self, left: str, right: str) -> str:
        """Return a line with text at both ends, or only the left text if they do not fit."""
        gap = self._run.paper().width - width(left) - width(right)
        return f"{left}{' ' * gap}{right}" if gap > 1 else left

    def edit(self, text: str) -> str | None:
        """Edit text in the user's editor. Return ``None`` if the user did not save. Raises ClickException."""
        with self._lent():
            return click.edit(text, extension=".md")

    def open_file(self, path: str) -> None:
        """Open a file in the user's editor. Raises ClickException."""
        with self._lent():
            click.edit(filename=path)

    @contextmanager
    def _lent(self) -> Iterator[None]:
        """Hand the terminal to an editor during the block."""
        _write(_LEAVE)
        try:
            with self.keys.given_back():
                yield
        finally:
            _write(_ENTER)


def width(inked: str) -> int:
    """Return the width of a styled line in columns."""
    return cells(_STYLE.sub("", inked))


def copy(text: str) -> None:
    """Ask the terminal to copy text (OSC 52). This works over ssh, but not in every terminal."""
    encoded = binascii.b2a_base64(text.encode("utf-8", "replace"), newline=False).decode()
    _write(f"\x1b]52;c;{encoded}\x07")


def can_be_drawn(run: Run) -> bool:
    """Return True if a screen can be shown: on a terminal, outside an agent, and without ``--json``."""
    is_terminal = (
        run.is_interactive
        and bool(sys.stdout and sys.stdout.isatty())
        and run.environ.get("TERM") != "dumb"
    )
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


# ----------------------------------------------------------------------------
# A picker of memories: search, show, open, copy.


_MOST = 50
_HITS = 20
_ENOUGH = 10
"""Number of recall results that make a search for the exact words unnecessary."""
_MOVES = {"up": -1, "down": 1, "ctrl-p": -1, "ctrl-n": 1, "page-up": -8, "page-down": 8}
_MOST_TYPED = 2_000


@dataclass
class _View:
    """The picker's state: the query, the results, the selection and, if open, the selected memory's page."""

    text: str = ""
    memories: tuple[Memory, ...] = ()
    at: int = 0
    whole: list[str] | None = None
    message: str = ""

    @property
    def chosen(self) -> Memory | None:
        return self.memories[self.at] if self.memories else None


class Picker:
    """A search for memories that updates while the user types. ``exclude`` is the id of a memory to omit."""

    def __init__(
        self,
        run: Run,
        screen: Screen,
        *,
        text: str = "",
        wanted: recall.Filter | None = None,
        exclude: str | None = None,
    ) -> None:
        self._run = run
        self._screen = screen
        self._wanted = wanted or recall.Filter()
        self._exclude = exclude
        self._like = text
        self._view = _View()
        self._title = "Recall"
        self._chooses = False

    def choose(self, title: str) -> Memory | None:
        """Return the chosen memory, or ``None``. Until the user types, show memories similar to the initial text."""
        self._title, self._chooses = title, True
        return self._go()

    def browse(self) -> None:
        """Browse memories until the user leaves."""
        self._go()

    def _go(self) -> Memory | None:
        self._find()
        while True:
            if not self._screen.keys.has_more():
                self._draw()
            key = self._screen.keys.read()
            self._view.message = "" if key != RESIZE else self._view.message
            if key == END or (key == "escape" and self._view.whole is None):
                return None
            if key == "enter" and self._chooses and self._view.chosen:
                return self._view.chosen
            if self._view.whole is None:
                self._typed(key)
            elif key == "q":
                return None
            else:
                self._seen(key)

    def _typed(self, key: str) -> None:
        view = self._view
        if key in _MOVES:
            self._move(_MOVES[key])
        elif key == "enter":
            self._show()
        elif key in ("ctrl-o", "ctrl-y"):
            self._act(key[-1])
        elif (text := self._edited(key)) != view.text:
            view.text = text
            self._screen.draw_first(*self._heading())
            if not self._screen.keys.has_more():  # a fast typist
                self._find()
            else:
                self._view = replace(view, at=0)

    def _edited(self, key: str) -> str:
        """Return the query after handling a key. Pasted text becomes one line."""
        text = self._view.text
        return (
            f"{text}{' '.join(self._screen.keys.pasted.split())}"[:_MOST_TYPED]
            if key == PASTE
            else _edited(text, key)
        )

    def _seen(self, key: str) -> None:
        if key in ("j", "k"):
            self._move(1 if key == "j" else -1)
            self._show()
        elif key in ("escape", "enter", "/"):
            self._view.whole = None
            self._screen.scroll_to(0)
        elif key in ("o", "c", "ctrl-o", "ctrl-y"):
            self._act(key[-1])
        elif key == RESIZE:
            self._show()
        else:
            self._screen.scroll(key)

    def _move(self, step: int) -> None:
        self._view.at = max(0, min(len(self._view.memories) - 1, self._view.at + step))

    def _find(self) -> None:
        """Find memories with recall and by exact words. If no text was typed, list the newest memories."""
        query = self._view.text.strip() or (self._like[:_MOST_TYPED] if self._chooses else "")
        matches: dict[str, Memory] = {}
        try:
            if query:
                result = ask(
                    self._run,
                    recall.RecallResult,
                    "recall",
                    text=query,
                    filter=self._wanted,
                    limit=_HITS,
                    update=False,
                    turns=0,
                )
                matches = {hit.memory.id: hit.memory for hit in result.hits if not hit.candidate}
            if len(matches) < _ENOUGH:
                words = self._view.text.strip()
                memories = ask(
                    self._run, views.Listing, "list", filter=self._wanted, words=words, limit=_MOST
                ).memories
                matches = {
                    **matches,
                    **{memory.id: memory for memory in memories if memory.id not in matches},
                }
        except NacreError as error:
            self._view.message = error.message
        matches.pop(self._exclude or "", None)
        self._view = replace(self._view, memories=tuple(matches.values()), at=0, whole=None)

    def _show(self) -> None:
        if self._view.chosen is None:
            return
        self._screen.scroll_to(0)
        try:
            view = ask(
                self._run,
                views.MemoryView,
                "look",
                reference=self._view.chosen.id,
                update=True,
                session=None,
            )
        except NacreError as error:
            self._view.message = joined((error.message, error.hint), "; ")
            return
        vault = self._run.settings.shown_vault
        self._view.whole = self._screen.page(render_memory, view, vault)

    def _act(self, key: str) -> None:
        if (memory := self._view.chosen) is None:
            return
        if key in ("c", "y"):
            copy(printable(memory.content))
            self._view.message = (
                "Copied, if your terminal allows programs to use the clipboard (OSC 52)."
            )
            return
        try:
            path = perform(
                self._run, usage.look_at, reference=memory.id, update=False, session=None
            ).path
            if path is None or self._run.settings.server:
                self._view.message = "This memory has no file."
                return
            self._screen.open_file(str(self._run.settings.vault / path))
            self._again()
        except NacreError as error:
            self._view.message = joined((error.message, error.hint), "; ")
        except click.ClickException as error:
            self._view.message = error.format_message()

    def _again(self) -> None:
        """Search again, because the file might have changed."""
        at, is_whole = self._view.at, self._view.whole is not None
        self._find()
        self._view.at = min(at, max(0, len(self._view.memories) - 1))
        if is_whole:
            self._show()

    def _draw(self) -> None:
        view, screen = self._view, self._screen
        message = screen.page(
            lambda paper: paper.note(view.message, "yellow") if view.message else None
        )[:1]
        foot = [*message, screen.rule(), *screen.page(self._render_keys)[:1]]
        if view.whole is not None:
            head = [
                screen.page(Paper.line, bold(f"{view.at + 1} of {len(view.memories)}"))[0],
                screen.rule(),
            ]
            screen.draw(head, view.whole, foot)
            return
        heading, typed_at = self._heading()
        head = [heading, screen.rule()]
        room = screen.rows - len(head) - len(foot)
        above = max(3, room // 2)
        body = [*self._listed(above), screen.rule()]
        screen.draw(head, [*body, *self._preview(room - len(body))], foot, typed_at)

    def _heading(self) -> tuple[str, int]:
        title = f"{self._title}: ".replace(" ", "\u00a0")
        typed = _end(self._view.text, self._screen.columns // 2).replace(" ", "\u00a0")
        return self._screen.page(Paper.line, bold(title), typed)[0], cells(title + typed)

    def _listed(self, rows: int) -> list[str]:
        view = self._view
        if not view.memories:
            message = (
                "No memory contains these words."
                if view.text
                else "There is nothing in memory yet."
            )
            return self._screen.page(Paper.note, message)
        first = max(0, min(view.at - rows // 2, len(view.memories) - rows))
        table = [
            (
                bold("▸") if first + number == view.at else " ",
                kind_span(memory.kind),
                dim(day(memory.created)),
                hits.subject_and_content(memory),
            )
            for number, memory in enumerate(view.memories[first:][:rows])
        ]
        return self._screen.page(Paper.table, table, drop=(2,))

    def _preview(self, rows: int) -> list[str]:
        lines = self._screen.page(self._render_preview)
        return [*lines[: rows - 1], "…"] if len(lines) > rows else lines

    def _render_preview(self, paper: Paper) -> None:
        memory = self._view.chosen
        if memory is None:
            return
        if memory.trust is values_session.Trust.UNTRUSTED:
            paper.note("from outside:", "yellow")
        if not text.normalise(memory.content).startswith(text.normalise(memory.subject)):
            paper.line(bold(shorten(memory.subject, 200)))
        paper.body(memory.content)
        paper.note(joined((place_name(memory), f"importance {memory.importance}", memory.id[-8:])))

    def _render_keys(self, paper: Paper) -> None:
        if self._chooses:
            keys = "type to search · ↑ ↓ choose · Enter merge into it · Esc back"
        elif self._view.whole is not None:
            keys = "j k next, previous · ↑ ↓ scroll · o open · c copy · Esc back · q quit"
        else:
            keys = "type to search · ↑ ↓ choose · Enter show · ^O open · ^Y copy · Esc quit"
        paper.note(keys)


def _edited(text: str, key: str) -> str:
    """Return the text after handling a key."""
    if key == "backspace":
        return text[:-1]
    if key == "ctrl-u":
        return ""
    if key == "ctrl-w":
        return text.rstrip().rpartition(" ")[0]
    is_written = len(key) == 1 and key.isprintable() and len(text) < _MOST_TYPED
    return text + key if is_written else text


def _end(text: str, columns: int) -> str:
    """Cut the start of a text so that the rest is at most ``columns`` wide."""
    text = printable(text)
    while cells(text) > columns:
        text = text[1:]
    return text


def browse(run: Run, wanted: recall.Filter) -> None:
    """Open the picker on the terminal."""
    screen = Screen(run)
    with screen.open():
        Picker(run, screen, wanted=wanted).browse()


# ----------------------------------------------------------------------------
# Review of pending items, with one key per decision.


_KEYS = {
    "k": "keep",
    "e": "edit",
    "m": "merge",
    "n": "newer",
    "o": "older",
    "d": "drop",
    "s": "skip",
    " ": "skip",
    "u": "undo",
    "q": "quit",
    "escape": "quit",
    END: "quit",
}
_HELP = (
    ("k", "keep it; a candidate becomes a memory; in a conflict, both memories stay"),
    ("e", "keep it in other words, written in your editor"),
    (
        "m",
        "merge it into a memory that you choose; in a conflict, merge the older memory into the newer one",
    ),
    ("n", "in a conflict, replace the older memory with the newer one"),
    ("o", "in a conflict, keep the older memory and retire the newer one"),
    ("d", "drop it; a candidate is not proposed again; a memory is retired, but its file is kept"),
    ("s", "skip it, so that it stays pending"),
    ("w", "show or hide its source turns"),
    ("u", "undo the last decision; repeat for earlier ones"),
    ("↑ ↓", "scroll a long text"),
    ("q", "quit; other items stay pending"),
)
_ASIDE = {"?": "help", "w": "where"}
"""Maps keys to views that are shown until the next key."""
_CHARACTERS_OF_A_TURN = 2_000
_LEAST_LINES = 2
"""Number of an item's lines that must be visible before deciding: a line of text, and the number of hidden lines."""
_TOO_SMALL = "The window is too small to show the item. Enlarge it; q quits."
_DONE = {
    "keep": "Kept",
    "edit": "Kept in other words",
    "merge": "Merged",
    "newer": "Replaced",
    "older": "Older kept",
    "drop": "Dropped",
    "skip": "Skipped",
}


_WHY = {
    "found": "you said it",
    "unproven": "not proven",
    "untrusted": "untrusted source",
    "minor": "less important than others",
}
_TWO = "These two are in conflict: n keeps the newer one, o the older one, k both; m merges them."


def why_of(item: Pending) -> str:
    """Return the reason why an item is pending."""
    if item.kind is PendingKind.CANDIDATE:
        return item.detail or _WHY[item.why]
    return joined((item.why.replace("_", " "), item.detail), ": ")


class Triage:
    """A review of pending items on a screen, with the decisions so far."""

    def __init__(self, run: Run, screen: Screen, waiting: Iterable[Pending]) -> None:
        self._run = run
        self._screen = screen
        self._left = deque(waiting)
        self._decided: list[tuple[str, Pending]] = []
        self._message: Span | str = ""
        self._aside = ""
        self._is_legible = False
        self._departed: str | None = None
        """The item that the user last tried to keep. A second try ignores a conflicting later statement."""

    @property
    def done(self) -> Counter[str]:
        """Return how often each decision was made."""
        return Counter(what for what, _ in self._decided)

    @property
    def left(self) -> int:
        """Return the number of pending items, including skipped ones."""
        return len(self._left) + self.done["skip"]

    def go(self) -> None:
        """Show the items and handle keys until no item is left or the user quits."""
        while True:
            self._draw()
            key = self._screen.keys.read()
            if key == RESIZE or self._screen.scroll(key):
                continue
            if key == PASTE:
                self._message = "Pasted text is ignored: press a key for each decision."
                continue
            key = key.lower() if len(key) == 1 else key
            chosen = _KEYS.get(key)
            if chosen == "quit" or (not self._left and chosen != "undo"):
                return
            if self._is_legible:
                self._look_aside(_ASIDE.get(key, ""))
                if chosen:
                    self._do(chosen)

    def _look_aside(self, shown: str) -> None:
        self._aside = shown if shown != self._aside else ""
        self._screen.scroll_to(len(self._words()) if self._aside == "where" else 0)

    def _do(self, chosen: str) -> None:
        self._message = ""
        try:
            if chosen == "undo":
                self._undo()
            elif (words := self._decide(chosen, self._left[0])) is not None:
                self._message = f"{_DONE[chosen]}: {_one_line(words, 44)}"
                self._decided.append((chosen, self._left.popleft()))
        except NacreError as error:
            self._message = Span(joined((error.message, error.hint), "; "), "red")
        except click.ClickException as error:
            self._message = Span(error.format_message(), "red")

    def _undo(self) -> None:
        if not self._decided:
            self._message = "Nothing was decided yet."
            return
        chosen, item = self._decided[-1]
        if chosen != "skip":
            perform(self._run, queue.reopen, reference=item.id)
        self._left.appendleft(self._decided.pop()[1])
        self._message = f"Undone: {_DONE[chosen].lower()}."

    def _decide(self, chosen: str, item: Pending) -> str | None:
        """Carry out a decision. Return a name for the item, or ``None`` if the user cancelled an edit or merge."""
        if chosen in ("newer", "older") and item.newer is None:
            self._message = "This memory is not in conflict with another one."
            return None
        if chosen in ("edit", "drop") and item.newer:
            self._message = _TWO
            return None
        if chosen == "edit":
            words = self._edited(item.memory.content)
            if words is not None:
                self._keep(item, content=words)
            return words
        is_done = True
        if chosen == "merge":
            is_done = self._merge(item)
        elif chosen in ("newer", "older"):
            choice = Choice.KEEP_NEW if chosen == "newer" else Choice.KEEP_OLD
            perform(self._run, queue.resolve, reference=item.id, choice=choice)
        elif chosen == "drop":
            perform(self._run, queue.drop, references=(item.id,))
        elif chosen == "keep":
            self._keep(item)
        return item.memory.subject if is_done else None

    def _keep(self, item: Pending, **fields: Any) -> None:
        is_repeated, self._departed = self._departed == item.id, item.id
        perform(self._run, queue.keep_items, references=(item.id,), anyway=is_repeated, **fields)

    def _merge(self, item: Pending) -> bool:
        """Merge an item into a memory that the user chooses. The editor starts with both texts."""
        target = item.newer
        if target is None:
            picker = Picker(
                self._run, self._screen, text=item.memory.content, exclude=item.memory.id
            )
            target = picker.choose(f"Merge “{_one_line(item.memory.subject, 30)}” into")
        words = self._edited(contradictions.words_of_both(target, item.memory)) if target else None
        if target is None or words is None:
            self._message = "Not merged."
            return False
        self._keep(item, into=target.id, content=words)
        return True

    def _edited(self, content: str) -> str | None:
        """Return the text edited by the user, or ``None`` if it was not saved or is empty."""
        words = self._screen.edit(printable(content))
        if words is None or not words.strip():
            self._message = "Not saved; nothing was changed."
            return None
        return words.strip()

    def _draw(self) -> None:
        screen = self._screen
        head, rule, keys = (
            [self._heading(), screen.rule()],
            [screen.rule()],
            screen.page(self._render_keys)[:2],
        )
        body, least = self._body()
        spare = screen.rows - len(head) - len(rule) - len(keys) - least
        self._is_legible = spare >= 0
        if not self._is_legible:
            screen.draw([], screen.page(Paper.note, _TOO_SMALL, "yellow"), [])
            return
        message = screen.page(self._render_message)[: max(1, min(3, spare))]
        screen.draw(head, body, [*message, *([] if message and not spare else rule), *keys])

    def _body(self) -> tuple[list[str], int]:
        """Return the page's lines, and how many of them the user must see before a decision."""
        page = self._screen.page
        if not self._left:
            return page(lambda paper: paper.line(bold("Nothing is left."))), 1
        words = self._words()
        if self._aside == "help":
            body = page(_render_help)
        elif self._aside == "where":
            body = [*words, *page(self._render_evidence)]
        else:
            body = words
        above = len(words) - len(page(lambda paper: _render_words(paper, self._left[0])))
        return body, min(len(body), above + _LEAST_LINES)

    def _words(self) -> list[str]:
        return self._screen.page(_render, self._left[0]) if self._left else []

    def _heading(self) -> str:
        done = ", ".join(
            f"{what.lower()} {self.done[key]}" for key, what in _DONE.items() if self.done[key]
        )
        left = self._screen.page(Paper.line, bold("Review"), dim(f"  {done}"))[0]
        right = self._screen.page(Paper.line, bold(f"{len(self._left):,} left"))[0]
        return self._screen.bar(left, right)

    def _render_message(self, paper: Paper) -> None:
        if self._message:
            paper.line(self._message)

    def _render_evidence(self, paper: Paper) -> None:
        item = self._left[0]
        for title, memory in (
            ("Where it was said", item.memory),
            ("Where the newer one was said", item.newer),
        ):
            if memory is None:
                continue
            paper.heading(title)
            turns = decision.evidence_of(self._run.home, memory, _CHARACTERS_OF_A_TURN)
            if not turns:
                paper.note("No turn of a session is recorded for it.", indent=2)
            for turn in turns:
                render_evidence(paper, turn, memory)

    def _render_keys(self, paper: Paper) -> None:
        if not self._left:
            paper.line(*_keys("undo" if self._decided else "", "quit"))
            return
        undo = "undo" if self._decided else ""
        own = (
            ("newer holds", "older holds", "merge")
            if self._left[0].newer
            else ("edit", "merge", "drop")
        )
        names = ("keep", *own, "skip", "where said", undo, "quit")
        paper.line(*_keys(*names), "  ", bold("?"), dim(" help"))


def _keys(*names: str) -> list[Span]:
    """Return the names of keys, with each key's letter in bold."""
    spans: list[Span] = []
    for name in filter(None, names):
        spans += [
            bold(f"{'  ' if spans else ''}{name[0]}"),
            dim(f"\u00a0{name.replace(' ', chr(0xA0))}"),
        ]
    return spans


def _one_line(text: str, columns: int) -> str:
    return cut(" ".join(printable(text).split()), columns)


def _render(paper: Paper, item: Pending) -> None:
    what = "memory" if item.kind is PendingKind.DOUBT else item.kind.value
    paper.line(dim(what), "  ", kind_span(item.memory.kind), "  ", Span(why_of(item), "yellow"))
    paper.blank()
    _render_trust(paper, item.memory)
    _render_words(paper, item)


def _render_trust(paper: Paper, memory: Memory) -> None:
    if memory.trust is values_session.Trust.UNTRUSTED:
        paper.note("from outside:", "yellow", indent=2)


def _render_words(paper: Paper, item: Pending) -> None:
    _render_memory(paper, item.memory)
    if item.newer:
        paper.blank()
        paper.line(dim("newer  "), kind_span(item.newer.kind))
        paper.blank()
        _render_trust(paper, item.newer)
        _render_memory(paper, item.newer)


def _render_memory(paper: Paper, memory: Memory) -> None:
    if not text.normalise(memory.content).startswith(text.normalise(memory.subject).rstrip("….")):
        paper.line(bold(memory.subject), indent=2)
    paper.body(memory.content, indent=2)
    tool, native_id = split_session(memory.source.session)
    speaker = f"said by {speaker_name(memory.speaker, memory.author)}"
    where = f"{speaker} in {tool} {short_session(native_id)}" if tool and native_id else speaker
    paper.note(
        joined((place_name(memory), when(memory.created), where, short_id(memory))), indent=2
    )


def _render_help(paper: Paper) -> None:
    paper.facts(_HELP)


def summary(triage: Triage) -> str:
    """Return a sentence with the numbers of decisions and pending items."""
    done = triage.done
    parts = [
        f"{what.lower()} {done[key]:,}"
        for key, what in _DONE.items()
        if done[key] and key != "skip"
    ]
    decisions = ", ".join(parts) or "nothing was changed"
    left = f"; {count(triage.left, 'item')} pending" if triage.left else ""
    return f"{decisions[:1].upper()}{decisions[1:]}{left}."


def go_through(run: Run, waiting: Sequence[Pending]) -> None:
    """Let the user review pending items on the terminal, then print a summary of the decisions."""
    if not waiting:
        run.answer({}, Paper.line, "Nothing is pending.")
        return
    screen = Screen(run)
    triage = Triage(run, screen, waiting)
    with resumable(run), screen.open():
        triage.go()
    run.answer({}, Paper.line, summary(triage))
