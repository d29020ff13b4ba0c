"""A pseudo-terminal that presses keys when nacre waits for one."""

from __future__ import annotations

import os
import re
import select
import struct
import time
from typing import Any

import pytest

from tests.cli.conftest import command, environment
from tests.processes import Processes

fcntl = pytest.importorskip("fcntl")
pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")

_SECONDS = 20
_STEERING = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_ASKED = re.compile(rb"q\s+quit(?!;)")
"""The end of each line of keys."""


class Terminal:
    """The controlling terminal of its program, so that Ctrl-C interrupts it."""

    def __init__(
        self, processes: Processes, *arguments: str, environ: dict[str, str] | None = None
    ) -> None:
        self._mine, self._theirs = pty.openpty()
        self.resize(80, 24)
        self.before = termios.tcgetattr(self._theirs)
        self.shown = b""
        self._seen = self._pressed = 0
        self._process = processes.start(
            command(*arguments),
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env=environment({"TERM": "xterm-256color", **(environ or {})}),
            preexec_fn=self._take,
        )

    @staticmethod
    def _take() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def resize(self, columns: int, rows: int) -> None:
        """Resize the window."""
        fcntl.ioctl(self._mine, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, *keys: str) -> Terminal:
        """Press each key when nacre waits for one."""
        for key in keys:
            self._pressed += 1
            end = time.monotonic() + _SECONDS
            while self._process.poll() is None and not self._is_waiting:
                assert self._read(0.01) or time.monotonic() < end, "nacre waits for no key"
            os.write(self._mine, key.encode())
        return self

    def type(self, line: str) -> Terminal:
        """Enter a line."""
        os.write(self._mine, f"{line}\n".encode())
        return self

    def until(self, text: str) -> str:
        """Return the output until a text appears, without styles."""
        end = time.monotonic() + _SECONDS
        while text.encode() not in (output := _STEERING.sub(b"", self.shown[self._seen :])):
            assert self._read(end - time.monotonic()), (
                f"{text!r} is not in {output.decode(errors='ignore')!r}"
            )
        self._seen = len(self.shown)
        return output.decode(errors="ignore")  # a read may end inside a character

    def end(self) -> int:
        """Wait for the program to end; return its exit code. All output is read."""
        end = time.monotonic() + _SECONDS
        while self._read(0.1) or self._process.poll() is None:
            assert time.monotonic() < end, f"the program does not end: {self.shown.decode()!r}"
        return self._process.wait(timeout=_SECONDS)

    @property
    def process(self) -> int:
        """Return its process id."""
        return self._process.pid

    def wait(self) -> int:
        """Wait for the program to end, ignoring its output; return its exit code."""
        return self._process.wait(timeout=_SECONDS)

    @property
    def after(self) -> list[Any]:
        """Return the terminal's current settings."""
        settings: list[Any] = termios.tcgetattr(self._theirs)
        return settings

    def close(self) -> None:
        """Close the window."""
        for item in (self._mine, self._theirs):
            if item >= 0:
                os.close(item)
        self._mine = self._theirs = -1

    @property
    def _is_waiting(self) -> bool:
        """Return True if the line of keys was shown for the next key, and nacre reads keys."""
        shown = len(_ASKED.findall(_STEERING.sub(b"", self.shown)))
        return shown >= self._pressed and not self.after[3] & termios.ICANON

    def _read(self, seconds: float) -> bool:
        if seconds <= 0 or not select.select([self._mine], [], [], seconds)[0]:
            return False
        self.shown += os.read(self._mine, 65_536)
        return True
