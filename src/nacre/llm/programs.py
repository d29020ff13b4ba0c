"""Coding agents' own commands as models: each question goes to standard input, and the answer to standard output."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import IO, Any, TypeVar

import msgspec

from nacre.base import json as json_values
from nacre.base.environment import OWN_CALL_VARIABLE, of_the_owner, user_home
from nacre.base.frozen import frozen
from nacre.base.text import shorten
from nacre.llm import failures
from nacre.llm.api import strict, told
from nacre.llm.failures import Calls, CallTarget, TruncatedAnswerError
from nacre.values.models import OWN_CALL, OWN_CONVERSATION, Capabilities, Completion, Prompt, Tokens

E = TypeVar("E")

INSTRUCTIONS = "You answer the question of a program, with JSON and nothing else."
"""Replaces the command's system prompt as a coding agent, which costs thousands of tokens per call."""

_POLL_SECONDS = 0.05
"""The interval between reads of a running command's output."""

_KILL_TIMEOUT_SECONDS = 5.0
"""The maximum wait for a killed process."""

_ENTRYPOINT = "CLAUDE_CODE_ENTRYPOINT"


@frozen
class Output:
    """A command's output, and the end of its error output if it failed."""

    text: str
    failed: str = ""


@frozen
class Invocation:
    """The arguments, additional environment variables and working folder of a command.

    The default folder is an empty one.
    """

    arguments: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None


Invokes = Callable[[Prompt, Path], Invocation]
Reads = Callable[[Output, CallTarget], Completion]


class CommandModel:
    """A model by the agent's command ``program``; implements LanguageModel.

    ``invoke`` builds the command line from a prompt and a temporary folder, next to the empty one in which the command
    runs. ``read`` returns the answer or raises an error. ``complaint`` extracts the error from the output of a command
    that was still retrying at the timeout. ``piece`` returns the text that a line of output adds to a plain-text
    answer.

    The question begins with a mark, and an environment variable is set: nacre reads no session with
    the mark and does nothing under the variable, so that it never learns from its own calls.
    Variables that say that an agent runs this are removed: the command would consider itself part
    of that session. Raises ModelRefusedError if the program is not on PATH.
    """

    def __init__(
        self,
        target: CallTarget,
        capabilities: Capabilities,
        environ: Mapping[str, str],
        *,
        program: str,
        invoke: Invokes,
        read: Reads,
        complaint: Callable[[str], str] = lambda _: "",
        piece: Callable[[str], str] | None = None,
    ) -> None:
        self.name = target.name
        self.capabilities = capabilities
        path = shutil.which(program, path=environ.get("PATH"))
        if path is None:
            raise failures.no_program(target, program)
        self._target = target
        self._program = path
        self._environ = {
            name: value for name, value in of_the_owner(environ).items() if name != _ENTRYPOINT
        }
        self._environ[OWN_CALL_VARIABLE] = "1"
        self._invoke = invoke
        self._read = read
        self._complaint = complaint
        self._piece = piece
        self._calls = Calls()
        self._lock = Lock()
        self._running: set[_Process] = set()

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises ModelUnavailableError, ModelRefusedError."""
        form = told(prompt) if self.capabilities.answers == "text" else ""
        head = (OWN_CALL, prompt.system, form) if prompt.answer else (OWN_CONVERSATION,)
        text = "\n\n".join(part for part in (*head, prompt.shared, prompt.text) if part)
        with tempfile.TemporaryDirectory(
            prefix="nacre-call-", ignore_cleanup_errors=True
        ) as temporary:
            folder = Path(temporary)
            (folder / "empty").mkdir()
            call = self._invoke(prompt, folder)
            output = self._run(replace(call, folder=call.folder or folder / "empty"), text, prompt)
        return self._read(output, self._target)

    def close(self) -> None:
        """Cancel the running calls."""
        self._calls.close()
        with self._lock:
            for process in self._running:
                process.end()

    def _run(self, call: Invocation, text: str, prompt: Prompt) -> Output:
        seconds = prompt.timeout_seconds
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            self._heard(out, prompt),
        ):
            process = _Process(
                [self._program, *call.arguments],
                stdout=out,
                stderr=err,
                cwd=call.folder,
                env={**self._environ, **call.environ},
            )
            with self._lock:
                self._running.add(process)
            try:
                status = self._calls.run(
                    lambda: process.answer(text.encode(errors="replace")), seconds
                )
            except TimeoutError:
                complaint = self._complaint(f"{_written(out)}\n{_written(err)}")
                if complaint:
                    raise failures.program_failed(self._target, complaint) from None
                raise failures.late(self._target, seconds) from None
            except TruncatedAnswerError:
                raise failures.cut_off(self._target) from None
            except OSError as error:
                raise failures.broken(self._target) from error
            finally:
                process.end()  # also its child processes
                with self._lock:
                    self._running.discard(process)
            if status < 0:
                raise failures.ended(self._target)
            complaint = _written(out)
            failed = (_written(err).strip() or complaint.strip())[-2_000:] or "no word"
            return Output(complaint, failed if status else "")

    @contextmanager
    def _heard(self, out: IO[bytes], prompt: Prompt) -> Iterator[None]:
        """Report the pieces of an answer as they are written, and the rest at the end."""
        read, hear = self._piece, prompt.hear
        if (
            read is None or hear is None or os.name != "posix"
        ):  # elsewhere reading would move the command's write position
            yield
            return
        over = Event()

        def follow() -> None:
            at, rest, is_last = 0, b"", False
            while not is_last:
                is_last = over.wait(_POLL_SECONDS)
                while part := os.pread(out.fileno(), 65_536, at):
                    at += len(part)
                    *lines, rest = (rest + part).split(b"\n")
                    for piece in filter(
                        None, (read(line.decode(errors="replace")) for line in lines)
                    ):
                        hear(piece)

        following = Thread(target=follow, name="nacre-pieces", daemon=True)
        following.start()
        try:
            yield
        finally:
            over.set()
            following.join()


def instructions(prompt: Prompt) -> str:
    """Return the system prompt for a command: the prompt's own if it wants plain text."""
    return INSTRUCTIONS if prompt.answer else prompt.system or "You answer in plain text."


