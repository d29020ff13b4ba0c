"""A sync lets others write between its parts: nobody finds half of one, and what they do then is kept."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from nacre.data.forget import ForgetRequest, forget, prepare
from nacre.data.sync import State, Synced, SyncRequest, sync
from nacre.data.undo import log
from nacre.home.home import Home
from nacre.memories.decision import StoreRequest
from nacre.memories.edit import scan
from nacre.memories.store import edit, get, list_active, store
from nacre.values.recall import Filter
from tests.app.test_long_jobs import Meanwhile, is_well
from tests.app.test_syncing import Machine, anything, converge, git, machine

MANY = 12


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every file took long."""
    monkeypatch.setattr("nacre.store.sqlite._MIN_LOCK_SECONDS", 0.0)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Machine, Machine]:
    """Two machines that share some memories of lamps."""
    remote = tmp_path / "remote.git"
    remote.mkdir()
    git(remote, "init", "--quiet", "--bare", "--initial-branch=main")
    one, other = machine(tmp_path, remote, "one"), machine(tmp_path, remote, "other")
    for number in range(MANY):
        other.store(f"Lamp {number} burns oil.", subject=f"Lamp {number}", project="harbour")
    other.sync(remote=str(remote))
    one.sync(remote=str(remote))
    return one, other


def sync_beside(one: Machine, visit: Callable[[Home, int], object]) -> Synced:
    """Sync, while another process does something in the same home at every pause."""
    visitor = one.world.context()
    home = Meanwhile(one.world)
    try:
        scan(home.context)
        home.turns, home.visit = 0, lambda turn: visit(visitor, turn)
        done = sync(home.context, SyncRequest(timeout_seconds=20.0))
        home.visit = lambda _: None
        assert home.turns
        is_well(home.context)
        return done
    finally:
        visitor.database.close()
        home.context.database.close()


def edit_all(one: Machine, words: str) -> None:
    for number in range(MANY):
        one.do(edit, f"Lamp {number}", content=f"Lamp {number} {words}")


def test_unfinished_sync_is_not_mistaken_for_manual_edits(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    edit_all(other, "burns gas.")
    for number in range(MANY):
        other.store(f"Buoy {number} is red.", subject=f"Buoy {number}")
    (other.vault / "projects/harbour/fact/lamp-3.md").rename(
        other.vault / "projects/harbour/lamp-three.md"
    )
    (other.vault / "projects/harbour/fact/lamp-4.md").unlink()
    other.sync()
    known: list[int] = []

    def visit(visitor: Home, _: int) -> None:
        known.append(scan(visitor))
        store(visitor, StoreRequest(content=f"Visit {len(known)} was short.", force=True))

    assert sync_beside(one, visit).state is State.SYNCED
    assert not any(known)
    theirs = {each.operation.id for each in other.do(log, limit=500)}
    own = [
        each.operation.action for each in one.do(log, limit=500) if each.operation.id not in theirs
    ]
    assert set(own) <= {"store", "sync"}, own
    converge(one, other)
    assert len([words for words in one.active() if words.startswith("Visit")]) == len(known)
    assert sum("gas" in words for words in one.active()) == MANY - 1
    assert sum("Buoy" in words for words in one.active()) == MANY


def test_edit_by_another_process_during_a_sync_is_merged(
    pair: tuple[Machine, Machine],
) -> None:
    one, other = pair
    edit_all(other, "burns gas.")
    other.sync()
    edited: set[str] = set()

    def visit(visitor: Home, turn: int) -> None:
        for number in (turn % MANY, -turn % MANY):
            edit(visitor, f"Lamp {number}", add_tags=[f"visit-{turn}"])
            edited.add(f"Lamp {number}")

    def twice(visitor: Home, turn: int) -> None:
        if turn in (4, 9):
            visit(visitor, turn)

    sync_beside(one, twice)
    converge(one, other)
    assert edited
    for subject in edited:
        assert one.do(get, subject).tags
    assert all("gas" in one.do(get, f"Lamp {number}").content for number in range(MANY))


def test_continuous_edits_do_not_prevent_a_sync(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    edit_all(other, "burns gas.")
    other.sync()
    sync_beside(
        one, lambda visitor, turn: edit(visitor, f"Lamp {MANY - 1}", add_tags=[f"visit-{turn % 7}"])
    )
    converge(one, other)
    assert "gas" in one.do(get, f"Lamp {MANY - 1}").content
    assert one.do(get, f"Lamp {MANY - 1}").tags


def test_superseded_memory_and_its_replacement_are_never_both_active(
    pair: tuple[Machine, Machine],
) -> None:
    one, other = pair
    for number in range(MANY):
        other.do(
            store,
            StoreRequest(
                content=f"Boats may stay 30 days at berth {number}.", subject=f"Old {number}"
            ),
        )
        new = StoreRequest(
            content=f"Boats may now stay 45 days at berth {number}.", subject=f"New {number}"
        )
        assert [each.memory.subject for each in other.do(store, new).supersedes] == [
            f"Old {number}"
        ]
    other.sync()

    def visit(visitor: Home, _: int) -> None:
        active, _count = list_active(visitor, Filter(), limit=100)
        subjects = {memory.subject for memory in active}
        for number in range(MANY):
            assert len({f"Old {number}", f"New {number}"} & subjects) < 2

    sync_beside(one, visit)
    converge(one, other)
    assert len(one.active()) == 2 * MANY


def test_memory_forgotten_remotely_is_erased_despite_concurrent_writes(
    pair: tuple[Machine, Machine],
) -> None:
    one, other = pair
    gone = [other.do(get, f"Lamp {number}").id for number in (2, 7)]
    edit_all(one, "burns paraffin.")
    edit_all(other, "burns gas.")
    one.sync()
    for memory in gone:
        other.do(
            lambda context, memory=memory: forget(
                context, prepare(context, ForgetRequest(memories=(memory,)))
            )
        )
    other.sync()
    other.sync()
    sync_beside(
        one,
        lambda visitor, turn: (
            scan(visitor) if turn % 2 else store(visitor, StoreRequest(content=f"Visit {turn}."))
        ),
    )
    converge(one, other)
    for path in [
        *one.world.home.glob("nacre.db*"),
        *one.vault.rglob("*.md"),
        one.vault / "ledger.jsonl",
    ]:
        for number in (2, 7):
            assert f"Lamp {number} burns".encode() not in path.read_bytes(), path


@pytest.mark.parametrize("seed", range(4))
def test_random_changes_during_a_sync_converge(pair: tuple[Machine, Machine], seed: int) -> None:
    one, other = pair
    random_ = random.Random(seed)  # noqa: S311 - what people do is no secret
    for number in range(8):
        anything(random_, other, number)
        anything(random_, one, 100 + number)
    edit_all_left(other, "was painted.")
    other.sync()
    words: set[str] = set()

    def visit(visitor: Home, turn: int) -> None:
        if random_.random() < 0.3:
            words.add(f"Gull {turn} sits there.")
            store(visitor, StoreRequest(content=f"Gull {turn} sits there.", force=True))
        elif random_.random() < 0.2:
            active, _ = list_active(visitor, Filter(), limit=100)
            edit(visitor, random_.choice(active).id, add_tags=[f"visit-{turn}"])

    sync_beside(one, visit)
    converge(one, other)
    assert words <= set(one.active())


def edit_all_left(one: Machine, words: str) -> None:
    for memory in one.do(list_active, Filter(), limit=100)[0]:
        one.do(edit, memory.id, content=f"{memory.content} It {words}")
