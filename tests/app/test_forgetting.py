"""Forgetting removes data permanently, keeps unrelated data and prevents its return."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from nacre.api import MemoryHome
from nacre.care.database import rebuild
from nacre.care.health import doctor
from nacre.errors import ConflictError, InvalidQueryError, NotFoundError
from nacre.memories.edit import scan
from nacre.memories.erasure import apply_tombstones
from nacre.memories.tombstones import heed_ledger
from tests.app.conftest import NOON, World, says

CHEESE = "5e55-c4ee-0001"
OTHER = "5e55-07e4-0002"
RULE = "Always run the linter before you commit."


@pytest.fixture
def talk(world: World) -> World:
    """Two sessions with the same rule, one of them also about a cheese cellar."""
    world.transcript(
        "cheese",
        says(
            "user",
            "Remember that the gruyere cellar code is zanzibar9431.",
            uuid="c1",
            session=CHEESE,
        ),
        says(
            "assistant",
            "Noted: the gruyere cellar code is zanzibar9431.",
            uuid="c2",
            session=CHEESE,
        ),
        says("user", RULE, uuid="c3", session=CHEESE),
        says("assistant", "Understood.", uuid="c4", session=CHEESE),
    )
    world.transcript(
        "other",
        says("user", RULE, uuid="o1", session=OTHER, at="2026-11-19T09:00:00.000Z"),
        says(
            "assistant",
            "The linter runs first.",
            uuid="o2",
            session=OTHER,
            at="2026-11-19T09:01:00.000Z",
        ),
        says(
            "user",
            "We decided to use SQLite for the inventory.",
            uuid="o3",
            session=OTHER,
            at="2026-11-19T09:02Z",
        ),
        says(
            "assistant",
            "The inventory uses SQLite now.",
            uuid="o4",
            session=OTHER,
            at="2026-11-19T09:03:00Z",
        ),
    )
    return world


def contents(memory: MemoryHome) -> set[str]:
    return {item.content for item in memory.list()}


def excerpts_about(memory: MemoryHome, question: str) -> list[str]:
    """Return the excerpts with the question's first word, without other vector matches."""
    excerpts = [hit.excerpt for hit in memory.search_sessions(question).turns]
    return [excerpt for excerpt in excerpts if question.split()[0].lower() in excerpt.lower()]


def bytes_of(world: World) -> bytes:
    """Return the bytes of all database files, including the log."""
    return b"".join(path.read_bytes() for path in sorted(world.home.glob("nacre.db*")))