def events_in(text: str, decoder: msgspec.json.Decoder[E]) -> Iterator[E]:
    """Yield a program's output of one JSON value per line; other lines are skipped."""
    for line in text.splitlines():
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, RecursionError):
            continue


def link(theirs: Path, names: Iterable[str], ours: Path) -> None:
    """Make a folder for one call with links to only these of the owner's files, if they exist.

    With links, a sign-in that is renewed during the call is renewed in its place.
    """
    ours.mkdir(parents=True)
    for name in names:
        if (theirs / name).is_file():
            with suppress(OSError):  # Windows may forbid links: then there is no sign-in
                (ours / name).symlink_to(theirs / name)


def _written(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")


class _Process:
    """A process that answers one question. It starts in the waiting thread.

    A signal that ends the caller finds either no process, or a process to kill.
    """

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        self._command = command
        self._where = options
        self._lock = Lock()
        self._is_over = False
        self._process: subprocess.Popen[bytes] | None = None

    def answer(self, question: bytes) -> int:
        """Send the question and return the exit status.

        Raises OSError, TruncatedAnswerError if ended before the start.
        """
        with self._lock:
            if self._is_over:
                raise TruncatedAnswerError
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, start_new_session=True, **self._where
            )
        self._process.communicate(question)
        return self._process.returncode

    def end(self) -> None:
        """Kill the process and its children, and wait until it is gone."""
        with self._lock:
            self._is_over = True
            process = self._process
        if process is None:
            return
        with suppress(OSError):
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        with suppress(subprocess.TimeoutExpired):  # a killed process may still wait for the disk
            process.wait(_KILL_TIMEOUT_SECONDS)


