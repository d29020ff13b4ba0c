"""Damage a home at random, run what reads and mends it, and follow what is told until all is well again.

Each part of a home is damaged in ways of its own: bytes of any file, rows of the database by SQL. What follows is asked
through the command line, in this process: no command may fail in a way that nobody foresaw, and the remedies that are
told lead to a home in which every memory that was not damaged itself is as before.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
from click.testing import CliRunner

from nacre.cli.root import cli
from tests.cli.conftest import SESSION, TALK, said, write_transcript

KINDS = ("database", "ledger", "vault", "archive", "backup")
"""What is damaged: one of them in each run."""

TOUCHED = ("Ferry", "Depth of the well")
"""Memories that commands of a run may retire."""

CODES = frozenset(range(6))
ROUNDS = 4
DEEP = b'{"a":' + b"[" * 100_000
_BITS = (
    b"\xff\xfe\xfd",
    b"\0" * 40,
    b"\r",
    b"\n\n",
    b"---\n",
    b"<<<<<<< ours\n",
    b'{"op": 3}\n',
    DEEP,
    b"\xed\xa0\x80",
)
_ODD = (
    "CAST(x'fffe41' AS TEXT)",
    "'not what it was'",
    "'[[[[['",
    "'{}'",
    "'[1, 2'",
    "''",
    "NULL",
    "-1",
    "9223372036854775807",
    "x'00ff'",
    "1.5e308",
    "'2026-99-99'",
    "'" + "[" * 3000 + "'",
)
_NOTES = (
    ("Well", "The well in the courtyard is eleven metres deep."),
    ("Gate", "The garden gate sticks when it rains."),
    ("Bees", "Both hives face south, behind the plum trees."),
    ("Ferry", "The ferry leaves at ten past every hour."),
    ("Stove", "The stove burns beech, never spruce."),
    ("Attic", "The attic holds the winter curtains."),
    ("Clock", "The station clock is four minutes fast."),
    ("Cellar", "Apples keep until March in the cellar."),
)


@dataclass(frozen=True, slots=True)
class Told:
    """What a command answered."""

    command: tuple[str, ...]
    code: int
    out: str

    @property
    def record(self) -> dict[str, Any]:
        """Its answer; empty where it gave none."""
        try:
            found = json.loads(self.out)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def hints(self) -> Iterator[str]:
        """What it says is to be done."""
        record = self.record
        yield from filter(None, [(record.get("error") or {}).get("hint")])
        for check in record.get("checks", ()):
            if check["state"] != "ok" and check["hint"]:
                yield check["hint"]
        yield from (one["repair"] for one in record.get("findings", ()))

    @property
    def words(self) -> str:
        """All that it says is wrong."""
        record = self.record
        parts = [str((record.get("error") or {}).get("message", ""))]
        parts += [check["detail"] for check in record.get("checks", ()) if check["state"] != "ok"]
        parts += [one["sentence"] for one in record.get("findings", ())]
        return "\n".join([*filter(None, parts), *([] if record else [self.out])])


@dataclass(slots=True)
class Result:
    """One run: what was damaged, what was wrong with what came of it, whether anything noticed, what mended it."""

    kind: str
    damage: str
    wrong: list[str] = field(default_factory=list)
    noticed: bool = False
    remedies: list[str] = field(default_factory=list)
    mended: list[Path] = field(default_factory=list)


def environment(folder: Path) -> dict[str, str]:
    """What a process needs in its environment to work with the machine in a folder."""
    user = str(folder / "user")
    return {
        "HOME": user,
        "USERPROFILE": user,
        "NACRE_HOME": str(folder / "user" / ".nacre"),
        "TZ": "UTC",
        "NACRE_EMBEDDING_MODEL": "none",
        "NACRE_GIT_BACKGROUND": "false",
    }


class Stage:
    """A user's machine in a folder, which is made once and brought back before each damage.

    The environment of this process is that of :func:`environment` as long as it is used.
    """

    def __init__(self, folder: Path) -> None:
        self.user, self._kept = folder / "user", folder / "kept"
        self.home = self.user / ".nacre"
        self._make()
        self.memories = self.listed()
        shutil.copytree(self.user, self._kept, symlinks=True)

    def run(self, *command: str) -> Told:
        """Give a command."""
        result = CliRunner().invoke(cli, list(command))
        return Told(
            command, result.exit_code, result.stdout + (result.stderr if not result.stdout else "")
        )

    def listed(self) -> dict[str, Any]:
        """Every memory by its id, as ``list`` tells it."""
        told = self.run("list", "--all", "--json").record
        return {one["id"]: (one["subject"], one["content"]) for one in told.get("memories", ())}

    def reset(self) -> None:
        """Bring the machine back as it was made."""
        shutil.rmtree(self.user)
        shutil.copytree(self._kept, self.user, symlinks=True)

    def original(self, path: Path) -> Path:
        """A file as it was made."""
        return self._kept / path.relative_to(self.user)

    def _make(self) -> None:
        folder = self.user / ".claude" / "projects" / "-work-acme-billing"
        write_transcript(
            folder / f"{SESSION}.jsonl", [said(*one, number) for number, one in enumerate(TALK)]
        )
        self.run("config", "set", "archive.enabled", "true")
        self.run("ingest")
        for subject, words in _NOTES:
            self.run("store", words, "--subject", subject, "--tag", "house")
        self.run("retire", "Attic", "--yes")
        self.run("edit", "Gate", "--importance", "8")
        self.run(
            "store",
            "The well is fourteen metres deep.",
            "--subject",
            "Depth of the well",
            "--project",
            "garden",
        )
        self.run("recall", "how deep is the well")
        self.run("admin", "commit")
        self.run("data", "backup", "create", str(self.user / "home.zip"))
        self.run("data", "export", str(self.user / "all.jsonl"), "--sessions")
        self.run("data", "export", str(self.user / "all.zip"))


def damage(stage: Stage, kind: str, rng: random.Random) -> tuple[str, list[Path]]:
    """Damage something of a kind; returns what was done, in words, and the files it was done to."""
    if kind == "database" and rng.random() < 0.7:
        return _spoil_rows(stage.home / "nacre.db", rng), [stage.home / "nacre.db"]
    paths = sorted(path for path in _places(stage, kind) if path.is_file())
    chosen = rng.sample(paths, min(len(paths), rng.choice((1, 1, 1, 2))))
    if kind == "archive" and rng.random() < 0.3:  # the tool has deleted its transcript
        next((stage.user / ".claude").rglob("*.jsonl")).unlink()
    if kind == "vault" and rng.random() < 0.1:
        return _odd_name(rng.choice(paths)), []
    return "; ".join(
        f"{path.relative_to(stage.user)}: {_spoil(path, rng)}" for path in chosen
    ), chosen


def _places(stage: Stage, kind: str) -> Iterator[Path]:
    home = stage.home
    match kind:
        case "database":
            yield from (home / "nacre.db", home / "nacre.db-wal")
        case "ledger":
            yield home / "vault" / "ledger.jsonl"
        case "vault":
            yield from (home / "vault").rglob("*.md")
        case "archive":
            yield from (home / "archive").rglob("*")
        case _:
            yield from (stage.user / name for name in ("home.zip", "all.jsonl", "all.zip"))


def _spoil(path: Path, rng: random.Random) -> str:
    """Change some bytes of a file."""
    data = bytearray(path.read_bytes())
    at = rng.randrange(len(data) + 1)
    until = min(len(data), at + rng.choice((1, 4, 30, 400, 5000)))
    flipped = bytearray(data)
    for index in rng.sample(range(len(data)), min(len(data), rng.choice((1, 8)))):
        flipped[index] ^= 1 << rng.randrange(8)
    before, within, after = data[:at], data[at:until], data[until:]
    ways = {
        "flip": flipped,
        "cut": before,
        "zero": before + bytes(until - at) + after,
        "delete": before + after,
        "insert": before + rng.choice(_BITS) + within + after,
        "double": before + within * 2 + after,
        "garble": before + rng.randbytes(until - at) + after,
        "empty": b"",
        "remove": None,
    }
    way = rng.choice(list(ways))
    spoiled = ways[way]
    if spoiled is None:
        path.unlink()
    else:
        path.write_bytes(spoiled)
    return f"{way} at {at} to {until}"


def _odd_name(path: Path) -> str:
    other = Path(os.fsdecode(os.fsencode(path.parent) + b"/odd-\xe9\xff.md"))
    shutil.copy(path, other)
    return f"a copy of {path.name} has a name that is no UTF-8"


def _spoil_rows(path: Path, rng: random.Random) -> str:
    """Change rows of the database, or its schema, as no program of nacre's does."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON").fetchall()
    try:
        tables = [
            row[0]
            for row in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
            )
        ]
        full = [
            one
            for one in tables
            if connection.execute(f'SELECT count(*) FROM "{one}"').fetchone()[0]  # noqa: S608
        ]
        for _ in range(50):
            table = rng.choice(tables if rng.random() < 0.1 else full)
            statement, is_loose = _statement(connection, table, rng)
            before = connection.total_changes()
            try:
                with _unlaced(connection, table) if is_loose else contextlib.nullcontext():
                    connection.execute(statement).fetchall()
            except apsw.Error:
                continue
            if connection.total_changes() != before or statement.startswith("DROP"):
                return statement[:200]
        return "nothing"
    finally:
        connection.close()


