"""Full and read-only disks cause clear errors and no damage, and lose no acknowledged memory."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.trust.scenarios import TALKS, Place, transcript_record

ROOT = Path(__file__).parents[2]
SIZE_MB = 8
REFUSED = (1, 5)

STORE_MANY = """
import sys
from nacre import open_memory
from nacre.errors import NacreError
with open_memory() as memory:
    for number in range(900):
        try:
            words = f"Berth {number} is {number * 3} metres long. " + "It has a ladder. " * 20
            memory.store(words, subject=f"Berth {number}")
        except NacreError as error:
            print(type(error).__name__, error.message, file=sys.stderr)
            break
        print(f"Berth {number}", flush=True)
"""
STORE_AND_DIE = """
import os, signal
from nacre import open_memory
memory = open_memory()
memory.store("The ferry leaves at seven.", subject="Ferry")
os.kill(os.getpid(), signal.SIGKILL)
"""


@dataclass(frozen=True, slots=True)
class Result:
    """The exit code and output of a program."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Parse the answer."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Disk:
    """A small disk with a user's home. ``enter`` is the command prefix that makes the disk visible."""

    place: Place
    enter: tuple[str, ...]

    def run(self, *words: str, before: Callable[[], None] | None = None) -> Result:
        """Run a program that sees the disk."""
        user = str(self.place.user)
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": user,
            "NACRE_HOME": str(self.place.home),
            "PYTHONPATH": str(ROOT / "src"),
            "NACRE_EMBEDDING_MODEL": "none",
            "NACRE_GIT_BACKGROUND": "false",
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
        }
        result = subprocess.run(
            [*self.enter, *words],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            stdin=subprocess.DEVNULL,
            preexec_fn=before,
        )
        return Result(result.returncode, result.stdout, result.stderr)

    def nacre(self, *words: str) -> Result:
        """Run nacre, and check that it shows no traceback."""
        result = self.run(sys.executable, "-m", "nacre", *words)
        assert "Traceback" not in result.err, result
        return result

    def answers(self, *words: str) -> Any:
        """Return the answer of a successful command."""
        result = self.nacre(*words, "--json")
        assert result.code == 0, result
        return result.json

    def refuses(self, *words: str) -> str:
        """Check that nacre reports a one-line error with a hint; return the message."""
        result = self.nacre(*words, "--json")
        assert result.code in REFUSED, (words, result)
        error = result.json["error"]
        assert error["hint"], error
        assert error["code"] != "unexpected", error
        return str(error["message"])

    def subjects(self) -> set[str]:
        """Return the subjects of all memories."""
        return {memory["subject"] for memory in self.answers("list", "--limit", "1000")["memories"]}

    def is_sound(self) -> None:
        """Check that the database, the vault and git are intact and consistent, with no pending work."""
        self.answers("admin", "commit")
        checks = {
            check["name"]: check for check in self.answers("admin", "doctor", "--deep")["checks"]
        }
        assert [check for check in checks.values() if check["state"] == "failure"] == []
        assert self.run("git", "-C", str(self.place.vault), "fsck", "--no-dangling").code == 0
        assert self.run("git", "-C", str(self.place.vault), "status", "--porcelain").out == ""

    def fill(self, leave_kb: int = 0) -> None:
        """Fill the disk except for a few kilobytes."""
        filler = str(self.place.user / "filler")
        self.run("sh", "-c", f"cat /dev/zero > {filler}")
        if leave_kb:
            self.run("truncate", f"--size=-{leave_kb}K", filler)

    def empty(self) -> None:
        """Free the space again."""
        self.run("rm", str(self.place.user / "filler"))

    def remount(self, how: str) -> None:
        """Remount the disk read-only (``ro``) or writable (``rw``)."""
        result = self.run("mount", "-o", f"remount,{how}", str(self.place.user))
        assert result.code == 0, result

    def write(self, path: str, text: str) -> None:
        """Write a file on the disk."""
        assert (
            self.run(
                "sh",
                "-c",
                f'mkdir -p "$(dirname "{path}")" && printf %s "$1" > "{path}"',
                "sh",
                text,
            ).code
            == 0
        )


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A file system of a few megabytes that only this test sees. Without mount rights the test is skipped."""
    user = tmp_path / "user"
    user.mkdir()
    if not shutil.which("unshare") or not shutil.which("nsenter"):
        pytest.skip("mounting a test disk needs the programs unshare and nsenter")
    script = f'mount -t tmpfs -o size={SIZE_MB}m,mode=0700 tmpfs "$1" && echo mounted && exec cat'
    with subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(user)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        if holder.stdout.readline() != "mounted\n":
            pytest.skip("this machine does not allow mounting a test disk")
        enter = ("nsenter", "--user", "--mount", "--preserve-credentials", f"--target={holder.pid}")
        yield Disk(Place(user), enter)
        holder.stdin.close()


@pytest.fixture
def lived_in(disk: Disk) -> Disk:
    """A disk with a home: two committed memories, and an unread transcript."""
    disk.answers("store", "The gate code is on the wall.", "--subject", "Gate")
    disk.answers("store", "Lunch is at noon on weekdays.", "--subject", "Lunch")
    disk.answers("admin", "commit")
    session = "5e55-0001"
    lines = (
        json.dumps(transcript_record(role, text, at, session))
        for at, (role, text) in enumerate(TALKS[session])
    )
    disk.write(
        f"{disk.place.user}/.claude/projects/-code-harbour/{session}.jsonl",
        "".join(f"{line}\n" for line in lines),
    )
    return disk


def assert_recalled(disk: Disk) -> None:
    """Check that recall works, even on a read-only disk."""
    hits = disk.answers("recall", "what is the gate code?")["hits"]
    assert [hit["memory"]["subject"] for hit in hits] == ["Gate"]
    assert disk.subjects() == {"Gate", "Lunch"}
    assert disk.answers("show", "Gate")["memory"]["content"] == "The gate code is on the wall."


def test_full_disk_still_recalls_and_writes_report_it(
    lived_in: Disk,
) -> None:
    lived_in.fill()
    assert_recalled(lived_in)
    assert "full" in lived_in.nacre("recall", "gate").err
    user = lived_in.place.user
    for words in (
        ("store", "The crane is blue.", "--subject", "Crane"),
        ("ingest",),
        ("sync",),
        ("edit", "Gate", "--importance", "9"),
        ("retire", "Lunch"),
        ("config", "set", "recall.limit", "5"),
        ("admin", "db", "rebuild", "--yes"),
        ("data", "export", f"{user}/memories.jsonl"),
        ("data", "backup", "create", f"{user}/home.zip"),
    ):
        assert "full" in lived_in.refuses(*words), words
    names = lived_in.run("ls", "-A", str(user), str(lived_in.place.home)).out
    assert "memories.jsonl" not in names
    assert "home.zip" not in names
    assert "nacre.db.new" not in names
    lived_in.empty()
    assert lived_in.subjects() == {"Gate", "Lunch"}
    lived_in.answers("store", "The crane is blue.", "--subject", "Crane")
    lived_in.answers("ingest")
    assert lived_in.subjects() > {"Gate", "Lunch", "Crane"}
    lived_in.is_sound()


@pytest.mark.parametrize("room_kb", [60, 200, 700])
def test_disk_filling_during_stores_loses_no_acknowledged_memory(
    lived_in: Disk, room_kb: int
) -> None:
    lived_in.fill(room_kb)
    result = lived_in.run(sys.executable, "-c", STORE_MANY)
    acknowledged = set(result.out.splitlines())
    assert "full" in result.err or "No space" in result.err, result
    lived_in.empty()
    subjects = lived_in.subjects()
    assert acknowledged <= subjects
    assert (
        len(subjects - acknowledged) <= 3
    )  # Gate and Lunch; the refused memory was not acknowledged
    lived_in.is_sound()


def test_disk_filling_during_ingest_or_rebuild_loses_nothing(lived_in: Disk) -> None:
    talk_of = lived_in.place.user / ".claude/projects/-code-harbour"
    for number in range(60):
        words = (
            transcript_record(
                "user", f"Buoy {at} of row {number} is painted red. " * 8, at, f"row-{number}"
            )
            for at in range(12)
        )
        lived_in.write(
            f"{talk_of}/row-{number}.jsonl", "".join(json.dumps(line) + "\n" for line in words)
        )
    for room_kb in (350, 900):  # SQLite fails at opening or only at the next write
        lived_in.fill(leave_kb=room_kb)
        assert "full" in lived_in.refuses("ingest")
        assert lived_in.subjects() >= {"Gate", "Lunch"}
        lived_in.empty()
    lived_in.answers("ingest")
    counted = lived_in.answers("admin", "db", "stats")["tools"][0]
    assert (counted["sessions"], counted["turns"]) == (61, 60 * 12 + 3)
    subjects = lived_in.subjects()
    lived_in.fill(leave_kb=500)
    assert "full" in lived_in.refuses("admin", "db", "rebuild", "--yes")
    assert lived_in.subjects() == subjects
    lived_in.empty()
    lived_in.answers("admin", "db", "rebuild", "--yes")
    assert lived_in.subjects() == subjects
    lived_in.is_sound()


def test_read_only_disk_still_recalls_and_writes_report_it(
    lived_in: Disk,
) -> None:
    lived_in.remount("ro")
    assert_recalled(lived_in)
    assert "read-only" in lived_in.nacre("recall", "gate").err
    assert lived_in.nacre("admin", "doctor").code == 1
    for words in (
        ("store", "The crane is blue.", "--subject", "Crane"),
        ("ingest",),
        ("sync",),
        (
            "admin",
            "commit",
        ),
        ("edit", "Gate", "--importance", "9"),
        ("retire", "Lunch"),
        ("config", "set", "recall.limit", "5"),
        ("admin", "db", "rebuild", "--yes"),
        ("admin", "scrub", "--yes"),
    ):
        assert "read-only" in lived_in.refuses(*words).lower(), words
    lived_in.remount("rw")
    lived_in.answers("store", "The crane is blue.", "--subject", "Crane")
    assert lived_in.subjects() == {"Gate", "Lunch", "Crane"}
    lived_in.is_sound()


def test_acknowledged_memory_is_recalled_from_a_read_only_disk(
    lived_in: Disk,
) -> None:
    assert lived_in.run(sys.executable, "-c", STORE_AND_DIE).code in (
        -signal.SIGKILL,
        128 + signal.SIGKILL,
    )
    lived_in.remount("ro")
    assert lived_in.subjects() == {"Gate", "Lunch", "Ferry"}


def test_file_size_limit_preserves_acknowledged_memories(tmp_path: Path) -> None:
    """A file size limit interrupts writes like a quota; it needs no mount rights."""
    alone = Disk(Place(tmp_path), ())
    alone.answers("store", "The gate code is on the wall.", "--subject", "Gate")
    size = (alone.place.home / "nacre.db").stat().st_size + 40_000

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    result = alone.run(sys.executable, "-c", STORE_MANY, before=limited)
    acknowledged = set(result.out.splitlines())
    assert result.err, "the limit was not reached"
    assert "Traceback" not in result.err
    assert alone.subjects() - {"Gate"} >= acknowledged
    alone.answers("store", "Lunch is at noon.", "--subject", "Lunch")
    alone.is_sound()


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind root"
)
def test_read_only_home_is_readable(tmp_path: Path) -> None:
    alone = Disk(Place(tmp_path), ())
    alone.answers("store", "The gate code is on the wall.", "--subject", "Gate")
    alone.place.home.chmod(0o500)
    try:
        assert alone.subjects() == {"Gate"}
        alone.refuses("store", "Lunch is at noon.", "--subject", "Lunch")
    finally:
        alone.place.home.chmod(0o700)
    alone.answers("store", "Lunch is at noon.", "--subject", "Lunch")
