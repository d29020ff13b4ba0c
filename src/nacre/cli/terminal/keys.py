"""Single keys of a terminal, as names: ``a``, ``up``, ``enter``, ``ctrl-u``."""

from __future__ import annotations

import codecs
import os
import re
import select
import signal
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

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
    "\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "backspace", "\x08": "backspace", "\x1b": "escape",
    "\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down", "\x1b[5~": "page-up", "\x1b[6~": "page-down",
    "\xe0H": "up", "\xe0P": "down", "\xe0I": "page-up", "\xe0Q": "page-down",
}  # fmt: skip
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
        before = {name: signal.signal(getattr(signal, name), _stop) for name in _SIGNALS if hasattr(signal, name)}
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
        if self._woken and self._woken[0] in select.select([sys.stdin.fileno(), self._woken[0]], [], [])[0]:
            os.read(self._woken[0], 1024)
            self._waiting.append(RESIZE)
            return
        self._take(_read())
        while self._text and END not in self._waiting and (self._is_pasted or _is_ready(_SECONDS_OF_ESCAPE)):
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