# -- Claude Code: ``claude -p`` --------------------------------------------------------------------
# Runs without settings, servers, a stored session, and, unless the prompt allows some, tools.


_FLAGS = ("-p", "--setting-sources", "", "--strict-mcp-config", "--no-session-persistence")
_SETTINGS = {
    "enabledPlugins": {"agents-md@builtin": False}
}  # it would leave a file in the owner's home
_READS_NOTHING = {"permissions": {"deny": ["Read(//**)"]}}
_TOOL = re.compile(r"([A-Z]\w*)(\(.+\))?")
_WRITE = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_IN_FOLDER = frozenset({"Read", "Grep", "Glob", "LS", "NotebookRead"}) | _WRITE
"""Tools that Claude Code allows in its folder without asking, and nowhere else."""
_ENVIRON = {
    "CLAUDE_CODE_MAX_RETRIES": "0",  # at a limit it would retry silently for minutes
    "MAX_THINKING_TOKENS": "0",  # as by the API: nothing else limits thinking; models from 5.5 on think anyway
    "ENABLE_TOOL_SEARCH": "false",  # it would offer a tool for that
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",  # it would read each @/file that a text names, even without tools
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",  # it would create a folder in the owner's home for each call
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Result(msgspec.Struct):
    """The output of the command. An answer with a schema is in ``structured_output``, or as text in ``result``."""

    is_error: bool = False
    api_error_status: int | None = None
    subtype: str = ""
    result: str | None = None
    structured_output: Any = None
    usage: _Usage = msgspec.field(default_factory=_Usage)
    total_cost_usd: float | None = None
    modelUsage: dict[str, Any] | None = None  # noqa: N815 - as it is printed
    session_id: str = ""


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Streamed(msgspec.Struct):
    delta: _Delta | None = None


class _Block(msgspec.Struct):
    type: str = ""
    name: str = ""
    input: dict[str, Any] = msgspec.field(default_factory=dict)


class _Message(msgspec.Struct):
    content: list[_Block] = msgspec.field(default_factory=list)


class _Line(msgspec.Struct):
    """A line of a stream, with the fields that are read."""

    type: str = ""
    event: _Streamed | None = None
    message: _Message | None = None


_LINE = msgspec.json.Decoder(_Line)
_STEP_CHARACTERS = 160


def claude_model(
    target: CallTarget, capabilities: Capabilities, environ: Mapping[str, str]
) -> CommandModel:
    """Return a model by ``claude``. Raises ModelRefusedError if it is not installed."""

    def invoke(prompt: Prompt, folder: Path) -> Invocation:
        model = ["--model", target.model] if target.model not in ("", "default") else []
        form = _structured(prompt) if prompt.answer else _plain(prompt, folder)
        return Invocation(
            [*_FLAGS, *form, *_tools(prompt, target), *model],
            _ENVIRON,
            prompt.folder if prompt.tools else None,
        )

    return CommandModel(
        target, capabilities, environ, program="claude", invoke=invoke, read=_read, piece=_piece
    )


def _structured(prompt: Prompt) -> list[str]:
    schema = json.dumps(strict(prompt.answer))
    return ["--output-format", "json", "--system-prompt", INSTRUCTIONS, "--json-schema", schema]


def _plain(prompt: Prompt, folder: Path) -> list[str]:
    """Return the arguments for plain text. The system prompt is a file, so that process lists do not show it.

    With tools there are no pieces: text before the answer is not part of it.
    """
    path = folder / "instructions.md"
    path.write_text(instructions(prompt), encoding="utf-8")
    pieces = ["--include-partial-messages"] if prompt.hear and not prompt.tools else []
    return [
        "--output-format",
        "stream-json",
        "--verbose",
        *pieces,
        "--system-prompt-file",
        str(path),
    ]


def _tools(prompt: Prompt, target: CallTarget) -> list[str]:
    """Return the arguments for the allowed tools, none of which asks for permission.

    File tools stay in the folder unless a rule is given: ``Read(//srv/docs/**)``. Raises ModelRefusedError for unknown
    tools.
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


def _piece(line: str) -> str:
    """Return the piece of an answer in a line of output, or an empty string."""
    if "text_delta" not in line:
        return ""
    event = next(events_in(line, _LINE), None)
    delta = event.event.delta if event and event.event else None
    return delta.text if delta and delta.type == "text_delta" else ""


def _tool_steps(text: str) -> tuple[str, ...]:
    """Return a line for each use of a tool."""
    messages = [
        event.message
        for event in events_in(text, _LINE)
        if event.type == "assistant" and event.message
    ]
    used = [block for message in messages for block in message.content if block.type == "tool_use"]
    return tuple(
        shorten(f"{block.name}: {next(iter(block.input.values()), '')}", _STEP_CHARACTERS)
        for block in used
    )


def _read(output: Output, target: CallTarget) -> Completion:
    try:
        result = json_values.parse_json_tree(
            (output.text.strip().splitlines() or [""])[-1], _Result
        )
    except (msgspec.DecodeError, RecursionError) as error:
        if output.failed:
            raise failures.program_failed(target, output.failed) from error
        raise failures.no_answer(target, output.text) from error
    if result.is_error or output.failed:
        message = result.result or result.subtype or output.failed
        raise failures.program_failed(target, message, result.api_error_status or 0)
    usage = result.usage
    tokens = Tokens(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_input_tokens or 0,
        usage.cache_creation_input_tokens or 0,
    )
    text = (
        json.dumps(result.structured_output)
        if result.structured_output is not None
        else result.result or ""
    )
    cost = {} if result.total_cost_usd is None else {"cost_usd": result.total_cost_usd}
    return Completion(
        text,
        tokens,
        next(iter(result.modelUsage or {}), target.model),
        more={"id": result.session_id, "steps": _tool_steps(output.text), **cost},
    )


# -- Codex: ``codex exec`` -------------------------------------------------------------------------
# Runs in a read-only sandbox unless the prompt allows writing, with a temporary home and no stored session.


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
"""Turns off notes on this machine in the prompt, and additional tools and servers. Versions ignore unknown settings."""

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
"""The shell gets no keys from the environment, and the variable that marks nacre's own calls."""
_SHELL, _MAY_WRITE = "shell", "write"

_SIGN_IN, _INSTALLATION = "auth.json", "installation_id"
_KEYS = ("CODEX_API_KEY", "CODEX_ACCESS_TOKEN")


class _Change(msgspec.Struct):
    path: str = ""


class _Item(msgspec.Struct):
    type: str = ""
    text: str = ""
    command: str = ""
    changes: list[_Change] = msgspec.field(default_factory=list)


class _CodexCliUsage(msgspec.Struct):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0


class _Event(msgspec.Struct):
    type: str = ""
    item: _Item | None = None
    usage: _CodexCliUsage | None = None
    message: str = ""
    error: dict[str, Any] | None = None
    thread_id: str = ""


_EVENT = msgspec.json.Decoder(_Event)


def codex_model(
    target: CallTarget, capabilities: Capabilities, environ: Mapping[str, str]
) -> CommandModel:
    """Return a model by ``codex``. Raises ModelRefusedError if it is not installed."""

    def invoke(prompt: Prompt, folder: Path) -> Invocation:
        path = folder / "instructions.md"
        path.write_text(instructions(prompt), encoding="utf-8")
        config = (
            *_CONFIG,
            f"model_instructions_file={json.dumps(str(path))}",
            *_tools_codex_cli(prompt, target),
        )
        options = [part for option in config for part in ("--config", option)]
        sandbox = "workspace-write" if _MAY_WRITE in prompt.tools else "read-only"
        model = ["--model", target.model] if target.model not in ("", "default") else []
        return Invocation(
            [
                *_FLAGS_CODEX_CLI,
                "--sandbox",
                sandbox,
                *options,
                *_form(prompt, folder),
                *model,
                "-",
            ],
            _home_of_its_own(folder, environ),
            prompt.folder if prompt.tools else None,
        )

    return CommandModel(
        target,
        capabilities,
        environ,
        program="codex",
        invoke=invoke,
        read=_read_codex_cli,
        complaint=lambda output: _problem(list(events_in(output, _EVENT))),
    )


def _form(prompt: Prompt, folder: Path) -> list[str]:
    if not prompt.answer:
        return []
    schema = folder / "answer.json"
    schema.write_text(json.dumps(strict(prompt.answer)), encoding="utf-8")
    return ["--output-schema", str(schema)]


def _tools_codex_cli(prompt: Prompt, target: CallTarget) -> Sequence[str]:
    """Return the settings for the tools ``shell`` (read-only sandbox) and ``write`` (may write in the folder).

    Neither has a network. Raises ModelRefusedError for other tools.
    """
    if not set(prompt.tools) <= {_SHELL, _MAY_WRITE}:
        raise failures.no_such_tool(target, prompt.tools, f"{_SHELL}, {_MAY_WRITE}")
    return _WITH_TOOLS if prompt.tools else _WITHOUT_TOOLS


def _home_of_its_own(folder: Path, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables of a temporary home that holds only the sign-in.

    No option hides the AGENTS.md of the owner's home, and each call would write there. The sign-in is linked, so that
    it is renewed in its place. The owner's home is used if the sign-in is not a file (a keyring may hold it, by the
    name of its home), or if links are not possible.
    """
    theirs = Path(environ.get("CODEX_HOME") or Path(user_home(environ)) / ".codex")
    if not ((theirs / _SIGN_IN).is_file() or any(environ.get(key) for key in _KEYS)):
        return {}
    ours = folder / "home"
    link(theirs, (_SIGN_IN, _INSTALLATION), ours)
    is_whole = (ours / _SIGN_IN).exists() or not (theirs / _SIGN_IN).is_file()
    return {"CODEX_HOME": str(ours)} if is_whole else {}


def _read_codex_cli(output: Output, target: CallTarget) -> Completion:
    events = list(events_in(output.text, _EVENT))
    problem = _problem(events)
    answers = [
        event.item.text for event in events if event.item and event.item.type == "agent_message"
    ]
    if output.failed or (problem and not answers):
        raise failures.program_failed(target, problem or output.failed)
    if not answers:
        raise failures.no_answer(target, output.text)
    usage = next((event.usage for event in reversed(events) if event.usage), _CodexCliUsage())
    tokens = Tokens(
        max(0, usage.input_tokens - usage.cached_input_tokens),
        usage.output_tokens,
        usage.cached_input_tokens,
    )
    thread = next((event.thread_id for event in events if event.thread_id), "")
    ended = (event.item for event in events if event.item and event.type == "item.completed")
    steps = tuple(filter(None, map(_step, ended)))
    return Completion(answers[-1], tokens, target.model, more={"id": thread, "steps": steps})


def _step(item: _Item) -> str:
    """Return a line on the use of a tool, or an empty string."""
    changed = ", ".join(change.path for change in item.changes)
    return shorten(item.command or (f"changed {changed}" if changed else ""), _STEP_CHARACTERS)


def _problem(events: Sequence[_Event]) -> str:
    """Return the last error message, or an empty string."""
    failures_seen = [event for event in events if event.type in ("turn.failed", "error")]
    return (
        str((failures_seen[-1].error or {}).get("message") or failures_seen[-1].message)
        if failures_seen
        else ""
    )


# -- Gemini CLI: ``gemini`` ------------------------------------------------------------------------
# Runs without tools, in a temporary home that is deleted with its session.


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


class _Tokens(msgspec.Struct):
    input: int = 0
    candidates: int = 0
    cached: int = 0
    thoughts: int = 0


class _Model(msgspec.Struct):
    tokens: _Tokens = msgspec.field(default_factory=_Tokens)


class _Stats(msgspec.Struct):
    models: dict[str, _Model] = msgspec.field(default_factory=dict)


class _Error(msgspec.Struct):
    message: str = ""
    code: int | str = 0


class _GeminiCliResult(msgspec.Struct):
    response: str | None = None
    stats: _Stats = msgspec.field(default_factory=_Stats)
    error: _Error | None = None
    session_id: str = ""


class _Auth(msgspec.Struct):
    selectedType: str = ""  # noqa: N815 - as it is written


class _Security(msgspec.Struct):
    auth: _Auth = msgspec.field(default_factory=_Auth)


class _Own(msgspec.Struct):
    security: _Security = msgspec.field(default_factory=_Security)


def gemini_model(
    target: CallTarget, capabilities: Capabilities, environ: Mapping[str, str]
) -> CommandModel:
    """A model by ``gemini``. Raises ModelRefusedError where that is not installed."""

    def invoke(prompt: Prompt, folder: Path) -> Invocation:
        theirs = Path(environ.get("GEMINI_CLI_HOME") or user_home(environ)) / ".gemini"
        ours, path = folder / "home" / ".gemini", folder / "instructions.md"
        link(theirs, _SIGN_IN_GEMINI_CLI, ours)
        settings = {
            **_SETTINGS_GEMINI_CLI,
            "security": {"folderTrust": {"enabled": False}, **_way_to_sign_in(theirs)},
        }
        (ours / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        path.write_text(instructions(prompt), encoding="utf-8")
        model = ["--model", target.model] if target.model not in ("", "default") else []
        return Invocation(
            [*_FLAGS_GEMINI_CLI, *model],
            {
                "GEMINI_CLI_HOME": str(ours.parent),
                "GEMINI_SYSTEM_MD": str(path),
                "GEMINI_CLI_NO_RELAUNCH": "true",
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
            },
        )

    return CommandModel(
        target,
        capabilities,
        environ,
        program="gemini",
        invoke=invoke,
        read=_read_gemini_cli,
        complaint=lambda output: "".join(
            f"status {status}" for status in _STATUS.findall(output)[-1:]
        ),
    )


def _way_to_sign_in(theirs: Path) -> Mapping[str, object]:
    """Return the sign-in method from the owner's settings. Nothing else is taken from them."""
    with suppress(OSError, msgspec.DecodeError, RecursionError):
        settings = json_values.parse_json_tree((theirs / "settings.json").read_bytes(), _Own)
        return (
            {"auth": {"selectedType": settings.security.auth.selectedType}}
            if settings.security.auth.selectedType
            else {}
        )
    return {}


def _read_gemini_cli(output: Output, target: CallTarget) -> Completion:
    error_match = _ERROR.search(output.failed)
    try:
        result = json_values.parse_json_tree(
            error_match[0] if error_match else output.text.strip(), _GeminiCliResult
        )
    except (msgspec.DecodeError, RecursionError) as error:
        if output.failed:
            raise failures.program_failed(target, output.failed) from error
        raise failures.no_answer(target, output.text) from error
    if result.error or output.failed:
        problem = result.error or _Error()
        status = problem.code if isinstance(problem.code, int) and problem.code >= 400 else 0
        raise failures.program_failed(target, problem.message or output.failed, status)
    used = [model.tokens for model in result.stats.models.values()]
    tokens = Tokens(
        sum(counts.input for counts in used),
        sum(counts.candidates + counts.thoughts for counts in used),
        sum(counts.cached for counts in used),
    )
    return Completion(result.response or "", tokens, next(iter(result.stats.models), target.model))


# -- OpenCode: ``opencode run`` --------------------------------------------------------------------
# Runs an agent without tools, in a temporary home that is deleted with its session.


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
    "npm_config_fetch_retries": "0",  # it installs plugins' requirements, and waits for that
}
_ERROR_OPENCODE_CLI = re.compile(r'\berror="((?:[^"\\]|\\.)*)"')
"""An error in its log. It retries for minutes, and no option prevents that."""

