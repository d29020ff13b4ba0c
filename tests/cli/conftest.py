"""Run nacre in this process to test its output, or as a process to test streams and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nacre.cli.root import cli
from tests.processes import Processes

SOURCE = Path(__file__).parents[2] / "src"
SESSION = "7f3a1c2d-0000-4000-8000-000000000001"


@dataclass(frozen=True)
class Outcome:
    """The exit code, standard output and standard error of a run."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Parse the JSON object on standard output."""
        assert self.out.endswith("\n")
        assert self.out.count("\n") == 1
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """Parse the JSON error on standard error."""
        return self.json["error"]


Nacre = Callable[..., Outcome]


@pytest.fixture
def nacre() -> Nacre:
    """``nacre("list", "--json")`` in this process; fails on an unexpected exit code (``None``: any is allowed)."""

    def run(*arguments: str, code: int | None = 0, stdin: str | None = None) -> Outcome:
        result = CliRunner().invoke(cli, list(arguments), input=stdin)
        assert code is None or result.exit_code == code, result.output
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def process() -> Nacre:
    """``process("list")`` as a separate process."""

    def run(
        *arguments: str, code: int | None = 0, environ: dict[str, str] | None = None, **options: Any
    ) -> Outcome:
        settings = {"capture_output": True, "text": True, "timeout": 60, "check": False, **options}
        result = subprocess.run(command(*arguments), env=environment(environ), **settings)
        assert code is None or result.returncode == code, result.stderr
        return Outcome(result.returncode, result.stdout or "", result.stderr or "")

    return run


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Nacre:
    """``terminal("list", typed="n\\n")`` in this process, with a pseudo-terminal for all its streams."""

    def run(*arguments: str, typed: str = "", environ: dict[str, str] | None = None) -> Outcome:
        with monkeypatch.context() as changed:
            return _on_terminal(changed, arguments, environ, _Typist([("", typed)]))

    return run


@pytest.fixture
def dialog(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """``dialog("writer", "set", answers=[("Number", "1")])``: as ``terminal``, typing each answer at its question."""

    def run(
        *arguments: str,
        answers: Sequence[tuple[str, str]],
        environ: dict[str, str] | None = None,
    ) -> Outcome:
        typist = _Typist([(question, f"{answer}\n") for question, answer in answers])
        with monkeypatch.context() as changed:
            outcome = _on_terminal(changed, arguments, environ, typist)
        assert not typist.waiting, outcome.out
        return outcome

    return run


class _Typist:
    """Reads from a pseudo-terminal and types each text of ``waiting`` when the words before it appear."""

    def __init__(self, waiting: list[tuple[str, str]]) -> None:
        self.waiting = waiting
        self.shown = bytearray()
        self._seen = 0

    def run(self, descriptor: int) -> None:
        """Type and read until the other end is closed."""
        while True:
            if self.waiting and self.waiting[0][0].encode() in self.shown[self._seen :]:
                self._seen = len(self.shown)
                os.write(descriptor, self.waiting.pop(0)[1].encode())
            try:
                self.shown += os.read(descriptor, 4096)
            except OSError:
                return


def _on_terminal(
    changed: pytest.MonkeyPatch,
    arguments: Sequence[str],
    environ: dict[str, str] | None,
    typist: _Typist,
) -> Outcome:
    pty = pytest.importorskip("pty")
    mine, theirs = pty.openpty()
    reader = threading.Thread(target=typist.run, args=(mine,))
    reader.start()
    code = 0
    with (
        os.fdopen(theirs, encoding="utf-8") as stdin,
        os.fdopen(os.dup(theirs), "w", encoding="utf-8") as output,
    ):
        for name, value in {"TERM": "xterm-256color", **(environ or {})}.items():
            changed.setenv(name, value)
        changed.setattr("sys.stdin", stdin)
        changed.setattr("sys.stdout", output)
        changed.setattr("sys.stderr", output)
        try:
            cli.main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
    reader.join()
    os.close(mine)
    return Outcome(code, typist.shown.decode().replace("\r\n", "\n"), "")


@pytest.fixture
def terminal_process(processes: Processes) -> Nacre:
    """``terminal`` with a separate process."""
    pty = pytest.importorskip("pty")

    def run(*arguments: str, typed: str = "", environ: dict[str, str] | None = None) -> Outcome:
        mine, theirs = pty.openpty()
        started = processes.start(
            command(*arguments),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            close_fds=True,
            env=environment({"TERM": "xterm-256color", **(environ or {})}),
        )
        os.close(theirs)
        if typed:
            os.write(mine, typed.encode())
        output = bytearray()
        while True:
            try:
                read = os.read(mine, 4096)
            except OSError:
                break
            if not read:
                break
            output += read
        os.close(mine)
        return Outcome(started.wait(timeout=60), output.decode().replace("\r\n", "\n"), "")

    return run


@pytest.fixture
def dialog_process(processes: Processes) -> Callable[..., Outcome]:
    """``dialog`` with a separate process, whose questions may be unknown in advance."""
    pty = pytest.importorskip("pty")

    def run(
        *arguments: str,
        answers: Sequence[tuple[str, str]],
        environ: dict[str, str] | None = None,
        **options: Any,
    ) -> Outcome:
        mine, theirs = pty.openpty()
        started = processes.start(
            command(*arguments),
            stdin=theirs,
            stdout=options.get("stdout", theirs),
            stderr=theirs,
            close_fds=True,
            start_new_session=True,
            env=environment({"TERM": "xterm-256color", **(environ or {})}),
        )
        os.close(theirs)
        output, position, waiting = bytearray(), 0, list(answers)
        while True:
            try:
                read = os.read(mine, 4096)
            except OSError:
                break
            if not read:
                break
            output += read
            if waiting and waiting[0][0].encode() in output[position:]:
                position = len(output)
                os.write(mine, waiting.pop(0)[1].encode() + b"\n")
        os.close(mine)
        assert not waiting, output.decode()
        out = (
            started.stdout.read().decode()
            if started.stdout
            else output.decode().replace("\r\n", "\n")
        )
        return Outcome(started.wait(timeout=60), out, output.decode() if started.stdout else "")

    return run


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "nacre", *arguments]


