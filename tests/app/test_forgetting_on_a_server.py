"""Forgetting leaves no text in any table of a database server."""

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
class Server:
    """A user's machine and the server's administrator."""

    world: World
    admin: psycopg.Connection[Any]
    tenant: str

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield every row of the tenant as (table, text), with bytes in hexadecimal."""
        query = "SELECT c.relname FROM pg_class c WHERE relnamespace = 'nacre_rows'::regnamespace AND relkind = 'r'"
        for (table,) in self.admin.execute(query).fetchall():
            if table != "schema_version":
                table_rows = self.admin.execute(
                    f'SELECT t::text FROM nacre_rows."{table}" t WHERE tenant = %s',  # noqa: S608 - a table's name
                    [self.tenant],
                )
                yield from ((table, row) for (row,) in table_rows)

    def rows_with(self, *canaries: str) -> list[tuple[str, str]]:
        """Return the rows that contain any of the words, as text or bytes."""
        forms = [form for word in canaries for form in (word, word.encode().hex())]
        return [
            (table, row) for table, row in self.rows() if any(form in row.lower() for form in forms)
        ]


@pytest.fixture
def server(world: World, server_url: str, tenant: str) -> Iterator[Server]:
    world.environ |= {"NACRE_DB": server_url, "NACRE_STORAGE_TENANT": tenant}
    with psycopg.connect(server_url, autocommit=True) as admin:
        yield Server(world, admin, tenant)


def test_forgetting_by_text_leaves_no_text_in_server_tables(server: Server) -> None:
    world = server.world
    world.transcript("cheese", *TALK)
    with world.open() as memory:
        memory.ingest()
        office, reworded = write_about(memory)
        memory.recall("where is zanzibar")
        assert {table for table, _ in server.rows_with(*CANARIES)} > {
            "turns",
            "memories",
            "document_versions",
            "terms",
            "names",
        }
        for word in CANARIES:
            assert memory.forget(memory.plan_forgetting(match=word)).is_erased
        assert {item.id for item in memory.list()} == {office, reworded}
    assert not (remaining := server.rows_with(*CANARIES)), "\n".join(
        f"{table}: {row}" for table, row in remaining
    )


def test_forgetting_by_id_leaves_no_text_in_server_tables(server: Server) -> None:
    with server.world.open() as memory:
        office, secret = write_about(memory)
        memory.forget(memory.plan_forgetting(memories=[secret]))
        assert [item.id for item in memory.list()] == [office]
    assert not (remaining := server.rows_with(*CANARIES)), "\n".join(
        f"{table}: {row}" for table, row in remaining
    )


def test_session_forgotten_despite_a_kill_leaves_no_text(
    server: Server,
) -> None:
    world = server.world
    world.transcript("cheese", *TALK)
    with world.open() as memory:
        memory.ingest()
        memory.recall("where is zanzibar")
        assert {table for table, _ in server.rows_with(*CANARIES)} > {
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
    assert server.rows_with(*CANARIES)
    with world.open() as memory:
        memory.ingest()
        assert memory.list() == []
    assert not (remaining := server.rows_with(*CANARIES)), remaining


def test_forget_report_names_the_servers_disk(server: Server) -> None:
    with server.world.open() as memory:
        memory.store("The gruyere is behind zanzibar.")
        report = memory.forget(memory.plan_forgetting(match="zanzibar"))
    assert "the server's disk" in {item.what for item in report.unreached}


def write_about(memory: MemoryHome) -> tuple[str, str]:
    """Store a memory to keep and a memory to forget.

    The latter is mentioned, edited, renamed, linked, retired and restored.
    """
    office = memory.store(
        "The office opens at nine.", subject="Office hours", project="acme"
    ).memory_id
    secret = memory.store(
        "The gruyere is behind zanzibar.", subject="Gruyere behind zanzibar", project="acme"
    ).memory_id
    memory.call(
        "edit",
        reference=office,
        content="The office opens at nine, see [[Gruyere behind zanzibar]].",
    )
    memory.call(
        "edit",
        reference=secret,
        subject="Zanzibar as it was",
        content="It is behind the zanzibar door.",
    )
    memory.call("edit", reference=secret, subject="The cheese", content="It is somewhere else now.")
    memory.call("edit", reference=office, content="The office opens at ten.")
    memory.call(
        "graph-link",
        links=[
            {
                "source": office,
                "relation": "related_to",
                "target": secret,
                "reason": "zanzibar again",
            }
        ],
    )
    memory.retire(secret, reason="zanzibar is no place for cheese")
    memory.call("unretire", references=[secret])
    lamp = memory.store("The lamp is green.").memory_id
    memory.forget(memory.plan_forgetting(memories=[lamp]))  # also writes the listings
    return office, secret
