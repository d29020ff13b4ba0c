"""A scrub redacts stored text by new rules, and excluded sessions are not stored."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import numpy as np
import pytest

from nacre.data.scrub import ScrubOptions, scrub
from tests.app.conftest import World, says

WORDS = "zebra-4711-falcon"
RULE = {"NACRE_REDACTION_PATTERNS": json.dumps([WORDS])}


def store_secret(world: World) -> None:
    world.environ["NACRE_GIT_BACKGROUND"] = "false"
    world.transcript(
        "one",
        says(
            "user",
            f"Remember that the gate of the northern depot opens with {WORDS}, also at night.",
            uuid="a",
        ),
        says("assistant", f"Noted, {WORDS} opens the northern depot.", uuid="b"),
        says("user", "The southern depot has no gate at all, everybody walks in.", uuid="c"),
    )
    with world.open() as memory:
        memory.ingest()
        memory.store(f"The old gate took {WORDS} as well", tags=["gates"])


def test_scrub_replaces_vectors_of_redacted_turns(world: World) -> None:
    store_secret(world)
    world.environ |= RULE
    context = world.context()
    before = dict(context.database.rows("SELECT row, vector FROM passages"))
    report = scrub(context, ScrubOptions())
    after = dict(context.database.rows("SELECT row, vector FROM passages"))
    context.database.close()
    blank = [row for row in before if not np.frombuffer(after[row], np.int8).any()]
    assert report.turns == 2
    assert report.vectors_left == 0
    assert len(blank) == 2
    assert len(after) == len(before) + 2
    with world.open() as memory:
        result = memory.search_sessions("who opens the northern depot?", mode="vector")
        assert result.turns[0].excerpt.count("[REDACTED:owner]") == 1


def test_scrub_redacts_a_pending_handoff(world: World) -> None:
    store_secret(world)
    with world.open() as memory:
        memory.handoff(
            store=True, words=f"Try {WORDS} at the gate.", session="claude-code:5e55-0001"
        )
    world.environ |= RULE
    scrub(world.context(), ScrubOptions())
    (handoff,) = world.context().handoffs.everything()
    assert handoff.content == "Try [REDACTED:owner] at the gate."


def test_next_scrub_finishes_an_interrupted_scrub(world: World) -> None:
    store_secret(world)
    world.environ |= RULE
    context = world.context()

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scrub(context, ScrubOptions(), stop)
    context.database.close()
    context = world.context()
    scrub(context, ScrubOptions())
    assert scrub(context, ScrubOptions()).total == 0
    context.database.close()
    data = b"".join(path.read_bytes() for path in world.home.rglob("*") if path.is_file())
    assert WORDS.encode() not in data.lower()


def test_scrub_also_covers_unknown_tables(world: World) -> None:
    store_secret(world)
    connection = apsw.Connection(str(world.home / "nacre.db"))
    connection.execute("CREATE TABLE chats (id INTEGER PRIMARY KEY, channel TEXT, state TEXT)")
    connection.execute(
        "INSERT INTO chats (channel, state) VALUES ('c', ?)", (json.dumps({"said": [f"{WORDS}!"]}),)
    )
    connection.close()
    world.environ |= RULE
    context = world.context()
    assert scrub(context, ScrubOptions()).found["chats"] == {"owner": 1}
    assert context.database.rows("SELECT state FROM chats") == [
        ('{"said": ["[REDACTED:owner]!"]}',)
    ]
    context.database.close()


def test_scrub_keeps_a_handwritten_file_valid(world: World) -> None:
    store_secret(world)
    path = world.write(
        "global/fact/depot.md",
        f"---\n# {WORDS}\nsubject: Depot\ntags: [{WORDS}, gate]\n---\nIt is {WORDS}.\n",
    )
    world.environ |= RULE
    context = world.context()
    scrub(context, ScrubOptions())
    scrub(context, ScrubOptions())
    assert context.problems == []
    context.database.close()
    text = path.read_text(encoding="utf-8")
    assert WORDS not in text
    assert "subject: Depot" in text
    with world.open() as memory:
        assert memory.get("Depot").tags == ("[REDACTED:owner]", "gate")


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("NACRE_INGEST_EXCLUDE_TOOLS", ["claude-code"], "tool"),
        ("NACRE_INGEST_EXCLUDE_PROJECTS", ["acme-*"], "project"),
        ("NACRE_INGEST_EXCLUDE_PATHS", ["/code/acme*"], "path"),
        ("NACRE_INGEST_EXCLUDE_PATHS", ["/code"], "path"),
    ],
)
def test_excluded_session_is_counted_and_not_stored(
    world: World, setting: str, value: list[str], reason: str
) -> None:
    world.environ[setting] = json.dumps(value)
    world.transcript("one", says("user", "Always water the ficus on Mondays.", uuid="a"))
    with world.open() as memory:
        report = memory.ingest()
        assert report.excluded == {reason: 1}
        assert report.turns == 0
        assert memory.list() == []
    assert not list(Path(world.vault).glob("projects/*"))


def test_session_outside_excluded_paths_is_read(world: World) -> None:
    world.environ["NACRE_INGEST_EXCLUDE_PATHS"] = json.dumps(["/code/other", "*/clients"])
    world.transcript("one", says("user", "Always water the ficus on Mondays.", uuid="a"))
    world.transcript(
        "two", says("user", "Never tell.", uuid="b", session="5e55-0002", cwd="/code/clients/x")
    )
    with world.open() as memory:
        report = memory.ingest()
        assert report.turns == 1
        assert report.excluded == {"path": 1}


def test_private_text_is_not_learned(world: World) -> None:
    world.transcript(
        "one",
        says(
            "user",
            "Always run the linter before you commit. <private>Remember that my doctor is Meier.</private>",
            uuid="a",
        ),
    )
    with world.open() as memory:
        memory.ingest()
        words = " ".join(f"{item.subject} {item.content}" for item in memory.list())
        assert "doctor" not in words
        assert "linter" in words
