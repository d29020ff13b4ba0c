"""The Python API accepts plain values, explains invalid ones and sees manual edits."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from nacre.api import MemoryHome
from nacre.errors import InvalidInputError, InvalidQueryError, NacreError, NotFoundError
from nacre.values.memory import Expiry, Kind, Scope
from nacre.values.recall import Filter
from tests.app.conftest import World, says


@pytest.mark.parametrize(
    ("arguments", "choice"),
    [({"kind": "nope"}, "decision"), ({"expiry": "nope"}, "core"), ({"scope": "nope"}, "public")],
)
def test_invalid_value_is_refused_with_the_valid_choices(
    world: World, arguments: dict[str, Any], choice: str
) -> None:
    with world.open() as memory:
        outcome = memory.store("We deploy on Fridays.")
        for call in (
            lambda: memory.store("Other words.", **arguments),
            lambda: memory.edit(outcome.memory_id, **arguments),
        ):
            with pytest.raises(InvalidInputError, match="nope") as error:
                call()
            assert choice in str(error.value.hint)


def test_unknown_mode_is_refused_with_the_valid_modes(world: World) -> None:
    with world.open() as memory:
        for call in (memory.recall, memory.search_sessions):
            with pytest.raises(InvalidInputError, match="nope") as error:
                call("x", mode="nope")
            assert "browse" in str(error.value.hint)


def test_edit_accepts_plain_values(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("We deploy on Fridays.", project="acme")
        edited = memory.edit(
            outcome.memory_id,
            subject=" Deploys ",
            content="We deploy on Mondays.",
            kind="decision",
            importance=9,
            expiry="core",
            scope="public",
            project=None,
            tags=["release", "release"],
        )
        assert memory.get(outcome.memory_id) == edited
    assert (edited.subject, edited.content, edited.kind) == (
        "Deploys",
        "We deploy on Mondays.",
        Kind.DECISION,
    )
    assert (edited.importance, edited.expiry, edited.scope) == (9, Expiry.CORE, Scope.PUBLIC)
    assert (edited.project, edited.tags) == (None, ("release",))


@pytest.mark.parametrize(
    "changes",
    [
        {"foo": 1},
        {"id": "zz"},
        {"superseded_by": "x"},
        {"subject": " "},
        {"content": ""},
        {"importance": "9"},
        {"importance": True},
        {"importance": 11},
        {"tags": "billing"},
    ],
)
def test_invalid_edit_is_refused_without_changes(world: World, changes: dict[str, Any]) -> None:
    with world.open() as memory:
        outcome = memory.store("We deploy on Fridays.")
        before = memory.get(outcome.memory_id)
        with pytest.raises(InvalidInputError):
            memory.edit(outcome.memory_id, **changes)
        assert memory.get(outcome.memory_id) == before


def test_times_without_a_zone_are_utc(world: World) -> None:
    since, until = datetime(2026, 11, 20), datetime(2026, 11, 21)  # noqa: DTZ001 - callers may omit the zone
    period = Filter(since=since, until=until)

    def count(memory: MemoryHome) -> tuple[int, int, int]:
        return (
            len(memory.recall("deploy fridays", around=since, update=False).hits),
            len(memory.recall("deploy fridays", filter=period, update=False).hits),
            len(memory.list(filter=period)),
        )

    with world.open() as memory:
        memory.store("We deploy on Fridays.")
        memory.search_sessions("deploy", around=since, filter=period)
        assert count(memory) == (1, 1, 1)


def test_get_returns_the_manually_edited_content(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("We deploy on Fridays.", subject="Deploys")
        file = world.memory_file(outcome.memory_id)
        file.write_text(
            file.read_text(encoding="utf-8").replace("Fridays", "Mondays"), encoding="utf-8"
        )
        assert memory.get("Deploys").content == "We deploy on Mondays."


def test_extract_shows_candidates_and_stores_nothing(world: World) -> None:
    rule = "Never push to the main branch of the harbour service before I have read it."
    path = world.transcript("one", says("user", rule, uuid="one-0"))
    with world.open() as memory:
        (proposal,) = memory.call("extract", path=str(path), model="none")
        assert [candidate.content for candidate in proposal.candidates] == [rule]
        assert proposal.asked is None
        assert memory.list() == []
        memory.ingest(extract=False)
        (second,) = memory.call("extract", session=proposal.session.id, model="none")
        assert second.candidates == proposal.candidates


def test_invalid_extract_arguments_are_refused(world: World) -> None:
    with world.open() as memory:
        with pytest.raises(InvalidQueryError, match="no transcript or session is given"):
            memory.call("extract")
        with pytest.raises(NotFoundError):
            memory.call("extract", session="nowhere")
        with pytest.raises(NacreError):
            memory.call("extract", path=world.user_home / "nothing.jsonl")


def test_python_api_flushes_a_session_and_stores_its_handoff(world: World) -> None:
    rule = "From now on the ferry bell is rung twice before it leaves, never once."
    world.transcript(
        "s1",
        says("user", rule, uuid="u1", session="s1", at="2026-11-20T11:50:00Z", cwd="/code/ferry"),
    )
    with world.open() as memory:
        flushed = memory.flush("claude-code:s1")
        assert len(flushed.memories) == 1
        assert memory.handoff("/code/ferry").handoff is None
        outcome = memory.handoff(
            store=True,
            words="The bell is mounted; the rope is missing.",
            session="claude-code:s1",
        )
        assert (outcome.project, outcome.waits, outcome.is_new) == ("ferry", True, True)
        assert memory.handoff("/code/ferry").handoff == outcome.handoff
        block = memory.context(folder="/code/ferry", session="claude-code:s2")
        assert "the rope is missing" in block.text
        with pytest.raises(NotFoundError):
            memory.handoff("/code/nowhere", store=True)


def test_signals_reach_a_listening_session_from_python(world: World) -> None:
    with world.open() as memory:
        for expected in (0, 1, 0):
            block = memory.context(moment="prompt", session="claude-code:s2", parts=["signals"])
            assert len(block.items) == expected
            memory.context_told("claude-code:s2", block)
            if not expected:
                memory.store("The north pier is closed until the crane is gone.", importance=9)
            world.clock.now += timedelta(seconds=31)