def _statement(connection: apsw.Connection, table: str, rng: random.Random) -> tuple[str, bool]:
    """A statement that spoils rows of a table, and whether the table must take values of any type for it."""
    columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
    where = rng.choice(
        ("1", "rowid % 2 = 0", f'rowid = (SELECT rowid FROM "{table}" ORDER BY random() LIMIT 1)')  # noqa: S608
    )
    draw = rng.random()
    if draw < 0.05:
        return f'DROP TABLE "{table}"', False
    if draw < 0.2:
        return f'DELETE FROM "{table}" WHERE {where}', False  # noqa: S608
    column = rng.choice(columns)
    value = rng.choice(_ODD) if draw < 0.9 else f'"{rng.choice(columns)}"'
    return f'UPDATE "{table}" SET "{column}" = {value} WHERE {where}', draw > 0.6  # noqa: S608


@contextlib.contextmanager
def _unlaced(connection: apsw.Connection, table: str) -> Iterator[None]:
    """Have a strict table take values of other types for a moment, as damage to its pages does."""
    schema = "UPDATE sqlite_schema SET sql = ? WHERE name = ?"
    find = "SELECT sql FROM sqlite_schema WHERE name = ?"
    (kept,) = connection.execute(find, (table,)).fetchone()
    connection.execute("PRAGMA writable_schema = ON").fetchall()
    try:
        connection.execute(schema, (kept.replace(") STRICT", ")").replace("NOT NULL", ""), table))
        connection.execute("PRAGMA writable_schema = RESET").fetchall()
        yield
    finally:
        connection.execute("PRAGMA writable_schema = ON").fetchall()
        connection.execute(schema, (kept, table))
        connection.execute("PRAGMA writable_schema = RESET").fetchall()


