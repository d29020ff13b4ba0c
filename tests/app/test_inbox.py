"""Memories learned outside any project wait in the inbox until the owner assigns them."""

from __future__ import annotations

import pytest

from nacre.values.context import Moment
from nacre.values.memory import Memory
from tests.app.conftest import World, says

CENTS = "We decided to store all amounts in cents, never as floats, because sums must not drift."
RULE = "Always run the linter before a commit."
BILLING = "/code/acme-billing"
QUESTION = "how do we store amounts, in cents or as floats?"


@pytest.fixture
def home(world: World) -> World:
    """A home with a session in the owner's home folder, and one in a project."""
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"
    elsewhere = {"session": "5e55-0001", "cwd": str(world.user_home)}
    world.transcript(
        "s1",
        says("user", CENTS, uuid="u1", **elsewhere),
        says("user", RULE, uuid="u2", **elsewhere),
    )
    other = says(
        "user", "Never log card numbers, not even masked ones.", uuid="u3", session="5e55-0002"
    )
    world.transcript("s2", other)
    with world.open() as memory:
        memory.ingest()
    return world


def inbox_memory(world: World) -> Memory:
    """Return the only memory in the inbox."""
    with world.open() as memory:
        (pending,) = [item for item in memory.list() if item.inbox]
    return pending


def context_texts(world: World, folder: str | None = BILLING) -> str:
    """Return the context of a session start and of a prompt in a folder."""
    with world.open() as memory:
        start = memory.context(folder=folder)
        prompt = memory.context(QUESTION, moment=Moment.PROMPT, folder=folder)
        return start.text + prompt.text


def test_memory_learned_outside_a_project_enters_the_inbox(home: World) -> None:
    assert inbox_memory(home).content == CENTS
    assert home.memory_file(inbox_memory(home).id).parent == home.vault / "inbox"


@pytest.mark.parametrize("folder", [BILLING, None, "user home"])
def test_inbox_memories_are_not_shown_in_context(home: World, folder: str | None) -> None:
    path = str(home.user_home) if folder == "user home" else folder
    assert "cents" not in context_texts(home, path)


def test_owners_preference_from_any_folder_is_global(home: World) -> None:
    assert RULE in context_texts(home)


def test_recall_finds_inbox_memories(home: World) -> None:
    with home.open() as memory:
        assert [hit.memory.content for hit in memory.recall(QUESTION).hits] == [CENTS]


def test_rebuild_keeps_inbox_memories_in_the_inbox(home: World) -> None:
    before = inbox_memory(home)
    home.rebuild()
    assert inbox_memory(home) == before
    assert "cents" not in context_texts(home)


def test_inbox_memory_assigned_to_a_project_is_shown_there(home: World) -> None:
    with home.open() as memory:
        memory.edit(inbox_memory(home).id, project="acme-billing")
    assert CENTS in context_texts(home)


def test_inbox_memory_assigned_to_no_project_becomes_global(home: World) -> None:
    with home.open() as memory:
        memory.edit(inbox_memory(home).id, project=None)
    assert CENTS in context_texts(home)


@pytest.mark.parametrize("target", ["projects/acme-billing/decision", "global/decision"])
def test_file_moved_out_of_the_inbox_becomes_active_there(home: World, target: str) -> None:
    file = home.memory_file(inbox_memory(home).id)
    folder = home.vault / target
    folder.mkdir(parents=True, exist_ok=True)
    file.rename(folder / file.name)
    assert CENTS in context_texts(home)


def test_writing_a_project_into_an_inbox_file_moves_the_file(home: World) -> None:
    memory_id = inbox_memory(home).id
    file = home.memory_file(memory_id)
    file.write_text(file.read_text().replace("\nkind:", "\nproject: acme-billing\nkind:", 1))
    assert CENTS in context_texts(home)
    assert home.memory_file(memory_id).parent == home.vault / "projects/acme-billing/decision"


def test_storing_an_inbox_memory_again_makes_the_memory_global(home: World) -> None:
    with home.open() as memory:
        memory.store(CENTS)
        assert [item.content for item in memory.list() if item.content == CENTS] == [CENTS]
    assert CENTS in context_texts(home)


def test_inbox_memory_supersedes_nothing(world: World) -> None:
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"
    with world.open() as memory:
        memory.store("We use MySQL for the ledger.", kind="decision")
        path = world.transcript(
            "s1",
            says(
                "user",
                "We moved from MySQL to Postgres for the ledger.",
                uuid="u1",
                cwd=str(world.user_home),
            ),
        )
        memory.ingest(path)
        assert "We use MySQL for the ledger." in [item.content for item in memory.list()]
        assert len(memory.list()) == 2
