"""The benchmark of changes counts correct and incorrect replacements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.contradictions.stale import StaleData, measure, totals
from benchmarks.dataset import load_cases
from nacre.errors import InvalidQueryError

DATA = {
    "changes": [
        {
            "id": "c1",
            "phrasing": "now",
            "project": "quarry",
            "old": {"text": "The gate listens on port 8080", "date": "2025-01-01"},
            "new": {"text": "The gate now listens on port 8443", "date": "2025-02-01"},
            "questions": ["which port does the gate listen on?"],
            "filler": [{"text": "The gate is painted green", "date": "2025-01-05"}],
        },
        {
            "id": "c2",
            "phrasing": "correction",
            "project": "barn",
            "old": {"text": "Hay is stored upstairs", "date": "2025-01-01"},
            "new": {"text": "Straw fills the cellar", "date": "2025-02-01"},
            "questions": ["where is hay stored?"],
        },
    ],
    "lookalikes": [
        {
            "id": "l1",
            "why": "another thing",
            "project": "quarry",
            "first": {"text": "The lamp is on pole 3", "date": "2025-01-01"},
            "second": {"text": "The bell is on pole 4", "date": "2025-02-01"},
            "expects": "both",
        }
    ],
    "pairs": [
        {
            "id": "p1",
            "a": {"text": "Gates are painted green"},
            "b": {"text": "Gates are painted green!"},
            "same": True,
        },
        {
            "id": "p2",
            "a": {"text": "Gates are painted green"},
            "b": {"text": "Lamps are lit at dusk"},
            "same": False,
        },
    ],
}


@pytest.mark.parametrize("through", ["store", "sessions"])
def test_missed_and_wrong_replacements_are_counted(tmp_path: Path, through: str) -> None:
    file = tmp_path / "data.json"
    file.write_text(json.dumps(DATA), encoding="utf-8")
    result = measure(load_cases(file, "stale", StaleData), tmp_path / "run", None, through=through)
    every = totals(result)
    assert (every.changes, every.superseded, every.stale, every.past) == (2, 1, 1, 2)
    assert (
        result.wrong_lookalikes.count,
        result.wrong_lookalikes.of,
        result.wrong_others.count,
    ) == (0, 1, 0)
    assert (result.duplicates_found.percent, result.distinct_merged.percent) == (100.0, 0.0)
    assert {failure.what for failure in result.failures} == {"missed", "stale hit"}


def test_marked_stale_hit_is_counted_separately(tmp_path: Path) -> None:
    first = {"text": "Uploads may be 10 MB", "date": "2025-01-01"}
    second = {"text": "Uploads have changed to 25 MB", "date": "2025-02-01"}
    change = {
        "id": "c1",
        "phrasing": "now",
        "project": "quarry",
        "old": first,
        "new": second,
        "questions": ["how many MB may uploads be?"],
    }
    look = {"id": "l1", "why": "as if", "project": "barn", "first": first, "second": second}
    file = tmp_path / "data.json"
    file.write_text(json.dumps({"changes": [change], "lookalikes": [look]}), encoding="utf-8")
    result = measure(load_cases(file, "stale", StaleData), tmp_path / "run", None)
    every = totals(result)
    assert (every.superseded, every.doubted, every.stale, every.marked, every.found) == (
        0,
        1,
        1,
        1,
        1,
    )
    assert (
        result.wrong_lookalikes.count,
        result.doubted_lookalikes.count,
        result.doubted_others.of,
    ) == (0, 1, 0)


def test_missed_duplicate_is_described(tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    twins = [
        {
            "id": "p1",
            "a": {"text": "Gates are green"},
            "b": {"text": "Lamps are lit at dusk"},
            "same": True,
        }
    ]
    file.write_text(json.dumps({**DATA, "pairs": twins}), encoding="utf-8")
    result = measure(load_cases(file, "stale", StaleData), tmp_path / "run", None)
    missed = [failure for failure in result.failures if failure.what == "duplicate missed"]
    assert [item.note for item in missed] == ["same meaning"]


def test_bundled_data_is_readable() -> None:
    data = load_cases(None, "stale", StaleData)
    assert len(data.changes) >= 60
    assert len({change.phrasing for change in data.changes}) == 6
    assert data.lookalikes
    assert data.pairs


def test_foreign_data_is_refused_with_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text('{"changes": 3}', encoding="utf-8")
    with pytest.raises(InvalidQueryError, match="not in the format of this benchmark"):
        load_cases(file, "stale", StaleData)