READING: tuple[tuple[str, ...], ...] = (
    ("list", "--json"),
    ("recall", "where do the hives face", "--json"),
    ("admin", "doctor", "--json"),
    ("admin", "doctor", "--deep", "--json"),
    ("log", "--json"),
    ("search", "ledger", "--json"),
)
WRITING: tuple[tuple[str, ...], ...] = (
    ("ingest", "--json"),
    ("store", "The mill wheel turns again.", "--subject", "Mill", "--json"),
    ("data", "backup", "create", "{user}/again.zip", "--force", "--json"),
    ("admin", "scrub", "--yes", "--json"),
    ("data", "export", "{user}/again.jsonl", "--force", "--json"),
    ("admin", "commit", "--json"),
    ("sessions", "--json"),
    ("writer", "cost", "--json"),
    ("writer", "traces", "--json"),
    ("review", "--json"),
    ("sync", "--remote", "{user}/remote.git", "--json"),
    ("admin", "db", "stats", "--json"),
    ("context", "--json"),
    ("todo", "--json"),
    ("show", "Bees", "--history", "--json"),
    ("data", "archive", "--json"),
    ("admin", "db", "rebuild", "--yes", "--json"),
    ("undo", "{last}", "--yes", "--json"),
    ("retire", "Ferry", "--yes", "--json"),
    ("data", "backup", "verify", "{user}/home.zip", "--json"),
    ("data", "import", "{user}/all.jsonl", "--yes", "--trust", "--json"),
)
OF_A_BACKUP: tuple[tuple[str, ...], ...] = (
    ("data", "backup", "verify", "{user}/home.zip", "--json"),
    ("data", "backup", "restore", "{user}/home.zip", "--to", "{user}/other", "--json"),
    ("data", "import", "{user}/all.jsonl", "--yes", "--trust", "--json"),
    ("data", "import", "{user}/all.zip", "--yes", "--json"),
)


