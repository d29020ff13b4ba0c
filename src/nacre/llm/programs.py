"""Language models that run through the command-line programs of coding agents."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from nacre.base.environment import OWN_CALL_VARIABLE, of_the_owner, user_home
from nacre.base.plain import Values, mapping, objects, string, total
from nacre.base.text import shorten
from nacre.llm import failures
from nacre.llm.api import anthropic_tokens, schema_text, strict
from nacre.llm.credentials import COMMANDS
from nacre.llm.failures import CallTarget
from nacre.values.models import OWN_CALL, OWN_CONVERSATION, Capabilities, Completion, Prompt, Tokens

INSTRUCTIONS = "You answer the question of a program, with JSON and nothing else."
"""System prompt that replaces the agent's own, which has thousands of tokens."""

_KILL_TIMEOUT_SECONDS = 5.0
"""Maximum time to wait for a killed process, in seconds."""

_ENTRYPOINT = "CLAUDE_CODE_ENTRYPOINT"


class CommandModel:
    """A language model that is called through an agent's command.

    The command runs in an empty folder, with nacre's hooks switched off. Each question begins with
    a mark, so that nacre does not learn from its own calls.

    Subclasses define three methods: ``invoke`` returns arguments and additional environment
    variables. ``read`` returns the answer in the output; ``failed`` is the end of a failed
    command's error output. ``complaint`` returns the error that a command was still retrying at the
    timeout. Raises ModelRefusedError if the program is not on PATH.
    """

    has_tools = False

    def __init__(
        self, target: CallTarget, capabilities: Capabilities, environ: Mapping[str, str]
    ) -> None:
        self.name = target.name
        self.capabilities = capabilities
        program = COMMANDS[target.provider.api]
        path = shutil.which(program, path=environ.get("PATH"))
        if path is None:
            raise failures.no_program(target, program)
        self._target = target
        self._path = path
        self._owner_environ = environ
        self._environ = {
            name: value for name, value in of_the_owner(environ).items() if name != _ENTRYPOINT
        }
        self._environ[OWN_CALL_VARIABLE] = "1"
        self._model = ["--model", target.model] if target.model not in ("", "default") else []
        self._running: set[subprocess.Popen[bytes]] = set()
        self._is_closed = False

    def invoke(self, prompt: Prompt, folder: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        raise NotImplementedError

    def read(self, text: str, failed: str) -> Completion:
        raise NotImplementedError

    def complaint(self, output: str) -> str:  # noqa: ARG002 - for commands that retry
        return ""

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises ModelUnavailableError or ModelRefusedError if that fails."""
        form = schema_text(prompt) if self.capabilities.answers == "text" else ""
        head = (OWN_CALL, prompt.system, form) if prompt.answer else (OWN_CONVERSATION,)
        text = "\n\n".join(part for part in (*head, prompt.shared, prompt.text) if part)
        with tempfile.TemporaryDirectory(
            prefix="nacre-call-", ignore_cleanup_errors=True
        ) as temporary:
            folder = Path(temporary)
            (folder / "empty").mkdir()
            where = (self.has_tools and prompt.tools and prompt.folder) or folder / "empty"
            output = self._run(*self.invoke(prompt, folder), where, text, prompt.timeout_seconds)
        return self.read(*output)

    def close(self) -> None:
        self._is_closed = True
        for process in list(self._running):
            _kill(process)

    def _run(
        self,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        folder: Path,
        text: str,
        seconds: float,
    ) -> tuple[str, str]:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = subprocess.Popen(
                    [self._path, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=out,
                    stderr=err,
                    cwd=folder,
                    env={**self._environ, **environ},
                    start_new_session=True,
                )
            except OSError as error:
                raise failures.broken(self._target) from error
            self._running.add(process)  # first: close() must find it
            try:
                if not self._is_closed:
                    process.communicate(text.encode(errors="replace"), seconds)
            except subprocess.TimeoutExpired:
                complaint = self.complaint(f"{_written(out)}\n{_written(err)}")
                if complaint:
                    raise failures.program_failed(self._target, complaint) from None
                raise failures.late(self._target, seconds) from None
            finally:
                _kill(process)  # also ends its child processes
                self._running.discard(process)
            if self._is_closed:
                raise failures.cut_off(self._target)
            if process.returncode < 0:
                raise failures.ended(self._target)
            complaint = _written(out)
            failed = (_written(err).strip() or complaint.strip())[-2_000:] or "no output"
            return complaint, failed if process.returncode else ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with suppress(subprocess.TimeoutExpired):  # a killed process might still wait for the disk
        process.wait(_KILL_TIMEOUT_SECONDS)


def instructions(prompt: Prompt) -> str:
    """Return the system prompt for an agent's command."""
    return INSTRUCTIONS if prompt.answer else prompt.system or "You answer in plain text."


def _instructions_file(prompt: Prompt, folder: Path) -> str:
    """Write the system prompt to a file, because process lists would show an argument."""
    path = folder / "instructions.md"
    path.write_text(instructions(prompt), encoding="utf-8")
    return str(path)


def events_in(text: str) -> Iterator[Values]:
    """Yield the JSON objects in a command's output, skipping other lines."""
    for line in text.splitlines():
        with suppress(msgspec.DecodeError, RecursionError):
            yield mapping(msgspec.json.decode(line))


def link(theirs: Path, names: Iterable[str], ours: Path) -> None:
    """Create the folder ``ours`` with links to files in ``theirs``.

    A command that renews its sign-in there thus changes the original file.
    """
    ours.mkdir(parents=True)
    for name in names:
        if (theirs / name).is_file():
            with suppress(OSError):  # Windows might forbid links; then the command is not signed in
                (ours / name).symlink_to(theirs / name)


def _sum(records: Iterable[Values], *names: str) -> int:
    return sum(total(record, *names) for record in records)


def _written(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")


# -- Claude Code: ``claude -p`` --------------------------------------------------------------------
# It runs without settings, servers and a stored session, and without tools unless the prompt allows some.


_FLAGS = ("-p", "--setting-sources", "", "--strict-mcp-config", "--no-session-persistence")
_SETTINGS = {
    "enabledPlugins": {"agents-md@builtin": False}
}  # it would leave a file in the user's home
_READS_NOTHING = {"permissions": {"deny": ["Read(//**)"]}}
_TOOL = re.compile(r"([A-Z]\w*)(\(.+\))?")
_WRITE = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_IN_FOLDER = frozenset({"Read", "Grep", "Glob", "LS", "NotebookRead"}) | _WRITE
"""Tools that Claude Code allows without asking, but only in its folder."""
_ENVIRON = {
    "CLAUDE_CODE_MAX_RETRIES": "0",  # at a limit, it would retry silently for minutes
    "MAX_THINKING_TOKENS": "0",  # as in the API: nothing else limits thinking; models from 5.5 think nevertheless
    "ENABLE_TOOL_SEARCH": "false",  # it would offer a tool that searches for tools
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",  # it would read each @/file named in a text, even without tools
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",  # it would create a folder in the user's home for each call
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}


_STEP_CHARACTERS = 160


class ClaudeModel(CommandModel):
    """A model called through the command ``claude``."""

    has_tools = True

    def invoke(self, prompt: Prompt, folder: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        if prompt.answer:
            schema = json.dumps(strict(prompt.answer))
            form = ["json", "--system-prompt", INSTRUCTIONS, "--json-schema", schema]
        else:
            form = ["stream-json", "--verbose", "--system-prompt-file"]
            form.append(_instructions_file(prompt, folder))
        tools = _tools(prompt, self._target)
        return [*_FLAGS, "--output-format", *form, *tools, *self._model], _ENVIRON

    def read(self, text: str, failed: str) -> Completion:
        *_, result = [{}, *events_in((text.strip().splitlines() or [""])[-1])]
        if not result:
            raise (
                failures.program_failed(self._target, failed)
                if failed
                else failures.no_answer(self._target, text)
            )
        if result.get("is_error") or failed:
            message = string(result, "result", "subtype") or failed
            raise failures.program_failed(self._target, message, total(result, "api_error_status"))
        structured, cost = result.get("structured_output"), result.get("total_cost_usd")
        used = (
            block
            for event in events_in(text)
            if event.get("type") == "assistant"
            for block in objects(mapping(event, "message"), "content")
            if block.get("type") == "tool_use"
        )
        steps = [
            shorten(
                f"{block.get('name')}: {next(iter(mapping(block, 'input').values()), '')}",
                _STEP_CHARACTERS,
            )
            for block in used
        ]
        return Completion(
            string(result, "result") or "" if structured is None else json.dumps(structured),
            anthropic_tokens(mapping(result, "usage")),
            next(iter(mapping(result, "modelUsage")), self._target.model),
            more={
                "id": string(result, "session_id") or "",
                "steps": tuple(steps),
                **({} if cost is None else {"cost_usd": cost}),
            },
        )


def _tools(prompt: Prompt, target: CallTarget) -> list[str]:
    """Return the arguments that allow tools. File tools can access only the command's folder,
    unless a rule such as ``Read(//srv/docs/**)`` allows another.
    """
    if not prompt.tools:
        return ["--tools", "", "--settings", json.dumps({**_SETTINGS, **_READS_NOTHING})]
    matches = [_TOOL.fullmatch(tool) for tool in prompt.tools]
    names = [tool[1] for tool in matches if tool]
    if len(names) < len(matches):
        raise failures.no_such_tool(
            target, prompt.tools, "Read, Grep, Glob, Edit, Write, Bash, or Bash(git log:*)"
        )
    free = [tool[0] for tool in matches if tool and (tool[2] or tool[1] not in _IN_FOLDER)]
    return [
        "--tools",
        ",".join(names),
        "--permission-mode",
        "acceptEdits" if _WRITE & set(names) else "default",
        *(["--allowedTools", *free] if free else []),
        "--settings",
        json.dumps(_SETTINGS),
    ]


# -- Codex: ``codex exec`` -------------------------------------------------------------------------
# It runs in a read-only sandbox unless the prompt allows writing, with a temporary home and no stored session.


_FLAGS_CODEX_CLI = (
    "exec",
    "--json",
    "--skip-git-repo-check",
    "--ephemeral",
    "--ignore-user-config",
    "--ignore-rules",
)
_CONFIG = (
    'web_search="disabled"',
    "agents.enabled=false",
    "project_doc_max_bytes=0",
    "skills.include_instructions=false",
    "include_collaboration_mode_instructions=false",
    "analytics.enabled=false",
    *(
        f"features.{name}=false"
        for name in (
            "view_image",
            "multi_agent",
            "goals",
            "sleep_tool",
            "image_generation",
            "tool_suggest",
            "apps",
            "plugins",
            "hooks",
            "unbounded_connection_retries",
        )
    ),
)
"""Settings that remove information about this machine from the prompt, and disable additional tools and servers.

Codex ignores unknown settings.
"""

_WITHOUT_TOOLS = (
    "features.shell_tool=false",
    "include_permissions_instructions=false",
    "include_environment_context=false",
)
_WITH_TOOLS = (
    'shell_environment_policy.inherit="core"',
    f'shell_environment_policy.set={{{OWN_CALL_VARIABLE}="1"}}',
    "sandbox_workspace_write.exclude_tmpdir_env_var=true",
    "sandbox_workspace_write.exclude_slash_tmp=true",
)
"""Settings that hide keys in the environment from the shell, and set the variable that marks nacre's calls."""
_SHELL, _MAY_WRITE = "shell", "write"

_SIGN_IN, _INSTALLATION = "auth.json", "installation_id"
_KEYS = ("CODEX_API_KEY", "CODEX_ACCESS_TOKEN")


class CodexModel(CommandModel):
    """A model called through the command ``codex``."""

    has_tools = True

    def invoke(self, prompt: Prompt, folder: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        if not set(prompt.tools) <= {_SHELL, _MAY_WRITE}:
            raise failures.no_such_tool(self._target, prompt.tools, f"{_SHELL}, {_MAY_WRITE}")
        config = (
            *_CONFIG,
            f"model_instructions_file={json.dumps(_instructions_file(prompt, folder))}",
            *(_WITH_TOOLS if prompt.tools else _WITHOUT_TOOLS),
        )
        options = [part for option in config for part in ("--config", option)]
        sandbox = "workspace-write" if _MAY_WRITE in prompt.tools else "read-only"
        arguments = [*_FLAGS_CODEX_CLI, "--sandbox", sandbox, *options]
        if prompt.answer:
            schema = folder / "answer.json"
            schema.write_text(json.dumps(strict(prompt.answer)), encoding="utf-8")
            arguments += ["--output-schema", str(schema)]
        return [*arguments, *self._model, "-"], _home_of_its_own(folder, self._owner_environ)

    def complaint(self, output: str) -> str:
        """Return the last error message in the output, or an empty string."""
        errors = [
            event for event in events_in(output) if event.get("type") in ("turn.failed", "error")
        ]
        last = errors[-1] if errors else {}
        return string(mapping(last, "error"), "message") or string(last, "message") or ""

    def read(self, text: str, failed: str) -> Completion:
        events = list(events_in(text))
        problem = self.complaint(text)
        answers = [
            string(item, "text") or ""
            for item in (mapping(event, "item") for event in events)
            if item.get("type") == "agent_message"
        ]
        if failed or (problem and not answers):
            raise failures.program_failed(self._target, problem or failed)
        if not answers:
            raise failures.no_answer(self._target, text)
        usage = next(filter(None, (mapping(event, "usage") for event in reversed(events))), {})
        cached = total(usage, "cached_input_tokens")
        tokens = Tokens(
            max(0, total(usage, "input_tokens") - cached), total(usage, "output_tokens"), cached
        )
        thread = next(filter(None, (string(event, "thread_id") for event in events)), "")
        ended = (
            mapping(event, "item") for event in events if event.get("type") == "item.completed"
        )
        steps = tuple(filter(None, map(_step, ended)))
        return Completion(
            answers[-1], tokens, self._target.model, more={"id": thread, "steps": steps}
        )


def _home_of_its_own(folder: Path, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables for a temporary Codex home.

    In the user's home, Codex would read AGENTS.md and write files with each call.
    """
    theirs = Path(environ.get("CODEX_HOME") or Path(user_home(environ)) / ".codex")
    if not ((theirs / _SIGN_IN).is_file() or any(environ.get(key) for key in _KEYS)):
        return {}
    ours = folder / "home"
    link(theirs, (_SIGN_IN, _INSTALLATION), ours)
    is_whole = (ours / _SIGN_IN).exists() or not (theirs / _SIGN_IN).is_file()
    return {"CODEX_HOME": str(ours)} if is_whole else {}


def _step(item: Values) -> str:
    changed = ", ".join(string(change, "path") or "" for change in objects(item, "changes"))
    return shorten(
        string(item, "command") or (f"changed {changed}" if changed else ""), _STEP_CHARACTERS
    )


# -- Gemini CLI: ``gemini`` ------------------------------------------------------------------------
# It runs without tools, in a temporary home that is deleted with its session.


_FLAGS_GEMINI_CLI = (
    "--output-format",
    "json",
    "--approval-mode",
    "default",
    "--extensions",
    "none",
    "--allowed-mcp-server-names",
    "none",
)
_SETTINGS_GEMINI_CLI = {
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": 1},
    "tools": {"core": ["none"]},
    "skills": {"enabled": False},
    "hooksConfig": {"enabled": False},
    "experimental": {"enableAgents": False},
    "context": {"fileName": "none"},
    "ide": {"enabled": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}
_SIGN_IN_GEMINI_CLI = (
    "oauth_creds.json",
    "google_accounts.json",
    "gemini-credentials.json",
    "installation_id",
    ".env",
)
_ERROR = re.compile(r'\{\s*"session_id".*"error".*\}\s*\Z', re.DOTALL)
_STATUS = re.compile(r"\bstatus: (\d{3})\b")


class GeminiModel(CommandModel):
    """A model called through the command ``gemini``."""

    def invoke(self, prompt: Prompt, folder: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        environ = self._owner_environ
        theirs = Path(environ.get("GEMINI_CLI_HOME") or user_home(environ)) / ".gemini"
        ours = folder / "home" / ".gemini"
        link(theirs, _SIGN_IN_GEMINI_CLI, ours)
        settings = {
            **_SETTINGS_GEMINI_CLI,
            "security": {"folderTrust": {"enabled": False}, **_way_to_sign_in(theirs)},
        }
        (ours / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        return [*_FLAGS_GEMINI_CLI, *self._model], {
            "GEMINI_CLI_HOME": str(ours.parent),
            "GEMINI_SYSTEM_MD": _instructions_file(prompt, folder),
            "GEMINI_CLI_NO_RELAUNCH": "true",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }

    def complaint(self, output: str) -> str:
        return "".join(f"status {status}" for status in _STATUS.findall(output)[-1:])

    def read(self, text: str, failed: str) -> Completion:
        error_match = _ERROR.search(failed)
        result = _decoded((error_match[0] if error_match else text.strip()).encode())
        problem = mapping(result, "error")
        if problem or failed:
            code = total(problem, "code")
            raise failures.program_failed(
                self._target, string(problem, "message") or failed, code if code >= 400 else 0
            )
        if not result:
            raise failures.no_answer(self._target, text)
        models = mapping(result, "stats", "models")
        used = [mapping(model, "tokens") for model in models.values()]
        tokens = Tokens(
            _sum(used, "input"), _sum(used, "candidates", "thoughts"), _sum(used, "cached")
        )
        answer = string(result, "response") or ""
        return Completion(answer, tokens, next(iter(models), self._target.model))


def _way_to_sign_in(theirs: Path) -> Mapping[str, object]:
    with suppress(OSError):
        settings = _decoded((theirs / "settings.json").read_bytes())
        chosen = string(mapping(settings, "security", "auth"), "selectedType")
        return {"auth": {"selectedType": chosen}} if chosen else {}
    return {}


def _decoded(data: bytes) -> Values:
    with suppress(msgspec.DecodeError, RecursionError):
        return mapping(msgspec.json.decode(data))
    return {}


# -- OpenCode: ``opencode run`` --------------------------------------------------------------------
# It runs an agent without tools, in a temporary home that is deleted with its session.


_FLAGS_OPENCODE_CLI = (
    "run",
    "--pure",
    "--format",
    "json",
    "--print-logs",
    "--log-level",
    "ERROR",
    "--agent",
    "nacre",
    "--title",
    "nacre",
)
_AGENT = {"mode": "primary", "tools": {"*": False}, "permission": {"*": "deny"}}
_REFERENCE = re.compile(r"\{(?=(?:file|env):)")
_ENVIRON_OPENCODE_CLI = {
    **{
        f"OPENCODE_DISABLE_{name}": "1"
        for name in (
            "PROJECT_CONFIG",
            "AUTOUPDATE",
            "MODELS_FETCH",
            "LSP_DOWNLOAD",
            "DEFAULT_PLUGINS",
            "CLAUDE_CODE",
            "EXTERNAL_SKILLS",
        )
    },
    "OPENCODE_CONFIG": "",
    "OPENCODE_CONFIG_DIR": "",
    "npm_config_fetch_retries": "0",  # it waits until the plugins' requirements are installed
}
_ERROR_OPENCODE_CLI = re.compile(r'\berror="((?:[^"\\]|\\.)*)"')
"""Pattern for errors in the log of OpenCode, which retries for minutes, without an option to prevent it."""

_FOLDERS = ("CONFIG", "DATA", "STATE", "CACHE")


class OpenCodeModel(CommandModel):
    """A model called through the command ``opencode``."""

    def invoke(self, prompt: Prompt, folder: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        environ = self._owner_environ
        data = Path(environ.get("XDG_DATA_HOME") or Path(user_home(environ)) / ".local" / "share")
        link(data / "opencode", ("auth.json",), folder / "data" / "opencode")
        home = str(folder / "home")
        return [*_FLAGS_OPENCODE_CLI, *self._model], {
            **_ENVIRON_OPENCODE_CLI,
            **{f"XDG_{name}_HOME": str(folder / name.lower()) for name in _FOLDERS},
            "HOME": home,
            "USERPROFILE": home,
            "OPENCODE_CONFIG_CONTENT": _config(prompt),
        }

    def complaint(self, output: str) -> str:
        return "".join(_ERROR_OPENCODE_CLI.findall(output)[-1:])

    def read(self, text: str, failed: str) -> Completion:
        events = list(events_in(text))
        problem = next((event["error"] for event in reversed(events) if event.get("error")), None)
        if problem or failed:
            data = mapping(problem, "data")
            words = string(data, "message") or string(problem, "name") or failed
            raise failures.program_failed(self._target, words, total(data, "statusCode"))
        parts = [mapping(event, "part") for event in events]
        answer = "".join(
            str(part.get("text", ""))
            for event, part in zip(events, parts, strict=True)
            if event.get("type") == "text"
        )
        if not answer:
            raise failures.no_answer(self._target, text)
        used = [mapping(part, "tokens") for part in parts]
        caches = [mapping(counts, "cache") for counts in used]
        tokens = Tokens(
            _sum(used, "input"),
            _sum(used, "output", "reasoning"),
            _sum(caches, "read"),
            _sum(caches, "write"),
        )
        session = string(events[0], "sessionID") or ""
        return Completion(answer, tokens, self._target.model, more={"id": session})


def _config(prompt: Prompt) -> str:
    """Return the configuration.

    References such as ``{file:…}`` are broken up, because the command would expand them.
    """
    text = _REFERENCE.sub("{ ", instructions(prompt))
    agents = {"nacre": {**_AGENT, "prompt": text}, "title": {"disable": True}}
    return json.dumps({"autoupdate": False, "share": "disabled", "agent": agents})
