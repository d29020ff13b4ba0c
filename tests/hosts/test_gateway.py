"""Hooks run at the ends, resets and compactions of OpenClaw's gateway, and only people get
context."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.conftest import staged
from tests.hosts.gateway import Visit, visit
from tests.hosts.programs import missing
from tests.hosts.story import ASKS, COMES_BACK, DECIDED, FILLS

pytestmark = pytest.mark.hosts


@pytest.fixture(scope="module")
def gateway_visit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    if reason := missing("openclaw"):
        pytest.skip(reason)
    with staged("openclaw", tmp_path_factory) as stage:
        yield visit(stage)


def events(gateway_visit: Visit, scene: str) -> list[str]:
    return [run["event"] for run in gateway_visit.scenes[scene].hooks]


def test_gateway_session_starts_with_context(gateway_visit: Visit) -> None:
    assert "retries five times" in gateway_visit.scenes["first"].bodies


@pytest.mark.parametrize("way", ["reset", "new"])
def test_reset_ends_the_session(gateway_visit: Visit, way: str) -> None:
    assert events(gateway_visit, way) == ["session-end"]


@pytest.mark.parametrize("scene", ["after", "again"])
def test_session_after_a_reset_starts_again(gateway_visit: Visit, scene: str) -> None:
    assert "session-start" in events(gateway_visit, scene)


def test_conversation_before_a_reset_is_handed_over(gateway_visit: Visit) -> None:
    prompt = gateway_visit.scenes["after"].bodies
    assert "Handed over from the last session" in prompt
    assert "runs on NATS, not on RabbitMQ" in prompt


def test_compaction_event_precedes_the_compaction(gateway_visit: Visit) -> None:
    assert "pre-compact" in events(gateway_visit, "compaction")


@pytest.mark.parametrize("scene", ["sub-agent", "job"])
def test_session_without_a_person_receives_and_hands_over_nothing(
    gateway_visit: Visit, scene: str
) -> None:
    assert gateway_visit.scenes[scene].requests
    assert "nacre-context" not in gateway_visit.scenes[scene].bodies
    assert events(gateway_visit, scene) == []


def test_gateway_exit_ends_its_sessions(gateway_visit: Visit) -> None:
    assert {run["event"] for run in gateway_visit.ended} == {"session-end"}


def test_session_reset_twice_is_read_completely(gateway_visit: Visit) -> None:
    report = gateway_visit.stage.nacre("ingest", "--force", "--json").record
    assert (report["unknown"], report["corrupt"], report["problems"]) == ({}, 0, [])
    (line,) = gateway_visit.stage.nacre("sessions", "list", "--json").record["lines"]
    session = line["session"]["session"]
    reference = f"{session['tool']}:{session['native_id']}"
    record = gateway_visit.stage.nacre("sessions", "show", reference, "--json").record
    turns = [item["turn"] for item in record["turns"]]
    owners = [turn["text"] for turn in turns if turn["speaker"] == "owner"]
    assert owners == [DECIDED, COMES_BACK, ASKS, FILLS, COMES_BACK]