def try_one(stage: Stage, kind: str, seed: str) -> Result:
    """Damage once, look at everything, follow the remedies, look again."""
    rng = random.Random(seed)  # noqa: S311 - a run can be repeated
    stage.reset()
    done, damaged = damage(stage, kind, rng)
    result = Result(kind, done)
    commands = OF_A_BACKUP if kind == "backup" else (*READING, *rng.sample(WRITING, 4))
    told = [_ask(stage, result, command) for command in commands]
    result.noticed = any(one.code or list(one.hints) for one in told)
    if kind == "backup":
        result.wrong += [f"lost by reading a backup: {name}" for name in _lost(stage, damaged)]
        return result
    _mend(stage, result, told, damaged)
    result.wrong += [f"not as before after all remedies: {name}" for name in _lost(stage, damaged)]
    return result


def _ask(stage: Stage, result: Result, command: Sequence[str]) -> Told:
    last = _last(stage) if "{last}" in command else ""
    told = stage.run(
        *(word.replace("{user}", str(stage.user)).replace("{last}", last) for word in command)
    )
    error = told.record.get("error") or {}
    name = " ".join(command[:3])
    if told.code not in CODES or error.get("code") == "unexpected":
        log = stage.home / "logs" / "errors.log"
        trace = log.read_text(errors="replace")[-900:] if log.is_file() else ""
        result.wrong.append(f"{name}: {told.code} {told.out[:300]} {trace}")
    elif error and not error.get("hint"):
        result.wrong.append(f"{name}: no way out: {error.get('message')}")
    return told


def _last(stage: Stage) -> str:
    found = stage.run("log", "--json").record.get("operations") or [{"operation": {"id": "0000"}}]
    return str(found[0]["operation"]["id"])


def _mend(stage: Stage, result: Result, told: Sequence[Told], damaged: Sequence[Path]) -> None:
    """Do what is told, until ``doctor --deep`` finds nothing that failed."""
    for _ in range(ROUNDS):
        hints = " | ".join(hint for one in told for hint in one.hints)
        words = "\n".join(one.words for one in told)
        for remedy in REMEDIES:
            if remedy.search(hints) or remedy.search(words):
                result.remedies.append(remedy.pattern)
                _remedy(stage, result, remedy.pattern, f"{words}\n{hints}", damaged)
        told = [
            _ask(stage, result, ("admin", "doctor", *deep, "--json")) for deep in ((), ("--deep",))
        ]
        if all(one.code == 0 for one in told):
            return
    words = "\n".join(one.words for one in told)
    result.wrong.append(f"the remedies do not help: {result.remedies} {words[:600]}")


REMEDIES = tuple(
    map(
        re.compile,
        (
            "move it away",
            "mend the file|correct the file|rename it|correct or remove it|delete it|bring them back|between the two"
            "|remove the marks",
            "nacre admin db rebuild",
            "nacre admin doctor --deep --repair",
            "nacre admin doctor --repair",
            "nacre retire --restore",
            "nacre ingest",
        ),
    )
)


def _remedy(stage: Stage, result: Result, remedy: str, told: str, damaged: Sequence[Path]) -> None:
    if remedy == "move it away":
        if (stage.home / "nacre.db").exists():
            (stage.home / "nacre.db").rename(stage.user / "moved-away.db")
    elif remedy.startswith("mend the file"):
        _mend_files(stage, result, told, damaged)
    elif remedy == "nacre retire --restore":
        for one in re.findall(r"nacre retire --restore ([0-9a-f]{8})", told):
            _ask(stage, result, ("retire", "--restore", one, "--json"))
    elif (
        again := re.findall(r"nacre ingest --force (\S+)", told) if remedy == "nacre ingest" else []
    ):
        for path in dict.fromkeys(again):
            _ask(stage, result, ("ingest", "--force", path, "--json"))
    else:
        more = ("--yes",) if "rebuild" in remedy else ()
        _ask(stage, result, (*remedy.split()[1:], *more, "--json"))


def _mend_files(stage: Stage, result: Result, told: str, damaged: Sequence[Path]) -> None:
    """What a person does who is told of a file: puts back what it was, or takes away what is no line of a ledger."""
    for path in stage.home.rglob("odd-*.md"):
        path.unlink()
    for path in damaged:
        if path.name in told and path not in result.mended:
            result.mended.append(path)
            shutil.copy(stage.original(path), path)


def _lost(stage: Stage, damaged: Sequence[Path]) -> list[str]:
    """Memories that were not damaged and are not as they were."""
    own = {_id_in(stage.original(path)) for path in damaged if path.suffix == ".md"}
    present = stage.listed()
    return [
        f"{one}: {said} is now {present.get(one)}"
        for one, said in stage.memories.items()
        if one not in own and present.get(one) != said and said[0] not in TOUCHED
    ]


def _id_in(path: Path) -> str:
    found = re.search(r"^id: (\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""
