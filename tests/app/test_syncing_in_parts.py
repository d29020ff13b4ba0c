"""A sync lets other processes write between its parts without exposing partial results."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from nacre.data.forget import ForgetRequest, forget, prepare
from nacre.data.sync import State, Synced, SyncRequest, sync
from nacre.data.undo import log
from nacre.home.home import Home
from nacre.memories.edit import scan
from nacre.memories.requests import StoreRequest
from nacre.memories.store import edit, get, list_active, store
from nacre.values.recall import Filter
from tests.app.test_long_jobs import VisitedHome, check_consistent
from tests.app.test_syncing import Machine, converge, git, machine, make_random_change

MANY = 12


@pytest.fixture(autouse=True)
def _release_lock_between_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a sync release the vault lock after every file, as if each file took long."""
    monkeypatch.setattr("nacre.store.sqlite._MIN_LOCK_SECONDS", 0.0)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Machine, Machine]:
    """Return two machines that share memories of lamps."""
    remote = tmp_path / "remote.git"
    remote.mkdir()
    git(remote, "init", "--quiet", "--bare", "--initial-branch=main")
    first, second = machine(tmp_path, remote, "one"), machine(tmp_path, remote, "other")
    for number in range(MANY):
        second.store(f"Lamp {number} burns oil.", subject=f"Lamp {number}", project="harbour")
    second.sync(remote=str(remote))
    first.sync(remote=str(remote))
    return first, second


def sync_with_visits(device: Machine, visit: Callable[[Home, int], object]) -> Synced:
    """Sync while another process calls ``visit`` in the same home at every pause."""
    visitor = device.world.context()
    home = VisitedHome(device.world)
    try:
        scan(home.context)
        home.turns, home.visit = 0, lambda turn: visit(visitor, turn)
        result = sync(home.context, SyncRequest(timeout_seconds=20.0))
        home.visit = lambda _: None
        assert home.turns
        check_consistent(home.context)
        return result
    finally:
        visitor.database.close()
        home.context.database.close()


def edit_all(device: Machine, words: str) -> None:
    for number in range(MANY):
        device.do(edit, f"Lamp {number}", content=f"Lamp {number} {words}")