def environment(more: dict[str, str] | None = None) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **(more or {})}


def findings(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the problems that a home check found, without those of the installation."""
    beside = "python sqlite home permissions disk model credentials".split()
    return [
        check
        for check in answer["checks"]
        if check["state"] != "ok" and check["name"] not in beside
    ]


def said(
    role: str,
    text: str,
    number: int,
    *,
    session: str = SESSION,
    day: str = "2026-11-18",
    cwd: str = "/code/acme-billing",
) -> dict[str, Any]:
    """A record of Claude Code: the owner (``user``) or the agent (``assistant``) says something."""
    content: Any = text if role == "user" else [{"type": "text", "text": text}]
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": f"msg_{session[:4]}_{number}", "model": "model-1"}
    return {
        "type": role,
        "uuid": f"{session[:8]}-turn-{number}",
        "parentUuid": None,
        "sessionId": session,
        "timestamp": f"{day}T09:{number:02d}:00.000Z",
        "cwd": cwd,
        "version": "2.1.0",
        "gitBranch": "main",
        "isSidechain": False,
        "message": message,
    }


def write_transcript(path: Path, records: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records),
        encoding="utf-8",
    )
    return path


TALK = (
    (
        "user",
        "The billing ledger corrupts when two accounts are charged at once. Which database should we take?",
    ),
    ("assistant", "PostgreSQL has transactions across accounts; MongoDB would need them emulated."),
    (
        "user",
        "We decided to use PostgreSQL for billing instead of MongoDB because the ledger needs transactions.",
    ),
    ("assistant", "Done: the billing service now runs on PostgreSQL."),
    ("user", "Always run the linter before you commit."),
    ("assistant", "Understood, the linter runs before each commit."),
)


@pytest.fixture
def transcript(user_home: Path) -> Path:
    """A session with Claude Code in the discovered folder, with a decision about a database."""
    folder = user_home / ".claude" / "projects" / "-work-acme-billing"
    return write_transcript(
        folder / f"{SESSION}.jsonl",
        [said(role, text, number) for number, (role, text) in enumerate(TALK)],
    )


@pytest.fixture
def learned(nacre: Nacre, transcript: Path) -> dict[str, Any]:
    """A home that has read the session; returns the answer of ``ingest --json``."""
    report: dict[str, Any] = nacre("ingest", "--json").json
    assert report["memories"]
    return report


CANDIDATES = (
    "The exports should be compressed before the upload, since the line to the bank is slow.",
    "The reports should be rendered as one page each, since the printers of the office jam on more.",
    "The invoices should be numbered per year, since the auditors ask for each year by itself.",
)


@pytest.fixture
def waiting(nacre: Nacre, user_home: Path) -> list[str]:
    """The pending candidates of a home that has read a session, most likely first."""
    records = [said("user", text, 2 * at) for at, text in enumerate(CANDIDATES)]
    answers = [
        said("assistant", "Understood, I will see to it now.", 2 * at + 1)
        for at in range(len(CANDIDATES))
    ]
    both = [item for pair in zip(records, answers, strict=True) for item in pair]
    write_transcript(user_home / ".claude" / "projects" / "-code-acme" / "s.jsonl", both)
    report = nacre("ingest")
    assert "(nacre review)" in report.out
    return [
        item["memory"]["content"]
        for item in nacre("review", "--only", "candidate", "--json").json["items"]
    ]
