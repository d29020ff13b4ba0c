"""A changed statement replaces the earlier memory in files, recall and rebuilds, and can be undone."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from nacre.care.database import rebuild
from nacre.care.health import doctor
from nacre.errors import ConflictError
from nacre.memories.requests import StoreRequest
from nacre.memories.store import store
from nacre.values.memory import Link, Memory
from nacre.values.recall import Filter
from nacre.values.session import Trust
from tests.app.conftest import World, leave_pending, says

DAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


def change(world: World, *texts: str, kind: str = "fact") -> list[Memory]:
    """Store statements a month apart and return their final memories."""
    world.clock.now = DAY
    with world.open() as memory:
        ids = []
        for text in texts:
            ids.append(memory.store(text, project="acme", kind=kind).memory_id)
            world.clock.pass_days(30)
        return [memory.get(item) for item in ids]


def contents(world: World, question: str, **options: object) -> list[str]:
    with world.open() as memory:
        return [
            hit.memory.content for hit in memory.recall(question, filter=Filter(**options)).hits
        ]  # type: ignore[arg-type]


def active(world: World) -> set[str]:
    with world.open() as memory:
        return {item.content for item in memory.list(limit=1000)}


OLD = "The ledger stores its rows in MongoDB"
NEW = "We moved the ledger from MongoDB to PostgreSQL"


def test_change_is_recorded_in_both_files_and_followed_by_recall(world: World) -> None:
    old, new = change(world, OLD, NEW)
    assert (old.superseded_by, old.valid.until) == (new.id, date(2026, 4, 1))
    assert new.links == (Link("supersedes", old.id, "no longer: MongoDB"),)
    assert f"superseded_by: {new.id}" in world.memory_file(old.id).read_text(encoding="utf-8")
    assert f"to: {old.id}" in world.memory_file(new.id).read_text(encoding="utf-8")
    assert contents(world, "the ledger: MongoDB or PostgreSQL?") == [NEW]


def test_recall_as_of_a_date_returns_the_memory_valid_then(world: World) -> None:
    change(world, OLD, NEW)
    question = "the ledger: MongoDB or PostgreSQL?"
    assert contents(world, question, as_of=date(2026, 3, 20)) == [OLD]
    assert contents(world, question, as_of=date(2026, 4, 1)) == [NEW]
    assert contents(world, question, as_of=date(2026, 2, 1)) == []


def test_history_shows_the_whole_chain_from_any_of_its_memories(world: World) -> None:
    texts = (
        "The gate listens on port 8080",
        "The gate listens on port 8443",
        "The gate listens on port 9443",
    )
    memories = change(world, *texts)
    with world.open() as memory:
        for item in memories:
            steps = memory.history(item.id)
            assert [step.memory.content for step in steps] == list(texts)
            assert [step.reason for step in steps] == ["8080 → 8443", "8443 → 9443", None]
            assert [step.since for step in steps[1:]] == [step.until for step in steps[:-1]]
            assert [step.is_asked for step in steps] == [
                step.memory.id == item.id for step in steps
            ]


def test_question_in_the_old_words_finds_the_replacement(world: World) -> None:
    change(
        world,
        "The database of the ledger with its bookings is MongoDB",
        "We moved from MongoDB to Valkey",
    )
    assert contents(world, "which database holds the bookings of the ledger?") == [
        "We moved from MongoDB to Valkey"
    ]
    change(world, "The kettle is filled by Ana")
    assert (
        contents(world, "which database holds the bookings?", projects=("kitchen",), strict=True)
        == []
    )


def test_change_survives_a_rebuild(world: World) -> None:
    before = change(world, OLD, NEW)
    rebuild(world.settings(), open_home=world.context)
    with world.open() as memory:
        assert [memory.get(item.id) for item in before] == before
    assert active(world) == {NEW}


def test_retiring_a_replacement_restores_the_replaced_memory(world: World) -> None:
    old, new = change(world, OLD, NEW)
    with world.open() as memory:
        memory.retire(new.id)
        assert (memory.get(old.id).superseded_by, memory.get(old.id).valid.until) == (None, None)
    assert active(world) == {OLD}


def test_retiring_a_middle_memory_joins_its_neighbours(world: World) -> None:
    first, second, third = change(
        world,
        "The gate listens on port 8080",
        "The gate listens on port 8443",
        "The gate listens on port 9443",
    )
    with world.open() as memory:
        memory.retire(second.id)
        assert memory.get(first.id).superseded_by == third.id
        assert first.id in {link.to for link in memory.get(third.id).links}


def test_restored_memory_stays_active_with_its_replacement(world: World) -> None:
    old, new = change(world, OLD, NEW)
    with world.open() as memory:
        memory.unretire(old.id)
        with pytest.raises(ConflictError):
            memory.unretire(old.id)
        assert memory.get(new.id).links == ()
    assert active(world) == {OLD, NEW}
    rebuild(world.settings(), open_home=world.context)
    assert active(world) == {OLD, NEW}


@pytest.mark.parametrize("side", ["old", "new"])
def test_removing_either_links_front_matter_undoes_the_change(world: World, side: str) -> None:
    old, new = change(world, OLD, NEW)
    file = world.memory_file(old.id if side == "old" else new.id)
    lines = [
        line
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True)
        if not line.startswith(("superseded_by:", "links:"))
    ]
    file.write_text("".join(lines), encoding="utf-8")
    assert active(world) == {OLD, NEW}
    with world.open() as memory:
        assert memory.get(new.id).links == ()
        assert memory.get(old.id).valid.until is None


def test_supersedes_link_in_front_matter_ends_its_target(world: World) -> None:
    old, new = change(world, "The barn is painted red", "Barn paint comes from the harbour")
    file = world.memory_file(new.id)
    file.write_text(
        file.read_text(encoding="utf-8").replace(
            "---\n", f"---\nlinks: [{{rel: supersedes, to: {old.id}}}]\n", 1
        ),
        encoding="utf-8",
    )
    assert active(world) == {new.content}


def test_memories_of_other_projects_are_not_superseded(world: World) -> None:
    with world.open() as memory:
        memory.store(OLD, project="acme")
        assert memory.store(NEW, project="other").supersedes == ()
        assert memory.store(OLD, project="other").action == "stored"


def test_forced_store_supersedes_nothing(world: World) -> None:
    with world.open() as memory:
        memory.store(OLD, project="acme")
        assert memory.store(NEW, project="acme", force=True).supersedes == ()
    assert active(world) == {OLD, NEW}


def test_untrusted_memory_does_not_supersede_the_owners_statement(world: World) -> None:
    context = world.context()
    store(context, StoreRequest(content=OLD, project="acme"))
    untrusted = store(context, StoreRequest(content=NEW, project="acme", trust=Trust.UNTRUSTED))
    assert untrusted.supersedes == ()
    store(
        context,
        StoreRequest(content="The ledger went from PostgreSQL to CockroachDB", project="acme"),
    )
    context.database.close()
    assert OLD in active(world)
    assert NEW not in active(world)


def test_reverted_statement_can_be_stored_again(world: World) -> None:
    change(
        world,
        "The gate listens on port 8080",
        "The gate listens on port 8443",
        "The gate listens on port 8080",
    )
    with world.open() as memory:
        assert [item.content for item in memory.list()] == ["The gate listens on port 8080"]


def test_statement_of_completion_closes_the_todo(world: World) -> None:
    with world.open() as memory:
        todo = memory.store("Rotate the staging keys", kind="todo", project="acme").memory_id
        memory.store("Rotating the staging keys is not done yet", kind="fact", project="acme")
        assert memory.get(todo).superseded_by is None
        event = memory.store("The staging keys are rotated, all done", kind="event", project="acme")
        assert memory.get(todo).superseded_by == event.memory_id


# Sessions


def remember(world: World, name: str, text: str, day: str) -> None:
    record = says(
        "user",
        f"Remember that {text}",
        uuid=f"turn-{name}",
        session=f"5e55-{name}",
        at=f"{day}T09:00:00.000Z",
    )
    world.transcript(name, record)


def test_older_session_ingested_later_becomes_history(world: World) -> None:
    remember(world, "b", "the gate of the quarry listens on port 8443.", "2026-02-01")
    with world.open() as memory:
        memory.ingest()
    remember(world, "a", "the gate of the quarry listens on port 8080.", "2026-01-01")
    remember(world, "c", "the gate of the quarry listens on port 9443.", "2026-03-01")
    with world.open() as memory:
        memory.ingest()
        (present,) = memory.list()
        assert "9443" in present.content
        steps = memory.history(present.id)
        assert [step.since for step in steps] == [date(2026, month, 1) for month in (1, 2, 3)]
        assert [step.until for step in steps] == [date(2026, 2, 1), date(2026, 3, 1), None]


def test_statement_learned_late_takes_its_dated_place_in_history(world: World) -> None:
    remember(world, "a", "the gate of the quarry listens on port 8080.", "2026-01-01")
    remember(world, "c", "the gate of the quarry listens on port 9443.", "2026-03-01")
    with world.open() as memory:
        memory.ingest()
    remember(world, "b", "the gate of the quarry listens on port 8443.", "2026-02-01")
    with world.open() as memory:
        memory.ingest()
        steps = memory.history(memory.list()[0].id)
        assert [step.until for step in steps] == [date(2026, 2, 1), date(2026, 3, 1), None]
        assert [step.superseded_by for step in steps[:-1]] == [step.memory.id for step in steps[1:]]


def test_repeated_statement_keeps_the_evidence_of_both_sessions(world: World) -> None:
    remember(world, "a", "the quarry gate is painted green.", "2026-01-01")
    with world.open() as memory:
        memory.ingest()
    remember(world, "b", "the quarry gate is painted green!", "2026-02-01")
    for _ in range(2):
        with world.open() as memory:
            memory.ingest()
            (gate,) = memory.list()
            assert [(item.session, item.turns) for item in gate.confirmed] == [
                ("claude-code:5e55-b", ("turn-b",))
            ]
            evidence = memory.recall("what colour is the quarry gate painted?").hits[0].evidence
            assert [item.turn_id for item in evidence] == ["turn-a", "turn-b"]
        rebuild(world.settings(), open_home=world.context)


def test_recall_hides_turns_with_superseded_statements(world: World) -> None:
    remember(world, "a", "the quarry gate listens on port 8080.", "2026-01-01")
    remember(world, "b", "the quarry gate listens on port 8443.", "2026-02-01")
    with world.open() as memory:
        memory.ingest()
        now = memory.recall("which port does the quarry gate listen on?", turns=3)
        then = memory.recall(
            "which port does the quarry gate listen on?",
            turns=3,
            filter=Filter(as_of=date(2026, 1, 5)),
        )
        search = memory.search_sessions("quarry gate port")
    assert [turn.turn.id for turn in now.turns] == ["turn-b"]
    assert [turn.turn.id for turn in then.turns] == ["turn-a"]
    assert {turn.turn.id for turn in search.turns} == {"turn-a", "turn-b"}


# Large ingests


def remember_many(world: World, count: int) -> None:
    for number in range(count):
        port, day = 8000 + number, f"2026-{1 + number // 28:02}-{1 + number % 28:02}"
        remember(
            world, f"{number:04}", f"the gate of quarry {number % 7} listens on port {port}.", day
        )


def test_ingest_of_many_statements_builds_the_chains_in_order(world: World) -> None:
    remember_many(world, 140)
    with world.open() as memory:
        memory.ingest()
        assert sorted(int(item.content.split()[-1].strip(".")) for item in memory.list()) == list(
            range(8133, 8140)
        )


def test_killed_ingest_resumes_without_loss(world: World) -> None:
    remember_many(world, 120)
    for lines in range(4):
        code = "    memory.ingest(on_progress=lambda progress: print(progress.stage, flush=True))\n"
        process = world.start(code)
        assert process.stdout
        for _ in range(1 + 9 * lines):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    with world.open() as memory:
        memory.ingest()
        assert len(memory.list()) == 7
        chains = [memory.history(item.id) for item in memory.list()]
    assert sum(len(chain) for chain in chains) == 120
    assert len(list(world.vault.rglob("*.md"))) == 120 + len(list(world.vault.rglob("project.md")))


# Similarity


def test_similar_memories_are_linked_only_in_the_index(world: World) -> None:
    with world.open() as memory:
        first = memory.store("The quarry gate has a green lamp", project="acme").memory_id
        second = memory.store("The quarry gate has a brass bell", project="acme").memory_id
        memory.ingest()
        assert memory.get(first).links == ()
    for _ in range(2):
        links = world.context().links.of(first)
        assert {(link.rel, link.origin) for link in links} == {("related_to", "auto")}
        assert {frozenset((link.source, link.target)) for link in links} == {
            frozenset((first, second))
        }
        rebuild(world.settings(), open_home=world.context)


@pytest.mark.embedding
def test_paraphrase_is_recognised_as_known_by_its_vector(world: World) -> None:
    from nacre.llm.local_model import load_minilm

    world.embedder = load_minilm()  # type: ignore[assignment]
    with world.open() as memory:
        first = memory.store("Invoices are numbered in order and without gaps", project="acme")
        memory.ingest()
        again = memory.store(
            "The numbers of invoices run in order and have no gaps", project="acme"
        )
        assert (again.action, again.memory_id) == ("known", first.memory_id)
        (stored,) = memory.list(filter=Filter(projects=("acme",)))
        assert stored.id == first.memory_id


def test_ledger_records_a_restore(world: World) -> None:
    old, _ = change(world, OLD, NEW)
    with world.open() as memory:
        memory.unretire(old.id)
    lines = [
        json.loads(line)
        for line in Path(world.vault / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [line["action"] for line in lines] == ["store", "store", "unretire"]
    assert lines[-1]["memory"] == old.id


# Removal of memories from a chain

PORTS = (
    "The gate listens on port 8080",
    "The gate listens on port 8443",
    "The gate listens on port 9443",
)


def run_rebuild(world: World) -> None:
    rebuild(world.settings(), open_home=world.context)


def test_retiring_several_memories_of_a_chain_restores_their_predecessor(world: World) -> None:
    _, second, third = change(world, *PORTS)
    with world.open() as memory:
        memory.retire(second.id, third.id)
    assert active(world) == {PORTS[0]}
    run_rebuild(world)
    assert active(world) == {PORTS[0]}


def test_retiring_two_middle_memories_joins_their_neighbours(world: World) -> None:
    first, second, third, fourth = change(world, *PORTS, "The gate listens on port 9555")
    with world.open() as memory:
        memory.retire(third.id, second.id)
        assert [step.memory.id for step in memory.history(first.id) if not step.memory.retired] == [
            first.id,
            fourth.id,
        ]
        assert {link.to for link in memory.get(fourth.id).links} >= {first.id}
    assert active(world) == {"The gate listens on port 9555"}


def test_deleting_several_files_of_a_chain_restores_their_predecessor(world: World) -> None:
    _, second, third = change(world, *PORTS)
    for memory in (second, third):
        world.memory_file(memory.id).unlink()
    assert active(world) == {PORTS[0]}


def test_restored_replacement_supersedes_its_predecessor_again(world: World) -> None:
    _, new = change(world, OLD, NEW)
    with world.open() as memory:
        memory.retire(new.id)
        memory.unretire(new.id)
    assert active(world) == {NEW}
    run_rebuild(world)
    assert active(world) == {NEW}


def test_rebuild_keeps_restored_memories_of_a_chain_active(world: World) -> None:
    first, second, _ = change(world, *PORTS)
    with world.open() as memory:
        memory.retire(second.id)  # the third memory supersedes the first
        memory.unretire(second.id)
        memory.unretire(first.id)
    assert active(world) == set(PORTS)
    run_rebuild(world)
    assert active(world) == set(PORTS)


@pytest.mark.parametrize("by", ["itself", "nothing", "a circle"])
def test_doctor_reports_invalid_supersession_and_unretire_repairs_the_memory(
    world: World, by: str
) -> None:
    first, second = change(world, "The lamp is green", "Marta waters the plants")
    target = {
        "itself": first.id,
        "nothing": "01a1f848-0000-7000-8000-000000000000",
        "a circle": second.id,
    }[by]
    files_of = {first.id: target, **({second.id: first.id} if by == "a circle" else {})}
    for memory_id, newer in files_of.items():
        file = world.memory_file(memory_id)
        file.write_text(
            file.read_text("utf-8").replace("\n---\n", f"\nsuperseded_by: {newer}\n---\n", 1),
            "utf-8",
        )
    checks = {check.name: check for check in doctor(world.context())}
    assert "The lamp is green" in checks["changes"].detail
    with world.open() as memory:
        assert memory.history(first.id)
        for memory_id in files_of:
            if memory.get(memory_id).superseded_by:
                memory.unretire(memory_id)
    assert active(world) == {"The lamp is green", "Marta waters the plants"}
    assert "changes" not in {check.name for check in doctor(world.context())}


@pytest.mark.parametrize("write_count", [1, 2, 3])
def test_crash_between_writes_of_one_file_leaves_no_duplicate(
    world: World, write_count: int
) -> None:
    """A memory created, edited and superseded in one batch is written three times."""
    (lamp,) = change(world, "The lamp is green")
    context = world.context()
    steps = [
        replace(
            lamp, id="01a1f848-0000-7000-8000-000000000001", content="The gate listens on port 8080"
        ),
    ]
    steps.append(replace(steps[0], importance=9))
    steps.append(replace(steps[1], superseded_by=lamp.id))
    leave_pending(context, steps[:1])
    leave_pending(context, steps[1:2])
    leave_pending(context, steps[2:])
    writes = [intent for intent in context.files.intents() if intent.action == "write"]
    for intent in writes[:write_count]:  # the process died before the database recorded it
        context.vault.write(intent.path, intent.document or "", base=intent.base)
    assert active(world) == {"The lamp is green"}
    assert len(list(world.vault.rglob("fact/*.md"))) == 2
    run_rebuild(world)
    with world.open() as memory:
        assert memory.get(steps[0].id).superseded_by == lamp.id
        assert memory.get(steps[0].id).importance == 9
