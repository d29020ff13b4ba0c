"""The today and activity operations report a day's results, pending reviews and counts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest

from nacre.care.today import Activity, Today
from nacre.errors import InvalidInputError
from nacre.values.models import Call, Tokens
from tests.app.conftest import World, says

TODAY = date(2026, 11, 20)


def talk(world: World, session: str, *moments: str, cwd: str = "/code/acme-billing") -> None:
    """Write a session with a turn at each moment."""
    roles = ("user", "assistant") * len(moments)
    turns = enumerate(zip(roles, moments, strict=False))
    world.transcript(
        session,
        *(
            says(
                role,
                f"Turn {index}.",
                uuid=f"{session}-{index}",
                session=session,
                at=moment,
                cwd=cwd,
            )
            for index, (role, moment) in turns
        ),
    )


def ingest(world: World) -> None:
    with world.open() as memory:
        memory.ingest(extract=False)


def call_today(world: World, **arguments: Any) -> Today:
    with world.open() as memory:
        today: Today = memory.call("today", **arguments)
    return today


def call_activity(world: World, **arguments: Any) -> Activity:
    with world.open() as memory:
        activity: Activity = memory.call("activity", **arguments)
    return activity


@pytest.fixture
def in_nepal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the owner's time zone to UTC+5:45."""
    monkeypatch.setenv("TZ", "NPT-5:45")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_day_shows_learned_memories_their_sources_and_actions(world: World) -> None:
    with world.open() as memory:
        memory.store("The bees are fed in October.", project="hive")
        world.clock.pass_days(1)
        memory.store("The smoker is in the barn.", project="hive")
        second = memory.store("Mill rents are due in May.", project="mill").memory_id
        memory.edit(second, importance=9)
    today = call_today(world)
    assert (today.since, today.until, today.learned_total) == (
        date(2026, 11, 21),
        date(2026, 11, 21),
        2,
    )
    assert [item.content for item in today.learned] == [
        "Mill rents are due in May.",
        "The smoker is in the barn.",
    ]
    assert [operation.action for operation in today.operations] == ["update", "store", "store"]
    assert [(source.speaker, source.tool, source.memories) for source in today.sources] == [
        ("owner", None, 2)
    ]
    hive = call_today(world, since=TODAY, project="hive", limit=1)
    assert (len(hive.learned), hive.learned_total) == (1, 2)


def test_day_counts_pending_reviews_of_one_project(world: World) -> None:
    world.environ["CLAUDECODE"] = "1"
    with world.open() as memory:
        memory.store("The smoker is in the barn.", project="hive")
        memory.store("Mill rents are due in May.", project="mill")
        memory.store("Mill rents are paid in June.", project="mill")
    del world.environ["CLAUDECODE"]
    today = call_today(world, project="mill", limit=1)
    assert (today.conflicts, today.doubts, today.candidates) == (0, 2, 0)


def test_day_shows_sessions_by_tool_and_problems(world: World) -> None:
    talk(world, "5e55-0001", "2026-11-20T08:00:00.000Z", "2026-11-20T08:05:00.000Z")
    ingest(world)
    today = call_today(world)
    assert [(tool.tool, tool.sessions, tool.turns) for tool in today.tools] == [
        ("claude-code", 1, 2)
    ]
    assert [session.session.turns for session in today.sessions] == [2]
    assert "memories" in {problem.name for problem in today.problems}  # no memories exist yet
    assert call_today(world, until=date(2026, 11, 19)).tools == ()


def test_model_costs_are_shown_for_the_day_and_month(world: World) -> None:
    home = world.context()
    for number, (day, cost) in enumerate(
        [(date(2026, 11, 20), 500), (date(2026, 11, 2), 700), (date(2026, 10, 31), 900)]
    ):
        moment = datetime(day.year, day.month, day.day, 9, tzinfo=UTC)
        home.spending.add(
            Call(
                f"call-{number}",
                moment,
                day,
                "extraction",
                "openai:x",
                True,
                Tokens(100, 10),
                cost,
                outcome="done",
            )
        )
    today = call_today(world)
    assert (today.cost, today.cost_month) == (500, 1_200)


def test_turns_count_on_their_own_day_across_midnight(
    world: World,
) -> None:
    talk(
        world,
        "5e55-0001",
        "2026-11-18T23:50:00.000Z",
        "2026-11-18T23:55:00.000Z",
        "2026-11-19T00:05:00.000Z",
    )
    talk(world, "5e55-0002", "2026-11-19T10:00:00.000Z", cwd="/code/shop")
    ingest(world)
    activity = call_activity(world, since=date(2026, 11, 17))
    days = [date(2026, 11, day) for day in (18, 19)]
    assert [(item.day, item.sessions, item.turns) for item in activity.calendar] == [
        (days[0], 1, 2),
        (days[1], 1, 2),
    ]
    of_shop = call_activity(world, since=date(2026, 11, 17), project="shop")
    assert [(item.day, item.turns) for item in of_shop.calendar] == [(days[1], 1)]


def test_days_follow_the_owners_time_zone(world: World, in_nepal: None) -> None:
    talk(world, "5e55-0001", "2026-11-18T18:10:00.000Z", "2026-11-18T18:20:00.000Z")
    ingest(world)
    activity = call_activity(world, since=date(2026, 11, 17))
    assert [(item.day.day, item.turns) for item in activity.calendar] == [(18, 1), (19, 1)]


def test_period_ending_before_its_start_is_refused(world: World) -> None:
    with pytest.raises(InvalidInputError):
        call_today(world, since=date(2026, 11, 21), until=TODAY)
    with pytest.raises(InvalidInputError):
        call_activity(world, since=date(2026, 11, 21), until=TODAY)
