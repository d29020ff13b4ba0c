"""The real hosts, driven headlessly: nacre's wiring is taken, its context arrives, its tools answer, nothing loops."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.hosts.story import ASKS, DECIDED, KNOWN, Story

pytestmark = pytest.mark.hosts
_MILLISECONDS = 150
_HELD_UP_SECONDS = 5.0
_MOST_MILLISECONDS = 1000
"""For a hook that a busy machine kept waiting: the host and the tests of another share its processors."""


def test_a_session_starts_with_what_is_known_of_the_project(story: Story) -> None:
    first = story.scenes["first"]
    assert "Noted" in first.said.text
    assert "nacre-context" in first.bodies
    assert "retries five times" in first.bodies


def test_the_agent_calls_nacres_tool_and_gets_its_answer(story: Story) -> None:
    lookup = story.scenes["lookup"]
    assert lookup.said.text == "It retries five times."
    assert len(lookup.requests) >= 2, "the tool was not offered"
    answers = [json.dumps(request.body) for request in lookup.requests[1:]]
    assert any("tool" in answer and answer.count("retries five times") for answer in answers)


def test_the_next_session_knows_what_the_first_decided(story: Story) -> None:
    second = story.scenes["second"]
    assert second.said.session != story.scenes["first"].said.session
    assert "runs on NATS, not on RabbitMQ" in second.bodies


def test_what_the_owner_typed_is_read_and_nothing_that_was_injected(story: Story) -> None:
    turns = _turns(story, "first")
    owners = [turn["text"].strip('"') for turn in turns if turn["speaker"] == "owner"]
    assert [text for text in owners if text in (DECIDED, ASKS)] == [DECIDED, ASKS]
    assert not [turn for turn in turns if "nacre-context" in turn["text"]]
    assert not [text for text in owners if "retries five times" in text]


def test_nothing_that_nacre_told_is_learned_again(story: Story) -> None:
    memories = story.stage.nacre("list", "--json").record["memories"]
    assert [memory["content"] for memory in memories if "retries five times" in memory["content"]] == [KNOWN]


def test_its_hooks_run_when_they_should(story: Story) -> None:
    first = {run["event"] for run in story.scenes["first"].hooks}
    wanted = {event for event in (story.driver.starts, story.driver.prompts, story.driver.ends) if event}
    assert wanted <= first
    assert story.driver.compacts in {run["event"] for run in story.scenes["compaction"].hooks}


def test_its_hooks_are_quick(story: Story) -> None:
    took = sorted(run["ms"] for scene in story.scenes.values() for run in scene.hooks)
    assert took[len(took) // 2] <= _MILLISECONDS
    assert took[-1] <= _MOST_MILLISECONDS


@pytest.mark.parametrize("trouble", ["hung", "down"])
def test_a_daemon_that_hangs_or_is_away_holds_nobody_up(story: Story, trouble: str) -> None:
    scene = story.scenes[trouble]
    assert scene.said.text == "On NATS."
    assert scene.said.seconds < story.scenes["without"].said.seconds + _HELD_UP_SECONDS


def test_it_is_as_before_once_nacre_is_taken_out(story: Story) -> None:
    without = story.scenes["without"]
    assert without.said.text == "On NATS."
    assert not without.hooks
    assert "nacre" not in without.bodies


def test_the_doctor_finds_the_wiring_whole(story: Story) -> None:
    assert story.doctor is not None
    assert story.doctor.code == 0, story.doctor.out


def _turns(story: Story, scene: str) -> list[dict[str, Any]]:
    session = f"{story.driver.tool}:{story.scenes[scene].said.session}"
    turns: list[dict[str, Any]] = story.stage.nacre("sessions", "show", session, "--json").record["turns"]
    return turns
