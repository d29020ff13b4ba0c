"""What happened on which day, on both engines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

from nacre.store.journal import Spending, Traces
from nacre.store.memories import Memories, UsageLog
from nacre.store.schema import Database
from nacre.store.sessions import Activity, Period
from nacre.values.memory import Confirmation, Kind, Source
from nacre.values.models import AskedQuestion, Call, Tokens
from nacre.values.session import SessionKind, Speaker, Turn
from nacre_server.connection import local_zone
from tests.storage.made import DAY, NOON, an_id, memory, put, retired, said, turn


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
    summer = _local(2026, 7, 1, 0, 5)
    said(database, "one", turn("1"), turn("2"), started=late)
    said(database, "two", *_turns(late, early))
    said(database, "three", turn("1"), started=early, tool="codex", project="p")
    said(database, "sub", turn("1"), started=early, kind=SessionKind.SUBAGENT)
    said(database, "old", turn("1"), started=_local(2026, 10, 30, 23, 59))
    activity = Activity(database)
    assert activity.sessions(_PERIOD) == [
        ("2026-10-31", "claude-code", 2, 3),
        ("2026-11-01", "claude-code", 0, 2),
        ("2026-11-01", "codex", 1, 1),
    ]
    assert activity.sessions(Period(_PERIOD.first, _PERIOD.last, "p")) == [
        ("2026-11-01", "codex", 1, 1)
    ]
    put(
        database,
        memory(1, created=late, updated=late),
        memory(2, created=early, updated=early, superseded_by=an_id(1)),
        memory(
            3,
            kind=Kind.TODO,
            created=summer,
            updated=early,
            project="p",
            retired=retired()["retired"],
        ),
    )
    assert activity.memories(date(2026, 11, 1), None) == [
        ("2026-07-01", "todo", 1, 1),
        ("2026-10-31", "fact", 1, 1),
        ("2026-11-01", "fact", -1, 1),
        ("2026-11-01", "fact", 1, 1),
    ]
    store = UsageLog(database)
    for at in (late, late, early):
        store.record([an_id(1)], int(at.timestamp() * 1000), first=[an_id(1)])
    assert activity.recalls(_PERIOD) == [("2026-10-31", 2), ("2026-11-01", 1)]
    for number, (at, outcome) in enumerate(
        ((late, "shown"), (early, "no"), (early, "shown"), (early, "no"))
    ):
        Traces(database).add_question(AskedQuestion(f"t{number}", at, "q", outcome))
    assert activity.questions(_PERIOD, ["no"]) == [
        ("2026-10-31", 1, 1),
        ("2026-11-01", 0, 2),
        ("2026-11-01", 1, 1),
    ]


def _turns(*moments: datetime) -> list[Turn]:
    return [
        turn(f"{at}", minutes=(one - NOON).total_seconds() / 60)
        for at, one in enumerate((moments[0], *moments[1:], moments[1]))
    ]


def test_process_time_zone_is_given_by_name_or_offset(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert local_zone() == zone
    for told in ("<east>-05:30", "<west>+09:15"):
        monkeypatch.setenv("TZ", told)
        time.tzset()
        assert local_zone() == f"<local>{told[6:]}"


def test_memories_are_counted_by_source_age_and_use(database: Database) -> None:
    put(
        database,
        memory(1, source=Source("codex:a:b")),
        memory(2, source=Source("codex:c")),
        memory(3, source=Source("bare")),
        memory(4, days=-3, confirmed=(Confirmation(NOON - DAY),)),
        memory(5, days=-3, speaker=Speaker.AGENT, project="p"),
        memory(6, **retired()),
    )
    Memories(database).set_stale([(an_id(5), 0.5, "")])
    activity = Activity(database)
    assert activity.sources(Period(date(2026, 10, 1), date(2026, 11, 9))) == [
        ("owner", "codex", 2),
        ("agent", None, 1),
        ("owner", None, 1),
        ("owner", "", 1),
    ]
    assert activity.ages(NOON + DAY / 2, None) == [(0, 3, 0), (1, 1, 0), (3, 1, 1)]
    assert activity.ages(NOON - DAY / 2, "p") == [(2, 1, 1)]
    for number, times in ((1, 1), (2, 5), (3, 6)):
        for _ in range(times):
            UsageLog(database).record([an_id(number)], 1, first=[an_id(number)])
    assert (activity.use(None), activity.use("p")) == ((2, 2, 1), (1, 0, 0))


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