_FOLDERS = ("CONFIG", "DATA", "STATE", "CACHE")


class _Cache(msgspec.Struct):
    read: int = 0
    write: int = 0


class _OpencodeCliTokens(msgspec.Struct):
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: _Cache = msgspec.field(default_factory=_Cache)


class _Part(msgspec.Struct):
    text: str = ""
    tokens: _OpencodeCliTokens | None = None


class _OpencodeCliEvent(msgspec.Struct):
    type: str = ""
    part: _Part | None = None
    error: dict[str, Any] | None = None
    sessionID: str = ""  # noqa: N815 - as it is printed


_EVENT_OPENCODE_CLI = msgspec.json.Decoder(_OpencodeCliEvent)


def opencode_model(
    target: CallTarget, capabilities: Capabilities, environ: Mapping[str, str]
) -> CommandModel:
    """Return a model by ``opencode``. Raises ModelRefusedError if it is not installed."""

    def invoke(prompt: Prompt, folder: Path) -> Invocation:
        data = (
            Path(environ.get("XDG_DATA_HOME") or Path(user_home(environ)) / ".local" / "share")
            / "opencode"
        )
        link(data, ("auth.json",), folder / "data" / "opencode")
        folders = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in _FOLDERS}
        model = ["--model", target.model] if target.model not in ("", "default") else []
        home = str(folder / "home")
        own = {
            **folders,
            "HOME": home,
            "USERPROFILE": home,
            "OPENCODE_CONFIG_CONTENT": _config(prompt),
        }
        return Invocation([*_FLAGS_OPENCODE_CLI, *model], {**_ENVIRON_OPENCODE_CLI, **own})

    return CommandModel(
        target,
        capabilities,
        environ,
        program="opencode",
        invoke=invoke,
        read=_read_opencode_cli,
        complaint=lambda output: "".join(_ERROR_OPENCODE_CLI.findall(output)[-1:]),
    )


