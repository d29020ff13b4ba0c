"""A pseudo-terminal with nacre on it: keys are pressed when nacre waits for one."""

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


class Terminal:
    """What runs on it has it as its controlling terminal, so that Ctrl-C interrupts."""

    def __init__(
        self, processes: Processes, *arguments: str, environ: dict[str, str] | None = None
    ) -> None:
        self._mine, self._theirs = pty.openpty()
        self.resize(80, 24)
        self.before = termios.tcgetattr(self._theirs)
        self.shown = b""
        self._seen = 0
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
        """The window has another size."""
        fcntl.ioctl(self._mine, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, *keys: str) -> Terminal:
        """Press each key when nacre waits for one."""
        for key in keys:
            end = time.monotonic() + _SECONDS
            while self.after[3] & termios.ICANON:
                assert self._read(0.01) or time.monotonic() < end, "it waits for no key"
            shown = len(self.shown)
            os.write(self._mine, key.encode())
            while len(self.shown) == shown and self._process.poll() is None:
                assert self._read(0.01) or time.monotonic() < end, "it ignores the key"
        return self

    def type(self, line: str) -> Terminal:
        """Enter a line."""
        os.write(self._mine, f"{line}\n".encode())
        return self

    def until(self, text: str) -> str:
        """What is shown from now on, until a text is, as words without styles."""
        end = time.monotonic() + _SECONDS
        while text.encode() not in (found := _STEERING.sub(b"", self.shown[self._seen :])):
            assert self._read(end - time.monotonic()), (
                f"{text!r} is not in {found.decode(errors='ignore')!r}"
            )
        self._seen = len(self.shown)
        return found.decode(errors="ignore")  # a character may be read in parts

    def end(self) -> int:
        """Wait for the program to end; its exit code. All that it wrote is read."""
        end = time.monotonic() + _SECONDS
        while self._read(0.1) or self._process.poll() is None:
            assert time.monotonic() < end, f"it goes on: {self.shown.decode()!r}"
        return self._process.wait(timeout=_SECONDS)

    @property
    def process(self) -> int:
        """Its process id."""
        return self._process.pid

    def wait(self) -> int:
        """Wait for the program to end, whatever it writes; its exit code."""
        return self._process.wait(timeout=_SECONDS)

    @property
    def after(self) -> list[Any]:
        """How the terminal is set now."""
        found: list[Any] = termios.tcgetattr(self._theirs)
        return found

    def close(self) -> None:
        """The window is closed."""
        for one in (self._mine, self._theirs):
            if one >= 0:
                os.close(one)
        self._mine = self._theirs = -1

    def _read(self, seconds: float) -> bool:
        if seconds <= 0 or not select.select([self._mine], [], [], seconds)[0]:
            return False
        self.shown += os.read(self._mine, 65_536)
        return True
