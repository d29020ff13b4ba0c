"""What nacre is interrupted in. A scenario is a line in ``SCENARIOS``: what is there before, and commands that follow.

Its memories have subjects of their own: by them a memory is known again, whatever its id. A step is a command line, or
a function that works with an open home where no command does the like.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apsw

from nacre.app import operations, writing
from nacre.app.context import Context, open_context
from nacre.app.ingesting import ingest
from nacre.app.operating import operating
from nacre.app.undoing import undo
from nacre.model.memory import Kind, Link, Memory, Retirement
from nacre.settings import Settings, load_settings
from nacre.storage.migrate import migrations
from tests.app.conftest import WordEmbedder

OLD_SCHEMA = 4


@dataclass(frozen=True, slots=True)
class Place:
    """A user's machine: a home folder, nacre's home in it."""

    user: Path

    @property
    def home(self) -> Path:
        """nacre's home."""
        return self.user / ".nacre"

    @property
    def vault(self) -> Path:
        """The folder of memories."""
        return self.home / "vault"


Command = Sequence[str]
Work = Callable[[Context], object]


@dataclass(frozen=True, slots=True)
class Hand:
    """What is done to files while no nacre runs."""

    do: Callable[[Place], object]


@dataclass(frozen=True, slots=True)
class Step:
    """A command, or work with an open home. ``is_whole``: after a crash all of it is there, or nothing."""

    run: Command | Work
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Scenario:
    """``before`` makes the home, ``by_hand`` is what a person does to its files just before ``steps`` begin.

    ``may_tell`` is part of a warning that nacre gives rightly.
    """

    name: str
    steps: tuple[Step, ...]
    before: tuple[Command | Work | Hand, ...] = ()
    by_hand: Hand | None = None
    may_tell: str | None = None


def said(role: str, text: str, number: int, session: str) -> dict[str, Any]:
    """A record of a Claude Code transcript."""
    content: Any = text if role == "user" else [{"type": "text", "text": text}]
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": f"msg_{session}_{number}", "model": "model-1"}
    return {
        "type": role, "uuid": f"{session}-turn-{number}", "parentUuid": None, "sessionId": session,
        "timestamp": f"2026-11-18T09:{number:02d}:00.000Z", "cwd": "/code/harbour", "version": "2.1.0",
        "gitBranch": "main", "isSidechain": False, "message": message,
    }  # fmt: skip


TALKS = {
    "5e55-0001": (
        ("user", "Remember that the staging database is called heron and lives in Frankfurt."),
        ("assistant", "Noted: heron, in Frankfurt."),
        ("user", "From now on always run the linter before you commit anything."),
    ),
    "5e55-0002": (
        ("user", "We decided to use PostgreSQL for the harbour service because it needs transactions."),
        ("assistant", "Done: the harbour service runs on PostgreSQL."),
    ),
    "5e55-0003": (("user", "Remember that the quay camera is replaced every second spring."),),
}


def talk(*sessions: str, first: int = 0, last: int | None = None) -> Hand:
    """Transcripts where discovery finds them; their turns from ``first`` to ``last``."""

    def write(place: Place) -> None:
        folder = place.user / ".claude/projects/-code-harbour"
        folder.mkdir(parents=True, exist_ok=True)
        for session in sessions:
            lines = [said(role, text, number, session) for number, (role, text) in enumerate(TALKS[session])]
            with (folder / f"{session}.jsonl").open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines[first:last])

    return Hand(write)


def stored(subject: str, content: str, *more: str) -> Command:
    """The command that stores a memory."""
    return ("store", content, "--subject", subject, *more)


GATE = stored("Gate", "The gate code is on the wall.", "--project", "harbour")
LUNCH = stored("Lunch", "Lunch is at noon on weekdays.", "--tag", "kitchen")
CRANE = stored("Crane", "The crane is inspected every June by two people.", "--kind", "decision")
OLD_BUILD = stored("Old build", "The build runs on Jenkins.", "--key", "build-system")
NEW_BUILD = stored("New build", "The build runs on Buildkite.", "--key", "build-system")
SOURCES = tuple((f"Rope {number}", f"Rope number {number} hangs at bollard {number * 7}.") for number in range(12))


def open_home(settings: Settings | None = None) -> Context:
    """The home that the environment names."""
    return open_context(settings or load_settings())


def _named(context: Context, subject: str) -> Memory:
    (found,) = context.memories.find_like(subject)
    return found


