"""Single keys of a terminal, as names: ``a``, ``up``, ``enter``, ``ctrl-u``."""

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
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from nacre.base import text
from nacre.base.text import shorten
from nacre.cli import hits, operations
from nacre.cli.command import Paper, Run, Span, bold, cells, cut, dim, joined, printable
from nacre.cli.memories import render_evidence, render_memory
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
from nacre.home.views import Choice, Pending, PendingKind
from nacre.memories import decision
from nacre.review import contradictions
from nacre.values import recall
from nacre.values import session as values_session

if TYPE_CHECKING:
    from nacre.values.memory import Memory
    from nacre.values.recall import Filter

RESIZE = "resize"
"""No key: the terminal has another size."""

END = "end"
"""No key: the terminal is gone."""

PASTE = "paste"
"""No key: a text was pasted, :attr:`Keys.pasted`."""

MARK_PASTES, LEAVE_PASTES = ("", "") if sys.platform == "win32" else ("\x1b[?2004h", "\x1b[?2004l")
"""What asks a terminal to mark what is pasted, and no longer to. Most do; where one does not, a paste is keys."""

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
"""How long the rest of a key that begins with Escape may take, in seconds."""

_SIGNALS = ("SIGTERM", "SIGHUP")


class Keys:
    """Reads keys one by one. What a program that is started meanwhile reads is its own: :meth:`given_back`."""

    def __init__(self) -> None:
        self.pasted = ""
        self._waiting: deque[str] = deque()
        self._is_pasted = False
        self._text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._woken: tuple[int, int] | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Keys are not shown and not waited for by the line; in the end the terminal is as it was, however it ends."""
        before = {
            name: signal.signal(getattr(signal, name), _stop)
            for name in _SIGNALS
            if hasattr(signal, name)
        }
        try:
            with self._resizes(), _single_keys():
                yield
        finally:
            for name, handler in before.items():
                signal.signal(getattr(signal, name), handler)

    @contextmanager
    def given_back(self) -> Iterator[None]:
        """Another program has the terminal, as it was."""
        with _lines_again():
            yield

    def read(self) -> str:
        """The next key; waits for it. What is pasted counts as one."""
        key = self._next()
        return self._paste() if key == _BEGIN_OF_PASTE else _name(key)

    def has_more(self) -> bool:
        """Whether a key was pressed already."""
        return bool(self._waiting) or _is_ready(0)

    def _next(self) -> str:
        while not self._waiting:
            self._hear()
        return self._waiting.popleft()

    def _paste(self) -> str:
        """Read on to the end of what is pasted, however slowly it comes."""
        pasted: list[str] = []
        meanwhile: list[str] = []
        self._is_pasted = True
        while (key := self._next()) not in (_END_OF_PASTE, END):
            (meanwhile if key == RESIZE else pasted).append(key)
        self._is_pasted = False
        self._waiting.extendleft([key] if key == END else meanwhile[:1])
        self.pasted = "".join(pasted)
        return PASTE

    def _hear(self) -> None:
        if sys.platform == "win32":
            self._waiting.append(click.getchar())
            return
        if (
            self._woken
            and self._woken[0] in select.select([sys.stdin.fileno(), self._woken[0]], [], [])[0]
        ):
            os.read(self._woken[0], 1024)
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
        """Add keys; what may be the beginning of one is left for the next."""
        if not data:
            self._waiting.append(END)
        text = self._text + self._decoder.decode(data)
        part = _PART_OF_KEY.search(text)
        self._text = part[0] if part else ""
        self._waiting.extend(_KEY.findall(text[: part.start()] if part else text))

    @contextmanager
    def _resizes(self) -> Iterator[None]:
        """A change of the terminal's size wakes who waits for a key, also where another thread gets the signal."""
        if not hasattr(signal, "SIGWINCH"):
            yield
            return
        heard, told = self._woken = os.pipe()
        os.set_blocking(told, False)
        before = signal.signal(signal.SIGWINCH, lambda *_: None)
        woken_before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(woken_before)
            signal.signal(signal.SIGWINCH, before)
            self._woken = None
            os.close(heard)
            os.close(told)


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
    def _single_keys() -> Iterator[None]:
        yield

    _lines_again = _single_keys
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
    def _single_keys() -> Iterator[None]:
        """Each key at once and unseen; Ctrl-C interrupts as ever, and nothing else stops or suspends."""
        descriptor = sys.stdin.fileno()
        _before.append(termios.tcgetattr(descriptor))
        try:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, _unbuffered(descriptor))
            yield
        finally:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, _before.pop())

    @contextmanager
    def _lines_again() -> Iterator[None]:
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
# A screen of lines that is drawn anew with each key. It is left as it was, however it is left.


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

    def draw(
        self,
        head: Sequence[str],
        body: Sequence[str],
        foot: Sequence[str],
        typed_at: int | None = None,
    ) -> None:
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
        _write(
            "\x1b[?25l\x1b[H"
            + "\r\n".join(f"{line}\x1b[0m\x1b[K" for line in lines)
            + "\x1b[J"
            + cursor
        )

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
# A picker of memories: type, see what answers, look at one, open its file, copy it.


