"""The real hosts, driven headlessly: nacre's wiring is taken, its context arrives, its tools answer, nothing loops."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.hosts.claude_code import ClaudeCode
from tests.hosts.codex import Codex
from tests.hosts.driving import Driver
from tests.hosts.gemini_cli import GeminiCli
from tests.hosts.openclaw import OpenClaw
from tests.hosts.opencode import OpenCode
from tests.hosts.programs import CHOSEN
from tests.hosts.story import ASKS, DECIDED, KNOWN, PROMPTS, Story

pytestmark = pytest.mark.hosts

_HELD_UP_MS = 4000


class _Proofs:
    """What is seen of every host; all of one class stay in one process, so that its story is played once."""

    driver: Driver

    def test_a_session_starts_with_what_is_known_of_the_project(self, story: Story) -> None:
        first = story.scenes["first"]
        assert "Noted" in first.said.text
        assert "nacre-context" in first.bodies
        assert "retries five times" in first.bodies

    def test_the_agent_calls_nacres_tool_and_gets_its_answer(self, story: Story) -> None:
        lookup = story.scenes["lookup"]
        if story.stage.is_busy and len(lookup.requests) == 1:
            pytest.skip("the host did not wait for its servers, on a machine that others kept busy")
        assert lookup.said.text == "It retries five times."
        assert len(lookup.requests) >= 2, "the tool was not offered"
        answers = [json.dumps(request.body) for request in lookup.requests[1:]]
        assert any("tool" in answer and answer.count("retries five times") for answer in answers)

    def test_the_next_session_knows_what_the_first_decided(self, story: Story) -> None:
        second = story.scenes["second"]
        assert second.said.session != story.scenes["first"].said.session
        assert "runs on NATS, not on RabbitMQ" in second.bodies

    def test_what_the_owner_typed_is_read_and_nothing_that_was_injected(self, story: Story) -> None:
        turns = _turns(story, "first")
        owners = [turn["text"].strip('"') for turn in turns if turn["speaker"] == "owner"]
        assert [text for text in dict.fromkeys(owners) if text in (DECIDED, ASKS)] == [
            DECIDED,
            ASKS,
        ]
        assert not [text for text in owners if text not in PROMPTS and not text.startswith("/")]
        assert not [turn for turn in turns if "nacre-context" in turn["text"]]

    def test_no_record_of_its_transcripts_is_unknown(self, story: Story) -> None:
        assert (story.read["unknown"], story.read["corrupt"], story.read["problems"]) == ({}, 0, [])

    def test_nothing_that_nacre_told_is_learned_again(self, story: Story) -> None:
        memories = story.stage.nacre("list", "--json").record["memories"]
        assert [
            memory["content"] for memory in memories if "retries five times" in memory["content"]
        ] == [KNOWN]

    def test_its_hooks_run_when_they_should(self, story: Story) -> None:
        first = {run["event"] for run in story.scenes["first"].hooks}
        wanted = {
            event
            for event in (story.driver.starts, story.driver.prompts, story.driver.ends)
            if event
        }
        assert wanted <= first
        assert story.driver.compacts in {run["event"] for run in story.scenes["compaction"].hooks}

    @pytest.mark.parametrize("trouble", ["hung", "down"])
    def test_a_daemon_that_hangs_or_is_away_holds_nobody_up(
        self, story: Story, trouble: str
    ) -> None:
        scene = story.scenes[trouble]
        assert scene.said.text == "On NATS."
        assert not [run for run in scene.hooks if run["ms"] > _HELD_UP_MS]

    def test_it_is_as_before_once_nacre_is_taken_out(self, story: Story) -> None:
        without = story.scenes["without"]
        assert without.said.text == "On NATS."
        assert not without.hooks
        assert "nacre" not in without.bodies

    def test_its_settings_are_as_before_once_nacre_is_taken_out(self, story: Story) -> None:
        assert story.after == story.before

    def test_the_doctor_finds_the_wiring_whole(self, story: Story) -> None:
        assert story.doctor is not None
        assert story.doctor.code == 0, story.doctor.out

    def test_the_doctor_tells_its_version(self, story: Story) -> None:
        assert story.doctor is not None
        (version,) = set(CHOSEN.installed(story.driver.name).values())
        assert f"{version} is installed; tested: " in story.doctor.out


class TestOpenClaw(_Proofs):
    driver = OpenClaw()


class TestOpenCode(_Proofs):
    driver = OpenCode()


class TestGeminiCli(_Proofs):
    driver = GeminiCli()


class TestClaudeCode(_Proofs):
    driver = ClaudeCode()


class TestCodex(_Proofs):
    driver = Codex()


def _turns(story: Story, scene: str) -> list[dict[str, Any]]:
    session = f"{story.driver.tool}:{story.scenes[scene].said.session}"
    shown = story.stage.nacre("sessions", "show", session, "--json").record
    return [item["turn"] for item in shown["turns"]]
