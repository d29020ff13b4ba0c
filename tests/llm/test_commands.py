"""Agents' own commands as models: they follow a schema, have no tools, and are never learned from."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from nacre.errors import ModelRefusedError, ModelUnavailableError, NacreError
from nacre.llm.providers import open_model
from nacre.protocols import LanguageModel
from nacre.settings import load_settings
from tests.llm.conftest import PROMPT

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stub commands are shell scripts")

NOTES = "import json, os, sys, time\nfrom pathlib import Path\n"
CLAUDE = """
given = sys.stdin.read()
Path(os.environ["NOTES"]).write_text(json.dumps({
    "arguments": sys.argv[1:], "given": given, "folder": os.getcwd(), "held": os.listdir(),
    "marked": os.environ.get("NACRE_OWN_CALL"), "inside": os.environ.get("CLAUDECODE"),
    "thinking": os.environ.get("MAX_THINKING_TOKENS"), "tries": os.environ.get("CLAUDE_CODE_MAX_RETRIES"),
    "keeps": os.environ.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY"), "searches": os.environ.get("ENABLE_TOOL_SEARCH"),
    "attaches": os.environ.get("CLAUDE_CODE_DISABLE_ATTACHMENTS"),
}))
print(json.dumps({
    "type": "result", "subtype": "success", "is_error": False, "result": "", "session_id": "5e55-1",
    "structured_output": {"word": "hull"}, "total_cost_usd": 0.01, "modelUsage": {"claude-sonnet-4-6": {}},
    "usage": {"input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 2},
}))
"""
CODEX = """
given = sys.stdin.read()
schema = sys.argv[sys.argv.index("--output-schema") + 1]
Path(os.environ["NOTES"]).write_text(json.dumps({
    "arguments": sys.argv[1:], "given": given, "schema": json.loads(Path(schema).read_text()),
    "folder": os.getcwd(), "held": os.listdir(), "marked": os.environ.get("NACRE_OWN_CALL"),
    "home": os.environ.get("CODEX_HOME"), "thread": os.environ.get("CODEX_THREAD_ID"),
    "kept": {one.name: str(one.resolve()) for one in Path(os.environ.get("CODEX_HOME", "none")).glob("*")},
}))
print("Reading prompt from stdin...", file=sys.stderr)
for event in [
    {"type": "thread.started", "thread_id": "01a1-1"}, {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "i0", "type": "error", "message": "a mere warning"}},
    {"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": json.dumps({"word": "hull"})}},
    {"type": "turn.completed", "usage": {"input_tokens": 20, "cached_input_tokens": 8, "output_tokens": 4}},
]:
    print(json.dumps(event))
