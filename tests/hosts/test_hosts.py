"""Real hosts, run headlessly, receive nacre's context and can call its tools."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.hosts.claude_code import ClaudeCode
from tests.hosts.codex import Codex
from tests.hosts.driving import Driver
from tests.hosts.gemini_cli import GeminiCli
from tests.hosts.openclaw import OpenClaw
from tests.hosts.opencode import OpenCode
from tests.hosts.story import ASKS, DECIDED, INTENT, KNOWN, OWN_WORDS, PROMPTS, Story

pytestmark = pytest.mark.hosts

_HELD_UP_MS = 4000


class _Proofs:
    """The tests of every host. All tests of a class run in one process, which runs the story once."""

    driver: Driver

    def test_session_starts_with_project_memories(self, story: Story) -> None:
        first = story.scenes["first"]
        assert "Noted" in first.result.text
        assert "nacre-context" in first.bodies
        assert "retries five times" in first.bodies

    def test_agent_calls_a_nacre_tool_and_receives_its_answer(self, story: Story) -> None:
        lookup = story.scenes["lookup"]
        if story.stage.is_busy and len(lookup.requests) == 1:
            pytest.skip("the host did not wait for its servers, on a machine that others kept busy")
        assert lookup.result.text == "It retries five times."
        assert len(lookup.requests) >= 2, "the tool was not offered"
        answers = [json.dumps(request.body) for request in lookup.requests[1:]]
        assert any("tool" in answer and answer.count("retries five times") for answer in answers)

    def test_next_session_receives_decisions_of_the_first(self, story: Story) -> None:
        second = story.scenes["second"]
        assert second.result.session != story.scenes["first"].result.session
        assert "runs on NATS, not on RabbitMQ" in second.bodies

    def test_question_receives_a_pointer_to_the_turn_that_answers_it(self, story: Story) -> None:
        bodies = story.scenes["pointed"].bodies
        assert re.search(rf"{OWN_WORDS}\W+memory_get \w+#2, or: nacre sessions show \w+#2", bodies)

    def test_triggered_memory_is_shown_the_configured_number_of_times(self, story: Story) -> None:
        assert INTENT not in story.scenes["first"].bodies
        assert INTENT in story.scenes["second"].bodies
        assert INTENT not in story.scenes["hung"].bodies

    def test_only_typed_prompts_are_read_as_owner_turns(self, story: Story) -> None:
        turns = _turns(story, "first")
        owners = [turn["text"].strip('"') for turn in turns if turn["speaker"] == "owner"]
        assert [text for text in dict.fromkeys(owners) if text in (DECIDED, ASKS)] == [
            DECIDED,
            ASKS,
        ]
        assert not [text for text in owners if text not in PROMPTS and not text.startswith("/")]
        assert not [turn for turn in turns if "nacre-context" in turn["text"]]

    def test_transcripts_contain_no_unknown_records(self, story: Story) -> None:
        assert (story.read["unknown"], story.read["corrupt"], story.read["problems"]) == ({}, 0, [])

    def test_injected_context_is_not_learned_again(self, story: Story) -> None:
        memories = story.stage.nacre("list", "--json").record["memories"]
        assert [
            memory["content"] for memory in memories if "retries five times" in memory["content"]
        ] == [KNOWN]

    def test_hooks_run_at_the_expected_events(self, story: Story) -> None:
        first = {run["event"] for run in story.scenes["first"].hooks}
        events = {
            event
            for event in (story.driver.starts, story.driver.prompts, story.driver.ends)
            if event
        }
        assert events <= first
        assert story.driver.compacts in {run["event"] for run in story.scenes["compaction"].hooks}

    @pytest.mark.parametrize("trouble", ["hung", "down"])
    def test_hanging_or_missing_daemon_does_not_delay_the_host(
        self, story: Story, trouble: str
    ) -> None:
        scene = story.scenes[trouble]
        assert scene.result.text == "On NATS."
        assert not [run for run in scene.hooks if run["ms"] > _HELD_UP_MS]

    def test_host_works_normally_after_uninstall(self, story: Story) -> None:
        without = story.scenes["without"]
        assert without.result.text == "On NATS."
        assert not without.hooks
        assert "nacre" not in without.bodies

    def test_host_settings_are_restored_after_uninstall(self, story: Story) -> None:
        assert story.after == story.before

    def test_doctor_finds_a_complete_setup(self, story: Story) -> None:
        assert story.doctor is not None
        assert story.doctor.code == 0, story.doctor.out


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
    session = f"{story.driver.tool}:{story.scenes[scene].result.session}"
    record = story.stage.nacre("sessions", "show", session, "--json").record
    return [item["turn"] for item in record["turns"]]
