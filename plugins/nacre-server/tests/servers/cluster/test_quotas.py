"""What a space may use: requests a day, turns, and what models cost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from nacre.errors import UnusableStoreError
from nacre.home.spending import budgets
from nacre.settings import load_settings
from nacre.values.memory import Bearer, Role
from nacre_server.keys import MOST_SPACES, Spaces
from servers.cluster.conftest import Api, key_of
from servers.spaces.conftest import Server
from tests.cli.conftest import Nacre

_ASKED = {"text": "where is the ferry timetable kept?"}


def test_exceeded_quota_reports_when_to_retry(
    team: Server, api: Callable[..., Api], nacre: Nacre
) -> None:
    limited = ("server", "cluster", "tenants", "ferry-team")
    assert nacre(*limited, "--calls", "3", "--json").json == {
        "name": "ferry-team",
        "calls": 3,
        "turns": None,
        "usd": None,
    }
    first, key = api(), key_of(team, "ben")
    own = {
        "Authorization": f"Bearer {team.opened('rita').call('keys-create', space='rita').secret}"
    }
    assert [first.post("recall", _ASKED, key).status_code for _ in range(5)] == [
        200,
        200,
        200,
        429,
        429,
    ]
    refused = first.post("recall", _ASKED, key)
    assert refused.json()["code"] == "quota_spent"
    assert 0 < int(refused.headers["retry-after"]) <= 86_401
    assert first.post("recall", _ASKED, own).status_code == 200, "others have no such bound"
    assert first.end() == 0
    second = api()
    assert second.post("recall", _ASKED, key).status_code == 429, "all processes count together"
    assert nacre(*limited, "--calls", "4").out == "ferry-team: 4 calls a day\n"
    assert [second.post("recall", _ASKED, key).status_code for _ in range(2)] == [200, 429]
    assert nacre(*limited, "--lift", "calls").out == "ferry-team: no limits\n"
    assert second.post("recall", _ASKED, key).status_code == 200


def test_model_costs_are_limited_per_space(team: Server, nacre: Nacre, tmp_path: Path) -> None:
    spaces = Spaces(
        load_settings(tmp_path / "worker", {"HOME": str(tmp_path), "NACRE_DB": team.url})
    )

    def most() -> int:
        """Millionths of a US dollar a day, where a worker works for the space."""
        with spaces.homes(spaces.owner_of("ferry-team")).lent() as home:
            return budgets(home.settings, home.spending, home.today())[0].most

    with closing(spaces):
        assert most() == 1_000_000
        nacre("server", "cluster", "tenants", "ferry-team", "--usd", "0.25")
        assert most() == 250_000
        nacre("server", "cluster", "tenants", "ferry-team", "--usd", "1000")
        assert most() == 1_000_000, "the server's own budget holds, too"


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


def test_quotas_are_listed_and_removed_with_their_tenant(team: Server, nacre: Nacre) -> None:
    nacre(
        "server",
        "cluster",
        "tenants",
        "ferry-team",
        "--calls",
        "0",
        "--turns",
        "1000000",
        "--usd",
        "0.5",
    )
    assert (
        "0 calls a day, 1,000,000 turns, $0.50 a day" in nacre("server", "cluster", "tenants").out
    )
    found = {
        one["name"]: one["quota"]
        for one in nacre("server", "cluster", "tenants", "--json").json["tenants"]
    }
    assert found["ferry-team"] == {"calls": 0, "turns": 1_000_000, "usd": 0.5}
    assert found["ben"] == {"calls": None, "turns": None, "usd": None}
    nacre("server", "cluster", "tenants", "ferry-team", "--remove", "--yes")
    with team.admin as admin:
        assert admin.execute("SELECT count(*) FROM nacre_spaces.quotas").fetchall() == [(0,)]
    unknown = nacre("server", "cluster", "tenants", "ferry-team", "--calls", "5", code=None)
    assert "there is no tenant ferry-team" in unknown.err