def _config(prompt: Prompt) -> str:
    """Return the configuration. ``{file:…}`` and ``{env:…}`` are broken up, because OpenCode would expand them."""
    text = _REFERENCE.sub("{ ", instructions(prompt))
    agents = {"nacre": {**_AGENT, "prompt": text}, "title": {"disable": True}}
    return json.dumps({"autoupdate": False, "share": "disabled", "agent": agents})


def _read_opencode_cli(output: Output, target: CallTarget) -> Completion:
    events = list(events_in(output.text, _EVENT_OPENCODE_CLI))
    problem = next((event.error for event in reversed(events) if event.error), None)
    if problem or output.failed:
        data = (problem or {}).get("data") or {}
        status = data.get("statusCode") if isinstance(data, dict) else None
        words = data.get("message") if isinstance(data, dict) else None
        raise failures.program_failed(
            target,
            str(words or (problem or {}).get("name") or output.failed),
            status if isinstance(status, int) else 0,
        )
    answer = "".join(event.part.text for event in events if event.type == "text" and event.part)
    if not answer:
        raise failures.no_answer(target, output.text)
    used = [event.part.tokens for event in events if event.part and event.part.tokens]
    tokens = Tokens(
        sum(counts.input for counts in used),
        sum(counts.output + counts.reasoning for counts in used),
        sum(counts.cache.read for counts in used),
        sum(counts.cache.write for counts in used),
    )
    return Completion(answer, tokens, target.model, more={"id": events[0].sessionID})
