"""The schema of a cluster's server is created once."""

from __future__ import annotations

from nacre_server.connection import migrations
from servers.spaces.conftest import Server, server  # noqa: F401 - fixtures
from tests.cli.conftest import Nacre, nacre  # noqa: F401 - the fixture


def test_empty_database_is_migrated_once(server: Server, nacre: Nacre) -> None:  # noqa: F811
    newest = max(migrations())
    assert nacre("server", "cluster", "migrate", "--json").json == {"before": 0, "after": newest}
    assert nacre("server", "cluster", "migrate", "--json").json == {
        "before": newest,
        "after": newest,
    }


def test_cluster_without_server_is_refused_naming_the_setting(
    nacre: Nacre,  # noqa: F811
) -> None:
    outcome = nacre("server", "cluster", "migrate", code=None)
    assert outcome.code == 2
    assert "NACRE_DB" in outcome.err
