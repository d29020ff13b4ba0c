"""Memories are reported as stale if sessions changed their files later."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from nacre_code.ask import confidence_of
from tests.cli.conftest import Nacre, said, write_transcript

MEMORY = """---
kind: fact
subject: The oven
created: 2026-09-21T10:00:00Z
updated: 2026-09-21T10:00:00Z
---
{}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "acme-billing"
    (root / "src").mkdir(parents=True)
    (root / "src" / "oven.py").write_text(
        "def bake(loaf):\n    return heat(loaf)\n", encoding="utf-8"
    )
    return root


def remember(text: str, name: str = "oven") -> None:
    folder = Path(os.environ["NACRE_HOME"]) / "vault" / "projects" / "acme-billing" / "fact"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(MEMORY.format(text), encoding="utf-8")


def edits(nacre: Nacre, tmp_path: Path, path: str, sessions: int = 1) -> None:
    """Create sessions that each change a file once."""
    for number in range(sessions):
        name = f"7f3a1c2d-0000-4000-8000-00000000{number:04}"
        edit = said("assistant", "", 2)
        arguments = {"file_path": path, "old_string": "a", "new_string": "b"}
        edit["message"]["content"] = [
            {"type": "tool_use", "id": "t1", "name": "Edit", "input": arguments}
        ]
        records = [said("user", "Please mend the oven page at once.", 1), edit]
        records = [
            {**item, "sessionId": name, "uuid": f"{name}-{place}"}
            for place, item in enumerate(records)
        ]
        nacre("ingest", str(write_transcript(tmp_path / f"{name}.jsonl", records)))


def stale(nacre: Nacre) -> list[Any]:
    return list(nacre("graph", "stale", "--days", "3650", "--json").json["memories"])


def test_memory_of_a_later_changed_file_is_stale(nacre: Nacre, tmp_path: Path) -> None:
    remember("src/oven.py bakes at 220 degrees.")
    remember("src/door.py shuts by itself.", "door")
    assert stale(nacre) == []
    edits(nacre, tmp_path, "/code/acme-billing/src/oven.py", sessions=2)
    (entry,) = stale(nacre)
    assert (entry["sessions"], entry["files"][0]["edits"], entry["symbols"]) == (2, 2, [])
    assert entry["confidence"] == pytest.approx(confidence_of(2, entry["lag_days"], 0, 0), abs=1e-3)
    assert "src/oven.py changed 2 times since" in nacre("graph", "stale", "--days", "3650").out


def test_memory_stored_after_the_change_is_not_stale(nacre: Nacre, tmp_path: Path) -> None:
    edits(nacre, tmp_path, "/code/acme-billing/src/oven.py")
    nacre("store", "src/oven.py bakes at 230 degrees.", "--project", "acme-billing")
    assert stale(nacre) == []


def test_existing_symbols_lower_staleness_confidence(
    nacre: Nacre, tmp_path: Path, project: Path
) -> None:
    edits(nacre, tmp_path, "/code/acme-billing/src/oven.py", sessions=5)
    nacre("graph", "ingest-code", str(project), "--project", "acme-billing")
    remember("`bake` in src/oven.py takes a loaf.", "there")
    remember("`bake` and `cool_down` in src/oven.py take a loaf.", "partly")
    remember("`cool_down` in src/oven.py takes a loaf.", "missing")
    entries = {tuple(item["missing"]): item for item in stale(nacre) if len(item["symbols"]) == 1}
    there, missing = entries[()], entries["cool_down",]
    (partly,) = (item for item in stale(nacre) if len(item["symbols"]) == 2)
    assert there["confidence"] == pytest.approx(0.3 * missing["confidence"], abs=1e-3)
    assert partly["confidence"] == pytest.approx(0.65 * missing["confidence"], abs=1e-3)
    assert "missing now: cool_down" in nacre("graph", "stale", "--days", "3650").out


def test_stale_reports_deleted_file(nacre: Nacre, tmp_path: Path, project: Path) -> None:
    edits(nacre, tmp_path, "/code/acme-billing/src/oven.py")
    remember("`bake` in src/oven.py takes a loaf.")
    nacre("graph", "ingest-code", str(project), "--project", "acme-billing")
    (project / "src" / "oven.py").unlink()
    (entry,) = stale(nacre)
    assert entry["files"][0]["is_gone"]
    assert entry["missing"] == ["bake"]


def test_evergreen_memory_is_never_stale(nacre: Nacre, tmp_path: Path) -> None:
    remember("src/oven.py bakes at 220 degrees.")
    edits(nacre, tmp_path, "/code/acme-billing/src/oven.py")
    (entry,) = stale(nacre)
    nacre("edit", entry["memory"]["id"], "--evergreen")
    assert stale(nacre) == []


def test_kept_or_evergreen_memories_leave_the_review(nacre: Nacre, tmp_path: Path) -> None:
    remember("src/oven.py bakes at 220 degrees.")
    remember("src/oven.py shuts by itself.", "door")
    edits(nacre, tmp_path, "/code/acme-billing/src/oven.py", sessions=5)
    doubt, evergreen = (
        item["id"] for item in nacre("review", "--only", "doubt", "--json").json["items"]
    )
    nacre("review", "keep", doubt)
    nacre("edit", evergreen, "--evergreen")
    edits(nacre, tmp_path, "/code/acme-billing/src/oven.py", sessions=6)
    assert nacre("review", "--only", "doubt", "--json").json["items"] == []


@pytest.mark.parametrize(
    ("sessions", "days", "symbols", "missing", "expected"),
    [
        (5, 60, 0, 0, 1.0),
        (1, 60, 0, 0, 0.2),
        (5, 30, 2, 0, 0.15),
        (9, 90, 2, 1, 0.65),
        (5, 60, 3, 3, 1.0),
        (0, 9, 0, 0, 0),
    ],
)
def test_confidence_grows_with_sessions_and_days(
    sessions: int, days: float, symbols: int, missing: int, expected: float
) -> None:
    assert confidence_of(sessions, days, symbols, missing) == pytest.approx(expected)
