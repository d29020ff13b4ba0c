"""Fixtures of a home with data for every operation."""

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
from nacre.values.models import Call
from tests.catalogue.samples import SAMPLES
from tests.cli.conftest import Nacre, nacre, said, write_transcript  # noqa: F401 - fixtures
from tests.daemon.conftest import serving  # noqa: F401 - the fixture
from tests.mcp.conftest import FOLDER, SESSION, TALK

CANDIDATES = (
    ("user", "Session cookies should be httpOnly, not readable from JavaScript."),
    ("user", "We should keep SQLite for the prototype."),
)
"""Statements that become candidates."""

SampleRequest = Callable[[str], dict[str, Any]]


_saved: dict[str, Any] = {}
"""The saved homes, and the ids in the home with sample data."""


@pytest.fixture
def home(
    user_home: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A home with a session, memories in every state, and a trace.

    Its path is the same for each test, which gets a fresh copy of the saved home.
    """
    place = tmp_path_factory.getbasetemp() / "catalogue"
    shutil.rmtree(place, ignore_errors=True)
    for name, value in os.environ.items():
        if value.startswith(str(user_home)):
            monkeypatch.setenv(name, value.replace(str(user_home), str(place), 1))
    if "home" in _saved:
        shutil.copytree(_saved["home"], place)
    else:
        place.mkdir()
        make_home(place)
        _saved["home"] = shutil.copytree(place, tmp_path_factory.mktemp("kept") / "home")
    return place / ".nacre"


def make_home(user_home: Path) -> None:
    """Create the home that the environment variables select."""
    folder = user_home / ".claude" / "projects" / "-code-acme-billing"
    records = [
        said(role, text, number, cwd=FOLDER)
        for number, (role, text) in enumerate((*TALK, *CANDIDATES))
    ]
    write_transcript(folder / f"{SESSION}.jsonl", records)
    with open_memory() as memory:
        assert memory.ingest(vectors=False).memories
        memory.recall("which database does billing use?")


@pytest.fixture
def resolve(
    home: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Any], Any]:
    """``resolve(request)`` replaces the names in braces with existing ids, and ``{folder}`` with a
    new folder."""
    if "filled" in _saved:
        shutil.rmtree(home.parent)
        shutil.copytree(_saved["filled"], home.parent)
    else:
        _saved["names"] = _make_known(tmp_path_factory.mktemp("known"))
        _saved["filled"] = shutil.copytree(home.parent, tmp_path_factory.mktemp("kept") / "home")
    return _filler(_saved["names"], tmp_path)


def known_in(tmp_path: Path) -> Callable[[Any], Any]:
    """Do the same in the home that the environment variables select."""
    return _filler(_make_known(tmp_path), tmp_path)


def _make_known(folder: Path) -> dict[str, str]:
    with open_memory() as memory:
        names = {"session": f"claude-code:{SESSION}", **_store_samples(memory)}
        code = folder / "code" / "billing.py"
        code.parent.mkdir()
        code.write_text(
            "def charge():\n    return total()\n\n\ndef total():\n    return 1\n", encoding="utf-8"
        )
        memory.call("graph-ingest-code", folder=str(code.parent), project="acme-billing")
        exported, backup = folder / "export.jsonl", folder / "backup.zip"
        memory.call("export", target=exported)
        with suppress(UnavailableError):  # a server has no backups
            memory.call("backup-create", target=backup)
    return {**names, "exported": str(exported), "backup": str(backup)}


def _filler(names: dict[str, str], tmp_path: Path) -> Callable[[Any], Any]:
    def fill(request: Any) -> Any:
        words = json.dumps(request)
        folder = tmp_path / f"folder-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        for place, value in {**names, "folder": str(folder)}.items():
            words = words.replace(f"{{{place}}}", value)
        return json.loads(words)

    return fill


@pytest.fixture
def sample_request(resolve: Callable[[Any], Any]) -> SampleRequest:
    """``filled("store")`` is the sample request for an operation."""
    return lambda name: resolve(SAMPLES[name].request)


def _store_samples(memory: MemoryHome) -> dict[str, str]:
    ids = {
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
    ends = {"source": ids["memory"], "target": ids["other"]}
    memory.call(
        "graph-link", links=[{**ends, "relation": item} for item in ("builds_on", "related_to")]
    )
    memory.retire(ids["retired"])
    memory.judge(ids["bad"], ids["worse"], ids["worst"], good=False)
    waiting = memory.call("review", only="candidate", limit=0).items
    ids |= {"candidate": waiting[0].memory.id, "unwanted": waiting[1].memory.id}
    ids["operation"] = memory.log(ids["undone"])[0].operation.id
    home = memory._home
    home.spending.add(
        Call(
            home.ids(),
            home.clock(),
            home.today(),
            "dedup",
            "fake:m",
            False,
            prompt="Which is newer?",
        )
    )
    ids["trace"] = memory.call("traces")[0].id
    return ids


@pytest.fixture
def copy_home(home: Path, tmp_path: Path) -> Callable[[str], Path]:
    """``copied("store")`` is a copy of the home, for an operation that writes."""

    def copy(name: str) -> Path:
        target = tmp_path / "homes" / name
        shutil.copytree(home, target, ignore=lambda *_: ["daemon.sock"])
        return target

    return copy
