"""Forgetting where the memory is on a server: not a word is left in any row of any table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from nacre.api import MemoryHome
from tests.app.conftest import World, says

SESSION = "5e55-c4ee-0001"
CANARIES = ("zanzibar", "gruyere", "cellarcode")
TALK = (
    says(
        "user",
        "Remember that the gruyere cellar code is zanzibar9431 in src/cellarcode_zanzibar.py.",
        uuid="c1",
        session=SESSION,
    ),
    says(
        "assistant",
        "Noted: the gruyere code is zanzibar9431, see cellarcode().",
        uuid="c2",
        session=SESSION,
    ),
)


@dataclass
class Served:
    """A user's machine, and an administrator of the server."""

    world: World
    admin: psycopg.Connection[Any]
    tenant: str

    def rows(self) -> Iterator[tuple[str, str]]:
        """Every row of the tenant, as text: (table, row); bytes are hexadecimal in it."""
        asked = "SELECT c.relname FROM pg_class c WHERE relnamespace = 'nacre_rows'::regnamespace AND relkind = 'r'"
        for (table,) in self.admin.execute(asked).fetchall():
            if table != "schema_version":
                found = self.admin.execute(
                    f'SELECT t::text FROM nacre_rows."{table}" t WHERE tenant = %s',  # noqa: S608 - a table's name
                    [self.tenant],
                )
                yield from ((table, row) for (row,) in found)

    def told(self, *canaries: str) -> list[tuple[str, str]]:
        """The rows that say any of some words, as text or in bytes."""
        sought = [form for word in canaries for form in (word, word.encode().hex())]
        return [
            (table, row)
            for table, row in self.rows()
            if any(form in row.lower() for form in sought)
        ]


@pytest.fixture
def served(world: World, server_url: str, tenant: str) -> Iterator[Served]:
    world.environ |= {"NACRE_DB": server_url, "NACRE_STORAGE_TENANT": tenant}
    with psycopg.connect(server_url, autocommit=True) as admin:
        yield Served(world, admin, tenant)


def test_forgetting_by_text_leaves_no_text_in_server_tables(served: Served) -> None:
    world = served.world
    world.transcript("cheese", *TALK)
    with world.open() as memory:
        memory.ingest()
        kept, reworded = write_about(memory)
        memory.recall("where is zanzibar")
        assert {table for table, _ in served.told(*CANARIES)} > {
            "turns",
            "memories",
            "document_versions",
            "terms",
            "names",
        }
        for word in CANARIES:
            assert memory.forget(memory.plan_forgetting(match=word)).is_erased
        assert {one.id for one in memory.list()} == {kept, reworded}
    assert not (told := served.told(*CANARIES)), "\n".join(f"{table}: {row}" for table, row in told)


def test_forgetting_by_id_leaves_no_text_in_server_tables(served: Served) -> None:
    with served.world.open() as memory:
        kept, secret = write_about(memory)
        memory.forget(memory.plan_forgetting(memories=[secret]))
        assert [one.id for one in memory.list()] == [kept]
    assert not (told := served.told(*CANARIES)), "\n".join(f"{table}: {row}" for table, row in told)


def test_session_forgotten_despite_a_kill_leaves_no_text(
    served: Served,
) -> None:
    world = served.world
    world.transcript("cheese", *TALK)
    with world.open() as memory:
        memory.ingest()
        memory.recall("where is zanzibar")
        assert {table for table, _ in served.told(*CANARIES)} > {
            "turns",
            "memories",
            "terms",
            "names",
        }
    code = f"""
    import os
    from nacre.memories import erasure as version_erasure
    version_erasure.erase_naming = lambda *_: os._exit(9)
    memory.forget(memory.plan_forgetting(sessions=["{SESSION}"]))
"""
    child = world.start(code)
    assert child.wait(60) == 9
    assert served.told(*CANARIES)
    with world.open() as memory:
        memory.ingest()
        assert memory.list() == []
    assert not (told := served.told(*CANARIES)), told


def test_forget_report_names_the_servers_disk(served: Served) -> None:
    with served.world.open() as memory:
        memory.store("The gruyere is behind zanzibar.")
        report = memory.forget(memory.plan_forgetting(match="zanzibar"))
    assert "the server's disk" in {one.what for one in report.unreached}


def write_about(memory: MemoryHome) -> tuple[str, str]:
    """A memory that stays, and one that is to go: named, reworded, renamed, linked, filed in a project, retired and
    brought back."""
    kept = memory.store(
        "The office opens at nine.", subject="Office hours", project="acme"
    ).memory_id
    secret = memory.store(
        "The gruyere is behind zanzibar.", subject="Gruyere behind zanzibar", project="acme"
    ).memory_id
    memory.call(
        "edit", reference=kept, content="The office opens at nine, see [[Gruyere behind zanzibar]]."
    )
    memory.call(
        "edit",
        reference=secret,
        subject="Zanzibar as it was",
        content="It is behind the zanzibar door.",
    )
    memory.call("edit", reference=secret, subject="The cheese", content="It is somewhere else now.")
    memory.call("edit", reference=kept, content="The office opens at ten.")
    memory.call(
        "graph-link",
        links=[
            {"source": kept, "relation": "related_to", "target": secret, "reason": "zanzibar again"}
        ],
    )
    memory.retire(secret, reason="zanzibar is no place for cheese")
    memory.call("unretire", references=[secret])
    other = memory.store("The lamp is green.").memory_id
    memory.forget(memory.plan_forgetting(memories=[other]))  # which writes the listings
    return kept, secret
