"""A temporary machine for one host: a home, a project, a local model provider and no network."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.provider import FakeProvider, Request
from tests.hosts.slack import HOOK_MS, is_busy

_SRC = Path(__file__).resolve().parent.parent.parent / "src"
_DEAD = "http://127.0.0.1:9"
_SECONDS = 120


@dataclass(frozen=True)
class ProgramResult:
    """The result of a program that has ended."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def record(self) -> Any:
        """Its output, parsed as JSON."""
        return json.loads(self.out)

    @property
    def records(self) -> list[Any]:
        """The JSON lines of its output."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]


class Stage:
    """The folders and processes of one host. Only the host calls ``provider``.

    ``is_busy`` is true if other processes used most of this machine's processors at the start.
    """

    def __init__(self, folder: Path, provider: FakeProvider) -> None:
        self.folder = folder
        self.provider = provider
        self.is_busy = is_busy()
        self.home = folder / "home"
        self.project = folder / "code" / "harbour"
        self.memory = self.home / ".nacre"
        self.tools = folder / "tools"
        for path_ in (self.home, self.project, self.tools, folder / "tmp"):
            path_.mkdir(parents=True)
        self.programs = _programs(folder / "bin")
        self.environ = {
            "HOME": str(self.home),
            "PATH": f"{self.tools}:{self.programs}:/usr/local/bin:/usr/bin:/bin",
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "TMPDIR": str(folder / "tmp"),
            "HTTP_PROXY": _DEAD,
            "HTTPS_PROXY": _DEAD,
            "NO_PROXY": "127.0.0.1,localhost",
            "NACRE_HOOK_MS": HOOK_MS,
        }
        self.memory.mkdir(mode=0o700)
        (self.memory / "config.toml").write_text('[embedding]\nmodel = "none"\n', encoding="utf-8")
        subprocess.run(["git", "init", "-q", str(self.project)], env=self.environ, check=True)

    def install(self, name: str, command: Sequence[str]) -> None:
        """Put a program on the PATH under a name."""
        path = self.tools / name
        path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
        path.chmod(0o755)

    def nacre(self, *arguments: str, folder: Path | None = None) -> ProgramResult:
        """Run nacre in the project as the owner does and check that it succeeds."""
        result = self.run([str(self.programs / "nacre"), *arguments], folder=folder)
        assert result.code == 0, f"nacre {shlex.join(arguments)}: {result.err or result.out}"
        return result

    def run(
        self,
        command: Sequence[str],
        more: Mapping[str, str] | None = None,
        folder: Path | None = None,
        seconds: float = _SECONDS,
    ) -> ProgramResult:
        """Run a program in the project until it ends. Kill its process group if it takes too long."""
        began = time.monotonic()
        with subprocess.Popen(
            command,
            cwd=folder or self.project,
            env={**self.environ, **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
                raise AssertionError(
                    f"{shlex.join(command)} took more than {seconds} s\n{out}\n{err}"
                ) from None
        return ProgramResult(process.returncode, out, err, time.monotonic() - began)

    def settings(self) -> dict[str, bytes]:
        """Return the files in the owner's home and project, without those of nacre and git."""
        paths = [
            path for root in (self.home, self.project) for path in root.rglob("*") if path.is_file()
        ]
        return {
            str(path): path.read_bytes()
            for path in paths
            if not {".nacre", ".git"} & set(path.parts)
        }

    def hook_runs(self) -> list[dict[str, Any]]:
        """Return the logged hook runs, oldest first."""
        path = self.memory / "logs" / "hooks.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def model_requests(self, since: int) -> list[Request]:
        """Return the model's requests from an index onwards."""
        return [request for request in self.provider.requests[since:] if request.method == "POST"]

    def close(self) -> None:
        """Stop nacre's daemon."""
        self.run([str(self.programs / "nacre"), "serve", "stop"])


def eventually(read_value: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Poll until the value is true and return it, or return the last value at the timeout."""
    end = time.monotonic() + seconds
    while not (value := read_value()) and time.monotonic() < end:
        time.sleep(0.1)
    return value


def _programs(folder: Path) -> Path:
    """Return the folder of nacre's programs, created from the code under test if Python has none."""
    next_to_python = Path(sys.executable).parent
    if (next_to_python / "nacre").exists() and (next_to_python / "nacre-hook").exists():
        return next_to_python
    folder.mkdir()
    for name, module in (("nacre", "nacre.__main__"), ("nacre-hook", "nacre.serve.hook_process")):
        path = folder / name
        path.write_text(
            f"#!{sys.executable}\nimport os, sys\nsys.path.insert(0, {str(_SRC)!r})\n"
            f"os.environ['PYTHONPATH'] = {str(_SRC)!r}\nfrom {module} import main\n"
            "if __name__ == '__main__':\n    sys.exit(main())\n",
            encoding="utf-8",
        )
        path.chmod(0o755)
    return folder
