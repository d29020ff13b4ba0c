"""``python -m benchmarks parity`` compares a local file and a server on the same questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from benchmarks.__main__ import benchmarks
from nacre_server.connection import connect


def figures(server: str, data: Path, *more: str) -> dict[str, Any]:
    result = CliRunner().invoke(
        benchmarks,
        ["parity", "--server", server, "--data", str(data), "--no-vectors", "--json", *more],
    )
    assert result.exit_code == 0, result.output
    value: dict[str, Any] = json.loads(result.stdout)
    return value


def test_both_engines_are_asked_the_same_questions(
    data: Path, tmp_path: Path, server_url: str
) -> None:
    (suite,) = figures(server_url, data, "--suite", "locomo", "--cache", str(tmp_path / "cache"))[
        "suites"
    ]
    assert (suite["homes"], suite["questions"], suite["hit_file"], suite["hit_server"]) == (
        1,
        5,
        100.0,
        100.0,
    )
    assert (suite["overlap"], suite["silence"]) == (100.0, 100.0)
    assert suite["asked"] == 4
    assert suite["server"]["count"] == suite["file"]["count"] == 5


def test_suite_without_data_files_is_named(tmp_path: Path, server_url: str) -> None:
    (tmp_path / "empty").mkdir()
    result = figures(
        server_url, tmp_path / "empty", "--suite", "locomo", "--cache", str(tmp_path / "cache")
    )
    assert result["absent"] == ["locomo"]
    assert result["suites"] == []


def test_homes_on_a_server_are_new_tenants_each_time(
    data: Path, tmp_path: Path, server_url: str
) -> None:
    for _ in range(2):
        figures(server_url, data, "--suite", "devmembench", "--cache", str(tmp_path / "cache"))
    with connect(server_url) as server:
        rows = server.execute(
            "SELECT count(DISTINCT tenant) FROM nacre_rows.sessions WHERE tenant LIKE 'devmembench%'"
        ).fetchone()
    assert rows == (2,)
