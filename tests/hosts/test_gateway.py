"""OpenClaw's gateway, driven: ends, resets and compactions are heard, and nobody but people is told anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.conftest import staged
from tests.hosts.gateway import Visit, visit
from tests.hosts.programs import missing
from tests.hosts.story import ASKS, COMES_BACK, DECIDED, FILLS

pytestmark = pytest.mark.hosts


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    if reason := missing("openclaw"):
        pytest.skip(reason)
    with staged("openclaw", tmp_path_factory) as stage:
        yield visit(stage)


def events(visited: Visit, scene: str) -> list[str]:
    return [run["event"] for run in visited.scenes[scene].hooks]


def test_a_session_behind_the_gateway_starts_with_what_is_known(visited: Visit) -> None:
    assert "retries five times" in visited.scenes["first"].bodies


@pytest.mark.parametrize("way", ["reset", "new"])
def test_a_reset_ends_the_session(visited: Visit, way: str) -> None:
    assert events(visited, way) == ["session-end"]


@pytest.mark.parametrize("scene", ["after", "again"])
def test_what_follows_a_reset_starts_anew(visited: Visit, scene: str) -> None:
    assert "session-start" in events(visited, scene)


def test_what_was_said_before_a_reset_is_handed_over(visited: Visit) -> None:
    told = visited.scenes["after"].bodies
    assert "Handed over from the last session" in told
    assert "runs on NATS, not on RabbitMQ" in told


def test_a_compaction_is_heard_before_it_happens(visited: Visit) -> None:
    assert "pre-compact" in events(visited, "compaction")


@pytest.mark.parametrize("scene", ["sub-agent", "job"])
def test_where_no_person_talks_nothing_is_told_and_nothing_handed_over(
    visited: Visit, scene: str
) -> None:
    assert visited.scenes[scene].requests
    assert "nacre-context" not in visited.scenes[scene].bodies
    assert events(visited, scene) == []


def test_the_end_of_the_gateway_ends_its_sessions(visited: Visit) -> None:
    assert {run["event"] for run in visited.ended} == {"session-end"}


def test_a_session_that_was_reset_twice_is_read_whole(visited: Visit) -> None:
    read = visited.stage.nacre("ingest", "--force", "--json").record
    assert (read["unknown"], read["corrupt"], read["problems"]) == ({}, 0, [])
    (listed,) = visited.stage.nacre("sessions", "list", "--json").record["lines"]
    session = listed["session"]["session"]
    reference = f"{session['tool']}:{session['native_id']}"
    shown = visited.stage.nacre("sessions", "show", reference, "--json").record
    turns = [item["turn"] for item in shown["turns"]]
    owners = [turn["text"] for turn in turns if turn["speaker"] == "owner"]
    assert owners == [DECIDED, COMES_BACK, ASKS, FILLS, COMES_BACK]
