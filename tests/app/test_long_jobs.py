"""Long jobs release the vault lock between parts without losing or repeating any work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nacre.base.locks import FileLock
from nacre.care.health import doctor
from nacre.data import imports, undo
from nacre.data.export import ImportOptions, export
from nacre.data.scrub import ScrubOptions, scrub
from nacre.data.undo import log
from nacre.errors import StoreBusyError
from nacre.home.home import Home, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.learn.learn import learn
from nacre.memories.edit import scan
from nacre.memories.store import edit, retire
from nacre.memories.usage import fold_usage, spool_use
from tests.app.conftest import World, says

MANY = 25


@pytest.fixture(autouse=True)
def _release_lock_between_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each job release the vault lock after every part, as if each part took long."""
    monkeypatch.setattr("nacre.store.sqlite._MIN_LOCK_SECONDS", 0.0)


class VisitedHome:
    """A home that calls ``visit``, as another process would, when it releases the vault lock."""

    def __init__(self, world: World, visit: Callable[[int], object] = lambda _: None) -> None:
        self.turns = 0
        self.visit = visit
        self.is_visiting = False
        self.context = open_home(
            world.settings(),
            clock=world.clock,
            load_embedder=lambda _: world.embedder,
            observe=self.released,
        )

    def released(self, lock: str, _: float) -> None:
        if lock == "vault.lock" and not self.is_visiting:
            self.is_visiting = True
            self.turns += 1
            try:
                self.visit(self.turns)
            finally:
                self.is_visiting = False


def check_consistent(context: Home) -> None:
    scan(context)
    states = {check.name: check for check in doctor(context)}
    assert states["vault"].state == states["database"].state == "ok", states
    assert context.files.intents() == []
    assert context.journal.unfinished() == []
    assert list((context.settings.home / "operations").glob("*")) == []


def write_transcripts(world: World) -> None:
    for number in range(MANY):
        words = f"Remember that barrel number {number} is rolled on the last day of the week."
        world.transcript(
            f"s{number}", says("user", words, uuid=f"u{number}", session=f"5e55-{number:04}")
        )


def write_files(world: World, *, more: str = "") -> None:
    for number in range(MANY):
        world.write(
            f"global/fact/rope-{number}.md", f"Rope {number} is {number} fathoms long.\n{more}"
        )


def test_edits_succeed_during_learning(world: World) -> None:
    write_transcripts(world)
    with world.open() as other:
        gate = other.store("The gate code is in the safe.").memory_id

        def visit(turn: int) -> None:
            if turn <= 5:
                other.edit(gate, add_tags=[f"turn-{turn}"])

        home = VisitedHome(world)
        ingest(home.context, IngestOptions(extract=False, vectors=False))
        home.turns, home.visit = 0, visit
        learn(home.context, lambda _: None)
        assert home.turns > MANY
        assert len(other.get(gate).tags) == 5
        assert len(other.list(limit=100)) == MANY + 1
        actions = [item.operation.action for item in log(home.context)]
        assert actions.count("ingest") == 2, (
            "one operation read the sessions and created the project page, the other learned"
        )
        check_consistent(home.context)


def test_memory_forgotten_during_placement_is_not_stored(world: World) -> None:
    write_transcripts(world)
    with world.open() as other:
        home = VisitedHome(world)
        ingest(home.context, IngestOptions(extract=False, vectors=False))

        def visit(turn: int) -> None:
            if turn == MANY // 2:
                assert other.list()
                other.forget(other.plan_forgetting(match=f"barrel number {MANY - 1} "))
                other.forget(other.plan_forgetting(match="barrel number 0 "))

        home.turns, home.visit = 0, visit
        learn(home.context, lambda _: None)
        contents = {memory.content for memory in other.list(limit=100)}
        assert len(contents) == MANY - 2
        assert not any(f"number {MANY - 1} " in content for content in contents)
        assert not any(
            f"number {MANY - 1} " in path.read_text(encoding="utf-8")
            for path in world.vault.rglob("*")
            if path.is_file() and ".git" not in path.parts
        )
        check_consistent(home.context)


def test_unfinished_operation_is_never_committed(world: World) -> None:
    write_transcripts(world)
    with world.open() as other:
        committed: list[list[str]] = []

        def visit(turn: int) -> None:
            if turn == MANY // 2:
                other.store("The north gate is red.")
                other.call("commit")
                committed.append(
                    [item.operation.action for item in other.log() if item.operation.committed]
                )

        home = VisitedHome(world, visit)
        ingest(home.context, IngestOptions(vectors=False))
        assert "store" in committed[0]
        assert "ingest" not in committed[0]
        other.call("commit")
        operations = {item.operation.action: item.operation for item in other.log()}
        assert operations["ingest"].committed
        assert len(list(world.vault.glob("projects/**/*.md"))) >= MANY
        check_consistent(home.context)


