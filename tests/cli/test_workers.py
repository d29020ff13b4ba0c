"""Reading with worker processes has the same outcome as in one process, even if workers fail."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest

from tests.canary import SECRET
from tests.cli.conftest import SOURCE, Nacre, command, environment, said, write_transcript
from tests.cli.test_ingest import install
from tests.stores import OpenCode

STORED = {
    "sessions": "*",
    "turns": "*",
    "turns_fts_docsize": "id, sz",
    "turns_parts_docsize": "id, sz",
    "transcript_cursors": "*",
    "archived": "*",
}
"""Tables and compared columns. The omitted full-text columns depend on how transactions were split."""

HERON = """
import os
import signal
from nacre.values.session import Session, Speaker, Turn
from nacre.readers.adapter import Adapter


def parse(source):
    print("an adapter that talks")
    yield Session("heron", source.path.stem)
    for at, line in source.lines():
        words = line.decode().removeprefix("heron ")
        if words == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if words == "dies once" and not os.path.exists(f"{source.path}.seen"):
            open(f"{source.path}.seen", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        if words == "is no JSON":
            source.carry["odd"] = object()
        if words == "interrupts":
            print(os.getpid(), file=open(f"{source.path}.pid", "w"))
            os.kill(os.getppid(), signal.SIGINT)
            while True:
                signal.pause()
        yield Turn(str(at), Speaker.OWNER, words)


ADAPTER = Adapter("heron", "Heron", lambda head: head.data.startswith(b"heron "), parse)
"""


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    """Forty sessions, one of them truncated inside a secret, and a file that is not a transcript."""
    folder = tmp_path / "talks"
    for number in range(40):
        session = f"8a3b0000-0000-4000-8000-{number:012}"
        records = [
            said(
                "user",
                f"The lamp of pier {number} is lit at dusk, keep that in mind.",
                1,
                session=session,
            ),
            said(
                "assistant",
                f"Noted: pier {number} at dusk{f', {SECRET}' * (number % 3 == 0)}.",
                2,
                session=session,
            ),
        ]
        write_transcript(folder / f"{session}.jsonl", records)
    with min(folder.iterdir()).open("ab") as file:
        file.write(
            b'{"type":"user","message":{"role":"user","content":"password = hunter2-hunter2-9"},"uuid":"1","tor'
        )
    (folder / "notes.json").write_text("{}", encoding="utf-8")
    return folder


def stored(home: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(home / ".nacre" / "nacre.db")) as database:
        return {
            table: database.execute(f"SELECT {columns} FROM {table} ORDER BY 1").fetchall()  # noqa: S608
            for table, columns in STORED.items()
        }


def report_of(outcome: Any) -> dict[str, Any]:
    report = {**outcome.json, "archived": {**outcome.json["archived"], "seconds": None}}
    return {key: value for key, value in report.items() if key not in ("seconds", "memories")}


def test_multi_process_ingest_equals_single_process_ingest(
    process: Nacre, talks: Path, tmp_path: Path
) -> None:
    homes = {workers: tmp_path / f"home-{workers}" for workers in ("1", "2", "5")}
    for turn in range(2):
        reports = []
        for workers, home in homes.items():
            home.mkdir(exist_ok=True)
            environ = {
                "HOME": str(home),
                "NACRE_HOME": str(home / ".nacre"),
                "NACRE_INGEST_WORKERS": workers,
            }
            outcome = process("ingest", str(talks), "--no-vectors", "--json", environ=environ)
            reports.append((report_of(outcome), stored(home)))
        assert reports[1] == reports[0]
        assert reports[2] == reports[0]
        assert reports[0][0]["turns"] == (80, 40)[turn]
        for path in talks.glob("*.jsonl"):
            session = (
                path.stem
                if path.stem.startswith("8a3b")
                else "8a3b0000-0000-4000-8000-000000000001"
            )
            with path.open("ab") as file:
                file.write(b"\n")
            more = write_transcript(
                tmp_path / "more.jsonl",
                [said("user", "And at dawn it is out.", 3, session=session)],
            )
            with path.open("ab") as file:
                file.write(more.read_bytes())


def test_third_party_adapter_runs_in_workers_despite_its_output(
    process: Nacre, tmp_path: Path
) -> None:
    folder = herons(tmp_path, ["one", "two", "is no JSON", "three"])
    report = ingest(process, tmp_path, folder, code=1).json
    assert (report["files"], report["turns"]) == (3, 4)
    assert [problem["path"] for problem in report["problems"]] == [str(folder / "2.txt")]
    assert "not JSON serializable" in report["problems"][0]["message"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_file_that_kills_workers_is_reported_and_others_read(
    process: Nacre, tmp_path: Path
) -> None:
    folder = herons(tmp_path, ["one", "dies", "two", "dies once", "three", "dies"])
    report = ingest(process, tmp_path, folder, code=1).json
    assert report["files"] == 4
    assert [problem["path"] for problem in report["problems"]] == [
        str(folder / f"{at}.txt") for at in (1, 5)
    ]
    assert "crashed" in report["problems"][0]["message"]
    assert "ingest.workers" in report["problems"][0]["hint"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupted_ingest_stops_its_workers_and_resumes_later(
    process: Nacre, tmp_path: Path
) -> None:
    folder = herons(tmp_path, ["one", "two", "interrupts", "three"])
    environ = environment({**install(tmp_path / "site", HERON), "NACRE_INGEST_WORKERS": "2"})
    ended = subprocess.run(
        command("ingest", str(folder), "--no-vectors"),
        env=environ,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode in (130, -signal.SIGINT), ended.stderr
    assert (
        b"run the command again to continue" in ended.stderr or ended.returncode == -signal.SIGINT
    )
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "2.txt.pid").read_text()), 0)
    (folder / "2.txt").write_text("heron goes on\n", encoding="utf-8")
    report = process("ingest", str(folder), "--no-vectors", "--json", environ=environ).json
    assert report["files"] + report["skipped"] == 4


@pytest.mark.parametrize("program", ["/no/python", "/bin/false"])
def test_ingest_runs_in_one_process_if_workers_cannot_start(
    nacre: Nacre, talks: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setenv("NACRE_INGEST_WORKERS", "3")
    resource_tracker.ensure_running()
    multiprocessing.set_executable(program)
    try:
        assert nacre("ingest", str(talks), "--no-vectors", "--json").json["turns"] == 80
    finally:
        multiprocessing.set_executable(sys.executable)


def herons(folder: Path, lines: list[str]) -> Path:
    talks = folder / "herons"
    talks.mkdir()
    for at, words in enumerate(lines):
        (talks / f"{at}.txt").write_text(f"heron {words}\n", encoding="utf-8")
        os.utime(talks / f"{at}.txt", (1_700_000_000 + at,) * 2)
    return talks


def ingest(process: Nacre, folder: Path, talks: Path, *, code: int) -> Any:
    environ = {**install(folder / "site", HERON), "NACRE_INGEST_WORKERS": "2"}
    assert environ["PYTHONPATH"].startswith(str(SOURCE))
    return process("ingest", str(talks), "--no-vectors", "--json", code=code, environ=environ)


def test_tool_databases_are_read_equally_with_and_without_workers(
    process: Nacre, tmp_path: Path
) -> None:
    lines = []
    for workers in ("1", "2"):
        user = tmp_path / workers
        places = user / ".config" / "Cursor" / "User" / "workspaceStorage"
        for name, data in (("empty", b""), ("sealed", bytes(8192))):
            (places / name).mkdir(parents=True)
            (places / name / "state.vscdb").write_bytes(data)
        tool = OpenCode(
            user / ".local" / "share" / "opencode" / "opencode.db"
        )  # stays open, with a log file
        tool.message(
            tool.session("ses_1"), "user", {"text": "The lamp of pier nine is lit at dusk."}
        )
        environ = {
            "HOME": str(user),
            "NACRE_HOME": str(user / ".nacre"),
            "NACRE_INGEST_WORKERS": workers,
        }
        first, second = (
            process("ingest", "--no-vectors", "--json", environ=environ, code=1).json
            for _ in range(2)
        )
        tool.close()
        assert [Path(problem["path"]).parent.name for problem in first["problems"]] == ["sealed"]
        assert [Path(path).parent.name for path in first["empty"]] == ["empty"]
        assert second["files"] == 0
        lines.append((first["files"], first["turns"], second["skipped"]))
    assert lines[0] == lines[1]