def store_ropes(context: Context) -> None:
    """Twelve memories in one write."""
    now = context.now()
    ropes = [Memory(context.ids(), Kind.FACT, subject, words, now, now) for subject, words in SOURCES]
    writing.save(context, ropes)


def consolidate(context: Context) -> None:
    """As a dream does: replacements are written first, then their sources retired, as one operation of many batches."""
    writing.BATCH = 5
    now = context.now()
    with context.vault_lock, operating(context, "dream", subject="ropes", why="they say one thing each"):
        sources = [_named(context, subject) for subject, _ in SOURCES]
        for number in range(3):
            part = sources[number * 4 : number * 4 + 4]
            subject = f"Ropes {number}"
            if context.memories.find_like(subject):
                continue
            words = " ".join(rope.content for rope in part)
            links = tuple(Link("builds_on", rope.id) for rope in part)
            writing.save(context, [Memory(context.ids(), Kind.FACT, subject, words, now, now, links=links)])
        gone = [replace(rope, retired=Retirement(now, "merged")) for rope in sources if not rope.retired]
        writing.save(context, gone, [writing.entry(context, "retire", memory=rope.id) for rope in gone])


def import_many(context: Context) -> None:
    """A batch that is one transaction: fourteen memories, two of which change."""
    now = context.now()
    new = [
        Memory(context.ids(), Kind.FACT, f"Buoy {number}", f"Buoy {number} is {number} miles out.", now, now)
        for number in range(12)
        if not context.memories.find_like(f"Buoy {number}")
    ]
    changed = [replace(_named(context, name), importance=9) for name in ("Gate", "Lunch")]
    writing.save(context, [*new, *changed], [writing.entry(context, "import", count=len(new))])


def undo_edit(context: Context) -> None:
    """Undo the edit that came last, unless that was done."""
    listed = [one.operation for one in operations.log(context, limit=30)]
    if not any(one.action == "undo" for one in listed):
        undo(context, next(one.id for one in listed if one.action == "update"))


def ingest_with_vectors(context: Context) -> None:
    """Ingest where texts are embedded, and memories compared by meaning; a stand-in embeds, which needs no model."""
    settings = load_settings(environ={**os.environ, "NACRE_EMBEDDING_MODEL": "minilm"})
    home = open_context(settings, load_embedder=lambda _: WordEmbedder())
    try:
        ingest(home)
    finally:
        home.database.close()


@Hand
def edit_by_hand(place: Place) -> None:
    """What people do between two commands: edit, move to another folder, delete, write a note of their own."""
    gate = place.vault / "projects/harbour/fact/gate.md"
    gate.write_text(gate.read_text().replace("on the wall", "with the porter"))
    lunch = place.vault / "global/fact/lunch.md"
    (place.vault / "global/event").mkdir()
    lunch.rename(place.vault / "global/event/lunch.md")
    (place.vault / "global/decision/crane.md").unlink()
    (place.vault / "global/fact/note.md").write_text("# Ferry\n\nThe ferry leaves at seven.\n")
    copied = (place.vault / "global/fact/old-build.md").read_text().replace("Old b", "Copied b")
    (place.vault / "global/fact/old-build copy.md").write_text(copied.replace("Jenkins", "Bamboo"))


