"""The vault of a memory on a server: what it tells of its documents is what they are, whoever wrote them."""

from __future__ import annotations

import contextlib

import pytest

from nacre.base.ids import bytes_hash
from nacre.store.schema import Database
from nacre.vault.files import LEDGER
from nacre_server.vault import ServerVault
from tests.storage.conftest import Open
from tests.storage.made import NOON

_MEMORY = "projects/pond/facts/depth.md"
_PAGE = "projects/pond/project.md"


def _vault(database: Database) -> ServerVault:
    return ServerVault(database, lambda: NOON)


def test_changes_of_another_connection_are_listed(
    tenants: Open,
) -> None:
    here, there = _vault(tenants("seen-by-two")), _vault(tenants("seen-by-two"))
    assert (here.times(), here.pages(), there.times()) == ({}, {}, {})
    there.write(_MEMORY, "two metres", base=None)
    there.write(_PAGE, "the pond", base=None)
    first, page = here.times()[_MEMORY], here.pages()
    assert (here.times(), list(page)) == ({_MEMORY: first}, ["pond"])
    there.write(_MEMORY, "three metres", base=bytes_hash(b"two metres"))
    there.write(_PAGE, "the pool", base=bytes_hash(b"the pond"))
    second = here.times()[_MEMORY]
    assert (first[1], second[1]) == (len("two metres"), len("three metres"))
    assert second[0] > first[0]
    assert here.pages()["pond"] > page["pond"]
    there.remove(_MEMORY)
    there.remove(_PAGE)
    assert (here.times(), here.pages(), there.times()) == ({}, {}, {})


def test_changes_of_the_same_transaction_are_listed(
    tenants: Open,
) -> None:
    database = tenants("seen-within")
    vault = _vault(database)
    assert not vault.times()
    with database.transaction():
        vault.write(_MEMORY, "two metres", base=None)
        assert list(vault.times()) == [_MEMORY]
        vault.remove(_MEMORY)
        assert not vault.times()
    assert not vault.times()


def test_forgotten_document_is_not_listed_after_concurrent_writes(
    tenants: Open,
) -> None:
    here, there = _vault(tenants("seen-forgotten")), _vault(tenants("seen-forgotten"))
    there.write(_MEMORY, "two metres", base=None)
    assert list(here.times()) == [_MEMORY]
    there.write("projects/pond/facts/width.md", "four metres", base=None)
    there.forget(_MEMORY)
    assert list(here.times()) == list(there.times()) == ["projects/pond/facts/width.md"]


def test_rolled_back_vault_changes_are_not_listed(tenants: Open) -> None:
    database = tenants("seen-taken-back")
    vault = _vault(database)
    vault.write(_MEMORY, "two metres", base=None)
    before = vault.times()
    with contextlib.suppress(ZeroDivisionError), database.transaction():
        vault.write(_MEMORY, "three metres", base=bytes_hash(b"two metres"))
        vault.write(_PAGE, "the pond", base=None)
        assert vault.times() != before
        raise ZeroDivisionError
    assert (vault.times(), vault.pages()) == (before, {})


def test_ledger_is_rewritten_completely_or_not_at_all(tenants: Open) -> None:
    vault = _vault(tenants("ledger-at-once"))
    vault.append(LEDGER, ["first", "second"])
    before = vault.read(LEDGER)
    with pytest.raises(ValueError, match="shorter"):
        vault.write_bytes(LEDGER, b"1st\n", base=bytes_hash(before))
    assert vault.read(LEDGER) == before