def test_unfinished_sync_is_not_mistaken_for_manual_edits(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    edit_all(second, "burns gas.")
    for number in range(MANY):
        second.store(f"Buoy {number} is red.", subject=f"Buoy {number}")
    (second.vault / "projects/harbour/fact/lamp-3.md").rename(
        second.vault / "projects/harbour/lamp-three.md"
    )
    (second.vault / "projects/harbour/fact/lamp-4.md").unlink()
    second.sync()
    scan_counts: list[int] = []

    def visit(visitor: Home, _: int) -> None:
        scan_counts.append(scan(visitor))
        store(visitor, StoreRequest(content=f"Visit {len(scan_counts)} was short.", force=True))

    assert sync_with_visits(first, visit).state is State.SYNCED
    assert not any(scan_counts)
    remote_ids = {entry.operation.id for entry in second.do(log, limit=500)}
    actions = [
        entry.operation.action
        for entry in first.do(log, limit=500)
        if entry.operation.id not in remote_ids
    ]
    assert set(actions) <= {"store", "sync"}, actions
    converge(first, second)
    assert len([words for words in first.active() if words.startswith("Visit")]) == len(scan_counts)
    assert sum("gas" in words for words in first.active()) == MANY - 1
    assert sum("Buoy" in words for words in first.active()) == MANY


def test_edit_by_another_process_during_a_sync_is_merged(
    pair: tuple[Machine, Machine],
) -> None:
    first, second = pair
    edit_all(second, "burns gas.")
    second.sync()
    edited: set[str] = set()

    def visit(visitor: Home, turn: int) -> None:
        for number in (turn % MANY, -turn % MANY):
            edit(visitor, f"Lamp {number}", add_tags=[f"visit-{turn}"])
            edited.add(f"Lamp {number}")

    def twice(visitor: Home, turn: int) -> None:
        if turn in (4, 9):
            visit(visitor, turn)

    sync_with_visits(first, twice)
    converge(first, second)
    assert edited
    for subject in edited:
        assert first.do(get, subject).tags
    assert all("gas" in first.do(get, f"Lamp {number}").content for number in range(MANY))


def test_continuous_edits_do_not_prevent_a_sync(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    edit_all(second, "burns gas.")
    second.sync()
    sync_with_visits(
        first,
        lambda visitor, turn: edit(visitor, f"Lamp {MANY - 1}", add_tags=[f"visit-{turn % 7}"]),
    )
    converge(first, second)
    assert "gas" in first.do(get, f"Lamp {MANY - 1}").content
    assert first.do(get, f"Lamp {MANY - 1}").tags


def test_superseded_memory_and_its_replacement_are_never_both_active(
    pair: tuple[Machine, Machine],
) -> None:
    first, second = pair
    for number in range(MANY):
        second.do(
            store,
            StoreRequest(
                content=f"Boats may stay 30 days at berth {number}.", subject=f"Old {number}"
            ),
        )
        new = StoreRequest(
            content=f"Boats may now stay 45 days at berth {number}.", subject=f"New {number}"
        )
        assert [match.memory.subject for match in second.do(store, new).supersedes] == [
            f"Old {number}"
        ]
    second.sync()

    def visit(visitor: Home, _: int) -> None:
        active, _count = list_active(visitor, Filter(), limit=100)
        subjects = {memory.subject for memory in active}
        for number in range(MANY):
            assert len({f"Old {number}", f"New {number}"} & subjects) < 2

    sync_with_visits(first, visit)
    converge(first, second)
    assert len(first.active()) == 2 * MANY


def test_memory_forgotten_remotely_is_erased_despite_concurrent_writes(
    pair: tuple[Machine, Machine],
) -> None:
    first, second = pair
    forgotten_ids = [second.do(get, f"Lamp {number}").id for number in (2, 7)]
    edit_all(first, "burns paraffin.")
    edit_all(second, "burns gas.")
    first.sync()
    for memory in forgotten_ids:
        second.do(
            lambda context, memory=memory: forget(
                context, prepare(context, ForgetRequest(memories=(memory,)))
            )
        )
    second.sync()
    second.sync()
    sync_with_visits(
        first,
        lambda visitor, turn: (
            scan(visitor) if turn % 2 else store(visitor, StoreRequest(content=f"Visit {turn}."))
        ),
    )
    converge(first, second)
    for path in [
        *first.world.home.glob("nacre.db*"),
        *first.vault.rglob("*.md"),
        first.vault / "ledger.jsonl",
    ]:
        for number in (2, 7):
            assert f"Lamp {number} burns".encode() not in path.read_bytes(), path


@pytest.mark.parametrize("seed", range(4))
def test_random_changes_during_a_sync_converge(pair: tuple[Machine, Machine], seed: int) -> None:
    first, second = pair
    random_ = random.Random(seed)  # noqa: S311 - not for cryptography
    for number in range(8):
        make_random_change(random_, second, number)
        make_random_change(random_, first, 100 + number)
    edit_all_active(second, "was painted.")
    second.sync()
    words: set[str] = set()

    def visit(visitor: Home, turn: int) -> None:
        if random_.random() < 0.3:
            words.add(f"Gull {turn} sits there.")
            store(visitor, StoreRequest(content=f"Gull {turn} sits there.", force=True))
        elif random_.random() < 0.2:
            active, _ = list_active(visitor, Filter(), limit=100)
            edit(visitor, random_.choice(active).id, add_tags=[f"visit-{turn}"])

    sync_with_visits(first, visit)
    converge(first, second)
    assert words <= set(first.active())


def edit_all_active(device: Machine, words: str) -> None:
    for memory in device.do(list_active, Filter(), limit=100)[0]:
        device.do(edit, memory.id, content=f"{memory.content} It {words}")
