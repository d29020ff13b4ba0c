"""A home in which every operation finds something to work on."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nacre.api import MemoryHome, open_memory
from nacre.errors import UnavailableError
from nacre.values.models import Trace
from nacre.values.session import Task
from tests.catalogue.samples import SAMPLES
from tests.cli.conftest import Nacre, nacre, said, write_transcript  # noqa: F401 - fixtures
from tests.daemon.conftest import serving  # noqa: F401 - the fixture
from tests.mcp.conftest import FOLDER, SESSION, TALK

MAYBE = (
    ("user", "Session cookies should be httpOnly, not readable from JavaScript."),
    ("user", "We should keep SQLite for the prototype."),
)
"""What is no memory at once, and may be worth keeping."""

Filled = Callable[[str], dict[str, Any]]


_kept: dict[str, Any] = {}
"""What was made once: folders of users, and the names of what lies in the one that is filled."""


@pytest.fixture
def home(
    user_home: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A home with a session that was read, memories in every state, and a trace.

    It is always in the same place: what was made once is put back there for each test.
    """
    place = tmp_path_factory.getbasetemp() / "catalogue"
    shutil.rmtree(place, ignore_errors=True)
    for name, value in os.environ.items():
        if value.startswith(str(user_home)):
            monkeypatch.setenv(name, value.replace(str(user_home), str(place), 1))
    if "home" in _kept:
        shutil.copytree(_kept["home"], place)
    else:
        place.mkdir()
        make_home(place)
        _kept["home"] = shutil.copytree(place, tmp_path_factory.mktemp("kept") / "home")
    return place / ".nacre"


def make_home(user_home: Path) -> None:
    """Make that home, whichever the variables name."""
    folder = user_home / ".claude" / "projects" / "-code-acme-billing"
    records = [
        said(role, text, number, cwd=FOLDER) for number, (role, text) in enumerate((*TALK, *MAYBE))
    ]
    write_transcript(folder / f"{SESSION}.jsonl", records)
    with open_memory() as memory:
        assert memory.ingest(vectors=False).memories
        memory.recall("which database does billing use?")


@pytest.fixture
def known(
    home: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Any], Any]:
    """``known(request)`` is a request with what is there in the place of its braces, and a new ``{folder}``."""
    if "filled" in _kept:
        shutil.rmtree(home.parent)
        shutil.copytree(_kept["filled"], home.parent)
    else:
        _kept["names"] = _make_known(tmp_path_factory.mktemp("known"))
        _kept["filled"] = shutil.copytree(home.parent, tmp_path_factory.mktemp("kept") / "home")
    return _filling(_kept["names"], tmp_path)


def known_in(tmp_path: Path) -> Callable[[Any], Any]:
    """The same of the home that the variables name."""
    return _filling(_make_known(tmp_path), tmp_path)


def _make_known(folder: Path) -> dict[str, str]:
    with open_memory() as memory:
        known = {"session": f"claude-code:{SESSION}", **_stored(memory)}
        code = folder / "code" / "billing.py"
        code.parent.mkdir()
        code.write_text(
            "def charge():\n    return total()\n\n\ndef total():\n    return 1\n", encoding="utf-8"
        )
        memory.call("graph-ingest-code", folder=str(code.parent), project="acme-billing")
        exported, backup = folder / "export.jsonl", folder / "backup.zip"
        memory.call("export", target=exported)
        with suppress(UnavailableError):  # there is none of what is on a server
            memory.call("backup-create", target=backup)
    return {**known, "exported": str(exported), "backup": str(backup)}


def _filling(known: dict[str, str], tmp_path: Path) -> Callable[[Any], Any]:
    def fill(request: Any) -> Any:
        words = json.dumps(request)
        folder = tmp_path / f"folder-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        for place, value in {**known, "folder": str(folder)}.items():
            words = words.replace(f"{{{place}}}", value)
        return json.loads(words)

    return fill


@pytest.fixture
def filled(known: Callable[[Any], Any]) -> Filled:
    """``filled("store")`` is the sample request for an operation."""
    return lambda name: known(SAMPLES[name].request)


def _stored(memory: MemoryHome) -> dict[str, str]:
    known = {
        name: memory.store(text, kind=kind).memory_id
        for name, text, kind in (
            ("memory", "Billing uses PostgreSQL, as accounts are charged at once", "decision"),
            ("other", "The harbour master works on Tuesdays", "fact"),
            ("retired", "Lanterns hang above the quay", "fact"),
            ("todo", "Order new rope for the ferry", "todo"),
            ("bad", "Gulls are white", "fact"),
            ("worse", "Moored barges need two lines", "fact"),
            ("worst", "Ropes are bought in spring", "fact"),
            ("undone", "Pilots wear yellow coats", "fact"),
            ("forgettable", "The lighthouse was built of brick", "fact"),
        )
    }
    memory.store("The ferry is paid in coins", project="ferry")
    memory.store("The toll is due at noon", project="toll")
    ends = {"source": known["memory"], "target": known["other"]}
    memory.call(
        "graph-link", links=[{**ends, "relation": one} for one in ("builds_on", "related_to")]
    )
    memory.retire(known["retired"])
    memory.judge(known["bad"], known["worse"], known["worst"], good=False)
    waiting = memory.call("review", only="candidate", limit=0).items
    known |= {"candidate": waiting[0].memory.id, "unwanted": waiting[1].memory.id}
    known["operation"] = memory.log(known["undone"])[0].operation.id
    home = memory._home
    home.traces.add(Trace(home.ids(), Task.DEDUP, home.clock(), "fake:m", "Which is newer?"))
    known["trace"] = memory.call("traces")[0].id
    return known


@pytest.fixture
def copied(home: Path, tmp_path: Path) -> Callable[[str], Path]:
    """``copied("store")`` is a copy of the home, for an operation that writes."""

    def copy(name: str) -> Path:
        target = tmp_path / "homes" / name
        shutil.copytree(home, target, ignore=lambda *_: ["daemon.sock"])
        return target

    return copy