def test_next_ingest_finishes_a_killed_ingest(
    world: World,
) -> None:
    write_transcripts(world)

    def visit(turn: int) -> None:
        if turn == MANY // 2:
            raise KeyboardInterrupt

    home = VisitedHome(world, visit)
    with pytest.raises(KeyboardInterrupt):
        ingest(home.context, IngestOptions(vectors=False))
    home.context.database.close()
    with world.open() as memory:
        memory.ingest()
        contents = [item.content for item in memory.list(limit=100)]
        assert len(contents) == len(set(contents)) == MANY
        check_consistent(memory._home)


def test_import_releases_the_lock_after_each_memory(world: World, tmp_path: Path) -> None:
    write_files(world)
    with world.open() as memory:
        memory.list()
        export(memory._home, tmp_path / "ropes.jsonl")
    new = World(tmp_path / "new")
    new.user_home.mkdir()
    with new.open() as other:
        home = VisitedHome(
            new, lambda turn: other.store(f"Visit number {turn}.") if turn <= 3 else None
        )
        plan = imports.plan_import(
            home.context, ImportOptions(path=tmp_path / "ropes.jsonl", trust=True)
        )
        home.turns = 0
        imports.carry_out(home.context, plan)
        assert home.turns > MANY
        assert len(other.list(limit=100)) == MANY + 3
        assert (
            sum(item.operation.action == "import" for item in other.log(limit=100)) <= 2
        )  # memories, ledger
        check_consistent(home.context)


def _with_builds(world: World, tmp_path: Path) -> World:
    """Export a memory and its successor to ``builds.jsonl``. Return an empty world."""
    with world.open() as memory:
        for name, content in (("Old", "Jenkins"), ("New", "Buildkite")):
            memory.store(
                f"The build runs on {content}.",
                subject=f"{name} build",
                canonical_key="build-system",
            )
        export(memory._home, tmp_path / "builds.jsonl")
    new = World(tmp_path / "new")
    new.user_home.mkdir()
    return new


def test_import_never_leaves_a_memory_with_a_missing_successor(
    world: World, tmp_path: Path
) -> None:
    new = _with_builds(world, tmp_path)
    broken_links: list[list[tuple[str, str]]] = []

    def visit(_: int) -> None:
        with new.open() as other:
            broken_links.append(list(other._home.memories.lost()))

    home = VisitedHome(new, visit)
    plan = imports.plan_import(
        home.context, ImportOptions(path=tmp_path / "builds.jsonl", trust=True)
    )
    imports.carry_out(home.context, plan)
    assert len(broken_links) > 1
    assert not any(broken_links)
    assert home.context.memories.counts()["superseded"] == 1


def test_import_links_a_memory_to_the_existing_successor(world: World, tmp_path: Path) -> None:
    new = _with_builds(world, tmp_path)

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    home = VisitedHome(new)
    plan = imports.plan_import(
        home.context, ImportOptions(path=tmp_path / "builds.jsonl", trust=True)
    )
    with new.open() as other:
        other.store("The build runs on Buildkite.", subject="New build")
    home.visit = stop
    with pytest.raises(KeyboardInterrupt):
        imports.carry_out(home.context, plan)
    with new.open() as other:
        assert other._home.memories.counts()["superseded"] == 1
        assert other._home.memories.lost() == []


def test_deleted_files_are_retired_despite_concurrent_writes(world: World) -> None:
    with world.open() as other:
        write_files(world)
        stays = {other.store(f"Anchor {number} holds.").memory_id for number in range(MANY)}
        other.list()
        for path in world.vault.glob("global/fact/rope-*.md"):
            path.unlink()
        home = VisitedHome(world, lambda turn: other.list() if turn == 5 else None)
        scan(home.context)
        assert {item.id for item in other.list(limit=100)} == stays
        assert len(list(world.vault.glob("retired/**/*.md"))) == MANY
        check_consistent(home.context)


def test_edit_during_a_large_retirement_is_kept(world: World) -> None:
    with world.open() as other:
        write_files(world)
        ropes = sorted(other.list(limit=100), key=lambda item: item.subject)

        def visit(turn: int) -> None:
            if turn == 3:
                edit(other._home, ropes[-1].id, importance=9)

        home = VisitedHome(world)
        scan(home.context)
        home.visit, home.turns = visit, 0
        retire(home.context, [rope.id for rope in ropes])
        assert home.turns >= MANY
        assert other.list() == []
        assert other.get(ropes[-1].id).importance == 9
        assert sum(item.operation.action == "retire" for item in other.log(limit=200)) == 1
        check_consistent(home.context)


