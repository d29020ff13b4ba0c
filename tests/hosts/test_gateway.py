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


def test_gateway_session_starts_with_context(visited: Visit) -> None:
    assert "retries five times" in visited.scenes["first"].bodies


@pytest.mark.parametrize("way", ["reset", "new"])
def test_reset_ends_the_session(visited: Visit, way: str) -> None:
    assert events(visited, way) == ["session-end"]


@pytest.mark.parametrize("scene", ["after", "again"])
def test_session_after_a_reset_starts_again(visited: Visit, scene: str) -> None:
    assert "session-start" in events(visited, scene)


def test_conversation_before_a_reset_is_handed_over(visited: Visit) -> None:
    told = visited.scenes["after"].bodies
    assert "Handed over from the last session" in told
    assert "runs on NATS, not on RabbitMQ" in told


def test_compaction_event_precedes_the_compaction(visited: Visit) -> None:
    assert "pre-compact" in events(visited, "compaction")


@pytest.mark.parametrize("scene", ["sub-agent", "job"])
def test_session_without_a_person_receives_and_hands_over_nothing(
    visited: Visit, scene: str
) -> None:
    assert visited.scenes[scene].requests
    assert "nacre-context" not in visited.scenes[scene].bodies
    assert events(visited, scene) == []


def test_gateway_exit_ends_its_sessions(visited: Visit) -> None:
    assert {run["event"] for run in visited.ended} == {"session-end"}


def test_session_reset_twice_is_read_completely(visited: Visit) -> None:
    read = visited.stage.nacre("ingest", "--force", "--json").record
    assert (read["unknown"], read["corrupt"], read["problems"]) == ({}, 0, [])
    (listed,) = visited.stage.nacre("sessions", "list", "--json").record["lines"]
    session = listed["session"]["session"]
    reference = f"{session['tool']}:{session['native_id']}"
    shown = visited.stage.nacre("sessions", "show", reference, "--json").record
    turns = [item["turn"] for item in shown["turns"]]
    owners = [turn["text"] for turn in turns if turn["speaker"] == "owner"]
    assert owners == [DECIDED, COMES_BACK, ASKS, FILLS, COMES_BACK]
