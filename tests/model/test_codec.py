"""Whatever fields a memory has: each is kept by its file and by its row, and each text of it is redacted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, date, datetime
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from nacre.home.location import redact
from nacre.redact.redactor import Redactor
from nacre.store.memories import Memories
from nacre.store.sqlite import open_database
from nacre.values.codec import texts_of, with_texts
from nacre.values.memory import NAMES, Memory
from nacre.vault.documents import parse, render
from nacre.vault.files import folder_of

DAY = date(2026, 11, 20)
NOON = datetime(2026, 11, 20, 12, 30, 15, 250_000, tzinfo=UTC)
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PLACED = {"inbox": False, "retired": None, "superseded_by": None}
"""What would put the memory elsewhere."""


def filled(kind: Any, name: str = "x") -> Any:
    """A value of a type in which nothing is empty, nor as it is by default."""
    options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    kind = next(option for option in options if option is not type(None))
    simple = {str: f"the {name} of it", int: 6, float: 0.25, bool: True, date: DAY, datetime: NOON}
    if kind in simple:
        return simple[kind]
    if get_origin(kind) is tuple:
        return (filled(get_args(kind)[0], name),)
    if get_origin(kind) is dict:
        return {"depth": f"the {name} of it"}
    if is_dataclass(kind):
        types = get_type_hints(kind)
        return kind(**{field.name: filled(types[field.name], field.name) for field in fields(kind)})  # type: ignore[operator]
    assert issubclass(kind, Enum)
    return list(kind)[-1]


MEMORY: Memory = replace(filled(Memory), id="0199-a", project="acme", **PLACED)
FIELDS = [field.name for field in fields(Memory)]


@pytest.fixture(scope="module")
def from_row(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory | None]:
    database = open_database(tmp_path_factory.mktemp("codec") / "nacre.db", None)
    with database.transaction():
        Memories(database).put(MEMORY)
    yield Memories(database).find(MEMORY.id)
    database.close()


@pytest.mark.parametrize("name", FIELDS)
def test_a_row_keeps_every_field(from_row: Memory | None, name: str) -> None:
    assert getattr(from_row, name) == getattr(MEMORY, name)


@pytest.mark.parametrize("name", FIELDS)
def test_a_file_keeps_every_field(name: str) -> None:
    path = f"{folder_of(MEMORY)}/it.md"
    read = parse(
        render(MEMORY), path, new_id=lambda: "another", modified=datetime(2020, 1, 1, tzinfo=UTC)
    )
    assert getattr(read, name) == getattr(MEMORY, name)


def test_every_text_except_identifiers_is_redacted() -> None:
    secret: Memory = with_texts(filled(Memory), lambda text: f"{text} {SECRET}", NAMES)
    assert sum(SECRET in text for text in texts_of(secret, NAMES)) >= 12
    assert [text for text in texts_of(redact(Redactor(), secret), ()) if SECRET in text] == []
