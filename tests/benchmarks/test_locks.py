"""``python -m benchmarks locks`` finishes every long job and reports both of its locks."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from benchmarks.__main__ import benchmarks


def test_command_reports_locks_of_every_job(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(
        benchmarks, ["locks", "--size", "12", "--json", "--home", str(tmp_path / "new")]
    )
    assert outcome.exit_code == 0, outcome.output
    jobs = {job["job"]: job for job in json.loads(outcome.stdout)["jobs"]}
    assert {
        "learn from them",
        "scan, changed files",
        "sync, both changed",
        "import",
        "forget a project",
    } <= jobs.keys()
    assert all(
        jobs[name]["write"]["count"]
        for name in ("read sessions", "learn from them", "import", "commit")
    )
    assert all(
        jobs[name]["vault"]["count"]
        for name in ("learn from them", "import", "scrub", "retire by pattern")
    )


def test_existing_folder_is_not_touched(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(benchmarks, ["locks", "--home", str(tmp_path)])
    assert outcome.exit_code != 0
    assert list(tmp_path.iterdir()) == []
