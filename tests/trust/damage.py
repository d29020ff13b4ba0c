"""Damage a home at random, run the commands that read and repair it, and follow the hints until all is well again.

Each part of a home is damaged in its own ways: bytes of any file, rows of the database by SQL. The commands run
in this process: no command may fail unexpectedly, and the hints lead to a home in which every undamaged memory is
unchanged.
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
"""The damaged part; one of them in each run."""

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
class Answer:
    """The result of a command."""

    command: tuple[str, ...]
    code: int
    out: str

    @property
    def record(self) -> dict[str, Any]:
        """Return the JSON answer, or an empty dictionary."""
        try:
            value = json.loads(self.out)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def hints(self) -> Iterator[str]:
        """Yield the hints of the answer."""
        record = self.record
        yield from filter(None, [(record.get("error") or {}).get("hint")])
        for check in record.get("checks", ()):
            if check["state"] != "ok" and check["hint"]:
                yield check["hint"]

    @property
    def words(self) -> str:
        """Return all problems in the answer."""
        record = self.record
        parts = [str((record.get("error") or {}).get("message", ""))]
        parts += [check["detail"] for check in record.get("checks", ()) if check["state"] != "ok"]
        return "\n".join([*filter(None, parts), *([] if record else [self.out])])


@dataclass(slots=True)
class Result:
    """One run: the damage, the remaining problems, whether a command reported the damage, and the remedies."""

    kind: str
    damage: str
    wrong: list[str] = field(default_factory=list)
    noticed: bool = False
    remedies: list[str] = field(default_factory=list)
    mended: list[Path] = field(default_factory=list)


def environment(folder: Path) -> dict[str, str]:
    """Return the environment variables of a process that uses the machine in a folder."""
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
    """A user's machine in a folder, created once and restored before each damage.

    This process has the environment of :func:`environment` while the stage is in use.
    """

    def __init__(self, folder: Path) -> None:
        self.user, self._kept = folder / "user", folder / "kept"
        self.home = self.user / ".nacre"
        self._make()
        self.memories = self.listed()
        shutil.copytree(self.user, self._kept, symlinks=True)

    def run(self, *command: str) -> Answer:
        """Run a command."""
        result = CliRunner().invoke(cli, list(command))
        return Answer(
            command, result.exit_code, result.stdout + (result.stderr if not result.stdout else "")
        )

    def listed(self) -> dict[str, Any]:
        """Return every memory of ``list`` by id."""
        answer = self.run("list", "--all", "--json").record
        return {
            item["id"]: (item["subject"], item["content"]) for item in answer.get("memories", ())
        }

    def reset(self) -> None:
        """Restore the machine to its initial state."""
        shutil.rmtree(self.user)
        shutil.copytree(self._kept, self.user, symlinks=True)

    def original(self, path: Path) -> Path:
        """Return the initial version of a file."""
        return self._kept / path.relative_to(self.user)

    def _make(self) -> None:
        folder = self.user / ".claude" / "projects" / "-work-acme-billing"
        write_transcript(
            folder / f"{SESSION}.jsonl", [said(*item, number) for number, item in enumerate(TALK)]
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
    """Damage a part of the home; return a description and the damaged files."""
    if kind == "database" and rng.random() < 0.7:
        return _spoil_rows(stage.home / "nacre.db", rng), [stage.home / "nacre.db"]
    paths = sorted(path for path in _places(stage, kind) if path.is_file())
    chosen = rng.sample(paths, min(len(paths), rng.choice((1, 1, 1, 2))))
    if kind == "archive" and rng.random() < 0.3:  # the tool deleted its transcript
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
    """Change database rows or the schema in ways that no program of nacre does."""
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
            item
            for item in tables
            if connection.execute(f'SELECT count(*) FROM "{item}"').fetchone()[0]  # noqa: S608
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
    """Return a statement that damages rows of a table, and whether it needs values of any type."""
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
    """Disable a strict table's type checks in the block, as damage to its pages does."""
    schema = "UPDATE sqlite_schema SET sql = ? WHERE name = ?"
    find = "SELECT sql FROM sqlite_schema WHERE name = ?"
    (sql,) = connection.execute(find, (table,)).fetchone()
    connection.execute("PRAGMA writable_schema = ON").fetchall()
    try:
        connection.execute(schema, (sql.replace(") STRICT", ")").replace("NOT NULL", ""), table))
        connection.execute("PRAGMA writable_schema = RESET").fetchall()
        yield
    finally:
        connection.execute("PRAGMA writable_schema = ON").fetchall()
        connection.execute(schema, (sql, table))
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
    """Damage once, run all commands, follow the remedies, check again."""
    rng = random.Random(seed)  # noqa: S311 - a run can be repeated
    stage.reset()
    description, damaged = damage(stage, kind, rng)
    result = Result(kind, description)
    commands = OF_A_BACKUP if kind == "backup" else (*READING, *rng.sample(WRITING, 4))
    answers = [_ask(stage, result, command) for command in commands]
    result.noticed = any(item.code or list(item.hints) for item in answers)
    if kind == "backup":
        result.wrong += [f"lost by reading a backup: {name}" for name in _lost(stage, damaged)]
        return result
    _mend(stage, result, answers, damaged)
    result.wrong += [f"not as before after all remedies: {name}" for name in _lost(stage, damaged)]
    return result


