"""Prompts without a schema are answered in plain text, with tools if they are allowed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nacre.errors import ModelRefusedError, ModelUnavailableError
from nacre.values.models import OWN_CALL, OWN_CONVERSATION, Prompt
from nacre.values.session import Task
from tests.fakes.provider import FakeProvider, Reply
from tests.llm.conftest import Open
from tests.llm.test_commands import Installed, installed, notes

__all__ = ["installed"]

CHAT_PROMPT = Prompt(Task.CHAT, "You know boats.", "What is red on the boat?", {})
ANSWER = "The hull is red, and so is the sail that hangs to dry beside it since Friday."
APIS = ["anthropic", "openai", "chat"]

CLAUDE = f"""
given = sys.stdin.read()
told = sys.argv[sys.argv.index("--system-prompt-file") + 1]
Path(os.environ["NOTES"]).write_text(json.dumps({{
    "arguments": sys.argv[1:], "given": given, "told": Path(told).read_text(), "folder": os.getcwd(),
}}))
used = {{"type": "tool_use", "name": "Read", "input": {{"file_path": "plan.txt"}}}}
print(json.dumps({{"type": "assistant", "message": {{"content": [used]}}}}))
print(json.dumps({{"type": "result", "result": {ANSWER!r}, "usage": {{"input_tokens": 9, "output_tokens": 3}}}}))
"""
CODEX = f"""
given = sys.stdin.read()
told = next(one.partition("=")[2] for one in sys.argv if one.startswith("model_instructions_file="))
Path(os.environ["NOTES"]).write_text(json.dumps({{
    "arguments": sys.argv[1:], "given": given, "told": Path(json.loads(told)).read_text(), "folder": os.getcwd(),
}}))
print(json.dumps({{"type": "item.completed", "item": {{"type": "command_execution", "command": "cat plan.txt"}}}}))
print(json.dumps({{"type": "item.completed", "item": {{"type": "agent_message", "text": {ANSWER!r}}}}}))
"""
GEMINI = f"""
given = sys.stdin.read()
told = Path(os.environ["GEMINI_SYSTEM_MD"]).read_text()
Path(os.environ["NOTES"]).write_text(json.dumps({{"arguments": sys.argv[1:], "given": given, "told": told}}))
print(json.dumps({{"response": {ANSWER!r}}}))
"""
OPENCODE = f"""
given = sys.stdin.read()
told = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])["agent"]["nacre"]["prompt"]
Path(os.environ["NOTES"]).write_text(json.dumps({{"arguments": sys.argv[1:], "given": given, "told": told}}))
print(json.dumps({{"type": "text", "part": {{"text": {ANSWER!r}}}}}))
"""
COMMANDS = [("claude", CLAUDE), ("codex", CODEX), ("gemini", GEMINI), ("opencode", OPENCODE)]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("answers", ["schema", "json", "text"])
def test_plain_text_request_omits_schema_options(
    open_fake_model: Open, api: str, answers: str
) -> None:
    able = f'[models.capabilities.m]\nanswers = "{answers}"\n'
    with FakeProvider([ANSWER]) as provider:
        completion = open_fake_model("fake:m", provider.config(api) + able).complete(CHAT_PROMPT)
        [request] = provider.calls
    assert completion.text == ANSWER
    assert not {"response_format", "text", "output_config", "tools", "tool_choice"} & set(
        request.body
    )
    assert "JSON" not in json.dumps(request.body)


@pytest.mark.parametrize("api", APIS)
def test_failed_plain_text_call_is_retried(open_fake_model: Open, api: str) -> None:
    with FakeProvider([Reply(status=429, headers={"retry-after": "0"}), ANSWER]) as provider:
        assert open_fake_model("fake:m", provider.config(api)).complete(CHAT_PROMPT).text == ANSWER
        assert len(provider.calls) == 2


@pytest.mark.parametrize("api", APIS)
def test_html_page_is_not_an_answer(open_fake_model: Open, api: str) -> None:
    with (
        FakeProvider([Reply(fault="html")]) as provider,
        pytest.raises(ModelUnavailableError, match="web page"),
    ):
        open_fake_model("fake:m", provider.config(api)).complete(CHAT_PROMPT)


@pytest.mark.parametrize("api", APIS)
def test_answer_cut_by_token_limit_is_marked(open_fake_model: Open, api: str) -> None:
    with FakeProvider([Reply(ANSWER, is_cut=True)]) as provider:
        assert open_fake_model("fake:m", provider.config(api)).complete(CHAT_PROMPT).is_cut


def test_prompt_timeout_overrides_the_configured_timeout(open_fake_model: Open) -> None:
    with FakeProvider([Reply(fault="hang")]) as provider:
        model = open_fake_model("fake:m", provider.config(more="timeout_seconds = 100.0\n"))
        with pytest.raises(ModelUnavailableError, match="within 1 seconds"):
            model.complete(replace(CHAT_PROMPT, timeout_seconds=1.0))
    with FakeProvider([Reply(fault="drip")]) as provider:
        model = open_fake_model("fake:m", provider.config(more="timeout_seconds = 1.0\n"))
        with pytest.raises(ModelUnavailableError, match="within 3 seconds"):
            model.complete(replace(CHAT_PROMPT, timeout_seconds=3.0))


@pytest.mark.parametrize(("program", "body"), COMMANDS)
def test_command_gets_system_prompt_separately_and_input_on_stdin(
    installed: Installed, tmp_path: Path, program: str, body: str
) -> None:
    completion = installed(program, body).complete(CHAT_PROMPT)
    assert completion.text == ANSWER
    call = notes(tmp_path)
    assert call["told"] == CHAT_PROMPT.system
    assert call["given"] == f"{OWN_CONVERSATION}\n\n{CHAT_PROMPT.text}"
    assert OWN_CONVERSATION.partition("]")[0] == OWN_CALL.partition("]")[0]
    arguments = " ".join(call["arguments"])
    assert CHAT_PROMPT.system not in arguments
    assert "schema" not in arguments


def test_claude_uses_only_allowed_tools_in_the_folder(installed: Installed, tmp_path: Path) -> None:
    tools = ("Read", "Edit", "Bash(git log:*)", "WebSearch", "Read(//srv/docs/**)")
    model = installed("claude", CLAUDE)
    completion = model.complete(replace(CHAT_PROMPT, tools=tools, folder=tmp_path))
    call = notes(tmp_path)
    pairs = dict(zip(call["arguments"], call["arguments"][1:], strict=False))
    assert pairs["--tools"] == "Read,Edit,Bash,WebSearch,Read"
    assert pairs["--permission-mode"] == "acceptEdits"
    at = call["arguments"].index("--allowedTools")
    assert call["arguments"][at + 1 : at + 4] == [
        "Bash(git log:*)",
        "WebSearch",
        "Read(//srv/docs/**)",
    ]
    assert call["folder"] == str(tmp_path)
    assert "--include-partial-messages" not in call["arguments"]
    assert completion.more["steps"] == ("Read: plan.txt",)


@pytest.mark.parametrize(
    "tool", ["default", "mcp__trap__do", "--dangerously-skip-permissions", "Read Bash", ""]
)
def test_unknown_claude_tool_is_refused(installed: Installed, tmp_path: Path, tool: str) -> None:
    with pytest.raises(ModelRefusedError, match="has no tools named"):
        installed("claude", CLAUDE).complete(replace(CHAT_PROMPT, tools=(tool,), folder=tmp_path))
    assert not (tmp_path / "notes").exists()


@pytest.mark.parametrize(
    ("tools", "sandbox"), [(("shell",), "read-only"), (("shell", "write"), "workspace-write")]
)
def test_codex_runs_commands_in_a_sandbox_in_the_folder(
    installed: Installed, tmp_path: Path, tools: tuple[str, ...], sandbox: str
) -> None:
    completion = installed("codex", CODEX).complete(
        replace(CHAT_PROMPT, tools=tools, folder=tmp_path)
    )
    call = notes(tmp_path)
    pairs = dict(zip(call["arguments"], call["arguments"][1:], strict=False))
    assert pairs["--sandbox"] == sandbox
    assert "features.shell_tool=false" not in call["arguments"]
    assert 'shell_environment_policy.inherit="core"' in call["arguments"]
    assert call["folder"] == str(tmp_path)
    assert completion.more["steps"] == ("cat plan.txt",)


def test_unknown_codex_tool_is_refused(installed: Installed, tmp_path: Path) -> None:
    with pytest.raises(ModelRefusedError, match="has no tools named danger"):
        installed("codex", CODEX).complete(replace(CHAT_PROMPT, tools=("danger",), folder=tmp_path))


def test_opencode_expands_no_files_in_its_system_prompt(
    installed: Installed, tmp_path: Path
) -> None:
    system = "You know {file:/etc/passwd} and {env:HOME} and {boats}."
    installed("opencode", OPENCODE).complete(replace(CHAT_PROMPT, system=system))
    assert notes(tmp_path)["told"] == "You know { file:/etc/passwd} and { env:HOME} and {boats}."
