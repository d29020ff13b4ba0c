"""What health says of how memories age: when they were used, what lies idle, what a dream would end."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from nacre.care.health import contents
from nacre.review import consolidate
from nacre.review.consolidate import DreamAction
from nacre.review.dream import DreamPlanRequest
from nacre.review.run import plan
from nacre.values.memory import Confirmation, Expiry, Kind, Memory, Retirement
from nacre.values.reports import OK, WARNING, Check
from nacre.values.review import Usage
from tests.app.conftest import World
from tests.app.test_dreams import dreamt, kept


def found(world: World) -> dict[str, Check]:
    return {check.name: check for check in contents(world.context())}


def test_health_reports_nothing_for_a_new_home(world: World) -> None:
    kept(world, "Honey is sold in jars of 500 g.", days=3)
    kept(world, "Mend the gate of the yard.", days=3, kind=Kind.TODO)
    assert not {"todos", "dream"} & found(world).keys()


def test_open_todos_become_stale_after_a_month(world: World) -> None:
    kept(world, "Order labels.", days=30, kind=Kind.TODO)
    gate = kept(world, "Mend the gate.", days=200, kind=Kind.TODO)
    roof = kept(world, "Mend the roof.", days=31, kind=Kind.TODO)
    told = found(world)["todos"]
    since = [f"{world.clock() - timedelta(days=days):%Y-%m-%d}" for days in (200, 31)]
    assert told.state == WARNING
    assert told.detail == (
        "2 open, neither stated nor recalled for 30 days: "
        f"Mend the gate. ({gate.id[-8:]}, {since[0]}); Mend the roof. ({roof.id[-8:]}, {since[1]})"
    )
    with world.open() as memory:
        memory.retire(gate.id)
        memory.retire(roof.id)
    assert "todos" not in found(world)


def test_health_counts_the_memories_a_dream_would_end(world: World) -> None:
    kept(world, "The build machine is borrowed.", days=131, expiry=Expiry.TEMPORARY)
    kept(world, "The intern liked the blue theme.", days=500)
    kept(world, "The client pays in March.", subject="Client", days=500)
    world.environ["NACRE_FORGETTING_PROTECT"] = '["client"]'
    assert plan(world.context(), DreamPlanRequest()).ending == 2
    told = found(world)["dream"]
    assert (told.state, told.detail) == (
        OK,
        "1 over and 1 never recalled: nacre dream --dry-run shows them",
    )
    report = dreamt(world)
    assert "dream" not in found(world)
    with world.open() as memory:
        memory.undo(report.operation)
    assert "dream" not in found(world)


@pytest.mark.parametrize(
    ("at_night", "state", "detail"),
    [
        ("false", WARNING, "51 memories are ready for tidying: 51 over"),
        ("true", OK, "51 over: the daemon's dreams retire a few per night"),
    ],
)
def test_health_warns_of_many_endings_without_automatic_dreams(
    world: World, at_night: str, state: str, detail: str
) -> None:
    world.environ["NACRE_DREAM_AT_NIGHT"] = at_night
    for number in range(51):
        kept(
            world,
            f"Crate {number} stands in row {number + 100}.",
            days=200,
            expiry=Expiry.TEMPORARY,
        )
    told = found(world)["dream"]
    assert (told.state, told.detail) == (state, detail)


def _of_all_sorts(world: World) -> None:
    """Memories on both sides of every border, of every kind, used and said again or not."""
    home, chance = world.context(), Random(7)  # noqa: S311 - no secret
    days = (-2, 0, 7, 30, 31, 59, 60, 61, 90, 92, 120, 130, 180, 183, 209, 365, 390, 730)
    with home.change("store") as change, change.transaction():
        for number in range(600):
            at = home.now() - timedelta(
                days=chance.choice(days), milliseconds=chance.choice((-1, 0, 1))
            )
            said = (
                (Confirmation(at + timedelta(days=chance.choice(days)), None, ()),)
                if number % 7 == 0
                else ()
            )
            one = Memory(
                id=home.ids(),
                kind=chance.choice(list(Kind)),
                subject=f"Crate {number}",
                content=f"It is {number}.",
                importance=chance.choice((1, 5, 6, 7, 8, 9, 10)),
                expiry=chance.choice(list(Expiry)),
                project="hive",
                created=at,
                updated=at,
                confirmed=said,
                evergreen=number % 31 == 0,
                expires_on=(at + timedelta(days=90)).date() if number % 5 == 0 else None,
                retired=Retirement(home.now()) if number % 17 == 0 else None,
                superseded_by="0" * 32 if number % 19 == 0 else None,
            )
            change.put([one])
            if number % 3 == 0:
                recalled = at + timedelta(days=chance.choice((0, 3, 60)))
                home.usage.adopt(one.id, Usage(chance.choice((0, 1, 2, 5, 9)), recalled))


def test_health_statistics_match_a_full_scan_of_memories(world: World) -> None:
    world.environ["NACRE_FORGETTING_PROTECT"] = '["crate 4*"]'
    _of_all_sorts(world)
    told = found(world)
    home = world.context()
    every = [one for one in home.memories.everything() if one.is_active]
    usage, now = home.usage.of([memory.id for memory in every]), home.now()
    last = {one.id: consolidate.last_used(one, usage[one.id]) for one in every}
    todos = [
        one for one in every if one.kind is Kind.TODO and now - last[one.id] > timedelta(days=30)
    ]
    todos.sort(key=lambda one: last[one.id])
    named = "; ".join(
        f"{one.subject} ({one.id[-8:]}, {last[one.id]:%Y-%m-%d})" for one in todos[:3]
    )
    assert told["todos"].detail.split(" days: ")[1] == f"{named}; and {len(todos) - 3} more"
    ending = consolidate.plan_ending(every, usage, now, home.settings)
    over = sum(one.action is DreamAction.EXPIRE for one in ending)
    never = f" and {len(ending) - over} never recalled" if len(ending) > over else ""
    assert f"{over} over{never}" in told["dream"].detail
