"""``python -m benchmarks gateway`` with a small crowd."""

from __future__ import annotations

from pathlib import Path

from benchmarks.load.conversations import measure_gateway


def test_crowd_is_answered_in_order_without_duplicates(tmp_path: Path) -> None:
    result = measure_gateway(tmp_path / "home", messages=600, conversations=30, patience=60)
    assert not result.wrong
    assert result.doubled == 0
    assert result.turns >= 30
    assert result.duplicates > 10
    assert result.cuts > 0
