"""``python -m benchmarks writers`` runs real processes and threads and checks their result."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from benchmarks.__main__ import benchmarks
from benchmarks.load.writers import measure_writers


def test_process_and_thread_clients_store_every_reported_memory(tmp_path: Path) -> None:
    result = measure_writers(tmp_path / "home", processes=2, threads=2, seconds=2, updates=0.1)
    assert result.wrong == ()
    assert result.errors == {}
    assert result.stores.count == sum(result.outcomes.values()) > 0
    assert result.write_lock.count > 0
    assert result.memories > 1


def test_existing_home_is_not_touched(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(benchmarks, ["writers", "--home", str(tmp_path)])
    assert outcome.exit_code != 0
    assert list(tmp_path.iterdir()) == []


def test_command_reports_measurements(tmp_path: Path) -> None:
    arguments = ["writers", "--clients", "2", "--as", "threads", "--seconds", "1", "--json"]
    outcome = CliRunner().invoke(benchmarks, [*arguments, "--home", str(tmp_path / "home")])
    assert outcome.exit_code == 0, outcome.output
    report = json.loads(outcome.stdout)
    assert report["wrong"] == []
    assert {"stores_per_second", "recalls", "write_lock", "machine"} <= report.keys()
