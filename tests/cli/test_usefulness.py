"""nacre admin usefulness, as people meet it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from nacre.context.hooks import read_draw
from tests.app.conftest import World
from tests.app.test_usefulness import worse_without_memory, write
from tests.cli.conftest import Nacre


@pytest.fixture
def compared(nacre: Nacre, user_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home half of whose sessions were held out for a month, and took longer."""
    monkeypatch.setenv("NACRE_EXTRACTION_ENABLED", "false")
    monkeypatch.setenv("NACRE_ARCHIVE_ENABLED", "false")
    world, random = World(user_home), Random(3)  # noqa: S311 - the same each time
    began = datetime.now(UTC) - timedelta(days=30)
    world.home.mkdir()
    (world.home / "config.toml").write_text("[usefulness]\nhold_out = 0.5\n")
    noted = {"salt": "5a17", "shares": [[int(began.timestamp() * 1000), 0.5]]}
    (world.home / "hold-out.json").write_text(json.dumps(noted))
    for number in range(160):
        name, at = f"5e55-{number:04d}", began + timedelta(hours=1 + 4 * number)
        is_held = read_draw(world.home).takes(f"claude-code:{name}", int(at.timestamp() * 1000))
        write(world, name, worse_without_memory(not is_held, random), at)
    nacre("ingest")
    return world.home


def test_disabled_usefulness_explains_activation_and_cost(nacre: Nacre) -> None:
    told = " ".join(nacre("admin", "usefulness").out.split())
    assert told.startswith("Every session gets context")
    assert "nacre config set usefulness.hold_out 0.2" in told
    assert "leaves one session in 5, chosen at random, without context" in told
    assert "200 sessions" in told
    assert nacre("admin", "usefulness", "--json").json == {
        "share": 0.0,
        "compared": 0.0,
        "since": None,
        "sessions_told": 0,
        "sessions_held_out": 0,
        "left_out": 0,
        "needed": 0,
        "comparisons": [],
    }


def test_new_usefulness_measurement_reports_too_few_sessions(nacre: Nacre) -> None:
    nacre("config", "set", "usefulness.hold_out", "0.2")
    told = nacre("admin", "usefulness").out
    assert "20% of sessions held out" in told
    assert "0 held out, 0 others" in told
    assert "Too few sessions: 200 sessions more needed." in told


def test_differences_are_shown_with_intervals(nacre: Nacre, compared: Path) -> None:
    told = nacre("admin", "usefulness").out
    assert "50% of sessions held out" in told
    assert "80 held out, 80 others" in told
    (row,) = [line for line in told.splitlines() if line.startswith("your messages in a session")]
    assert row.count("+") == 3
    assert "Fewer with memory: messages, corrections, repetitions, failed" in told
    assert max(map(len, told.splitlines()[:8])) <= 80


def test_json_contains_the_figures(nacre: Nacre, compared: Path) -> None:
    found = nacre("admin", "usefulness", "--json").json
    assert (found["sessions_told"], found["sessions_held_out"], found["left_out"]) == (80, 80, 0)
    (messages,) = [one for one in found["comparisons"] if one["aspect"] == "messages"]
    assert messages["finding"] == "less with memory"
    assert 0 < messages["low"] < messages["difference"] < messages["high"]
    assert messages["difference"] == pytest.approx(messages["held_out"] - messages["told"])


def test_past_measurement_is_shown_after_disabling(nacre: Nacre, compared: Path) -> None:
    nacre("config", "set", "usefulness.hold_out", "0")
    told = nacre("admin", "usefulness").out
    assert told.startswith("Every session gets context")
    assert "80 held out, 80 others" in told
