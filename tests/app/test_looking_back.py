"""What a day brought, what waits, and the numbers behind the pictures."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest

from nacre.care.today import Activity, Series, Today
from nacre.errors import InvalidInputError
from nacre.values.models import Call, Tokens
from tests.app.conftest import World, says

TODAY = date(2026, 11, 20)


def talk(world: World, session: str, *moments: str, cwd: str = "/code/acme-billing") -> None:
    """A session with a turn at each of these moments."""
    roles = ("user", "assistant") * len(moments)
    turns = enumerate(zip(roles, moments, strict=False))
    world.transcript(
        session,
        *(
            says(role, f"Turn {at}.", uuid=f"{session}-{at}", session=session, at=moment, cwd=cwd)
            for at, (role, moment) in turns
        ),
    )


def ingested(world: World) -> None:
    with world.open() as memory:
        memory.ingest(extract=False)


def looked(world: World, **asked: Any) -> Today:
    with world.open() as memory:
        found: Today = memory.call("today", **asked)
    return found


def numbers(world: World, **asked: Any) -> Activity:
    with world.open() as memory:
        found: Activity = memory.call("activity", **asked)
    return found


def on(found: Activity, series: tuple[Series, ...], name: str, day: date) -> int:
    values = next((one.values for one in series if one.name == name), (0,) * len(found.steps))
    return values[found.steps.index(day)]


@pytest.fixture
def in_nepal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The owner's clock is 5:45 ahead."""
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
    found = looked(world)
    assert (found.since, found.until, found.learned_total) == (
        date(2026, 11, 21),
        date(2026, 11, 21),
        2,
    )
    assert [one.content for one in found.learned] == [
        "Mill rents are due in May.",
        "The smoker is in the barn.",
    ]
    assert [one.action for one in found.operations] == ["update", "store", "store"]
    assert [(one.speaker, one.tool, one.memories) for one in found.sources] == [("owner", None, 2)]
    whole = looked(world, since=TODAY, project="hive", limit=1)
    assert (len(whole.learned), whole.learned_total) == (1, 2)


def test_day_counts_pending_reviews_of_one_project(world: World) -> None:
    world.environ["CLAUDECODE"] = "1"
    with world.open() as memory:
        memory.store("The smoker is in the barn.", project="hive")
        memory.store("Mill rents are due in May.", project="mill")
        memory.store("Mill rents are paid in June.", project="mill")
    del world.environ["CLAUDECODE"]
    found = looked(world, project="mill", limit=1)
    assert (found.conflicts, found.doubts, found.candidates) == (0, 2, 0)


def test_day_shows_sessions_by_tool_and_problems(world: World) -> None:
    talk(world, "5e55-0001", "2026-11-20T08:00:00.000Z", "2026-11-20T08:05:00.000Z")
    ingested(world)
    found = looked(world)
    assert [(one.tool, one.sessions, one.turns) for one in found.tools] == [("claude-code", 1, 2)]
    assert [one.session.turns for one in found.sessions] == [2]
    assert "memories" in {one.name for one in found.problems}  # there are none yet
    assert looked(world, until=date(2026, 11, 19)).tools == ()


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
    told = looked(world)
    assert (told.cost, told.cost_month) == (500, 1_200)
    found = numbers(world, since=date(2026, 10, 1))
    assert on(found, found.cost, "extraction", date(2026, 10, 31)) == 900
    assert numbers(world, project="hive").cost == ()


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
    ingested(world)
    found = numbers(world, since=date(2026, 11, 17))
    days = [date(2026, 11, day) for day in (18, 19, 20)]
    assert [on(found, found.turns, "claude-code", day) for day in days] == [2, 2, 0]
    assert [on(found, found.sessions, "claude-code", day) for day in days] == [1, 1, 0]
    assert [(one.day, one.sessions, one.turns) for one in found.calendar] == [
        (days[0], 1, 2),
        (days[1], 1, 2),
    ]
    of_shop = numbers(world, since=date(2026, 11, 17), project="shop")
    assert [on(of_shop, of_shop.turns, "claude-code", day) for day in days] == [0, 1, 0]


def test_days_follow_the_owners_time_zone(world: World, in_nepal: None) -> None:
    talk(world, "5e55-0001", "2026-11-18T18:10:00.000Z", "2026-11-18T18:20:00.000Z")
    ingested(world)
    found = numbers(world, since=date(2026, 11, 17))
    assert [on(found, found.turns, "claude-code", date(2026, 11, day)) for day in (18, 19)] == [
        1,
        1,
    ]


def test_memory_count_rises_with_stores_and_falls_with_endings(world: World) -> None:
    with world.open() as memory:
        memory.store("The bees are fed in October.", kind="fact")
        world.clock.pass_days(1)
        ended = memory.store("The smoker is in the barn.", kind="fact").memory_id
        memory.store("We keep the hives in the orchard.", kind="decision")
        world.clock.pass_days(1)
        memory.retire(ended)
    found = numbers(world, since=date(2026, 11, 21))
    assert found.steps == (date(2026, 11, 21), date(2026, 11, 22))
    assert {one.name: one.values for one in found.stored} == {"fact": (1, 0), "decision": (1, 0)}
    assert {one.name: one.values for one in found.held} == {"fact": (2, 1), "decision": (1, 1)}


def test_long_periods_are_grouped_by_weeks_and_months(world: World) -> None:
    year = numbers(world)
    assert (year.step, year.steps[0].weekday(), len(year.steps)) == ("week", 0, 53)
    assert year.steps[0] <= year.since < year.steps[1]
    assert year.steps[-1] <= year.until
    decade = numbers(world, since=date(2016, 12, 5))
    assert (decade.step, decade.steps[0], decade.steps[-1]) == (
        "month",
        date(2016, 12, 1),
        date(2026, 11, 1),
    )
    assert all(len(one.values) == len(decade.steps) for one in decade.held)


def test_statistics_show_current_ages_and_use(world: World) -> None:
    with world.open() as memory:
        memory.store("The bees are fed in October.")
        world.clock.pass_days(40)
        memory.store("The smoker of the upper stand is in the barn.")
        memory.recall("where is the smoker of the upper stand?")
    found = numbers(world)
    assert [(one.least, one.most, one.memories) for one in found.ages if one.memories] == [
        (0, 7, 1),
        (30, 90, 1),
    ]
    assert (found.never, found.seldom, found.often) == (1, 1, 0)
    assert (sum(found.recalls), found.recalls[-1]) == (1, 1)


def test_statistics_count_answered_and_unanswered_questions(world: World) -> None:
    with world.open() as memory:
        memory.store("The smoker of the upper stand is in the barn.")
        memory.recall("where is the smoker of the upper stand?")
        memory.recall("who painted the ceiling?")
    found = numbers(world, since=TODAY)
    assert sum(sum(one.values) for one in found.questions) == 2
    assert {one.name: one.values for one in found.questions} == {
        "answered": (1,),
        "unanswered": (1,),
    }


def test_period_ending_before_its_start_is_refused(world: World) -> None:
    with pytest.raises(InvalidInputError):
        looked(world, since=date(2026, 11, 21), until=TODAY)
    with pytest.raises(InvalidInputError):
        numbers(world, since=date(2026, 11, 21), until=TODAY)
