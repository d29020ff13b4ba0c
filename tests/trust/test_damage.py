"""Damage is reported with a repair that works.

``make damage`` tests five hundred cases for each part of a home; this module tests a few.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trust.damage import KINDS, Stage, environment, try_one

DAMAGES = 6


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_reported_and_the_suggested_repair_works(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    stage = Stage(tmp_path)
    assert len(stage.memories) > DAMAGES
    for number in range(DAMAGES):
        result = try_one(stage, kind, f"sample {kind} {number}")
        assert result.wrong == [], result
