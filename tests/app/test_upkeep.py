"""Health reports stale todos and unused memories."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from nacre.care.health import contents
from nacre.review import consolidate
from nacre.values.memory import Confirmation, Expiry, Kind, Memory, Retirement
from nacre.values.reports import WARNING, Check
from nacre.values.review import Usage
from tests.app.conftest import World
from tests.app.test_dreams import store_memory


def health_checks(world: World) -> dict[str, Check]:
    return {check.name: check for check in contents(world.context())}


def test_health_reports_nothing_for_a_new_home(world: World) -> None:
    store_memory(world, "Honey is sold in jars of 500 g.", days=3)
    store_memory(world, "Mend the gate of the yard.", days=3, kind=Kind.TODO)
    assert "todos" not in health_checks(world)


def test_open_todos_become_stale_after_a_month(world: World) -> None:
    store_memory(world, "Order labels.", days=30, kind=Kind.TODO)
    gate = store_memory(world, "Mend the gate.", days=200, kind=Kind.TODO)
    roof = store_memory(world, "Mend the roof.", days=31, kind=Kind.TODO)
    todo_check = health_checks(world)["todos"]
    since = [f"{world.clock() - timedelta(days=days):%Y-%m-%d}" for days in (200, 31)]
    assert todo_check.state == WARNING
    assert todo_check.detail == (
        "2 open, neither stated nor recalled for 30 days: "
        f"Mend the gate. ({gate.id[-8:]}, {since[0]}); Mend the roof. ({roof.id[-8:]}, {since[1]})"
    )
    with world.open() as memory:
        memory.retire(gate.id)
        memory.retire(roof.id)
    assert "todos" not in health_checks(world)


def _store_varied_memories(world: World) -> None:
    """Store memories of every kind around each age limit, some used, confirmed or retired."""
    home, chance = world.context(), Random(7)  # noqa: S311 - not for cryptography
    days = (-2, 0, 7, 30, 31, 59, 60, 61, 90, 92, 120, 130, 180, 183, 209, 365, 390, 730)
    with home.change("store") as change, change.transaction():
        for number in range(600):
            created = home.now() - timedelta(
                days=chance.choice(days), milliseconds=chance.choice((-1, 0, 1))
            )
            confirmations = (
                (Confirmation(created + timedelta(days=chance.choice(days)), None, ()),)
                if number % 7 == 0
                else ()
            )
            memory = Memory(
                id=home.ids(),
                kind=chance.choice(list(Kind)),
                subject=f"Crate {number}",
                content=f"It is {number}.",
                importance=chance.choice((1, 5, 6, 7, 8, 9, 10)),
                expiry=chance.choice(list(Expiry)),
                project="hive",
                created=created,
                updated=created,
                confirmed=confirmations,
                evergreen=number % 31 == 0,
                expires_on=(created + timedelta(days=90)).date() if number % 5 == 0 else None,
                retired=Retirement(home.now()) if number % 17 == 0 else None,
                superseded_by="0" * 32 if number % 19 == 0 else None,
            )
            change.put([memory])
            if number % 3 == 0:
                recalled = created + timedelta(days=chance.choice((0, 3, 60)))
                home.usage.adopt(memory.id, Usage(chance.choice((0, 1, 2, 5, 9)), recalled))


def test_health_statistics_match_a_full_scan_of_memories(world: World) -> None:
    world.environ["NACRE_FORGETTING_PROTECT"] = '["crate 4*"]'
    _store_varied_memories(world)
    checks = health_checks(world)
    home = world.context()
    active = [item for item in home.memories.everything() if item.is_active]
    usage, now = home.usage.of([memory.id for memory in active]), home.now()
    last = {item.id: consolidate.last_used(item, usage[item.id]) for item in active}
    todos = [
        item
        for item in active
        if item.kind is Kind.TODO and now - last[item.id] > timedelta(days=30)
    ]
    todos.sort(key=lambda item: last[item.id])
    expected = "; ".join(
        f"{todo.subject} ({todo.id[-8:]}, {last[todo.id]:%Y-%m-%d})" for todo in todos[:5]
    )
    assert checks["todos"].detail.split(" days: ")[1] == f"{expected}; and {len(todos) - 5} more"
