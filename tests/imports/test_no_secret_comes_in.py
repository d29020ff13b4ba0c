"""A secret in any field, file or name of what another memory wrote does not come in with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from nacre.data.export import ImportOptions
from nacre.data.history import commit_operations
from nacre.data.importers import SOURCES
from nacre.data.imports import carry_out, plan_import
from nacre.errors import InvalidInputError
from nacre.home.home import Home
from tests.app.conftest import World, world
from tests.canary import FORMS, is_kept, spoiled
from tests.fuzz.bundles import bundle, files_of, unpack
from tests.fuzz.inputs import seeds

__all__ = ["world"]

DATABASE = b"SQLite format 3"
GROUPS = [("token", "url", "assignment"), ("header", "key", "private")]


def variants(seed: bytes, words: str, folder: Path) -> Iterator[bytes]:
    """A bundle with words in one field of one of its files, once for each; and in one name of a file."""
    form, files = files_of(seed)
    for name, data in files.items():
        if data.startswith(DATABASE):
            spoilt = spoiled_databases(data, words, folder)
        else:
            spoilt = (_whole(text).encode() for text in spoiled(data.decode(), words))
        yield from (bundle(form, {**files, name: item}) for item in spoilt)
    for name, data in files.items():
        others = {other: held for other, held in files.items() if other != name}
        called = name.replace(".", f" {FORMS['token']}.", 1)
        yield bundle(form, {**others, called: data})


def spoiled_databases(data: bytes, words: str, folder: Path) -> Iterator[bytes]:
    """A database with words in one column of all rows, once for each."""
    path = folder / "spoilt.db"

    def columns() -> list[tuple[str, str]]:
        connection = apsw.Connection(str(path))
        query = "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'"
        found = connection.execute(query).fetchall()
        connection.close()
        return found

    path.write_bytes(data)
    for table, column in columns():
        path.write_bytes(data)
        connection = apsw.Connection(str(path))
        connection.execute(
            f'UPDATE "{table}" SET "{column}" = coalesce("{column}", \'\') || ?',  # noqa: S608
            (f" {words}",),
        )
        connection.close()
        yield path.read_bytes()


def _whole(text: str) -> str:
    """An export of nacre's own with an end that proves it."""
    lines = text.splitlines(keepends=True)
    if '"nacre-export' not in lines[0]:
        return text
    body = "".join(lines[:-1])
    trailer = {
        "type": "trailer",
        "lines": len(lines) - 1,
        "sha256": hashlib.sha256(body.encode()).hexdigest(),
    }
    return f"{body}{json.dumps(trailer)}\n"


def take(context: Home, path: Path, source: str) -> bool:
    """Import it as the owner's own; returns whether something came in."""
    try:
        plan = plan_import(
            context, ImportOptions(path=path, source=source, trust=True, vectors=False)
        )
    except InvalidInputError:
        return False
    carry_out(context, plan)
    return not plan.is_empty


@pytest.mark.parametrize("forms", GROUPS, ids="+".join)
@pytest.mark.parametrize("source", SOURCES)
def test_secret_in_any_import_field_is_not_stored(
    world: World, tmp_path: Path, source: str, forms: tuple[str, ...]
) -> None:
    words = " ".join(FORMS[form] for form in forms)
    context = world.context()
    taken = []
    try:
        for at, seed in enumerate(seeds(f"import-{source}")):
            for number, variant in enumerate(variants(seed, words, tmp_path)):
                folder = tmp_path / f"{at}-{number}"
                folder.mkdir()
                taken.append(take(context, unpack(variant, folder), source))
        commit_operations(context)
    finally:
        context.database.close()
    assert sum(taken) > 2
    assert is_kept(world.home) == []