def _ask(stage: Stage, result: Result, command: Sequence[str]) -> Answer:
    last = _last(stage) if "{last}" in command else ""
    answer = stage.run(
        *(word.replace("{user}", str(stage.user)).replace("{last}", last) for word in command)
    )
    error = answer.record.get("error") or {}
    name = " ".join(command[:3])
    if answer.code not in CODES or error.get("code") == "unexpected":
        log = stage.home / "logs" / "errors.log"
        trace = log.read_text(errors="replace")[-900:] if log.is_file() else ""
        result.wrong.append(f"{name}: {answer.code} {answer.out[:300]} {trace}")
    elif error and not error.get("hint"):
        result.wrong.append(f"{name}: no way out: {error.get('message')}")
    return answer


def _last(stage: Stage) -> str:
    operations = stage.run("log", "--json").record.get("operations") or [
        {"operation": {"id": "0000"}}
    ]
    return str(operations[0]["operation"]["id"])


def _mend(stage: Stage, result: Result, answers: Sequence[Answer], damaged: Sequence[Path]) -> None:
    """Follow the hints until ``doctor --deep`` finds no failure."""
    for _ in range(ROUNDS):
        hints = " | ".join(hint for item in answers for hint in item.hints)
        words = "\n".join(item.words for item in answers)
        for remedy in REMEDIES:
            if remedy.search(hints) or remedy.search(words):
                result.remedies.append(remedy.pattern)
                _remedy(stage, result, remedy.pattern, f"{words}\n{hints}", damaged)
        answers = [
            _ask(stage, result, ("admin", "doctor", *deep, "--json")) for deep in ((), ("--deep",))
        ]
        if all(item.code == 0 for item in answers):
            return
    words = "\n".join(item.words for item in answers)
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


def _remedy(stage: Stage, result: Result, remedy: str, hints: str, damaged: Sequence[Path]) -> None:
    if remedy == "move it away":
        if (stage.home / "nacre.db").exists():
            (stage.home / "nacre.db").rename(stage.user / "moved-away.db")
    elif remedy.startswith("mend the file"):
        _mend_files(stage, result, hints, damaged)
    elif remedy == "nacre retire --restore":
        for item in re.findall(r"nacre retire --restore ([0-9a-f]{8})", hints):
            _ask(stage, result, ("retire", "--restore", item, "--json"))
    elif (
        again := re.findall(r"nacre ingest --force (\S+)", hints)
        if remedy == "nacre ingest"
        else []
    ):
        for path in dict.fromkeys(again):
            _ask(stage, result, ("ingest", "--force", path, "--json"))
    else:
        more = ("--yes",) if "rebuild" in remedy else ()
        _ask(stage, result, (*remedy.split()[1:], *more, "--json"))


def _mend_files(stage: Stage, result: Result, hints: str, damaged: Sequence[Path]) -> None:
    """Act like a person who reads about a file: restore it, or remove invalid files."""
    for path in stage.home.rglob("odd-*.md"):
        path.unlink()
    for path in damaged:
        if path.name in hints and path not in result.mended:
            result.mended.append(path)
            shutil.copy(stage.original(path), path)


def _lost(stage: Stage, damaged: Sequence[Path]) -> list[str]:
    """Return the undamaged memories that changed."""
    own = {_id_in(stage.original(path)) for path in damaged if path.suffix == ".md"}
    present = stage.listed()
    return [
        f"{item}: {original} is now {present.get(item)}"
        for item, original in stage.memories.items()
        if item not in own and present.get(item) != original and original[0] not in TOUCHED
    ]


def _id_in(path: Path) -> str:
    match = re.search(r"^id: (\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else ""