"""

GEMINI = """
given = sys.stdin.read()
home = Path(os.environ["GEMINI_CLI_HOME"]) / ".gemini"
Path(os.environ["NOTES"]).write_text(json.dumps({
    "arguments": sys.argv[1:], "given": given, "held": os.listdir(),
    "kept": {one.name: str(one.resolve()) for one in home.glob("*") if one.is_symlink()},
    "settings": json.loads((home / "settings.json").read_text()),
}))
used = {"input": 9, "candidates": 3, "cached": 4, "thoughts": 1}
print(json.dumps({"session_id": "s", "response": '{"word": "hull"}', "stats": {"models": {"g-2": {"tokens": used}}}}))
"""
OPENCODE = """
given = sys.stdin.read()
data = Path(os.environ["XDG_DATA_HOME"]) / "opencode"
Path(os.environ["NOTES"]).write_text(json.dumps({
    "arguments": sys.argv[1:], "given": given, "held": os.listdir(), "home": os.environ["HOME"],
    "kept": {one.name: str(one.resolve()) for one in data.glob("*")},
    "config": json.loads(os.environ["OPENCODE_CONFIG_CONTENT"]),
}))
print(json.dumps({"type": "text", "sessionID": "s", "part": {"text": '{"word": "hull"}'}}))
used = {"input": 9, "output": 3, "reasoning": 1, "cache": {"read": 4, "write": 2}}
print(json.dumps({"type": "step_finish", "sessionID": "s", "part": {"tokens": used}}))
"""

Installed = Callable[[str, str], LanguageModel]
"""Installs a program and opens its model, which retries without delay."""


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    """Put a command on the PATH and open the model of that name."""

    def install(program: str, body: str, model: str = "default") -> LanguageModel:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        script = folder / program
        script.write_text(f"#!{sys.executable}\n{NOTES}{body}", encoding="utf-8")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        environ = {
            "PATH": f"{folder}:/usr/bin:/bin",
            "NOTES": str(tmp_path / "notes"),
            "HOME": str(tmp_path),
        }
        inside = {"CLAUDECODE": "1", "CODEX_THREAD_ID": "01a1-0"}
        return open_model(load_settings(tmp_path, {**environ, **inside}), f"{program}-cli:{model}")

    return install


def notes(folder: Path) -> Any:
    return json.loads((folder / "notes").read_text())


def test_claude_answers_without_tools_settings_servers_or_a_session(
    installed: Installed, tmp_path: Path
) -> None:
    completion = installed("claude", CLAUDE, "sonnet").complete(PROMPT)
    assert json.loads(completion.text) == {"word": "hull"}
    assert (completion.tokens.input, completion.tokens.cached, completion.tokens.written) == (
        10,
        7,
        2,
    )
    assert completion.model == "claude-sonnet-4-6"
    assert completion.more["cost_usd"] == 0.01
    call = notes(tmp_path)
    pairs = dict(zip(call["arguments"], call["arguments"][1:], strict=False))
    assert pairs["--tools"] == ""
    assert pairs["--setting-sources"] == ""
    assert pairs["--model"] == "sonnet"
    assert json.loads(pairs["--json-schema"])["required"] == ["word"]
    assert {"-p", "--strict-mcp-config", "--no-session-persistence"} <= set(call["arguments"])
    assert PROMPT.text in call["given"]
    assert PROMPT.text not in " ".join(call["arguments"])
    assert call["held"] == []
    assert not Path(call["folder"]).exists()
    assert call["inside"] is None


def test_claude_runs_without_plugins_thinking_or_retries(
    installed: Installed, tmp_path: Path
) -> None:
    installed("claude", CLAUDE).complete(PROMPT)
    call = notes(tmp_path)
    assert "--system-prompt" in call["arguments"]
    assert (call["thinking"], call["tries"], call["keeps"], call["searches"]) == (
        "0",
        "0",
        "1",
        "false",
    )
    pairs = dict(zip(call["arguments"], call["arguments"][1:], strict=False))
    settings = json.loads(pairs["--settings"])
    assert settings["enabledPlugins"] == {"agents-md@builtin": False}
    assert settings["permissions"] == {"deny": ["Read(//**)"]}
    assert call["attaches"] == "1"


def test_codex_answers_in_a_sandbox_and_without_a_session(
    installed: Installed, tmp_path: Path
) -> None:
    completion = installed("codex", CODEX, "gpt-5.2-codex").complete(PROMPT)
    assert json.loads(completion.text) == {"word": "hull"}
    assert (completion.tokens.input, completion.tokens.cached, completion.tokens.output) == (
        12,
        8,
        4,
    )
    call = notes(tmp_path)
    assert call["arguments"][0] == "exec"
    assert {"--json", "--ephemeral", "read-only", "--ignore-user-config", "gpt-5.2-codex"} <= set(
        call["arguments"]
    )
    assert "features.shell_tool=false" in call["arguments"]
    assert call["arguments"][-1] == "-"
    assert call["schema"]["properties"] == {"word": {"type": "string"}}
    assert PROMPT.text in call["given"]
    assert (call["held"], call["thread"]) == ([], None)


def test_codex_home_contains_only_the_login(installed: Installed, tmp_path: Path) -> None:
    theirs = tmp_path / ".codex"
    theirs.mkdir()
    (theirs / "auth.json").write_text("{}")
    (theirs / "AGENTS.md").write_text("Talk like a pirate.")
    installed("codex", CODEX).complete(PROMPT)
    call = notes(tmp_path)
    assert call["kept"] == {"auth.json": str(theirs / "auth.json")}
    assert not Path(call["home"]).exists()
    assert (theirs / "auth.json").exists()


def test_codex_keeps_the_owners_home_without_a_login_file(
    installed: Installed, tmp_path: Path
) -> None:
    installed("codex", CODEX).complete(PROMPT)
    assert notes(tmp_path)["home"] is None


def test_gemini_runs_without_tools_in_a_separate_home(installed: Installed, tmp_path: Path) -> None:
    theirs = tmp_path / ".gemini"
    theirs.mkdir()
    (theirs / "GEMINI.md").write_text("Talk like a pirate.")
    (theirs / "oauth_creds.json").write_text("{}")
    own = {
        "security": {"auth": {"selectedType": "oauth-personal"}},
        "mcpServers": {"trap": {"command": "false"}},
    }
    (theirs / "settings.json").write_text(json.dumps(own))
    completion = installed("gemini", GEMINI, "flash").complete(PROMPT)
    assert json.loads(completion.text) == {"word": "hull"}
    assert (completion.tokens.input, completion.tokens.cached, completion.tokens.output) == (
        9,
        4,
        4,
    )
    call = notes(tmp_path)
    assert call["kept"] == {"oauth_creds.json": str(theirs / "oauth_creds.json")}
    assert call["settings"]["security"]["auth"] == {"selectedType": "oauth-personal"}
    assert "mcpServers" not in call["settings"]
    pairs = dict(zip(call["arguments"], call["arguments"][1:], strict=False))
    assert (pairs["--extensions"], pairs["--allowed-mcp-server-names"], pairs["--model"]) == (
        "none",
        "none",
        "flash",
    )
    assert PROMPT.text in call["given"]
    assert '"required": ["word"]' in call["given"]
    assert call["held"] == []


def test_opencode_runs_without_tools_in_a_separate_home(
    installed: Installed, tmp_path: Path
) -> None:
    theirs = tmp_path / ".local" / "share" / "opencode"
    theirs.mkdir(parents=True)
    (theirs / "auth.json").write_text("{}")
    (theirs / "opencode.db").write_text("")
    completion = installed("opencode", OPENCODE, "openai/gpt-5-nano").complete(PROMPT)
    assert json.loads(completion.text) == {"word": "hull"}
    used = completion.tokens
    assert (used.input, used.output, used.cached, used.written) == (9, 4, 4, 2)
    call = notes(tmp_path)
    assert call["kept"] == {"auth.json": str(theirs / "auth.json")}
    assert call["home"] != str(tmp_path)
    assert call["config"]["agent"]["nacre"]["tools"] == {"*": False}
    pairs = dict(zip(call["arguments"], call["arguments"][1:], strict=False))
    assert (pairs["--agent"], pairs["--model"]) == ("nacre", "openai/gpt-5-nano")
    assert '"required": ["word"]' in call["given"]
    assert call["held"] == []


def test_command_retrying_at_the_timeout_reports_its_reason(installed: Installed) -> None:
    event = "print(json.dumps({'type': 'error', 'message': 'Reconnecting: 429 Too Many Requests'}), flush=True)\n"
    with pytest.raises(ModelUnavailableError, match="has reached a limit"):
        installed("codex", f"{event}time.sleep(60)").complete(replace(PROMPT, timeout_seconds=2))


def test_lone_surrogate_in_a_prompt_does_not_fail_the_call(installed: Installed) -> None:
    prompt = replace(PROMPT, text="Which part\ud83d?")
    assert json.loads(installed("claude", CLAUDE).complete(prompt).text) == {"word": "hull"}


@pytest.mark.parametrize(("program", "body"), [("claude", CLAUDE), ("codex", CODEX)])
def test_nacre_inside_its_own_model_call_does_nothing(
    installed: Installed, tmp_path: Path, program: str, body: str
) -> None:
    installed(program, body).complete(PROMPT)
    assert notes(tmp_path)["marked"] == "1"
    home = tmp_path / "inner"
    environ = {**os.environ, "NACRE_OWN_CALL": "1", "NACRE_HOME": str(home)}
    result = subprocess.run(
        [sys.executable, "-m", "nacre", "store", "The hull is red", "--json"],
        env=environ,
        capture_output=True,
        check=True,
    )
    assert result.stdout == b""
    assert not home.exists()


@pytest.mark.parametrize(
    ("program", "body", "kind", "message"),
    [
        (
            "claude",
            "print(json.dumps({'is_error': True, 'result': 'run /login'}))",
            ModelRefusedError,
            "not signed in",
        ),
        (
            "claude",
            "sys.exit('Invalid API key · Please run /login')",
            ModelRefusedError,
            "not signed in",
        ),
        (
            "claude",
            "print(json.dumps({'is_error': True, 'result': 'usage limit'}))",
            ModelUnavailableError,
            "has reached a limit",
        ),
        (
            "claude",
            "print(json.dumps({'is_error': True, 'api_error_status': 429, 'result': 'Number of requests'}))",
            ModelUnavailableError,
            "has reached a limit",
        ),
        (
            "claude",
            "print(json.dumps({'is_error': True, 'result': 'You have hit your session limit · resets 3pm'}))",
            ModelUnavailableError,
            "has reached a limit",
        ),
        (
            "claude",
            "print(json.dumps({'is_error': True, 'result': 'You\\'re out of usage credits.'}))",
            ModelUnavailableError,
            "has reached a limit",
        ),
        (
            "claude",
            "print(json.dumps({'is_error': True, 'result': 'API Error: Unable to connect to API'}))",
            ModelUnavailableError,
            "cannot connect",
        ),
        ("claude", "print('<html>hello')", ModelUnavailableError, "cannot be read"),
        ("claude", 'print(\'{"result": "ha\')', ModelUnavailableError, "cannot be read"),
        ("claude", "sys.exit(3)", ModelUnavailableError, "failed for"),
        (
            "codex",
            "print(json.dumps({'type': 'turn.failed', 'error': {'message': 'model is not supported'}}))",
            ModelRefusedError,
            "no answer from",
        ),
        (
            "codex",
            "sys.exit('Not logged in: 401 Unauthorized')",
            ModelRefusedError,
            "not signed in",
        ),
        ("codex", "pass", ModelUnavailableError, "cannot be read"),
        (
            "gemini",
            "sys.exit(json.dumps({'session_id': 's', 'error': {'message': 'quota', 'code': 429}}))",
            ModelUnavailableError,
            "has reached a limit",
        ),
        ("gemini", "sys.exit(41)", ModelUnavailableError, "failed for"),
        (
            "opencode",
            "print(json.dumps({'type': 'error', 'error': {'data': {'message': 'no', 'statusCode': 401}}}))",
            ModelRefusedError,
            "not signed in",
        ),
        ("opencode", "pass", ModelUnavailableError, "cannot be read"),
    ],
)
def test_failing_command_is_a_single_line_with_a_remedy(
    installed: Installed, program: str, body: str, kind: type[NacreError], message: str
) -> None:
    with pytest.raises(kind, match=message) as raised:
        installed(program, body).complete(PROMPT)
    assert f"{program}-cli:default" in raised.value.message
    assert raised.value.hint
    if message in ("cannot connect", "has reached a limit"):
        assert not raised.value.may_cost


def test_missing_command_is_reported(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    with pytest.raises(ModelRefusedError, match="'claude', which is not installed"):
        open_model(load_settings(tmp_path, environ), "claude-cli:sonnet")


def test_hanging_command_is_killed_with_its_child_processes(
    installed: Installed, tmp_path: Path
) -> None:
    child = "import subprocess\nsleeper = subprocess.Popen(['sleep', '60'])\n"
    body = f"{child}Path(os.environ['NOTES']).write_text(json.dumps([os.getpid(), sleeper.pid]))\ntime.sleep(60)\n"
    with pytest.raises(ModelUnavailableError, match="within"):
        installed("claude", body).complete(replace(PROMPT, timeout_seconds=3))
    deadline = time.monotonic() + 10
    while any(_runs(number) for number in notes(tmp_path)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_command_is_cancelled_immediately(installed: Installed, tmp_path: Path) -> None:
    model = installed("claude", 'Path(os.environ["NOTES"]).write_text("1")\ntime.sleep(60)\n')
    ended: list[NacreError] = []

    def ask() -> None:
        try:
            model.complete(PROMPT)
        except NacreError as error:
            ended.append(error)

    waiting = Thread(target=ask)
    waiting.start()
    while not (tmp_path / "notes").exists():
        time.sleep(0.01)
    model.close()
    waiting.join(5)
    assert [error.message for error in ended] == ["the call to claude-cli:default was cut off"]


def _runs(number: int) -> bool:
    """Return True if a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