@Hand
def to_old_schema(place: Place) -> None:
    """Make the database one that a nacre of some months ago wrote: the same rows, fewer tables and columns."""
    database = place.home / "nacre.db"
    new = place.home / "newer.db"
    for suffix in ("-wal", "-shm"):
        assert not database.with_name(database.name + suffix).exists()
    database.rename(new)
    descriptor = os.open(database, os.O_CREAT | os.O_WRONLY, 0o600)
    os.close(descriptor)
    with apsw.Connection(str(database)) as old:
        for number, sql in migrations().items():
            if number <= OLD_SCHEMA:
                old.execute(sql)
        old.execute("ATTACH ? AS newer", (str(new),)).fetchall()
        tables = old.execute(
            "SELECT name FROM main.sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        ).fetchall()
        for (table,) in tables:
            here, there = (
                {row[1] for row in old.execute(f"PRAGMA {schema}.table_info('{table}')")}
                for schema in ("main", "newer")
            )
            columns = ", ".join(sorted(here & there))
            old.execute(f"DELETE FROM main.'{table}'")  # noqa: S608 - names come from the schema
            old.execute(f"INSERT INTO main.'{table}' ({columns}) SELECT {columns} FROM newer.'{table}'")  # noqa: S608
        old.execute("DELETE FROM main.intents")  # what is done was not kept then
        old.execute(f"PRAGMA user_version = {OLD_SCHEMA}; PRAGMA journal_mode = WAL").fetchall()
    old.close()
    new.unlink()


@Hand
def begin_remote(place: Place) -> None:
    """A repository to keep in step with."""
    remote = place.user / "remote.git"
    _git(place.user, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    _git(place.vault, "remote", "add", "origin", str(remote))


@Hand
def change_elsewhere(place: Place) -> None:
    """Another machine, with a plain git: it edits one memory, and takes one away."""
    other = place.user / "other"
    _git(place.user, "clone", "--quiet", str(place.user / "remote.git"), str(other))
    gate = other / "projects/harbour/fact/gate.md"
    gate.write_text(gate.read_text().replace("on the wall", "with the porter"))
    (other / "global/decision/crane.md").unlink()
    _git(other, "-c", "user.name=Jo", "-c", "user.email=jo@example.org", "commit", "--quiet", "-a", "-m", "porter")
    _git(other, "push", "--quiet")


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _steps(*runs: Command | Work, is_whole: bool = True) -> tuple[Step, ...]:
    return tuple(Step(run, is_whole) for run in runs)


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("first store", _steps(GATE)),
        Scenario("store", _steps(LUNCH, CRANE), before=(GATE,)),
        Scenario("edit", _steps(
            ("edit", "Gate", "--content", "The gate code is in the safe.", "--importance", "9"),
            ("edit", "Lunch", "--kind", "event"),
        ), before=(GATE, LUNCH)),
        Scenario("supersede", _steps(NEW_BUILD), before=(OLD_BUILD,)),
        Scenario("retire", _steps(("retire", "Gate", "Lunch", "--reason", "outdated")), before=(GATE, LUNCH, CRANE)),
        Scenario("unretire", _steps(("unretire", "Gate")), before=(GATE, LUNCH, ("retire", "Gate"))),
        Scenario("ingest", _steps(("ingest",), is_whole=False), before=(
            LUNCH, talk("5e55-0001", "5e55-0002", "5e55-0003"),
        )),
        Scenario("ingest more", _steps(("ingest",), is_whole=False), before=(
            talk("5e55-0001", last=1), talk("5e55-0002"), ("ingest",), talk("5e55-0001", first=1), talk("5e55-0003"),
        )),
        Scenario("batch", _steps(import_many), before=(GATE, LUNCH)),
        Scenario("consolidate", _steps(consolidate, is_whole=False), before=(store_ropes,)),
        Scenario("migrate", _steps(("list",), LUNCH), before=(
            GATE, talk("5e55-0001"), ("ingest",), ("retire", "Gate"),
        ), by_hand=to_old_schema),
        Scenario("edit by hand", _steps(("list",), is_whole=False), before=(GATE, LUNCH, CRANE, OLD_BUILD),
                 by_hand=edit_by_hand, may_tell="read as a memory of its own"),
        Scenario("vectors", _steps(ingest_with_vectors, is_whole=False), before=(
            stored("Linter", "Always run the linter before you commit."), talk("5e55-0001", "5e55-0002"),
        )),
        Scenario("commit", _steps(("commit",)), before=(GATE, LUNCH, ("retire", "Lunch"))),
        Scenario("commit more", _steps(CRANE, ("commit",)), before=(GATE, ("commit",), LUNCH)),
        Scenario("sync", _steps(("sync",), is_whole=False), before=(
            GATE, CRANE, ("commit",), begin_remote, ("sync",), LUNCH, ("edit", "Gate", "--importance", "9"),
            change_elsewhere,
        )),
        Scenario("forget", _steps(("forget", "--match", "heron", "--yes"), is_whole=False), before=(
            GATE, stored("Heron", "The heron database is backed up at night."), talk("5e55-0001", "5e55-0002"),
            ("ingest",), ("commit",),
        )),
        Scenario("undo", _steps(undo_edit), before=(
            GATE, LUNCH, ("edit", "Gate", "--content", "The gate code is in the safe.", "--kind", "event"),
        )),
        Scenario("scrub", _steps(("scrub", "--yes"), is_whole=False), before=(
            GATE, LUNCH, talk("5e55-0001"), ("ingest",), ("config", "set", "redaction.patterns", '["on the wall"]'),
        )),
        Scenario("rebuild", _steps(("db", "rebuild", "--yes"), is_whole=False), before=(
            GATE, OLD_BUILD, NEW_BUILD, talk("5e55-0001"), ("ingest",), ("retire", "Gate"),
        )),
    )
}  # fmt: skip
