"""After a command, the agent sees the rule that mentions it next to its output, once per session."""

from __future__ import annotations

import json

import pytest

from tests.fakes.conversation import Line, asked_of, conversation
from tests.fakes.provider import FakeProvider, Request
from tests.hosts.claude_code import ClaudeCode
from tests.hosts.codex import Codex
from tests.hosts.driving import Driver
from tests.hosts.programs import command, missing
from tests.hosts.stage import Stage

pytestmark = pytest.mark.hosts

RULE = "Name the tags of the harbour with `git tag --annotate`: pilots read their notes."
COMMAND = "git tag --list"
ASKS = "How many lamps are lit?"


@pytest.mark.parametrize(
    ("driver", "shell", "arguments"),
    [
        pytest.param(
            ClaudeCode(), "Bash$", {"command": COMMAND, "description": "look"}, id="Claude Code"
        ),
        pytest.param(
            Codex(),
            "exec_command$|shell_command$",
            {"cmd": COMMAND, "command": COMMAND},
            id="Codex",
        ),
    ],
)
def test_agent_receives_the_rule_with_its_command_output(
    driver: Driver, shell: str, arguments: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    if reason := missing(driver.name):
        pytest.skip(reason)
    lines = (Line(ASKS, say="All of them.", tool=shell, arguments=arguments),)
    with FakeProvider(conversation(lines), models=("fake-model",)) as provider:
        stage = Stage(tmp_path_factory.mktemp("tools"), provider)
        try:
            stage.install(driver.program, command(driver.name))
            driver.set_up(stage)
            stage.nacre("store", RULE, "--kind", "preference")
            stage.nacre(
                "config", "set", "context.budget_tokens", "0"
            )  # otherwise the rule would be in the context of the session's start
            stage.nacre("init", "--host", driver.name, "--tool-hook", "--yes", *driver.options)
            first = driver.say(stage, ASKS)
            requests = stage.model_requests(0)
            before = len(provider.requests)
            driver.say(stage, ASKS, first.session)
            later = stage.model_requests(before)
            session = stage.nacre(
                "sessions", "show", f"{driver.tool}:{first.session}", "--json"
            ).record
            runs = [run["event"] for run in stage.hook_runs()]
        finally:
            stage.close()
    assert first.text == "All of them."
    assert not [
        request
        for request in requests
        if RULE in request_text(request) and not asked_of(request).is_answer
    ]
    (after,) = [request for request in requests if asked_of(request).is_answer]
    assert request_text(after).count(RULE) == 1
    assert runs.count("PreToolUse") == 2
    assert max(request_text(request).count(RULE) for request in later) <= 1, (
        "shown once a session; not all hosts keep it when resumed"
    )
    assert not [item for item in session["turns"] if RULE in item["turn"]["text"]]


def request_text(request: Request) -> str:
    """The bodies of all requests to the model."""
    return json.dumps(request.body.get("messages") or request.body.get("input"), ensure_ascii=False)
