"""Tenants as whoever manages the server sees them."""

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
    """How many rows each table of the database has that names a tenant, found without nacre."""
    with server.admin as admin:
        asked = """SELECT table_schema || '.' || table_name FROM information_schema.columns
            WHERE table_schema IN ('nacre_rows', 'nacre_spaces') AND column_name IN ('tenant', 'space')
            AND table_schema || '.' || table_name <> 'nacre_spaces.audit_log'"""
        tables = [name for (name,) in admin.execute(asked).fetchall()]
        found = {}
        for name in tables:
            column = "tenant" if name.startswith("nacre_rows") else "space"
            asked = f"SELECT count(*) FROM {name} WHERE {column} = %s"  # noqa: S608 - names of tables
            row = admin.execute(asked.encode(), (tenant,)).fetchone()
            assert row
            found[name] = int(row[0])
    return found


def test_removed_tenant_leaves_no_rows_and_spares_others(team: Server, nacre: Nacre) -> None:
    for space in ("ferry-team", "anna"):
        team.opened("anna", space).call("store", content=_FACT)
    before = _rows(team, "anna")
    assert sum(_rows(team, "ferry-team").values()) > 10
    assert (
        nacre("server", "cluster", "remove", "ferry-team", code=None).code != 0
    )  # nobody said yes
    assert sum(_rows(team, "ferry-team").values()) > 10
    done = nacre("server", "cluster", "remove", "ferry-team", "--yes", "--json").json
    assert done["left"] == 0
    assert set(_rows(team, "ferry-team").values()) == {0}
    assert _rows(team, "anna") == before
    assert nacre("server", "cluster", "remove", "ferry-team", "--yes", code=None).code != 0


def test_evicted_space_still_serves_earlier_requests(team: Server, tmp_path: Path) -> None:
    with closing(
        Spaces(load_settings(tmp_path / "api", {"HOME": str(tmp_path), "NACRE_DB": team.url}))
    ) as spaces:
        first = spaces.homes(Bearer("anna", "ferry-team", Role.OWNER))
        with first.lent() as held:
            for number in range(MOST_SPACES):
                spaces.homes(Bearer(f"account-{number}", "ferry-team", Role.MEMBER))
            with first.lent() as home:
                assert home.sessions.counts() == []
        with pytest.raises(UnusableStoreError):
            held.sessions.counts()
