"""Tenants can be removed completely, and evicted spaces still serve earlier requests."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from nacre.errors import UnusableStoreError
from nacre.settings import load_settings
from nacre.values.memory import Bearer, Role
from nacre_server.keys import MOST_SPACES, Spaces
from servers.spaces.conftest import Server
from tests.cli.conftest import Nacre

_FACT = "The ferry timetable is kept in the file tides.csv."


def _rows(server: Server, tenant: str) -> dict[str, int]:
    """Return the row counts of all tables with a tenant column, queried without nacre."""
    with server.admin as admin:
        query = """SELECT table_schema || '.' || table_name FROM information_schema.columns
            WHERE table_schema IN ('nacre_rows', 'nacre_spaces') AND column_name IN ('tenant', 'space')
            AND table_schema || '.' || table_name <> 'nacre_spaces.audit_log'"""
        tables = [name for (name,) in admin.execute(query).fetchall()]
        results = {}
        for name in tables:
            column = "tenant" if name.startswith("nacre_rows") else "space"
            query = f"SELECT count(*) FROM {name} WHERE {column} = %s"  # noqa: S608 - names of tables
            row = admin.execute(query.encode(), (tenant,)).fetchone()
            assert row
            results[name] = int(row[0])
    return results


def test_removed_tenant_leaves_no_rows_and_spares_others(team: Server, nacre: Nacre) -> None:
    for space in ("ferry-team", "anna"):
        team.open_space("anna", space).call("store", content=_FACT)
    before = _rows(team, "anna")
    assert sum(_rows(team, "ferry-team").values()) > 10
    # not confirmed with --yes
    assert nacre("server", "cluster", "remove", "ferry-team", code=None).code != 0
    assert sum(_rows(team, "ferry-team").values()) > 10
    result = nacre("server", "cluster", "remove", "ferry-team", "--yes", "--json").json
    assert result["left"] == 0
    assert set(_rows(team, "ferry-team").values()) == {0}
    assert _rows(team, "anna") == before
    assert nacre("server", "cluster", "remove", "ferry-team", "--yes", code=None).code != 0


def test_evicted_space_still_serves_earlier_requests(team: Server, tmp_path: Path) -> None:
    with closing(
        Spaces(load_settings(tmp_path / "api", {"HOME": str(tmp_path), "NACRE_DB": team.url}))
    ) as spaces:
        first = spaces.homes(Bearer("anna", "ferry-team", Role.OWNER))
        with first.lent() as database:
            for number in range(MOST_SPACES):
                spaces.homes(Bearer(f"account-{number}", "ferry-team", Role.MEMBER))
            with first.lent() as home:
                assert home.sessions.counts() == []
        with pytest.raises(UnusableStoreError):
            database.sessions.counts()
