"""Activity by day, on both engines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

from nacre.store.journal import Spending
from nacre.store.schema import Database
from nacre.store.sessions import Activity, Period
from nacre.values.memory import Confirmation, Source
from nacre.values.models import Call, Tokens
from nacre.values.session import SessionKind, Speaker, Turn
from nacre_server.connection import local_zone
from tests.storage.samples import DAY, NOON, memory, put, put_session, retired, turn


@pytest.fixture(params=["UTC", "Asia/Kolkata", "America/New_York", "Pacific/Kiritimati"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The time zone of the owner's clock."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


def _local(*moment: int) -> datetime:
    return datetime(*moment).astimezone().astimezone(UTC)  # type: ignore[arg-type, misc]


_PERIOD = Period(date(2026, 10, 31), date(2026, 11, 2))


def test_days_follow_the_owners_clock(zone: str, database: Database) -> None:
    late, early = _local(2026, 10, 31, 23, 45), _local(2026, 11, 1, 0, 15)
    put_session(database, "one", turn("1"), turn("2"), started=late)
    put_session(database, "two", *_turns(late, early))
    put_session(database, "three", turn("1"), started=early, tool="codex", project="p")
    put_session(database, "sub", turn("1"), started=early, kind=SessionKind.SUBAGENT)
    put_session(database, "old", turn("1"), started=_local(2026, 10, 30, 23, 59))
    activity = Activity(database)
    assert activity.sessions(_PERIOD) == [
        ("2026-10-31", "claude-code", 2, 3),
        ("2026-11-01", "claude-code", 0, 2),
        ("2026-11-01", "codex", 1, 1),
    ]
    assert activity.sessions(Period(_PERIOD.first, _PERIOD.last, "p")) == [
        ("2026-11-01", "codex", 1, 1)
    ]


def _turns(*moments: datetime) -> list[Turn]:
    return [
        turn(f"{at}", minutes=(item - NOON).total_seconds() / 60)
        for at, item in enumerate((moments[0], *moments[1:], moments[1]))
    ]


def test_process_time_zone_is_given_by_name_or_offset(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert local_zone() == zone
    for setting in ("<east>-05:30", "<west>+09:15"):
        monkeypatch.setenv("TZ", setting)
        time.tzset()
        assert local_zone() == f"<local>{setting[6:]}"


def test_memories_are_counted_by_source(database: Database) -> None:
    put(
        database,
        memory(1, source=Source("codex:a:b")),
        memory(2, source=Source("codex:c")),
        memory(3, source=Source("bare")),
        memory(4, days=-3, confirmed=(Confirmation(NOON - DAY),)),
        memory(5, days=-3, speaker=Speaker.AGENT, project="p"),
        memory(6, **retired()),
    )
    activity = Activity(database)
    assert activity.sources(Period(date(2026, 10, 1), date(2026, 11, 9))) == [
        ("owner", "codex", 2),
        ("agent", None, 1),
        ("owner", None, 1),
        ("owner", "", 1),
    ]


def test_calls_are_counted(database: Database) -> None:
    for number, (day, cost) in enumerate(((1, None), (1, 2**40), (2, 3), (9, 1))):
        at = datetime(2026, 11, day, tzinfo=UTC)
        Spending(database).add(
            Call(f"c{number}", at, at.date(), "claims", "m", True, Tokens(1, 2, 3, 4), cost)
        )
    activity = Activity(database)
    assert activity.calls(date(2026, 11, 1), date(2026, 11, 2)) == [
        ("2026-11-01", "claims", 20, 2**40),
        ("2026-11-02", "claims", 10, 3),
    ]