_MOST = 50
_HITS = 20
_ENOUGH = 10
"""With so many that answer, those that merely hold the words are not looked for."""
_MOVES = {"up": -1, "down": 1, "ctrl-p": -1, "ctrl-n": 1, "page-up": -8, "page-down": 8}
_MOST_TYPED = 2_000


@dataclass
class _View:
    """What is seen: the words, what they find, which of it is chosen, and whether that one is shown whole."""

    text: str = ""
    found: tuple[Memory, ...] = ()
    at: int = 0
    whole: list[str] | None = None
    told: str = ""

    @property
    def chosen(self) -> Memory | None:
        return self.found[self.at] if self.found else None


class Picker:
    """Finds memories as words are typed. ``but``: the id of one that is not to be found."""

    def __init__(
        self,
        run: Run,
        screen: Screen,
        *,
        text: str = "",
        wanted: Filter | None = None,
        but: str | None = None,
    ) -> None:
        self._run = run
        self._screen = screen
        self._wanted = wanted or recall.Filter()
        self._but = but
        self._like = text
        self._view = _View()
        self._title = "Recall"
        self._chooses = False

    def choose(self, title: str) -> Memory | None:
        """The memory that the person chooses, of those nearest to the text until they type; none: they went back."""
        self._title, self._chooses = title, True
        return self._go()

    def browse(self) -> None:
        """Let the person look around until they leave."""
        self._go()

    def _go(self) -> Memory | None:
        self._find()
        while True:
            if not self._screen.keys.has_more():
                self._draw()
            key = self._screen.keys.read()
            self._view.told = "" if key != RESIZE else self._view.told
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
        """A key while words are typed."""
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
        """The words after a key; what is pasted is one line of them."""
        text = self._view.text
        return (
            f"{text}{' '.join(self._screen.keys.pasted.split())}"[:_MOST_TYPED]
            if key == PASTE
            else _edited(text, key)
        )

    def _seen(self, key: str) -> None:
        """A key while one is shown whole."""
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
        self._view.at = max(0, min(len(self._view.found) - 1, self._view.at + step))

    def _find(self) -> None:
        """Find what the words mean, then what merely holds them; without words, the newest."""
        asked = self._view.text.strip() or (self._like[:_MOST_TYPED] if self._chooses else "")
        found: dict[str, Memory] = {}
        try:
            if asked:
                result = operations.ask(
                    self._run,
                    "recall",
                    text=asked,
                    filter=self._wanted,
                    limit=_HITS,
                    update=False,
                    turns=0,
                )
                found = {hit.memory.id: hit.memory for hit in result.hits if not hit.candidate}
            if len(found) < _ENOUGH:
                words = self._view.text.strip()
                listed = operations.ask(
                    self._run, "list", filter=self._wanted, words=words, limit=_MOST
                ).memories
                found = {**found, **{one.id: one for one in listed if one.id not in found}}
        except NacreError as error:
            self._view.told = error.message
        found.pop(self._but or "", None)
        self._view = replace(self._view, found=tuple(found.values()), at=0, whole=None)

    def _show(self) -> None:
        """Show the chosen one whole, with its evidence and links."""
        if self._view.chosen is None:
            return
        self._screen.scroll_to(0)
        try:
            view = operations.ask(
                self._run, "look", reference=self._view.chosen.id, update=True, session=None
            )
            stale = operations.ask(
                self._run, "graph-stale", memory=view.memory.id, folder=str(Path.cwd())
            )
        except NacreError as error:
            self._view.told = joined((error.message, error.hint), "; ")
            return
        vault = self._run.settings.shown_vault
        self._view.whole = self._screen.page(lambda paper: render_memory(paper, view, vault, stale))

    def _act(self, key: str) -> None:
        """Open the chosen one's file, or copy its words."""
        if (memory := self._view.chosen) is None:
            return
        if key in ("c", "y"):
            copy(printable(memory.content))
            self._view.told = (
                "Copied, where your terminal lets programs write to the clipboard (OSC 52)."
            )
            return
        try:
            path = operations.perform(
                self._run, "look", reference=memory.id, update=False, session=None
            ).path
            if path is None or self._run.settings.server:
                self._view.told = "It has no file."
                return
            self._screen.open_file(str(self._run.settings.vault / path))
            self._again()
        except NacreError as error:
            self._view.told = joined((error.message, error.hint), "; ")
        except click.ClickException as error:
            self._view.told = error.format_message()

    def _again(self) -> None:
        """Show what was found as it is now: its file may have been changed."""
        at, is_whole = self._view.at, self._view.whole is not None
        self._find()
        self._view.at = min(at, max(0, len(self._view.found) - 1))
        if is_whole:
            self._show()

    def _draw(self) -> None:
        view, screen = self._view, self._screen
        told = screen.page(
            lambda paper: paper.line(Span(view.told, "yellow")) if view.told else None
        )[:1]
        foot = [*told, screen.rule(), *screen.page(self._render_keys)[:1]]
        if view.whole is not None:
            head = [
                screen.page(lambda paper: paper.line(bold(f"{view.at + 1} of {len(view.found)}")))[
                    0
                ],
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
        """The line in which words are typed, and the column after them."""
        title = f"{self._title}: ".replace(" ", "\u00a0")
        typed = _end(self._view.text, self._screen.columns // 2).replace(" ", "\u00a0")
        return self._screen.page(lambda paper: paper.line(bold(title), typed))[0], cells(
            title + typed
        )

    def _listed(self, rows: int) -> list[str]:
        """The part of what was found in which the chosen one is."""
        view = self._view
        if not view.found:
            told = (
                "No memory holds these words." if view.text else "There is nothing in memory yet."
            )
            return self._screen.page(lambda paper: paper.line(dim(told)))
        first = max(0, min(view.at - rows // 2, len(view.found) - rows))
        table = [
            (
                bold("▸") if first + number == view.at else " ",
                kind_span(one.kind),
                dim(day(one.created)),
                hits.subject_and_content(one),
            )
            for number, one in enumerate(view.found[first:][:rows])
        ]
        return self._screen.page(lambda paper: paper.table(table, drop=(2,)))

    def _preview(self, rows: int) -> list[str]:
        """The chosen one's words, as far as they fit."""
        lines = self._screen.page(self._render_preview)
        return [*lines[: rows - 1], "…"] if len(lines) > rows else lines

    def _render_preview(self, paper: Paper) -> None:
        memory = self._view.chosen
        if memory is None:
            return
        if memory.trust is values_session.Trust.UNTRUSTED:
            paper.line(Span("from outside:", "yellow"))
        if not text.normalise(memory.content).startswith(text.normalise(memory.subject)):
            paper.line(bold(shorten(memory.subject, 200)))
        paper.body(memory.content)
        paper.line(
            dim(joined((place_name(memory), f"importance {memory.importance}", memory.id[-8:])))
        )

    def _render_keys(self, paper: Paper) -> None:
        if self._chooses:
            keys = "type to search · ↑ ↓ choose · Enter merge into it · Esc back"
        elif self._view.whole is not None:
            keys = "j k next, previous · ↑ ↓ scroll · o open · c copy · Esc back · q quit"
        else:
            keys = "type to search · ↑ ↓ choose · Enter show · ^O open · ^Y copy · Esc quit"
        paper.line(dim(keys))


def _edited(text: str, key: str) -> str:
    """The words after a key."""
    if key == "backspace":
        return text[:-1]
    if key == "ctrl-u":
        return ""
    if key == "ctrl-w":
        return text.rstrip().rpartition(" ")[0]
    is_written = len(key) == 1 and key.isprintable() and len(text) < _MOST_TYPED
    return text + key if is_written else text


def _end(text: str, columns: int) -> str:
    """The end of what was typed, where all of it does not fit."""
    text = printable(text)
    while cells(text) > columns:
        text = text[1:]
    return text


def browse(run: Run, wanted: Filter) -> None:
    """Open the picker on the terminal."""
    screen = Screen(run)
    with screen.open():
        Picker(run, screen, wanted=wanted).browse()


# ----------------------------------------------------------------------------
# Triage of what waits for a person: one after another, one key each.


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
    ("k", "keep it: a candidate becomes a memory, a memory stays; of two in conflict, both hold"),
    ("e", "keep it in other words, which you write in your editor"),
    (
        "m",
        "merge it into another memory, which you choose; of two in conflict, the older one into the newer one",
    ),
    ("n", "of two in conflict, the newer one takes the place of the older one"),
    ("o", "of two in conflict, the older one holds, and the newer one is retired"),
    ("d", "drop it: a candidate is not proposed again, a memory is retired and its file is kept"),
    ("s", "skip it: it waits on"),
    ("w", "where it was said: the turns that it comes from, and back"),
    ("u", "undo the last of these, and then the one before"),
    ("↑ ↓", "scroll a long text"),
    ("q", "quit: the others wait on"),
)
_ASIDE = {"?": "help", "w": "where"}
"""Keys that show something beside what waits, until another one is pressed."""
_CHARACTERS_OF_A_TURN = 2_000
_LEAST_LINES = 2
"""Of what waits, that have to be seen before it is decided: one of its words, and how many follow."""
_TOO_SMALL = "The window is too small to show it. Make it larger; q quits."
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
    "unproven": "not borne out",
    "untrusted": "may come from outside",
    "minor": "others matter more",
}
_TWO = "Two memories are in conflict: n, the newer one holds; o, the older one; k, both; m merges them."


def why_of(item: Pending) -> str:
    """Why an item waits, in words."""
    if item.kind is PendingKind.CANDIDATE:
        return item.detail or _WHY[item.why]
    return joined((item.why.replace("_", " "), item.detail), ": ")


class Triage:
    """What waits, what was decided so far, and what was said of the last decision."""

    def __init__(self, run: Run, screen: Screen, waiting: Iterable[Pending]) -> None:
        self._run = run
        self._screen = screen
        self._left = deque(waiting)
        self._decided: list[tuple[str, Pending]] = []
        self._told: Span | str = ""
        self._aside = ""
        self._is_legible = False
        self._departed: str | None = None
        """A candidate from which a later statement departs: kept when it is asked for once more."""

    @property
    def done(self) -> Counter[str]:
        """How often each decision was taken."""
        return Counter(what for what, _ in self._decided)

    @property
    def left(self) -> int:
        """How many wait on, with those that were skipped."""
        return len(self._left) + self.done["skip"]

    def go(self) -> None:
        """Show one after another, and do as the keys say, until none is left or the person has enough."""
        while True:
            self._draw()
            key = self._screen.keys.read()
            if key == RESIZE or self._screen.scroll(key):
                continue
            if key == PASTE:
                self._told = "What you pasted is ignored: each decision is a key that you press."
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
        """Show help, or where it was said, or neither: the same key leads back."""
        self._aside = shown if shown != self._aside else ""
        self._screen.scroll_to(len(self._words()) if self._aside == "where" else 0)

    def _do(self, chosen: str) -> None:
        self._told = ""
        try:
            if chosen == "undo":
                self._undo()
            elif (words := self._decide(chosen, self._left[0])) is not None:
                self._told = f"{_DONE[chosen]}: {_one_line(words, 44)}"
                self._decided.append((chosen, self._left.popleft()))
        except NacreError as error:
            self._told = Span(joined((error.message, error.hint), "; "), "red")
        except click.ClickException as error:
            self._told = Span(error.format_message(), "red")

    def _undo(self) -> None:
        if not self._decided:
            self._told = "Nothing was decided yet."
            return
        chosen, one = self._decided[-1]
        if chosen != "skip":
            operations.perform(self._run, "review-undo", reference=one.id)
        self._left.appendleft(self._decided.pop()[1])
        self._told = f"Undone: {_DONE[chosen].lower()}."

    def _decide(self, chosen: str, one: Pending) -> str | None:
        """What names the one that was decided; ``None`` where it was not, as an edit or a merge can be given up."""
        if chosen in ("newer", "older") and one.newer is None:
            self._told = "No other memory says otherwise than this one."
            return None
        if chosen in ("edit", "drop") and one.newer:
            self._told = _TWO
            return None
        if chosen == "edit":
            words = self._edited(one.memory.content)
            if words is not None:
                self._keep(one, content=words)
            return words
        is_done = True
        if chosen == "merge":
            is_done = self._merge(one)
        elif chosen in ("newer", "older"):
            choice = Choice.KEEP_NEW if chosen == "newer" else Choice.KEEP_OLD
            operations.perform(self._run, "review-resolve", reference=one.id, choice=choice)
        elif chosen == "drop":
            operations.perform(self._run, "review-drop", references=(one.id,))
        elif chosen == "keep":
            self._keep(one)
        return one.memory.subject if is_done else None

    def _keep(self, one: Pending, **fields: Any) -> None:
        is_asked, self._departed = self._departed == one.id, one.id
        operations.perform(
            self._run, "review-keep", references=(one.id,), anyway=is_asked, **fields
        )

    def _merge(self, one: Pending) -> bool:
        """Merge it into a memory that the person chooses, in words that start as those of both."""
        target = one.newer
        if target is None:
            picker = Picker(self._run, self._screen, text=one.memory.content, but=one.memory.id)
            target = picker.choose(f"Merge “{_one_line(one.memory.subject, 30)}” into")
        words = self._edited(contradictions.words_of_both(target, one.memory)) if target else None
        if target is None or words is None:
            self._told = "Not merged."
            return False
        self._keep(one, into=target.id, content=words)
        return True

    def _edited(self, content: str) -> str | None:
        """Words as the person leaves them in an editor; none where they were not saved, or deleted."""
        words = self._screen.edit(printable(content))
        if words is None or not words.strip():
            self._told = "Not saved, nothing was changed."
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
            screen.draw([], screen.page(lambda paper: paper.line(Span(_TOO_SMALL, "yellow"))), [])
            return
        told = screen.page(self._render_told)[: max(1, min(3, spare))]
        screen.draw(head, body, [*told, *([] if told and not spare else rule), *keys])

    def _body(self) -> tuple[list[str], int]:
        """The lines to show, and how many of them have to be seen before anything is decided."""
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
        return self._screen.page(lambda paper: _render(paper, self._left[0])) if self._left else []

    def _heading(self) -> str:
        done = ", ".join(
            f"{what.lower()} {self.done[key]}" for key, what in _DONE.items() if self.done[key]
        )
        left = self._screen.page(lambda paper: paper.line(bold("Review"), dim(f"  {done}")))[0]
        right = self._screen.page(lambda paper: paper.line(bold(f"{len(self._left):,} left")))[0]
        return self._screen.bar(left, right)

    def _render_told(self, paper: Paper) -> None:
        if self._told:
            paper.line(self._told)

    def _render_evidence(self, paper: Paper) -> None:
        """The turns that it comes from, and those of the newer one."""
        one = self._left[0]
        for title, memory in (
            ("Where it was said", one.memory),
            ("Where the newer one was said", one.newer),
        ):
            if memory is None:
                continue
            paper.heading(title)
            found = decision.evidence_of(self._run.home, memory, _CHARACTERS_OF_A_TURN)
            if not found:
                paper.line(dim("No turn of a session shows it."), indent=2)
            for turn in found:
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
    """Names of keys, each with its letter in bold."""
    spans: list[Span] = []
    for name in filter(None, names):
        spans += [
            bold(f"{'  ' if spans else ''}{name[0]}"),
            dim(f"\u00a0{name.replace(' ', chr(0xA0))}"),
        ]
    return spans


def _one_line(text: str, columns: int) -> str:
    return cut(" ".join(printable(text).split()), columns)


def _render(paper: Paper, one: Pending) -> None:
    """One that waits, and why."""
    what = "memory" if one.kind is PendingKind.DOUBT else one.kind.value
    paper.line(dim(what), "  ", kind_span(one.memory.kind), "  ", Span(why_of(one), "yellow"))
    paper.blank()
    _render_trust(paper, one.memory)
    _render_words(paper, one)


def _render_trust(paper: Paper, memory: Memory) -> None:
    if memory.trust is values_session.Trust.UNTRUSTED:
        paper.line(Span("from outside:", "yellow"), indent=2)


def _render_words(paper: Paper, one: Pending) -> None:
    """Its words and, beside them, the newer memory."""
    _render_memory(paper, one.memory)
    if one.newer:
        paper.blank()
        paper.line(dim("newer  "), kind_span(one.newer.kind))
        paper.blank()
        _render_trust(paper, one.newer)
        _render_memory(paper, one.newer)


def _render_memory(paper: Paper, memory: Memory) -> None:
    if not text.normalise(memory.content).startswith(text.normalise(memory.subject).rstrip("….")):
        paper.line(bold(memory.subject), indent=2)
    paper.body(memory.content, indent=2)
    tool, native_id = split_session(memory.source.session)
    said = f"said by {speaker_name(memory.speaker, memory.author)}"
    where = f"{said} in {tool} {short_session(native_id)}" if tool and native_id else said
    paper.line(
        dim(joined((place_name(memory), when(memory.created), where, short_id(memory)))), indent=2
    )


def _render_help(paper: Paper) -> None:
    paper.facts(_HELP)


def summary(triage: Triage) -> str:
    """What was done, in a sentence."""
    done = triage.done
    parts = [
        f"{what.lower()} {done[key]:,}"
        for key, what in _DONE.items()
        if done[key] and key != "skip"
    ]
    told = ", ".join(parts) or "nothing was changed"
    left = f"; {count(triage.left, 'decision waits', 'decisions wait')}" if triage.left else ""
    return f"{told[:1].upper()}{told[1:]}{left}."


def go_through(run: Run, waiting: Sequence[Pending]) -> None:
    """Show what waits on the terminal, one after another, and answer with what was done."""
    if not waiting:
        run.answer({}, lambda paper: paper.line("Nothing waits for review."))
        return
    screen = Screen(run)
    triage = Triage(run, screen, waiting)
    with operations.resumable(run), screen.open():
        triage.go()
    run.answer({}, lambda paper: paper.line(summary(triage)))
