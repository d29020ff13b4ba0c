"""Days of questions, filters and lists are those of the owner's clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import apsw
import pytest

from tests.cli.conftest import SESSION, Nacre, said, write_transcript


@pytest.fixture
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "minutes"),
    [("Asia/Kathmandu", 10), ("America/Los_Angeles", 24 * 60 - 10)],
    indirect=["zone"],
)
def test_yesterday_is_the_local_day_before_today(
    nacre: Nacre, user_home: Path, zone: str, minutes: int
) -> None:
    midnight = datetime.now(ZoneInfo(zone)).replace(hour=0, minute=0, second=0, microsecond=0)
    at = midnight - timedelta(days=1) + timedelta(minutes=minutes)
    text = "We decided to paint the gate blue, because green fades in the sun."
    record = said("user", text, 1) | {"timestamp": at.astimezone(UTC).isoformat()}
    write_transcript(user_home / ".claude" / "projects" / "-code-acme" / "s.jsonl", [record])
    nacre("ingest")
    day, after = at.date().isoformat(), midnight.date().isoformat()
    assert day in nacre("list").out
    for words, key in (
        (("list", "--since", day), "memories"),
        (("list", "--until", after), "memories"),
        (("sessions", "list", "--since", "yesterday"), "lines"),
        (("recall", "gate", "--since", "yesterday", "--until", "today"), "hits"),
        (("recall", "what did we decide yesterday?"), "hits"),
        (("recall", "what did we decide yesterday?"), "time_words"),
        (("recall", "gate", "--as-of", day), "hits"),
    ):
        assert nacre(*words, "--json").json[key], words
    for words, key in (
        (("list", "--since", after), "memories"),
        (("list", "--until", day), "memories"),
        (("sessions", "list", "--since", "today"), "lines"),
        (("recall", "gate", "--since", "today"), "hits"),
    ):
        assert not nacre(*words, "--json").json[key], words


@pytest.mark.parametrize("milliseconds", [253_402_300_799_000, 2**60, -62_135_596_800_000])
@pytest.mark.parametrize("zone", ["Asia/Kathmandu"], indirect=True)
@pytest.mark.usefixtures("zone", "learned")
def test_unreadable_stored_time_is_shown_as_unknown(
    nacre: Nacre, user_home: Path, milliseconds: int
) -> None:
    database = apsw.Connection(str(user_home / ".nacre" / "nacre.db"))
    for statement in (
        "UPDATE sessions SET started = ?1, ended = ?1",
        "UPDATE turns SET time = ?1",
        "UPDATE memories SET created = ?1, updated = ?1",
    ):
        database.execute(statement, (milliseconds,))
    database.close()
    assert "unknown" in nacre("list").out
    for words in (
        ("sessions", "list"),
        ("sessions", "show", SESSION[:8]),
        ("recall", "which database?", "--turns", "3"),
        ("context", "--folder", "/code/acme-billing"),
        ("recall", "--browse"),
        ("list", "--json"),
        (),
    ):
        nacre(*words)