def ledger_of(world: World) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (world.vault / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def rebuild_and_ingest(world: World) -> None:
    """Rebuild the database, then delete it and ingest every transcript again."""
    rebuild(world.settings(), open_home=world.context)
    for path in world.home.glob("nacre.db*"):
        path.unlink()
    with world.open() as memory:
        memory.ingest()


def test_forgetting_a_session_keeps_memories_confirmed_by_other_sessions(
    talk: World,
) -> None:
    with talk.open() as memory:
        memory.ingest()
        rule = next(item for item in memory.list() if item.content.startswith("Always run"))
        assert rule.source.session == f"claude-code:{CHEESE}"
        assert len(rule.confirmed) == 1
        deletion = memory.plan_forgetting(sessions=[CHEESE])
        plan = deletion.plan
        assert (plan.sessions, plan.turns, len(plan.memories), len(plan.losing)) == (
            {f"claude-code:{CHEESE}": 4},
            4,
            1,
            1,
        )
        report = memory.forget(deletion)
        assert report.is_erased
        assert not any("gruyere" in content for content in contents(memory))
        remaining = memory.get(rule.id, update=False)
        assert (remaining.source.session, remaining.source.turns, remaining.confirmed) == (
            f"claude-code:{OTHER}",
            ("o1",),
            (),
        )
        assert not excerpts_about(memory, "gruyere cellar")
        with pytest.raises(NotFoundError):
            memory.plan_forgetting(sessions=[CHEESE])
    assert b"zanzibar9431" not in bytes_of(talk)
    assert not [
        path
        for path in talk.vault.rglob("*")
        if path.is_file() and b"zanzibar" in path.read_bytes()
    ]


def test_reading_everything_again_does_not_restore_a_forgotten_session(talk: World) -> None:
    with talk.open() as memory:
        memory.ingest()
        memory.forget(memory.plan_forgetting(sessions=[CHEESE]))
        before = contents(memory)
    rebuild_and_ingest(talk)
    with talk.open() as memory:
        assert contents(memory) == before
        assert not excerpts_about(memory, "gruyere zanzibar9431")
    assert b"zanzibar9431" not in bytes_of(talk)


def test_growing_transcript_of_a_forgotten_session_stays_forgotten(talk: World) -> None:
    with talk.open() as memory:
        memory.ingest()
        memory.forget(memory.plan_forgetting(sessions=[CHEESE]))
        talk.transcript(
            "cheese",
            says("user", "Remember that the brie is in row quebec7.", uuid="c9", session=CHEESE),
        )
        memory.ingest()
        assert not excerpts_about(memory, "brie quebec7")
        assert not any("brie" in content for content in contents(memory))
    assert b"quebec7" not in bytes_of(talk)


def test_copied_turns_of_a_forgotten_session_are_not_restored(world: World) -> None:
    record = says(
        "user",
        "Remember that the manchego is in crate tango55.",
        uuid="7f3a1c2d-0000-4000-8000-0000000000a1",
    )
    world.transcript("first", record | {"sessionId": "5e55-first"})
    with world.open() as memory:
        memory.ingest()
        memory.forget(memory.plan_forgetting(sessions=["5e55-first"]))
        world.transcript(
            "resumed",
            record | {"sessionId": "5e55-resumed"},
            says(
                "user",
                "Remember that the fridge is serviced in March.",
                uuid="r2",
                session="5e55-resumed",
            ),
        )
        memory.ingest()
        assert not excerpts_about(memory, "manchego tango55")
        assert excerpts_about(memory, "fridge serviced")
    assert b"tango55" not in bytes_of(world)


def test_forgetting_a_memory_forgets_its_turn_after_an_edit_of_the_message(world: World) -> None:
    rule = "From now on always salt the manchester9 cheese on Fridays."

    def send(text: str) -> None:
        world.transcript("s1", says("user", text, uuid="c1", session=CHEESE))

    send(rule)
    with world.open() as memory:
        memory.ingest()
        (learned,) = memory.list()
        send(f"Look at the failing pump, please. {rule}")
        memory.ingest(extract=False)
        assert excerpts_about(memory, "manchester9")
        memory.forget(memory.plan_forgetting(memories=[learned.id]))
        assert not excerpts_about(memory, "manchester9")


def test_tombstones_contain_no_forgotten_text(talk: World) -> None:
    with talk.open() as memory:
        memory.ingest()
        outcome = memory.store("The gouda supplier is Quillfeather Ltd", project="acme-billing")
        memory.retire(outcome.memory_id, reason="Quillfeather Ltd closed")
        memory.forget(memory.plan_forgetting(memories=[outcome.memory_id]))
        memory.forget(memory.plan_forgetting(match="zanzibar9431"))
        memory.forget(memory.plan_forgetting(project="acme-billing"))
    text = (talk.vault / "ledger.jsonl").read_text(encoding="utf-8")
    for word in ("Quillfeather", "gouda", "zanzibar", "gruyere", "linter", "acme-billing"):
        assert word not in text
    assert [line["action"] for line in ledger_of(talk)].count("forget") == 3


def test_forgetting_a_text_keeps_the_rest_of_its_session(
    talk: World,
) -> None:
    with talk.open() as memory:
        memory.ingest()
        deletion = memory.plan_forgetting(match="ZANZIBAR9431")
        plan = deletion.plan
        assert (dict(plan.sessions), dict(plan.parts), len(plan.memories)) == (
            {},
            {f"claude-code:{CHEESE}": 2},
            1,
        )
        assert any("zanzibar9431" in excerpt.text for excerpt in plan.excerpts)
        memory.forget(deletion)
        assert excerpts_about(memory, "linter before you commit")
        talk.transcript(
            "cheese",
            says("user", "The terrace faces south, by the way.", uuid="c7", session=CHEESE),
        )
        memory.ingest()
        assert excerpts_about(memory, "terrace faces south")
        assert memory.plan_forgetting(match="zanzibar9431").plan.is_empty
    assert b"zanzibar9431" not in bytes_of(talk)
    rebuild_and_ingest(talk)
    assert b"zanzibar9431" not in bytes_of(talk)


@pytest.mark.parametrize(
    "selector", [{"sessions": [CHEESE]}, {"match": "zanzibar9431"}, {"project": "acme-billing"}]
)
def test_forgetting_removes_handoffs_with_the_same_content(
    talk: World, selector: dict[str, Any]
) -> None:
    with talk.open() as memory:
        memory.ingest()
        memory.handoff(store=True, session=f"claude-code:{CHEESE}")
        memory.handoff(store=True, words="The brie is next.", session=f"claude-code:{OTHER}")
        deletion = memory.plan_forgetting(**selector)
        plan = deletion.plan
        assert len(plan.handoffs) == (2 if "project" in selector else 1)
        memory.forget(deletion)
    assert not [
        path for path in talk.home.rglob("handoffs/**/*.md") if b"zanzibar" in path.read_bytes()
    ]


def test_forgetting_finds_text_that_only_a_handoff_contains(talk: World) -> None:
    with talk.open() as memory:
        memory.ingest()
        memory.handoff(
            store=True, words="Ask Quillfeather about the brie.", session=f"claude-code:{OTHER}"
        )
        deletion = memory.plan_forgetting(match="quillfeather")
        plan = deletion.plan
        assert (plan.turns, plan.memories, [excerpt.text for excerpt in plan.excerpts]) == (
            0,
            (),
            ["Ask Quillfeather about the brie."],
        )
        memory.forget(deletion)
    assert list(talk.home.glob("handoffs/**/*.md")) == []
    assert not [
        path
        for path in talk.home.rglob("*")
        if path.is_file() and b"Quillfeather" in path.read_bytes()
    ]


def test_forgetting_finds_text_in_tool_calls_titles_and_reasons(world: World) -> None:
    call = {
        "type": "tool_use",
        "id": "t1",
        "name": "Bash",
        "input": {"command": "curl https://wombat77.example/api"},
    }
    record = says("assistant", "", uuid="a1")
    record["message"]["content"] = [call]
    world.transcript(
        "tools",
        says("user", "Call the service.", uuid="u1"),
        record,
        {"type": "custom-title", "customTitle": "Calling wombat77", "sessionId": "5e55-0001"},
        says("user", "Thank you, that was all for now.", uuid="u2"),
    )
    with world.open() as memory:
        memory.ingest()
        printer = memory.store("The printer is on the second floor").memory_id
        memory.retire(printer, reason="wombat77 said so")
        deletion = memory.plan_forgetting(match=r"wombat\d+", regex=True)
        plan = deletion.plan
        assert (plan.turns, [item.id for item in plan.memories]) == (1, [printer])
        memory.forget(deletion)
    assert b"wombat77" not in bytes_of(world)
    assert "wombat77" not in (world.vault / "ledger.jsonl").read_text(encoding="utf-8")
    rebuild_and_ingest(world)
    assert b"wombat77" not in bytes_of(world)


def test_forgetting_a_memory_removes_its_turns_but_no_other_memory(world: World) -> None:
    message = "Remember that the boiler is a Kessel 3000.\n\nAlways call the plumber before noon."
    world.transcript(
        "house", says("user", message, uuid="h1"), says("assistant", "Noted.", uuid="h2")
    )
    with world.open() as memory:
        memory.ingest()
        memories = {item.content: item for item in memory.list()}
        boiler = next(item for text, item in memories.items() if "Kessel" in text)
        plumber = next(
            item for text, item in memories.items() if "plumber" in text and item.id != boiler.id
        )
        deletion = memory.plan_forgetting(memories=[boiler.id])
        plan = deletion.plan
        assert ([item.id for item in plan.memories], [item.id for item in plan.losing]) == (
            [boiler.id],
            [plumber.id],
        )
        memory.forget(deletion)
        assert {item.id for item in memory.list()} == {plumber.id}
        assert memory.get(plumber.id, update=False).source.turns == ()
        memory.ingest()
        assert {item.id for item in memory.list()} == {plumber.id}
    assert b"Kessel" not in bytes_of(world)


def test_forgotten_statement_can_be_stored_again(talk: World) -> None:
    with talk.open() as memory:
        memory.ingest()
        cellar = next(item for item in memory.list() if "gruyere" in item.content)
        memory.forget(memory.plan_forgetting(memories=[cellar.id]))
        assert memory.store(cellar.content).action == "stored"
    with talk.open() as memory:
        assert any("gruyere" in content for content in contents(memory))


def test_forgetting_a_replacement_does_not_reactivate_the_replaced_memory(world: World) -> None:
    with world.open() as memory:
        old = memory.store("The gate listens on port 8080").memory_id
        world.clock.pass_days(1)
        new = memory.store("The gate now listens on port 8443").memory_id
        assert memory.get(old, update=False).superseded_by == new
        deletion = memory.plan_forgetting(memories=[new])
        plan = deletion.plan
        assert [item.id for item in plan.released] == [old]
        memory.forget(deletion)
        remaining = memory.get(old, update=False)
        assert (remaining.superseded_by, remaining.retired and remaining.retired.reason) == (
            None,
            "its successor was forgotten",
        )
        assert not memory.list()
        memory.unretire(old)
        assert [item.id for item in memory.list()] == [old]


def test_forgetting_a_middle_memory_joins_its_neighbours(world: World) -> None:
    with world.open() as memory:
        first = memory.store("The gate listens on port 8080").memory_id
        world.clock.pass_days(1)
        second = memory.store("The gate now listens on port 8443").memory_id
        world.clock.pass_days(1)
        third = memory.store("The gate now listens on port 9000").memory_id
        assert memory.get(second, update=False).superseded_by == third
        memory.forget(memory.plan_forgetting(memories=[second]))
        assert memory.get(first, update=False).superseded_by == third
        links = memory.get(third, update=False).links
        assert [(link.rel, link.to, link.reason) for link in links] == [("supersedes", first, None)]
        assert [item.memory.id for item in memory.history(third)] == [first, third]
    assert b"8443" not in bytes_of(world)
    assert not [
        path for path in world.vault.rglob("*.md") if "8443" in path.read_text(encoding="utf-8")
    ]


def test_forgotten_project_can_start_again(talk: World) -> None:
    talk.transcript(
        "else",
        says(
            "user",
            "Remember that the tulips in the back garden need lime every spring.",
            uuid="g1",
            session="5e55-garden",
            cwd="/code/garden",
        ),
    )
    with talk.open() as memory:
        memory.ingest()
        memory.store("Invoices are numbered by year", project="acme-billing")
        assert (talk.vault / "projects" / "acme-billing" / "project.md").exists()
        deletion = memory.plan_forgetting(project="acme-billing")
        plan = deletion.plan
        assert len(plan.sessions) == 2
        memory.forget(deletion)
        assert not (talk.vault / "projects" / "acme-billing" / "project.md").exists()
        assert all("tulips" in content for content in contents(memory))
        talk.clock.pass_days(2)
        later = "2026-11-22T09:00:00.000Z"
        talk.transcript(
            "new",
            says(
                "user",
                "Remember that invoices go out on Mondays.",
                uuid="n1",
                session="5e55-new",
                at=later,
            ),
        )
        memory.ingest()
        assert any("Mondays" in content for content in contents(memory))
    rebuild_and_ingest(talk)
    with talk.open() as memory:
        assert not any("gruyere" in content or "SQLite" in content for content in contents(memory))
        assert any("Mondays" in content for content in contents(memory))


def test_forgetting_before_a_date_keeps_later_turns_of_a_session(
    talk: World,
) -> None:
    talk.transcript(
        "cheese",
        says(
            "user",
            "Remember that the stilton is from Leicester.",
            uuid="c8",
            session=CHEESE,
            at="2026-11-19T22:00:00.000Z",
        ),
    )
    with talk.open() as memory:
        memory.ingest()
        deletion = memory.plan_forgetting(before=datetime(2026, 11, 19, tzinfo=UTC))
        plan = deletion.plan
        assert (dict(plan.sessions), dict(plan.parts)) == ({}, {f"claude-code:{CHEESE}": 4})
        memory.forget(deletion)
        assert not any("gruyere" in content for content in contents(memory))
        assert any("stilton" in content for content in contents(memory))
        rule = next(item for item in memory.list() if item.content.startswith("Always run"))
        assert rule.source.session == f"claude-code:{OTHER}"
        with pytest.raises(InvalidQueryError):
            memory.plan_forgetting(before=NOON.replace(year=2030))
    rebuild_and_ingest(talk)
    with talk.open() as memory:
        assert not excerpts_about(memory, "gruyere zanzibar9431")
        assert excerpts_about(memory, "stilton Leicester")


def test_forgetting_a_period_of_a_project_keeps_other_projects(talk: World) -> None:
    talk.transcript(
        "garden",
        says(
            "user",
            "Remember that the tulips in the back garden need lime every spring.",
            uuid="g1",
            session="5e55-garden",
            cwd="/code/garden",
        ),
    )
    with talk.open() as memory:
        memory.ingest()
        memory.forget(
            memory.plan_forgetting(
                project="acme-billing", before=datetime(2026, 11, 19, tzinfo=UTC)
            )
        )
        assert not any("gruyere" in content for content in contents(memory))
        assert any("tulips" in content for content in contents(memory))
        assert any("SQLite" in content for content in contents(memory))


def test_synced_tombstone_forgets_on_a_second_machine(talk: World, tmp_path: Path) -> None:
    with talk.open() as memory:
        memory.ingest()
    second = World(tmp_path / "second")
    shutil.copytree(talk.user_home, second.user_home)
    with second.open() as memory:
        assert any("gruyere" in content for content in contents(memory))
    with talk.open() as memory:
        memory.forget(memory.plan_forgetting(sessions=[CHEESE]))
    shutil.copy(talk.vault / "ledger.jsonl", second.vault / "ledger.jsonl")
    with second.open() as memory:
        assert not any("gruyere" in content for content in contents(memory))
        assert not excerpts_about(memory, "gruyere cellar")
        memory.ingest()
        assert not excerpts_about(memory, "gruyere cellar")
    assert not list(second.vault.rglob("*gruyere*"))
    assert b"zanzibar9431" not in bytes_of(second)


def test_merged_tombstones_are_applied_in_one_call(talk: World, tmp_path: Path) -> None:
    with talk.open() as memory:
        memory.ingest()
    second = World(tmp_path / "second")
    shutil.copytree(talk.user_home, second.user_home)
    with talk.open() as memory:
        memory.forget(memory.plan_forgetting(project="acme-billing"))
    second.transcript(
        "own",
        says("user", "Remember that the brie is in row quebec7.", uuid="q1", session="5e55-own"),
    )
    with second.open() as memory:
        memory.ingest()
    context = second.context()
    shutil.copy(talk.vault / "ledger.jsonl", second.vault / "ledger.jsonl")
    heed_ledger(context)
    assert apply_tombstones(context) > 0
    context.database.close()
    entries = [line for line in ledger_of(second) if line["action"] == "forget"]
    assert "claude-code:5e55-own" in entries[-1]["sessions"]
    with second.open() as memory:
        assert not contents(memory)


def test_restored_file_of_a_forgotten_memory_is_removed(world: World) -> None:
    with world.open() as memory:
        memory_id = memory.store("The vault key is under the blue pot").memory_id
        path = world.memory_file(memory_id)
        text = path.read_text(encoding="utf-8")
        memory.forget(memory.plan_forgetting(memories=[memory_id]))
        path.write_text(text, encoding="utf-8")
        assert not memory.list()
    assert not path.exists()


def test_forgotten_title_does_not_return_after_a_rebuild(world: World) -> None:
    world.transcript(
        "titled",
        says("user", "Good morning, what is the weather like?", uuid="t1"),
        {"type": "custom-title", "customTitle": "Moving to Ulaanbaatar", "sessionId": "5e55-0001"},
        says("user", "And tomorrow morning?", uuid="t2"),
    )
    with world.open() as memory:
        memory.ingest()
        deletion = memory.plan_forgetting(match="ulaanbaatar")
        plan = deletion.plan
        assert (plan.turns, plan.untitled, plan.is_empty) == (0, ("claude-code:5e55-0001",), False)
        memory.forget(deletion)
        memory.ingest()
        assert excerpts_about(memory, "morning weather")
    assert b"Ulaanbaatar" not in bytes_of(world)
    rebuild_and_ingest(world)
    assert b"Ulaanbaatar" not in bytes_of(world)


def test_files_removed_by_a_merged_tombstone_are_not_retired(talk: World, tmp_path: Path) -> None:
    with talk.open() as memory:
        memory.ingest()
        for number in range(30):
            memory.store(
                f"Crate {number} holds {'apples pears plums figs dates'.split()[number % 5]} of lot {number}",
                force=True,
                project="acme-billing",
            )
    second = World(tmp_path / "second")
    shutil.copytree(talk.user_home, second.user_home)
    with talk.open() as memory:
        memory.forget(memory.plan_forgetting(project="acme-billing"))
    shutil.rmtree(second.vault)
    shutil.copytree(talk.vault, second.vault)
    with second.open() as memory:
        assert not memory.list()
        assert memory._home.problems == []
    assert not list(second.vault.rglob("*.md"))
    assert all(line["action"] != "retire" for line in ledger_of(second))


def test_late_memory_from_a_forgotten_session_is_removed_on_arrival(
    talk: World,
) -> None:
    with talk.open() as memory:
        memory.ingest()
        cellar = next(item for item in memory.list() if "gruyere" in item.content)
        text = talk.memory_file(cellar.id).read_text(encoding="utf-8")
        memory.forget(memory.plan_forgetting(sessions=[CHEESE]))
        file = talk.write(
            "global/fact/cellar.md", text.replace(cellar.id, "0198f3c2-7d1a-7c3e-9b1e-5f0c2a4d6e81")
        )
        assert not any("gruyere" in content for content in contents(memory))
    assert not file.exists()


def test_forgetting_removes_links_usage_and_pinned_answers(world: World) -> None:
    with world.open() as memory:
        first = memory.store("The atlas lies in the Umbra room").memory_id
        second = memory.store("The globe stands beside the window").memory_id
        file = world.memory_file(second)
        text = file.read_text(encoding="utf-8").replace(
            "\n---\n",
            f"\nlinks:\n  - {{rel: part_of, to: {first}, reason: both in the Umbra room}}\n---\n",
            1,
        )
        file.write_text(text, encoding="utf-8")
        memory.recall("where is the atlas?")
        memory.judge(first, good=True)
        memory.call("pin", question="where is the atlas?")
        memory.forget(memory.plan_forgetting(memories=[first]))
        assert memory.get(second, update=False).links == ()
    for path in [*world.home.rglob("*")]:
        if path.is_file():
            assert b"Umbra" not in path.read_bytes(), path
            assert (
                path.name == "ledger.jsonl"
                or first.encode() not in path.read_bytes()
                or "nacre.db" in path.name
            )


@pytest.mark.embedding
def test_forgetting_erases_only_vectors_without_remaining_turns(talk: World) -> None:
    with talk.open() as memory:
        memory.ingest()
        memory.forget(memory.plan_forgetting(sessions=[CHEESE]))
        context = memory._home
        rows = context.database.rows(
            "SELECT p.row, p.vector = zeroblob(length(p.vector)), count(t.turn) FROM passages p"
            " LEFT JOIN turn_passages t ON t.passage = p.row GROUP BY p.row"
        )
        assert all(bool(is_blank) is (turns == 0) for _, is_blank, turns in rows)
        assert (
            sum(is_blank for _, is_blank, _ in rows) == 2
        )  # the rule is in both sessions; the last message is too short
        result = memory.search_sessions("which database holds the inventory?", mode="vector")
        assert any("SQLite" in hit.excerpt for hit in result.turns)
        talk.transcript(
            "more",
            says(
                "user",
                "The new forklift arrives on Thursday morning.",
                uuid="m1",
                session="5e55-more",
                at="2026-11-20T10:00:00.000Z",
            ),
        )
        memory.ingest()
        result = memory.search_sessions("forklift arrives on Thursday", mode="vector")
        assert "forklift" in result.turns[0].excerpt


def test_forgotten_run_can_be_allowed_again(talk: World) -> None:
    with talk.open() as memory:
        memory.ingest()
        report = memory.forget(memory.plan_forgetting(sessions=[CHEESE]))
        runs = memory.call("forgotten")
        assert [(item.run, item.how, item.sessions, item.is_allowed) for item in runs] == [
            (report.run, "session", (f"claude-code:{CHEESE}",), False)
        ]
        memory.ingest()
        assert not excerpts_about(memory, "gruyere cellar")
        memory.call("forget-allow-again", reference=report.run[-8:])
        assert memory.call("forgotten")[0].is_allowed
        memory.ingest()
        assert excerpts_about(memory, "gruyere cellar")
        assert any("gruyere" in content for content in contents(memory))
        with pytest.raises(NotFoundError):
            memory.call("forget-allow-again", reference=report.run)


def test_single_session_of_a_forgotten_project_can_be_allowed_again(talk: World) -> None:
    with talk.open() as memory:
        memory.ingest()
        memory.forget(memory.plan_forgetting(project="acme-billing"))
        memory.call("forget-allow-again", reference=f"claude-code:{OTHER}")
        memory.ingest()
        assert excerpts_about(memory, "inventory SQLite")
        assert not excerpts_about(memory, "gruyere cellar")
    rebuild_and_ingest(talk)
    with talk.open() as memory:
        assert excerpts_about(memory, "inventory SQLite")
        assert not excerpts_about(memory, "gruyere cellar")


def test_allowed_session_can_be_forgotten_again(talk: World) -> None:
    with talk.open() as memory:
        memory.ingest()
        first = memory.forget(memory.plan_forgetting(sessions=[CHEESE]))
        memory.call("forget-allow-again", reference=first.run)
        memory.ingest()
        memory.forget(memory.plan_forgetting(sessions=[CHEESE]))
        memory.ingest()
        assert not excerpts_about(memory, "gruyere cellar")


def test_forgetting_a_session_removes_its_sub_agent_sessions(world: World) -> None:
    world.transcript(
        "main", says("user", "Look into the kelp farm.", uuid="k1", session="5e55-kelp")
    )
    side = says(
        "assistant",
        "The kelp farm has nautilus88 tanks.",
        uuid="k2",
        session="5e55-kelp",
        isSidechain=True,
        agentId="a77",
    )
    world.transcript("agent-a77", side)
    with world.open() as memory:
        memory.ingest()
        assert excerpts_about(memory, "nautilus88")
        memory.forget(memory.plan_forgetting(sessions=["5e55-kelp"]))
        assert not excerpts_about(memory, "nautilus88")
        memory.ingest()
        assert not excerpts_about(memory, "nautilus88")
    assert b"nautilus88" not in bytes_of(world)


def test_forget_report_lists_unreached_copies(talk: World) -> None:
    with talk.open() as memory:
        memory.ingest()
    git = ["git", "-c", "user.name=o", "-c", "user.email=o@example.org", "-C", str(talk.vault)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "as it was"], check=True)
    subprocess.run([*git, "remote", "add", "origin", "ssh://git@example.org/vault.git"], check=True)
    for ending in ("old", "moved"):
        (talk.home / f"nacre.db.{ending}").write_bytes(b"old")
    (talk.home / "notes.txt").write_text("zanzibar9431 is the code", encoding="utf-8")
    with talk.open() as memory:
        unreached = memory.forget(memory.plan_forgetting(match="zanzibar9431")).unreached
    items = {item.what: item for item in unreached}
    assert set(items) == {
        "transcript",
        "git history",
        "git remote",
        "older database",
        "still contains it",
        "copies elsewhere",
    }
    copies = {Path(item.where).suffix for item in unreached if item.what == "older database"}
    assert copies == {".old", ".moved"}
    assert items["transcript"].where.endswith("cheese.jsonl")
    assert items["git history"].remedy == "nacre admin scrub --history"
    assert items["git remote"].where == "ssh://git@example.org/vault.git"
    assert items["still contains it"].where.endswith("notes.txt")


