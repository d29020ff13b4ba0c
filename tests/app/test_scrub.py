"""Scrubbing what was stored before a rule was known; sessions that are left out."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import numpy as np
import pytest

from nacre.data.forget import ScrubOptions
from nacre.data.scrub import scrub
from tests.app.conftest import World, says

WORDS = "zebra-4711-falcon"
RULE = {"NACRE_REDACTION_PATTERNS": json.dumps([WORDS])}


def fill(world: World) -> None:
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


def test_vectors_of_what_was_taken_out_go_and_new_ones_come(world: World) -> None:
    fill(world)
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
        found = memory.search_sessions("who opens the northern depot?", mode="vector")
        assert found.turns[0].excerpt.count("[REDACTED:owner]") == 1


def test_what_was_handed_over_is_scrubbed_and_still_waits(world: World) -> None:
    fill(world)
    with world.open() as memory:
        memory.hand_over(f"Try {WORDS} at the gate.", session="claude-code:5e55-0001")
    world.environ |= RULE
    scrub(world.context(), ScrubOptions())
    (made,) = world.context().handoffs.everything()
    assert made.content == "Try [REDACTED:owner] at the gate."


def test_an_interrupted_scrub_is_finished_by_the_next(world: World) -> None:
    fill(world)
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


def test_a_table_of_tomorrow_is_looked_through_too(world: World) -> None:
    fill(world)
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


def test_a_file_that_a_person_wrote_stays_valid_and_loses_its_secret(world: World) -> None:
    fill(world)
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
    ("setting", "value", "why"),
    [
        ("NACRE_INGEST_EXCLUDE_TOOLS", ["claude-code"], "tool"),
        ("NACRE_INGEST_EXCLUDE_PROJECTS", ["acme-*"], "project"),
        ("NACRE_INGEST_EXCLUDE_PATHS", ["/code/acme*"], "path"),
        ("NACRE_INGEST_EXCLUDE_PATHS", ["/code"], "path"),
    ],
)
def test_what_is_excluded_is_counted_and_leaves_nothing(
    world: World, setting: str, value: list[str], why: str
) -> None:
    world.environ[setting] = json.dumps(value)
    world.transcript("one", says("user", "Always water the ficus on Mondays.", uuid="a"))
    with world.open() as memory:
        report = memory.ingest()
        assert report.excluded == {why: 1}
        assert report.turns == 0
        assert memory.list() == []
    assert not list(Path(world.vault).glob("projects/*"))


def test_a_session_elsewhere_is_read_all_the_same(world: World) -> None:
    world.environ["NACRE_INGEST_EXCLUDE_PATHS"] = json.dumps(["/code/other", "*/clients"])
    world.transcript("one", says("user", "Always water the ficus on Mondays.", uuid="a"))
    world.transcript(
        "two", says("user", "Never tell.", uuid="b", session="5e55-0002", cwd="/code/clients/x")
    )
    with world.open() as memory:
        report = memory.ingest()
        assert report.turns == 1
        assert report.excluded == {"path": 1}


def test_nothing_is_learned_from_what_is_private(world: World) -> None:
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
        words = " ".join(f"{found.subject} {found.content}" for found in memory.list())
        assert "doctor" not in words
        assert "linter" in words
