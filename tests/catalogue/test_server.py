"""Every operation on a server answers as in a local home, or is refused with a reason."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nacre.api import open_memory
from nacre.base.link import environment_of
from nacre.base.plugins import OPERATIONS, find_plugins
from nacre.errors import NacreError, UnavailableError
from nacre.hosts.ways import own_programs
from nacre.serve.catalogue import CATALOGUE
from nacre.settings import load_settings
from tests.catalogue.conftest import known_in, make_home
from tests.catalogue.samples import SAMPLES

FOR_FILES = {
    "backup-create": "on a server",
    "db-vacuum": "on a server",
    "doctor-deep": "on a server",
    "scrub": "on a server",
    "sync": "git is off",
}
"""Operations that are refused on a server, with a part of the reason."""

FOR_SERVERS = {
    name
    for name, point in find_plugins(OPERATIONS).items()
    if point.module in ("nacre_server.spaces", "nacre_server.remote")
}
"""Operations that are refused or differ in local homes; plugins/nacre-server tests them on a server."""


@pytest.fixture
def server_home(
    monkeypatch: pytest.MonkeyPatch, user_home: Path, server_url: str, tenant: str
) -> Iterator[Path]:
    """The home of a user whose memory is on a server."""
    monkeypatch.setenv("NACRE_DB", server_url)
    monkeypatch.setenv("NACRE_STORAGE_TENANT", tenant)
    yield user_home
    assert not (user_home / ".nacre" / "nacre.db").exists()
    assert not (user_home / ".nacre" / "vault").exists()


def answers(folder: Path) -> dict[str, str]:
    """Run the sample of each operation in one home and return its error, or an empty string."""
    fill = known_in(folder)
    results = {}
    with open_memory() as memory:
        for name in sorted(name for name, operation in CATALOGUE.items() if operation.needs_home):
            try:
                memory.call(name, **fill(SAMPLES[name].request))
                results[name] = ""
            except NacreError as error:
                results[name] = f"{type(error).__name__}: {error}"
    return results


def test_operations_answer_on_a_server_or_are_refused(
    server_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_home(server_home)
    (tmp_path / "server").mkdir()
    on_server = answers(tmp_path / "server")
    monkeypatch.delenv("NACRE_DB")
    monkeypatch.setenv("NACRE_HOME", str(server_home / "in-files"))
    make_home(server_home)
    (tmp_path / "files").mkdir()
    in_files = answers(tmp_path / "files")
    refusals = {name for name in on_server if on_server[name] and not in_files[name]}
    assert refusals == FOR_FILES.keys(), {
        name: on_server[name] for name in refusals ^ FOR_FILES.keys()
    }
    assert all(reason in on_server[name] for name, reason in FOR_FILES.items())
    reasons = (
        "UnavailableError: this memory is in a file",
        *(f"{kind}: " for kind in ("NotFoundError", "RemoteUnreachableError")),
    )
    assert all(in_files[name].startswith(reasons) for name in FOR_SERVERS)
    kinds = {
        name: (on_server[name].partition(":")[0], in_files[name].partition(":")[0])
        for name in in_files
        if name not in FOR_SERVERS
    }
    assert {
        name: kind for name, kind in kinds.items() if kind[0] != kind[1] and name not in refusals
    } == {}


@pytest.mark.parametrize("name", ["db-rebuild", "db-reset"])
def test_file_operations_are_refused_on_a_server(server_home: Path, name: str) -> None:
    operation = CATALOGUE[name]
    request = operation.make({})
    with pytest.raises(UnavailableError, match=r"server|NACRE_DB"):
        operation.run(load_settings(), request)


def test_child_process_receives_the_server_address(server_home: Path, server_url: str) -> None:
    assert environment_of(str(server_home / ".nacre"), os.environ)["NACRE_DB"] == server_url
    assert "NACRE_DB" not in own_programs(load_settings()).environ
