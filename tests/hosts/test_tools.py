"""Claude Code, whose agent runs a command: beside what that put out stands the rule that names it, once a session."""

from __future__ import annotations

import json

import pytest

from tests.fakes.conversation import Line, conversation
from tests.fakes.provider import FakeProvider, Request
from tests.hosts.claude_code import ClaudeCode
from tests.hosts.programs import command, missing
from tests.hosts.slack import hook_ms
from tests.hosts.stage import Stage

pytestmark = pytest.mark.hosts

RULE = "Name the tags of the harbour with `git tag --annotate`: pilots read their notes."
COMMAND = "git tag --list"
ASKS = "How many lamps are lit?"
LINES = (Line(ASKS, say="All of them.", tool="Bash$", arguments={"command": COMMAND, "description": "look"}),)


def test_the_agent_is_told_the_rule_with_what_its_command_put_out(tmp_path_factory: pytest.TempPathFactory) -> None:
    driver = ClaudeCode()
    if reason := missing(driver.name):
        pytest.skip(reason)
    with FakeProvider(conversation(LINES), models=("fake-model",)) as provider:
        stage = Stage(tmp_path_factory.mktemp("tools"), provider, hook_ms())
        try:
            stage.install(driver.program, command(driver.name))
            stage.nacre("store", RULE, "--kind", "preference")
            stage.nacre("config", "set", "context.budget_tokens", "0")  # else the session starts with it
            stage.nacre("init", "--host", driver.name, "--tool-hook", "--yes")
            first = driver.say(stage, ASKS)
            asked = stage.asked(0)
            before = len(provider.requests)
            driver.say(stage, ASKS, first.session)
            later = stage.asked(before)
            shown = stage.nacre("sessions", "show", f"claude-code:{first.session}", "--json").record
            runs = [run["event"] for run in stage.hook_runs()]
        finally:
            stage.close()
    assert first.text == "All of them."
    assert not [request for request in asked if RULE in told(request) and not is_answer(request)]
    (after,) = [request for request in asked if is_answer(request)]
    assert told(after).count(RULE) == 1
    assert RULE in json.dumps(after.body["messages"][-1]), "beside the answer"
    assert runs.count("PreToolUse") == 2
    assert max(told(request).count(RULE) for request in later) <= 1, "once a session; newer ones keep it when resumed"
    assert not [turn for turn in shown["turns"] if RULE in turn["text"]]


def told(request: Request) -> str:
    """All that the model was told."""
    return json.dumps(request.body["messages"], ensure_ascii=False)


def is_answer(request: Request) -> bool:
    """Whether it tells what a command put out."""
    return "tool_result" in json.dumps(request.body["messages"][-1])
