"""Claude Code, asked for proposals as a turn ends: its agent goes on, stores them, and is asked no more."""

from __future__ import annotations

import json

import pytest

from tests.fakes.conversation import Line, conversation
from tests.fakes.provider import FakeProvider
from tests.hosts.claude_code import ClaudeCode
from tests.hosts.programs import command, missing
from tests.hosts.stage import Stage

pytestmark = pytest.mark.hosts

RULE = "The mole is painted in the colours of the harbour, since pilots look for them."
SAID = f"From now on: {RULE}"
LINES = (
    Line("From now on", say="Noted."),
    Line("What next?", say="The crane."),
)
ASKED = "up to five things"


def test_agent_continues_once_and_its_prompt_is_not_the_owners(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    driver = ClaudeCode()
    if reason := missing(driver.name):
        pytest.skip(reason)
    with FakeProvider(conversation(LINES), models=("fake-model",)) as provider:
        stage = Stage(tmp_path_factory.mktemp("ask"), provider)
        try:
            stage.install(driver.program, command(driver.name))
            stage.nacre("config", "set", "context.proposals_after", "2")
            stage.nacre("init", "--host", driver.name, "--yes")
            first = driver.say(stage, SAID)
            before = len(provider.requests)
            driver.say(stage, "What next?", first.session)
            asked = [
                one for one in stage.asked(before) if ASKED in json.dumps(one.body["messages"][-1])
            ]
            before = len(provider.requests)
            driver.say(stage, "What next?", first.session)
            again = [
                one for one in stage.asked(before) if ASKED in json.dumps(one.body["messages"][-1])
            ]
            shown = stage.nacre("sessions", "show", f"claude-code:{first.session}", "--json").record
        finally:
            stage.close()
    assert (len(asked), len(again)) == (1, 0)
    turns = [item["turn"] for item in shown["turns"]]
    assert {turn["text"] for turn in turns if turn["speaker"] == "owner"} == {
        SAID,
        "What next?",
    }
    assert not [turn for turn in turns if ASKED in turn["text"]]
