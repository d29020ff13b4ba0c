"""Ada's memory on a server, served over HTTP, and her machines that sync with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from nacre.api import open_memory
from nacre.cli.root import cli
from nacre_server.connection import connect
from tests.cli.conftest import Outcome, dialog_process, said, write_transcript  # noqa: F401 - a fixture
from tests.daemon.conftest import Serving, serving  # noqa: F401 - the fixture
from tests.processes import Processes

_databases = count(1)
QUIET = {
    "NACRE_GIT_ENABLED": "false",
    "NACRE_EMBEDDING_MODEL": "none",
    "NACRE_REMOTE_EVERY_SECONDS": "86400",
}
_TEXTS = (
    "SELECT convert_from(data, 'UTF8') FROM nacre.document_versions WHERE data IS NOT NULL",
    "SELECT path FROM nacre.document_versions",
    "SELECT convert_from(line, 'UTF8') FROM nacre.ledger_lines",
    "SELECT row_to_json(t)::text FROM nacre.turns t",
    "SELECT row_to_json(s)::text FROM nacre.sessions s",
    "SELECT row_to_json(m)::text FROM nacre.memories m",
)


@dataclass
class Machine:
    """A separate home. ``laptop("store", "…")`` runs nacre there."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __call__(
        self, *arguments: str, code: int = 0, stdin: str | None = None, **environ: str
    ) -> Outcome:
        home = {
            "HOME": str(self.folder),
            "NACRE_HOME": str(self.folder / ".nacre"),
            "NACRE_DB": None,
        }
        result = CliRunner().invoke(
            cli, arguments, input=stdin, env={**QUIET, **home, **self.environ, **environ}
        )
        assert result.exit_code == code, result.output
        return Outcome(result.exit_code, result.stdout, result.stderr)

    def sync(self) -> Any:
        """Sync and return the report."""
        return self("server", "remote", "sync", "--json").json

    def contents(self) -> set[str]:
        """Return the contents of all memories."""
        return {memory["content"] for memory in self("list", "--all", "--json").json["memories"]}

    @property
    def vault(self) -> Path:
        return self.folder / ".nacre/vault"

    def documents(self) -> dict[str, bytes]:
        """Return the vault's documents without the listings."""
        contents = {
            path.relative_to(self.vault).as_posix(): path.read_bytes()
            for path in self.vault.rglob("*.md")
        }
        return {path: data for path, data in contents.items() if not path.endswith("MEMORY.md")}

    def file_of(self, words: str) -> Path:
        """Return the file of the memory that contains the words."""
        return next(
            path
            for path in self.vault.rglob("*.md")
            if words in path.read_text() and path.name != "MEMORY.md"
        )


@dataclass
class Place:
    """The server of Ada's space. ``key`` opens it in her name."""

    database: str
    url: str
    key: str
    folder: Path
    serve: Callable[..., Serving]
    daemon: Serving

    @property
    def rows(self) -> psycopg.Connection[Any]:
        """A connection of the administrator that writes in Ada's name."""
        rows = connect(self.database)
        rows.execute("SELECT set_config('nacre.tenant', 'ada', false)")
        return rows

    def texts(self) -> str:
        """Return all texts of documents, the ledger and sessions on the server."""
        with self.rows as rows:
            parts = [rows.execute(item).fetchall() for item in _TEXTS]
        return "\n".join(str(text) for part in parts for (text,) in part)

    def ask(self, operation: str, **fields: Any) -> Any:
        """Call an operation of the space as Ada."""
        with open_memory(self.folder / ".nacre") as memory:
            return memory.call(operation, **fields)

    def restart(self) -> None:
        """Restart the daemon on the same port."""
        self.daemon = self.serve("--no-watch", "--http", self.url.rpartition(":")[2])


@pytest.fixture
def place(
    server_url: str, tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    """A server with Ada's space and Ben's."""
    name = f"remote{next(_databases)}"
    with connect(server_url) as first:
        first.execute(f"CREATE DATABASE {name}")
    database = server_url.replace("/postgres?", f"/{name}?")
    folder = tmp_path / "server"
    environ = {
        "NACRE_DB": database,
        "NACRE_STORAGE_TENANT": "ada",
        "NACRE_STORAGE_ACCOUNT": "ada",
        "HOME": str(folder),
        "NACRE_HOME": str(folder / ".nacre"),
        **QUIET,
    }
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)
    with open_memory(folder / ".nacre") as memory:
        for space, kind in (("ada", "person"), ("ben", "person"), ("ferry-team", "team")):
            memory.call("spaces-create", space=space, kind=kind)
        key = memory.call("keys-create", space="ada", account="ada", role="owner").secret
    daemons: list[Serving] = []

    def serve(*options: str) -> Serving:
        daemons.append(Serving(processes, *options, environ=environ))
        daemons[-1].until("serves")
        return daemons[-1]

    daemon = serve("--no-watch", "--http", "0")
    match = re.search(r"over HTTP at (\S+),", daemon.lines[-1])
    assert match, daemon.lines
    yield Place(database, match[1], key, folder, serve, daemon)
    for item in daemons:
        item.end()


@pytest.fixture
def machines(place: Place, tmp_path: Path) -> Callable[..., Machine]:
    """``machines("laptop")`` is a machine that syncs, or one without a remote if ``added=False``."""

    def make(name: str, *options: str, added: bool = True, **environ: str) -> Machine:
        (tmp_path / name).mkdir(exist_ok=True)
        machine = Machine(tmp_path / name, {"NACRE_REMOTE_KEY": place.key, **environ})
        if added:
            machine("server", "remote", "add", place.url, "--yes", *options)
        return machine

    return make


def ingest(machine: Machine, session: str, *turns: tuple[str, str]) -> None:
    """Have a machine read a Claude Code session of (role, text) turns; roles are ``user`` and
    ``assistant``."""
    records = [
        said(role, text, number, session=session) for number, (role, text) in enumerate(turns)
    ]
    write_transcript(machine.folder / f".claude/projects/-code-ferry/{session}.jsonl", records)
    machine("ingest")
