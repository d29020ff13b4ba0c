"""Each field of a search filter applies in every place that offers or applies filters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from nacre.cli.root import cli
from nacre.serve import mcp_arguments
from nacre.store.memories import Memories
from nacre.store.schema import Database, admits
from nacre.store.search import Selection
from nacre.store.sqlite import open_database
from nacre.values.memory import Expiry, Kind, Memory, Scope, Source
from nacre.values.recall import MEMORY_FIELDS, Filter
from nacre.values.session import Speaker, Trust
from tests.storage.samples import DAY, NOON, memory, put, put_session, turn

NAMES = [field.name for field in fields(Filter)]
PLAIN = {"project": "mill", "source": Source("codex:one"), "tags": ("Wheel",)}
MEMORIES = (
    memory(0, **PLAIN),
    memory(1, **PLAIN | {"project": None}),
    memory(2, **PLAIN | {"project": "ferry"}),
    memory(3, days=-9, **PLAIN),
    memory(4, days=9, **PLAIN),
    memory(5, kind=Kind.TODO, **PLAIN),
    memory(6, **PLAIN | {"tags": ("river",)}),
    memory(7, importance=2, **PLAIN),
    memory(8, expiry=Expiry.CORE, **PLAIN),
    memory(9, speaker=Speaker.AGENT, **PLAIN),
    memory(10, **PLAIN | {"source": Source("claude-code:two")}),
    memory(11, trust=Trust.UNTRUSTED, **PLAIN),
)
VALUES: dict[str, dict[str, Any]] = {
    "projects": {"projects": ("mill",)},
    "strict": {"projects": ("mill",), "strict": True},
    "exclude_projects": {"exclude_projects": ("ferry",)},
    "since": {"since": NOON},
    "until": {"until": NOON + DAY},
    "kinds": {"kinds": (Kind.FACT,)},
    "tags": {"tags": ("WHEEL",)},
    "min_importance": {"min_importance": 5},
    "expiry": {"expiry": (Expiry.PERMANENT,)},
    "owner_only": {"owner_only": True},
    "tools": {"tools": ("codex",)},
    "sessions": {"sessions": ("codex:one",)},
    "trusted": {"trusted": True},
    "scope": {"scope": Scope.PUBLIC},
    "as_of": {"as_of": NOON.date() - 20 * DAY},
    "settled": {"settled": True},
}
"""A filter for each field, which leaves out at least one memory."""

NO_CANDIDATES = {"scope", "as_of", "settled"}
"""Fields for which the filter leaves out all candidates: they are private, new and undecided."""

WITHOUT_ARGUMENT = {
    *("strict", "exclude_projects", "expiry", "owner_only"),  # an agent names one project
    *("scope", "as_of", "trusted", "sessions", "settled"),  # of the caller, not of the question
}
WITHOUT_OPTION = {"sessions", "settled"}
ARGUMENTS = {"projects": "project", "tools": "channel"}
OPTIONS = {"recall": set(), "list": set(), "search": {*MEMORY_FIELDS, "as_of", "scope"}}
"""Commands with a filter, and the fields that do not apply to their results."""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "nacre.db")
    put(opened, *MEMORIES)
    put_session(opened, "one", turn("a"), tool="codex")
    yield opened
    opened.close()


def found(database: Database, **criteria: Any) -> set[Memory]:
    rows = Selection(database).admitted_memories(Filter(**criteria))
    return {*Memories(database).by_rows([*rows]).values()}


def test_every_filter_field_has_a_sample() -> None:
    assert VALUES.keys() == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_filter_field_applies_to_memories_and_candidates_alike(
    name: str, database: Database
) -> None:
    criteria = VALUES[name]
    without = {field: value for field, value in criteria.items() if field != name}
    in_sql = {item.id for item in found(database, **criteria)}
    candidates = {item.id for item in MEMORIES if admits(Filter(**criteria), item)}
    if name == "settled":  # no memory of the samples is undecided
        assert (len(in_sql), candidates) == (len(MEMORIES), set())
        return
    assert in_sql < {item.id for item in found(database, **without)}
    assert candidates == (set() if name in NO_CANDIDATES else in_sql)


@pytest.mark.parametrize("command", OPTIONS)
def test_every_filter_field_is_an_option(command: str) -> None:
    loaded = cli.get_command(click.Context(cli), command)
    assert loaded is not None
    offered = {parameter.name for parameter in loaded.params}
    assert set(NAMES) - offered == WITHOUT_OPTION | OPTIONS[command]


def test_every_filter_field_is_an_argument_of_an_agent_tool() -> None:
    offered = {
        name
        for tool in (mcp_arguments.Search, mcp_arguments.List)
        for name in tool.__struct_fields__
    }
    assert {name for name in NAMES if ARGUMENTS.get(name, name) not in offered} == WITHOUT_ARGUMENT
