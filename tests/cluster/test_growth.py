"""``nacre admin benchmark scale``: tenants are made, asked by many clients, and gone afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from nacre.cli.growth import steps_of
from nacre.cluster.cluster import list_tenants
from nacre.errors import InvalidInputError
from nacre.settings import load_settings
from tests.benchmarks.test_size import material
from tests.cli.conftest import Nacre, command, environment
from tests.processes import Processes
from tests.spaces.conftest import Server


def test_tenants_are_made_filled_asked_and_deleted(
    server: Server, nacre: Nacre, tmp_path: Path
) -> None:
    asked = (
        "admin",
        "benchmark",
        "scale",
        "--url",
        server.url,
        "--transcripts",
        material(tmp_path / "sessions"),
    )
    found = nacre(
        *asked, "--step", "1x20", "--step", "2x30", "--clients", "4", "--seconds", "1", "--json"
    ).json
    first, second = found["stages"]
    assert (first["tenants"], first["step"], second["tenants"]) == (
        1,
        {"tenants": 1, "turns": 20},
        3,
    )
    assert first["turns_per_second"] > 0 < second["bytes_per_turn"]
    for stage in found["stages"]:
        assert [wait["name"] for wait in stage["alone"]["waits"]] == ["recall"]
        assert {wait["name"] for wait in stage["mixed"]["waits"]} <= {"recall", "store", "list"}
        assert stage["mixed"]["refused"] == {}, "each client is served, or waits"
    assert found["is_whole"]
    assert found["hot"]["quiet"]["clients"] == found["hot"]["beside"]["clients"] == 4
    assert found["hot"]["hot"]["clients"] == 4
    assert (
        list_tenants(
            load_settings(tmp_path / "none", {"HOME": str(tmp_path), "NACRE_DB": server.url})
        )
        == []
    )


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a signal")
def test_interrupted_measurement_reports_results_and_removes_tenants(
    server: Server, processes: Processes, tmp_path: Path
) -> None:
    server.opened("ben").call("spaces-create", space="ben", kind="person")
    asked = (
        "admin",
        "benchmark",
        "scale",
        "--url",
        server.url,
        "--transcripts",
        material(tmp_path / "sessions"),
    )
    started = processes.start(
        command(
            *asked,
            "--step",
            "1x20",
            "--step",
            "1000x20",
            "--clients",
            "2",
            "--seconds",
            "1",
            "--json",
        ),
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    while started.poll() is None and len(_names(server)) < 5:
        pass
    started.send_signal(signal.SIGINT)
    out, _ = started.communicate()
    assert started.returncode == 130
    found = json.loads(out)
    assert [stage["tenants"] for stage in found["stages"]] == [1]
    assert (found["hot"], found["is_whole"]) == (None, False)
    assert _names(server) == ["ben"]


def test_what_an_earlier_measurement_left_is_not_measured_with(
    server: Server, nacre: Nacre, tmp_path: Path
) -> None:
    for name in ("scale-000000", "scale-model"):
        server.opened(name).call("spaces-create", space=name, kind="person")
    asked = (
        "admin",
        "benchmark",
        "scale",
        "--url",
        server.url,
        "--transcripts",
        material(tmp_path / "sessions"),
    )
    refused = nacre(*asked, code=None)
    assert refused.code != 0
    assert "--clear deletes" in refused.err
    assert _names(server) == ["scale-000000", "scale-model"]
    nacre(*asked, "--clear", "--step", "1x20", "--clients", "1", "--seconds", "1")
    assert _names(server) == ["scale-model"], "what is somebody's stays"


def _names(server: Server) -> list[str]:
    with closing(server.admin) as admin:
        return [
            name for (name,) in admin.execute("SELECT name FROM nacre_spaces.spaces ORDER BY name")
        ]


@pytest.mark.parametrize("text", ["", "5", "0x10", "10x0", "axb", "-1x5", "1x1x1"])
def test_a_step_is_so_many_tenants_of_so_many_turns(text: str) -> None:
    assert [(one.tenants, one.turns) for one in steps_of(["100x1000"])] == [(100, 1000)]
    with pytest.raises(InvalidInputError, match="is no step"):
        steps_of([text])
