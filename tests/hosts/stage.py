"""A throw-away machine for one host: a home, a project, a provider of models on loopback, and no way out."""

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
class Ran:
    """A program that has ended."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def record(self) -> Any:
        """What it said, as JSON."""
        return json.loads(self.out)

    @property
    def records(self) -> list[Any]:
        """The lines of JSON that it said."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]


class Stage:
    """The folders of one host, and what runs in them. ``provider`` is asked by the host and by nobody else.

    ``is_busy`` tells that others kept this machine so when it began.
    """

    def __init__(self, folder: Path, provider: FakeProvider) -> None:
        self.folder = folder
        self.provider = provider
        self.is_busy = is_busy()
        self.home = folder / "home"
        self.project = folder / "code" / "harbour"
        self.memory = self.home / ".nacre"
        self.tools = folder / "tools"
        for made in (self.home, self.project, self.tools, folder / "tmp"):
            made.mkdir(parents=True)
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
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
            "NACRE_HOOK_MS": HOOK_MS,
        }
        self.memory.mkdir(mode=0o700)
        (self.memory / "config.toml").write_text('[embedding]\nmodel = "none"\n', encoding="utf-8")
        subprocess.run(["git", "init", "-q", str(self.project)], env=self.environ, check=True)

    def install(self, name: str, command: Sequence[str]) -> None:
        """Put a program on the PATH under the name that people type."""
        path = self.tools / name
        path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
        path.chmod(0o755)

    def nacre(self, *arguments: str, folder: Path | None = None) -> Ran:
        """nacre's own command line, in the project, as the owner types it; it must succeed."""
        ran = self.run([str(self.programs / "nacre"), *arguments], folder=folder)
        assert ran.code == 0, f"nacre {shlex.join(arguments)}: {ran.err or ran.out}"
        return ran

    def run(
        self,
        command: Sequence[str],
        more: Mapping[str, str] | None = None,
        folder: Path | None = None,
        seconds: float = _SECONDS,
    ) -> Ran:
        """Run a program to its end, in the project; its group is ended when it takes too long."""
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
        return Ran(process.returncode, out, err, time.monotonic() - began)

    def settings(self) -> dict[str, bytes]:
        """What is written in the owner's home and project, without what is nacre's or git's."""
        paths = [
            path for root in (self.home, self.project) for path in root.rglob("*") if path.is_file()
        ]
        return {
            str(path): path.read_bytes()
            for path in paths
            if not {".nacre", ".git"} & set(path.parts)
        }

    def hook_runs(self) -> list[dict[str, Any]]:
        """What the log says of the hooks that ran, the oldest first."""
        path = self.memory / "logs" / "hooks.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def asked(self, since: int) -> list[Request]:
        """The model's requests from one on."""
        return [request for request in self.provider.requests[since:] if request.method == "POST"]

    def close(self) -> None:
        """End what nacre started here."""
        self.run([str(self.programs / "nacre"), "serve", "stop"])


def eventually(found: Callable[[], Any], seconds: float = 10.0) -> Any:
    """What is found, as soon as it is there; whatever is found at the end."""
    end = time.monotonic() + seconds
    while not (value := found()) and time.monotonic() < end:
        time.sleep(0.1)
    return value


def _programs(folder: Path) -> Path:
    """Where nacre's programs are: those beside this Python, else made here of the code under test."""
    beside = Path(sys.executable).parent
    if (beside / "nacre").exists() and (beside / "nacre-hook").exists():
        return beside
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