def test_forget_accepts_exactly_one_valid_selector(world: World) -> None:
    with world.open() as memory:
        for wrong in (
            {},
            {"match": "x y", "sessions": ["a"]},
            {"match": " "},
            {"match": "(", "regex": True},
            {"match": "a*", "regex": True},
        ):
            with pytest.raises(InvalidQueryError):
                memory.plan_forgetting(**wrong)
        with pytest.raises(NotFoundError):
            memory.plan_forgetting(project="nowhere")
        assert memory.plan_forgetting(match="nobody says this").plan.is_empty


KILLED = """
import os, signal, sys
from nacre.api import open_memory
import nacre.memories.erasure as erasing, nacre.data.forget as forgetting
name, times = sys.argv[1], int(sys.argv[2])
module = forgetting if hasattr(forgetting, name) and name in ("apply_tombstones", "erase_bytes") else erasing
real, calls = getattr(module, name), [0]
def die(*arguments, **options):
    calls[0] += 1
    if calls[0] == times:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments, **options)
setattr(module, name, die)
with open_memory() as memory:
    memory.forget(memory.plan_forgetting(sessions=["5e55-c4ee-0001"]))
"""


@pytest.mark.parametrize(
    "step",
    [
        "apply_tombstones",
        "_erase_memories",
        "_erase_memory",
        "_erase_sessions",
        "_clear_pages",
        "clear_words",
        "erase_bytes",
    ],
)
def test_killed_forget_is_completed_by_the_next_command(talk: World, step: str) -> None:
    with talk.open() as memory:
        memory.ingest()
    environ = {
        **os.environ,
        "HOME": str(talk.user_home),
        "NACRE_HOME": str(talk.home),
        "PYTHONPATH": "src",
    }
    process = subprocess.run(
        [sys.executable, "-c", KILLED, step, "1"],
        env=environ,
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    with talk.open() as memory:
        assert not any("gruyere" in content for content in contents(memory))
        assert not excerpts_about(memory, "gruyere cellar")
        memory.ingest()
        assert len(memory.list()) == 2
    assert b"zanzibar9431" not in bytes_of(talk)
    assert not [
        path for path in talk.vault.rglob("*.md") if "zanzibar" in path.read_text(encoding="utf-8")
    ]


KILLED_BETWEEN = """
import os, signal, sys
from nacre.api import open_memory
from nacre.store.sqlite import FileDatabase
with open_memory() as memory:
    deletion = memory.plan_forgetting(sessions=["5e55-c4ee-0001"])
    plan = deletion.plan
    memory.call("traces")  # stores the traces of the ingest in a separate transaction
    real, calls = FileDatabase.transaction, [0]
    def transaction(self):
        calls[0] += not self.is_in_transaction
        if calls[0] == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self)
    FileDatabase.transaction = transaction
    memory.forget(deletion)
    print(calls[0])
"""


@pytest.mark.parametrize("at", range(2, 12, 2))
def test_forget_killed_between_transactions_is_completed(talk: World, at: int) -> None:
    """Kill from the second transaction on, because the first makes the request durable."""
    with talk.open() as memory:
        memory.ingest()
    environ = {
        **os.environ,
        "HOME": str(talk.user_home),
        "NACRE_HOME": str(talk.home),
        "PYTHONPATH": "src",
    }
    process = subprocess.run(
        [sys.executable, "-c", KILLED_BETWEEN, str(at)],
        env=environ,
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.returncode == -signal.SIGKILL, process.stdout + process.stderr
    with talk.open() as memory:
        memory.ingest()
        assert not excerpts_about(memory, "gruyere cellar")
        assert len(memory.list()) == 2
    assert b"zanzibar9431" not in bytes_of(talk)
    assert not [
        path for path in talk.vault.rglob("*.md") if "zanzibar" in path.read_text(encoding="utf-8")
    ]
    assert [line["action"] for line in ledger_of(talk)].count("forget") == 1


def test_bytes_in_use_by_another_process_are_erased_later(talk: World) -> None:
    with talk.open() as memory:
        memory.ingest()
        reader = apsw.Connection(str(talk.home / "nacre.db"))
        reading = reader.execute("SELECT text FROM turns")
        next(reading)
        report = memory.forget(memory.plan_forgetting(match="zanzibar9431"))
        assert not report.is_erased
        checks = {check.name: check for check in doctor(memory._home)}
        assert checks["forgetting"].hint == "nacre ingest"
        reader.close()
        memory.ingest()
        assert "forgetting" not in {check.name for check in doctor(memory._home)}
    assert b"zanzibar9431" not in bytes_of(talk)


def test_scan_without_tombstones_queues_no_work(world: World) -> None:
    with world.open() as memory:
        memory.store("The kettle is red")
        context = memory._home
        assert context.tombstones.edition() == ""
        scan(context)
        assert context.tombstones.due() == set()


def test_ambiguous_memory_reference_is_not_forgotten(world: World) -> None:
    with world.open() as memory:
        memory.store("The red kettle whistles", subject="Kettle")
        memory.store("Another kettle is silent", subject="Kettle", force=True)
        with pytest.raises(ConflictError):
            memory.plan_forgetting(memories=["Kettle"])
