"""Two machines and the server that they sync with run in the process of the test."""

from __future__ import annotations

from pathlib import Path

from servers.cluster.conftest import serving_here
from servers.remote.conftest import Machine, ingest
from servers.spaces.conftest import Server, server, team  # noqa: F401 - fixtures

SESSION = "7f3a1c2d-0000-4000-8000-000000000009"
_FACT = "The ferry timetable is kept in the file tides.csv."
_PRIVATE = "My sister pays for the boat."


def test_two_machines_stay_in_sync_through_a_server(team: Server, tmp_path: Path) -> None:  # noqa: F811
    created = team.open_space("anna").call(
        "keys-create", space="anna", account="anna", role="owner"
    )
    key = {"NACRE_REMOTE_KEY": created.secret}
    with serving_here(tmp_path) as (address, _):
        laptop = Machine(tmp_path / "laptop")
        desk = Machine(tmp_path / "desk", key)
        laptop("store", _FACT, "--subject", "Ferry timetable", "--scope", "personal")
        laptop("store", _PRIVATE, "--subject", "Boat")
        turns = ("user", "Where is the timetable of the ferry?"), ("assistant", "In tides.csv.")
        ingest(laptop, SESSION, *turns)
        laptop("server", "remote", code=3)
        assert "--yes" in desk("server", "remote", "add", address, code=2).err
        add = ("server", "remote", "add", address, "--yes", "--no-private")
        laptop(*add, stdin=f"{created.secret}\n")
        assert created.secret not in (laptop.folder / ".nacre/config.toml").read_text()
        desk("server", "remote", "add", address, "--yes")
        assert desk.contents() == {_FACT}
        desk("edit", "Ferry timetable", "--importance", "9")
        laptop("edit", "Ferry timetable", "--tag", "ferry")
        laptop.sync()
        assert desk.sync()["notes"]
        assert laptop.sync()["received"] == 1
        front = laptop.file_of(_FACT).read_text().partition("\n---\n")[0]
        assert "importance: 9" in front
        assert "ferry" in front
        laptop("forget", "--match", "tides.csv", "--yes")
        laptop.sync()
        desk.sync()
        assert desk.contents() == set()
        assert laptop.contents() == {_PRIVATE}
        assert address in laptop("server", "remote").out
        laptop("server", "remote", "remove")
        laptop("server", "remote", "sync", code=3)
    assert "cannot be reached" in desk("server", "remote", "sync", code=5).err
