"""The vault of a memory on a server lists its documents correctly, whichever connection wrote them."""

from __future__ import annotations

import contextlib

import pytest

from nacre.base.ids import bytes_hash
from nacre.store.schema import Database
from nacre.vault.files import LEDGER
from nacre_server.vault import ServerVault
from tests.storage.conftest import Open
from tests.storage.samples import NOON

_MEMORY = "projects/pond/facts/depth.md"
_PAGE = "projects/pond/project.md"


def _vault(database: Database) -> ServerVault:
    return ServerVault(database, lambda: NOON)


def test_changes_of_another_connection_are_listed(
    tenants: Open,
) -> None:
    own, foreign = _vault(tenants("seen-by-two")), _vault(tenants("seen-by-two"))
    assert (own.times(), own.pages(), foreign.times()) == ({}, {}, {})
    foreign.write(_MEMORY, "two metres", base=None)
    foreign.write(_PAGE, "the pond", base=None)
    first, page = own.times()[_MEMORY], own.pages()
    assert (own.times(), list(page)) == ({_MEMORY: first}, ["pond"])
    foreign.write(_MEMORY, "three metres", base=bytes_hash(b"two metres"))
    foreign.write(_PAGE, "the pool", base=bytes_hash(b"the pond"))
    second = own.times()[_MEMORY]
    assert (first[1], second[1]) == (len("two metres"), len("three metres"))
    assert second[0] > first[0]
    assert own.pages()["pond"] > page["pond"]
    foreign.remove(_MEMORY)
    foreign.remove(_PAGE)
    assert (own.times(), own.pages(), foreign.times()) == ({}, {}, {})


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
    first, second = _vault(tenants("seen-forgotten")), _vault(tenants("seen-forgotten"))
    second.write(_MEMORY, "two metres", base=None)
    assert list(first.times()) == [_MEMORY]
    second.write("projects/pond/facts/width.md", "four metres", base=None)
    second.forget(_MEMORY)
    assert list(first.times()) == list(second.times()) == ["projects/pond/facts/width.md"]


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
