"""Every operation in one space leaves a space with the same ids and a team's space unchanged."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from nacre.api import open_memory
from nacre.errors import NacreError
from nacre.serve.catalogue import CATALOGUE
from servers.spaces.conftest import Server
from tests.catalogue.conftest import known_in, make_home
from tests.catalogue.samples import QUESTION, SAMPLES
from tests.storage.filled import dump

_CANARY = "quokka"
"""A word in the other spaces but not in the active space."""


def _fill(space: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store the same ids and texts in each space, and a further memory and session in the other
    spaces."""
    monkeypatch.setenv("NACRE_STORAGE_TENANT", space)
    monkeypatch.setenv("NACRE_HOME", str(home / f"home-of-{space}"))
    numbers = count(1)
    with open_memory(
        ids=lambda: str(UUID(int=(0x01A20000 << 96) | (7 << 76) | (2 << 62) | next(numbers)))
    ) as memory:
        for content in (
            "The billing service uses PostgreSQL as its database.",
            "Toll rates rise in May.",
            "Sessions of the ferry office end at noon.",
        ):
            memory.call("store", content=content, project="acme-billing")
        if space != "anna":
            memory.call(
                "store", content=f"The {_CANARY} billing database is older.", scope="private"
            )
        memory.ingest()  # creates the missing vectors


def _answer_text(name: str, memory: Any, fields: dict[str, Any]) -> str:
    try:
        return repr(memory.call(name, **fields))
    except NacreError as error:
        return f"{error} {error.hint}"


@pytest.mark.embedding
def test_each_operation_stays_in_its_space(
    team: Server, user_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for space in ("ben", "ferry-team", "anna"):
        monkeypatch.setenv("NACRE_STORAGE_ACCOUNT", "anna" if space == "ferry-team" else space)
        _fill(space, tmp_path, monkeypatch)
    monkeypatch.setenv("NACRE_STORAGE_ACCOUNT", "anna")
    make_home(user_home)
    (tmp_path / "work").mkdir()
    fill = known_in(tmp_path / "work")
    monkeypatch.setenv("NACRE_STORAGE_SPACES", "['ferry-team']")
    changing, telling = [], []
    with team.admin as admin, open_memory() as memory:
        before = dump(admin, "ben"), dump(admin, "ferry-team")
        assert all(_CANARY in str(rows) for rows in before)
        assert {"memories", "words", "memory_vectors", "document_versions"} <= {
            row[0] for row in before[0]
        }
        names = [name for name, item in CATALOGUE.items() if item.needs_home and name != "share"]
        for name in sorted(names):
            if _CANARY in _answer_text(name, memory, fill(SAMPLES[name].request)):
                telling.append(name)
            if (dump(admin, "ben"), dump(admin, "ferry-team")) != before:
                changing.append(name)
        hits = memory.call("recall", text=f"{_CANARY} {QUESTION}").hits
    assert len(names) > 120
    assert (changing, telling) == ([], [])
    assert all(_CANARY not in hit.memory.content for hit in hits)
