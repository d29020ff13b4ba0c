"""Ingest learns plain statements of the owner, with or without an embedding model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from nacre.home.home import open_home
from nacre.learn.ingest import IngestOptions, ingest
from tests.app.conftest import World, doubts, says


def ingest_contents(world: World, path: Path) -> list[str]:
    """Ingest a transcript with the configured embedding model and return the new contents."""
    context = open_home(world.settings(), clock=world.clock)
    try:
        report = ingest(context, IngestOptions(paths=(path,), vectors=False))
        memories = [context.memories.find(memory) for memory in report.memories]
        return [memory.content for memory in memories if memory]
    finally:
        context.database.close()


def test_plain_statement_is_learned_without_an_embedder(world: World) -> None:
    path = world.transcript(
        "s1",
        says("user", "Where is the log?", uuid="u1"),
        says("user", "Never log card numbers, not even masked.", uuid="u2"),
    )
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"

    assert ingest_contents(world, path) == ["Never log card numbers, not even masked."]


def test_heartbeat_session_is_learned_after_the_owner_speaks(world: World, tmp_path: Path) -> None:
    lines = [
        {
            "type": "session",
            "version": 3,
            "id": "h1",
            "timestamp": "2026-11-18T09:00:00.000Z",
            "cwd": "/code/shop",
        },
        _message(
            "m1",
            "user",
            "Read HEARTBEAT.md if it exists. If nothing needs attention, reply HEARTBEAT_OK.",
        ),
        _message("m2", "assistant", "HEARTBEAT_OK"),
        _message("m3", "user", "Never send a parcel without the slip of the customs office."),
    ]
    path = tmp_path / "h1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines[:3]), encoding="utf-8")
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"
    assert ingest_contents(world, path) == []

    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    assert ingest_contents(world, path) == [
        "Never send a parcel without the slip of the customs office."
    ]


def _message(entry: str, role: str, text: str) -> dict[str, object]:
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    return {
        "type": "message",
        "id": entry,
        "parentId": None,
        "timestamp": "2026-11-18T09:00:01.000Z",
        "message": message,
    }


RULES = (
    "Always run the linter before a commit.",
    "Always run the tests before a push.",
    "Never force-push to main.",
)


def test_all_statements_of_one_message_are_learned(world: World) -> None:
    path = world.transcript("s1", says("user", " ".join(RULES), uuid="u1"))

    assert sorted(ingest_contents(world, path)) == sorted(RULES)


def test_repeated_statement_does_not_hide_new_statements_in_a_message(world: World) -> None:
    ingest_contents(world, world.transcript("s1", says("user", RULES[0], uuid="u1", session="s1")))

    path = world.transcript("s2", says("user", " ".join(RULES), uuid="u2", session="s2"))

    assert sorted(ingest_contents(world, path)) == sorted(RULES[1:])


@pytest.mark.parametrize("is_lost", [False, True], ids=["read again", "without its database"])
def test_edited_or_retired_statements_are_not_learned_again(world: World, is_lost: bool) -> None:
    path = world.transcript("s1", says("user", " ".join(RULES), uuid="u1"))
    ingest_contents(world, path)
    with world.open() as memory:
        ids = {item.content: item.id for item in memory.list()}
        memory.edit(ids[RULES[0]], content="Ruff runs by itself, nobody has to think of it.")
        memory.retire(ids[RULES[1]])
    if is_lost:
        for file in world.home.glob("nacre.db*"):
            file.unlink()

    assert ingest_contents(world, path) == []
    with world.open() as memory:
        assert {item.content for item in memory.list()} == {
            RULES[2],
            "Ruff runs by itself, nobody has to think of it.",
        }


def test_growing_session_teaches_each_statement_once(world: World) -> None:
    path = world.transcript("s1", says("user", " ".join(RULES[:2]), uuid="u1"))
    first = ingest_contents(world, path)
    world.transcript(
        "s1",
        says("assistant", "Noted.", uuid="a1"),
        says("user", f"{RULES[0]} {RULES[2]}", uuid="u2"),
        says("assistant", "Noted.", uuid="a2"),
    )

    assert (sorted(first), ingest_contents(world, path)) == (sorted(RULES[:2]), [RULES[2]])
    assert ingest_contents(world, path) == []


def test_rebuild_does_not_relearn_the_statements_of_a_message(world: World) -> None:
    path = world.transcript("s1", says("user", " ".join(RULES), uuid="u1"))
    ingest_contents(world, path)
    world.rebuild()

    assert ingest_contents(world, path) == []
    with world.open() as memory:
        assert sorted(item.content for item in memory.list()) == sorted(RULES)


def contents_after_session(world: World, statements: Sequence[str], *, in_steps: bool) -> list[str]:
    """Return the contents after a session that is read at its end or after each message."""
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"
    with world.open() as memory:
        for index, statement in enumerate(statements):
            clock = f"2026-11-18T09:{index:02}"
            turns = (
                says("user", statement, uuid=f"u{index}", at=f"{clock}:00.000Z"),
                says("assistant", "Noted.", uuid=f"a{index}", at=f"{clock}:30.000Z"),
            )
            world.transcript("s1", *turns)
            if in_steps or index == len(statements) - 1:
                memory.ingest()
        return sorted(item.content for item in memory.list())


@pytest.mark.parametrize("in_steps", [False, True], ids=["whole", "in steps"])
@pytest.mark.parametrize(
    ("statements", "holds"),
    [
        (("Always squash commits before merging.", "Never squash commits before merging."), [0, 1]),
        (("从现在起提交前一定要压缩提交", "从现在起提交前不要压缩提交"), [0, 1]),
        (
            (
                "Let's use MySQL for the billing service.",
                "Let's use MongoDB for the billing service instead.",
                "Let's use PostgreSQL for the billing service instead of MongoDB.",
            ),
            [2],
        ),
        (
            (
                "Remember that pull requests need one approval.",
                "Remember that pull requests to main need two approvals.",
            ),
            [0, 1],
        ),
        (
            (
                "Remember: never deploy on Fridays.",
                "Remember: security fixes may be deployed on Fridays.",
            ),
            [0, 1],
        ),
        (
            (
                "Remember that photos of sick trees are kept five years.",
                "Remember that photos are kept one year.",
            ),
            [0, 1],
        ),
    ],
    ids=["opposite", "opposite, in Chinese", "decided again", "special", "exception", "general"],
)
def test_named_old_value_is_replaced_while_opposites_wait_for_review(
    world: World, statements: Sequence[str], holds: Sequence[int], in_steps: bool
) -> None:
    assert contents_after_session(world, statements, in_steps=in_steps) == sorted(
        _as_memory(statements[index]) for index in holds
    )


def _as_memory(statement: str) -> str:
    rest = statement.removeprefix("Remember: ").removeprefix("Remember that ")
    return rest[0].upper() + rest[1:]


@pytest.mark.parametrize("in_steps", [False, True], ids=["whole", "in steps"])
def test_statement_retracted_in_the_next_message_is_not_kept(world: World, in_steps: bool) -> None:
    statements = ("Remember that photos of trees are kept one year.", "No wait, forget that.")
    assert contents_after_session(world, statements, in_steps=in_steps) == []


@pytest.mark.parametrize(
    ("undo", "doubted"),
    [("The emojis in the captions: leave them out.", 0), ("Leave them out of the captions.", 1)],
)
def test_stored_statement_that_is_perhaps_retracted_waits_for_review(
    world: World, undo: str, doubted: int
) -> None:
    statements = ("Remember that photos of trees are kept one year.", undo)
    assert contents_after_session(world, statements, in_steps=True) == [
        "Photos of trees are kept one year."
    ]
    with world.open() as memory:
        assert len(doubts(memory._home)) == doubted


def learn_session(world: World, *turns: tuple[str, str]) -> tuple[list[str], list[str]]:
    """Ingest a session and return the contents of its memories and of its candidates."""
    lines = [says(role, text, uuid=f"u{at}") for at, (role, text) in enumerate(turns)]
    contents = ingest_contents(world, world.transcript("s1", *lines))
    with world.open() as memory:
        items = memory.call("review", only="candidate", limit=0).items
    return contents, [item.memory.content for item in items]


def test_first_person_statements_are_learned(world: World) -> None:
    messages = {
        "i dont like retries in the nightly jobs": "I dont like retries in the nightly jobs",
        "lesson: no browser on the tide server": "No browser on the tide server",
        "note to self, the gauge wants local time": "The gauge wants local time",
        "we never sail without a word from someone at the pier": (
            "We never sail without a word from someone at the pier"
        ),
        "i really hate it when you rewrite log books": (
            "I really hate it when you rewrite log books"
        ),
        "nice, that fixed it. from now on weigh the nets before each trip": (
            "From now on weigh the nets before each trip"
        ),
        "can you make it a habit to run the chart checker after each change?": (
            "Run the chart checker after each change"
        ),
    }

    contents, _ = learn_session(world, *(("user", message) for message in messages))

    assert sorted(contents) == sorted(messages.values())


def test_remarks_about_the_task_are_not_learned(world: World) -> None:
    messages = [
        "i dont like it",
        "i dont like the colour of the buoy",
        "i prefer to look at the charts first",
        "we never got the mail of the pilot",
        "we always get a 500 from the gauge",
        "you always forget the anchor",
        "note: this only happens at night in the harbour",
        "remember to close the hatch in this function",
        "we dropped the table by accident",
        "can we change the script so we are always up to date?",
    ]

    contents, _ = learn_session(world, *(("user", message) for message in messages))

    assert contents == []


def test_lines_below_a_casual_first_line_are_not_learned(world: World) -> None:
    contents, _ = learn_session(
        world,
        ("user", "readme of the other repo\nwe use tabs in every file\nalways commit to main"),
        ("user", "customer mail\nwe never accept invoices by mail"),
    )

    assert contents == []


def test_rule_without_its_subject_waits_with_its_question(world: World) -> None:
    contents, candidates = learn_session(
        world,
        ("assistant", "The backup is ready. When should the backup run?"),
        ("user", "Tuesday 12:00 from now on"),
    )

    assert contents == []
    assert candidates == ["When should the backup run? Tuesday 12:00 from now on"]