def test_change_during_a_large_undo_is_kept(world: World) -> None:
    write_transcripts(world)
    with world.open() as other:
        other.ingest()
        ingested = next(item.operation for item in other.log() if item.operation.action == "ingest")
        last = undo.plan_undo(other._home, operation=ingested.id).steps[-1].change.memory

        def visit(turn: int) -> None:
            if turn == 3:
                other.retire(last)

        home = VisitedHome(world)
        scan(home.context)
        home.visit, home.turns = visit, 0
        undo.undo(home.context, ingested.id)
        assert home.turns >= MANY
        assert other.list() == []
        assert other.get(last).retired.reason is None
        check_consistent(home.context)


def test_stores_edits_and_scans_succeed_during_a_scrub(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nacre.data.scrub.FEW", 1)
    for number in range(MANY):
        note = f"---\n# the cellar opens with heron-5183\ntags: [ropes]\n---\nRope {number} is {number} fathoms long.\n"
        world.write(f"global/fact/rope-{number}.md", note)
        world.write(
            f"global/fact/heron-5183-{number}.md",
            f"# heron-5183 {number}\n\nThe code of door {number}.\n",
        )
    with world.open() as memory:
        memory.list()
        memory.store("The cellar opens with heron-5183, too.")
    world.environ["NACRE_REDACTION_PATTERNS"] = json.dumps(["heron-5183"])
    with world.open() as other:
        ropes = {
            item.subject: item.id for item in other.list(limit=100) if "fathoms" in item.content
        }

        def visit(turn: int) -> None:
            other.store(f"Visit number {turn} was short.")
            if turn % 9 == 0:
                edit(other._home, sorted(ropes.values())[turn % MANY], add_tags=[f"visit-{turn}"])
            assert scan(other._home) == 0, "files written by a scrub do not count as manual edits"

        home = VisitedHome(world)
        scan(home.context)
        home.turns, home.visit = 0, visit
        scrub(home.context, ScrubOptions(vectors=False))
        home.visit = lambda _: None
        assert home.turns > 2 * MANY
        assert scrub(home.context, ScrubOptions(vectors=False)).total == 0
        visits = [
            item for item in other.list(limit=1000) if item.content.startswith("Visit number")
        ]
        assert len(visits) == len({item.content for item in visits}) >= 2 * MANY
        assert any(tag.startswith("visit-") for item in other.list(limit=1000) for tag in item.tags)
        assert len([item for item in other.list(limit=1000) if "door" in item.content]) == MANY
        assert sum(item.operation.action == "scrub" for item in other.log(limit=1000)) == 1
        assert not [
            item for item in other.log(limit=1000) if item.operation.action in ("edit", "retire")
        ]
        check_consistent(home.context)
    for path in world.home.rglob("*"):
        assert "heron-5183" not in path.name.lower()
        if path.is_file() and path.name != "config.toml":
            assert b"heron-5183" not in path.read_bytes().lower(), path


def test_concurrent_folding_counts_each_recall_once(world: World) -> None:
    with world.open() as other:
        rope = other.store("The rope is long.").memory_id
        for number in range(MANY):
            spool_use(other._home, [rope], session=f"s{number}")
        home = VisitedHome(world, lambda turn: fold_usage(other._home) if turn == 4 else None)
        fold_usage(home.context)
        assert home.turns > 3
        assert other._home.usage.of([rope])[rope].recall_count == MANY
        assert list(world.home.glob("usage.*")) == [world.home / "usage.lock"]


def test_store_counts_recalls_only_briefly(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.memories.store._FOLDING_SECONDS", -1.0)
    with world.open() as memory:
        rope = memory.store("The rope is long.").memory_id
        for number in range(3):
            spool_use(memory._home, [rope], session=f"s{number}")
        counts = []
        for number in range(4):
            memory.store(f"The bell rings at {number}.")
            counts.append(memory._home.usage.of([rope])[rope].recall_count)
        assert counts[0] < 3
        assert counts[-1] == 3


def test_released_lock_can_be_acquired_again(tmp_path: Path) -> None:
    waits: list[float] = []
    first = FileLock(tmp_path / "one.lock", observe=lambda _, seconds: waits.append(seconds))
    second = FileLock(tmp_path / "one.lock")
    with first:
        assert not second.acquire()
        first.let_others()
        assert not second.acquire()
    assert len(waits) == 2
    assert second.acquire()
    second.release()


def test_lock_held_by_an_outer_caller_is_kept(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "one.lock"), FileLock(tmp_path / "one.lock")
    with first, first:
        first.let_others()
        assert not second.acquire()


def test_lock_that_cannot_be_reacquired_is_reported_as_lost(tmp_path: Path) -> None:
    second = FileLock(tmp_path / "one.lock")
    first = FileLock(
        tmp_path / "one.lock", patience_seconds=0.01, observe=lambda *_: second.acquire(1) or None
    )
    with pytest.raises(StoreBusyError), first:
        first.let_others()
    second.release()
    assert second.acquire()
    second.release()
