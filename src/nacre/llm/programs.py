"""A coding agent's own command as a model: one question on its standard input, one answer on its output."""

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
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import IO, Any, TypeVar

import msgspec

from nacre.base import json as json_values
from nacre.base.environment import OWN_CALL_VARIABLE, of_the_owner, user_home
from nacre.base.text import shorten
from nacre.llm import failures
from nacre.llm.api import strict, told
from nacre.llm.failures import Calls, CallTarget, CutOff
from nacre.values.models import OWN_CALL, OWN_CONVERSATION, Capabilities, Completion, Prompt, Tokens

E = TypeVar("E")

INSTRUCTIONS = "You answer the question of a program, with JSON and nothing else."
"""Instead of the words by which a command makes its model a coding agent: those are thousands of tokens a call."""

_LOOK_SECONDS = 0.05
"""The pause between two looks at what a command has written so far."""

_GONE_SECONDS = 5.0
"""So long a process that was killed is waited for."""

_ENTRYPOINT = "CLAUDE_CODE_ENTRYPOINT"


@dataclass(frozen=True, slots=True)
class Output:
    """What a command left: its output, and its last words of errors where it failed."""

    text: str
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Invocation:
    """How a command is called for one question: its arguments, the variables that it is given besides, and the folder
    that it runs in, where that is not an empty one of its own."""

    arguments: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None


Invokes = Callable[[Prompt, Path], Invocation]
Reads = Callable[[Output, CallTarget], Completion]


class CommandModel:
    """A model by the agent's command ``program``; implements LanguageModel.

    ``invoke`` makes the command line for a prompt and a folder of its own, beside the empty one that the command runs
    in; ``read`` makes the answer, or raises what went wrong. ``complaint`` finds what the command said went wrong, in
    the output of one that was still trying when its time was over. ``piece`` is what a line of output adds to an answer
    in plain text, for a command that writes as its model does.

    The question begins with a mark and the environment has a variable: nacre reads no session with that mark, and does
    nothing where the variable is set, so that it never learns from its own calls. No variable says that an agent runs
    this: the command would take itself for a part of that session. Raises ModelRefused where there is no such program
    on PATH.
    """

    def __init__(
        self,
        asked: CallTarget,
        capabilities: Capabilities,
        environ: Mapping[str, str],
        *,
        program: str,
        invoke: Invokes,
        read: Reads,
        complaint: Callable[[str], str] = lambda _: "",
        piece: Callable[[str], str] | None = None,
    ) -> None:
        self.name = asked.name
        self.capabilities = capabilities
        found = shutil.which(program, path=environ.get("PATH"))
        if found is None:
            raise failures.no_program(asked, program)
        self._asked = asked
        self._program = found
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
        self._running: set[_Asked] = set()

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises ModelUnavailable, ModelRefused."""
        form = told(prompt) if self.capabilities.answers == "text" else ""
        head = (OWN_CALL, prompt.system, form) if prompt.answer else (OWN_CONVERSATION,)
        text = "\n\n".join(part for part in (*head, prompt.shared, prompt.text) if part)
        with tempfile.TemporaryDirectory(prefix="nacre-call-", ignore_cleanup_errors=True) as made:
            folder = Path(made)
            (folder / "empty").mkdir()
            call = self._invoke(prompt, folder)
            output = self._run(replace(call, folder=call.folder or folder / "empty"), text, prompt)
        return self._read(output, self._asked)

    def close(self) -> None:
        """Cut off what runs."""
        self._calls.close()
        with self._lock:
            for asked in self._running:
                asked.end()

    def _run(self, call: Invocation, text: str, prompt: Prompt) -> Output:
        seconds = prompt.timeout_seconds
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            self._heard(out, prompt),
        ):
            asked = _Asked(
                [self._program, *call.arguments],
                stdout=out,
                stderr=err,
                cwd=call.folder,
                env={**self._environ, **call.environ},
            )
            with self._lock:
                self._running.add(asked)
            try:
                status = self._calls.run(
                    lambda: asked.answer(text.encode(errors="replace")), seconds
                )
            except TimeoutError:
                said = self._complaint(f"{_written(out)}\n{_written(err)}")
                if said:
                    raise failures.program_failed(self._asked, said) from None
                raise failures.late(self._asked, seconds) from None
            except CutOff:
                raise failures.cut_off(self._asked) from None
            except OSError as error:
                raise failures.broken(self._asked) from error
            finally:
                asked.end()  # also what it started, and left
                with self._lock:
                    self._running.discard(asked)
            if status < 0:
                raise failures.ended(self._asked)
            said = _written(out)
            failed = (_written(err).strip() or said.strip())[-2_000:] or "no word"
            return Output(said, failed if status else "")

    @contextmanager
    def _heard(self, out: IO[bytes], prompt: Prompt) -> Iterator[None]:
        """Tell the pieces of an answer while they are written; what is left is told in the end."""
        read, hear = self._piece, prompt.hear
        if (
            read is None or hear is None or os.name != "posix"
        ):  # elsewhere a look would move where the command writes
            yield
            return
        over = Event()

        def follow() -> None:
            at, rest, is_last = 0, b"", False
            while not is_last:
                is_last = over.wait(_LOOK_SECONDS)
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
    """The system prompt that a command is given: the prompt's own, where it wants plain text."""
    return INSTRUCTIONS if prompt.answer else prompt.system or "You answer in plain text."


def events_in(text: str, decoder: msgspec.json.Decoder[E]) -> Iterator[E]:
    """What a program puts out as JSON, a line each; lines that are none, which it prints in between, are left out."""
    for line in text.splitlines():
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, RecursionError):
            continue


def link(theirs: Path, names: Iterable[str], ours: Path) -> None:
    """Make a folder for one call in which nothing is the owner's but these files, as far as they are there. They are
    links: a sign-in that is renewed meanwhile is renewed where it lies.
    """
    ours.mkdir(parents=True)
    for name in names:
        if (theirs / name).is_file():
            with suppress(OSError):  # Windows may not let us: then nobody is signed in there
                (ours / name).symlink_to(theirs / name)


def _written(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")


class _Asked:
    """A process that is asked once. It begins in the thread that waits for it: a signal that takes down the asking one
    finds either nothing that runs, or what it has to end.
    """

    def __init__(self, command: Sequence[str], **where: Any) -> None:
        self._command = command
        self._where = where
        self._lock = Lock()
        self._is_over = False
        self._process: subprocess.Popen[bytes] | None = None

    def answer(self, question: bytes) -> int:
        """Ask, and wait for its status. Raises OSError, CutOff where it was ended before it began."""
        with self._lock:
            if self._is_over:
                raise CutOff
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, start_new_session=True, **self._where
            )
        self._process.communicate(question)
        return self._process.returncode

    def end(self) -> None:
        """Kill it and what it started, and wait until it is gone."""
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
        with suppress(subprocess.TimeoutExpired):  # the disk may hold even a killed one
            process.wait(_GONE_SECONDS)


# ----------------------------------------------------------------------------
# Claude Code's own command, ``claude -p``: without settings, servers, or a session that is kept, and
# without tools
# where the prompt allows none.


_FLAGS = ("-p", "--setting-sources", "", "--strict-mcp-config", "--no-session-persistence")
_SETTINGS = {
    "enabledPlugins": {"agents-md@builtin": False}
}  # it would leave a file in the owner's home
_READS_NOTHING = {"permissions": {"deny": ["Read(//**)"]}}
_TOOL = re.compile(r"([A-Z]\w*)(\(.+\))?")
_WRITE = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_IN_FOLDER = frozenset({"Read", "Grep", "Glob", "LS", "NotebookRead"}) | _WRITE
"""Tools that it allows by itself in its folder, and nowhere else."""
_ENVIRON = {
    "CLAUDE_CODE_MAX_RETRIES": "0",  # it would go on in silence for minutes where a limit is reached
    "MAX_THINKING_TOKENS": "0",  # as by the API: nothing else bounds them; models from 5.5 on think all the same
    "ENABLE_TOOL_SEARCH": "false",  # it would offer a tool for that
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",  # it would read each @/file that a text names, also without any tool
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",  # it would leave a folder in the owner's home for each call
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Result(msgspec.Struct):
    """What the command prints. The answer of a schema lies in ``structured_output``, or as text in ``result``."""

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
    """A line of a stream, as far as it is looked at."""

    type: str = ""
    event: _Streamed | None = None
    message: _Message | None = None


_LINE = msgspec.json.Decoder(_Line)
_STEP_CHARACTERS = 160


def claude_model(
    asked: CallTarget, capabilities: Capabilities, environ: Mapping[str, str]
) -> CommandModel:
    """A model by ``claude``. Raises ModelRefused where that is not installed."""

    def invoke(prompt: Prompt, folder: Path) -> Invocation:
        model = ["--model", asked.model] if asked.model not in ("", "default") else []
        form = _structured(prompt) if prompt.answer else _plain(prompt, folder)
        return Invocation(
            [*_FLAGS, *form, *_tools(prompt, asked), *model],
            _ENVIRON,
            prompt.folder if prompt.tools else None,
        )

    return CommandModel(
        asked, capabilities, environ, program="claude", invoke=invoke, read=_read, piece=_piece
    )


def _structured(prompt: Prompt) -> list[str]:
    schema = json.dumps(strict(prompt.answer))
    return ["--output-format", "json", "--system-prompt", INSTRUCTIONS, "--json-schema", schema]


def _plain(prompt: Prompt, folder: Path) -> list[str]:
    """Plain text, whose system prompt no list of processes shows. With tools, words before the answer are no part of
    it, so that it is not heard in pieces."""
    told = folder / "instructions.md"
    told.write_text(instructions(prompt), encoding="utf-8")
    pieces = ["--include-partial-messages"] if prompt.hear and not prompt.tools else []
    return [
        "--output-format",
        "stream-json",
        "--verbose",
        *pieces,
        "--system-prompt-file",
        str(told),
    ]


def _tools(prompt: Prompt, asked: CallTarget) -> list[str]:
    """Tools that are allowed, and nothing that would have to be asked for. Those of files stay in the folder, unless a
    rule is given: ``Read(//srv/docs/**)``. Raises ModelRefused for what is no tool of its own."""
    if not prompt.tools:
        return ["--tools", "", "--settings", json.dumps({**_SETTINGS, **_READS_NOTHING})]
    found = [_TOOL.fullmatch(tool) for tool in prompt.tools]
    names = [tool[1] for tool in found if tool]
    if len(names) < len(found):
        raise failures.no_such_tool(
            asked, prompt.tools, "Read, Grep, Glob, Edit, Write, Bash, or Bash(git log:*)"
        )
    free = [tool[0] for tool in found if tool and (tool[2] or tool[1] not in _IN_FOLDER)]
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
    """The piece of an answer that a line of the output is; empty where it is none."""
    if "text_delta" not in line:
        return ""
    event = next(events_in(line, _LINE), None)
    delta = event.event.delta if event and event.event else None
    return delta.text if delta and delta.type == "text_delta" else ""


def _steps(text: str) -> tuple[str, ...]:
    """What it did with its tools, a line each."""
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


def _read(output: Output, asked: CallTarget) -> Completion:
    try:
        said = json_values.parse_json_values(
            (output.text.strip().splitlines() or [""])[-1], _Result
        )
    except (msgspec.DecodeError, RecursionError) as error:
        if output.failed:
            raise failures.program_failed(asked, output.failed) from error
        raise failures.no_answer(asked, output.text) from error
    if said.is_error or output.failed:
        told = said.result or said.subtype or output.failed
        raise failures.program_failed(asked, told, said.api_error_status or 0)
    usage = said.usage
    tokens = Tokens(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_input_tokens or 0,
        usage.cache_creation_input_tokens or 0,
    )
    text = (
        json.dumps(said.structured_output)
        if said.structured_output is not None
        else said.result or ""
    )
    cost = {} if said.total_cost_usd is None else {"cost_usd": said.total_cost_usd}
    return Completion(
        text,
        tokens,
        next(iter(said.modelUsage or {}), asked.model),
        more={"id": said.session_id, "steps": _steps(output.text), **cost},
    )


# ----------------------------------------------------------------------------
# Codex's own command, ``codex exec``: in a sandbox that only reads, unless the prompt allows it to
# write, in a home
# of its own, and without a session that is kept.


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
"""What it would tell its model of this machine, and the tools and servers that it would offer besides. A version that
does not know one of these passes over it."""

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
"""Its shell sees no keys of the environment, and is told that it is within nacre's own call."""
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
    asked: CallTarget, capabilities: Capabilities, environ: Mapping[str, str]
) -> CommandModel:
    """A model by ``codex``. Raises ModelRefused where that is not installed."""

    def invoke(prompt: Prompt, folder: Path) -> Invocation:
        told = folder / "instructions.md"
        told.write_text(instructions(prompt), encoding="utf-8")
        config = (
            *_CONFIG,
            f"model_instructions_file={json.dumps(str(told))}",
            *_tools_codex_cli(prompt, asked),
        )
        options = [part for one in config for part in ("--config", one)]
        sandbox = "workspace-write" if _MAY_WRITE in prompt.tools else "read-only"
        model = ["--model", asked.model] if asked.model not in ("", "default") else []
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
        asked,
        capabilities,
        environ,
        program="codex",
        invoke=invoke,
        read=_read_codex_cli,
        complaint=lambda said: _problem(list(events_in(said, _EVENT))),
    )


def _form(prompt: Prompt, folder: Path) -> list[str]:
    if not prompt.answer:
        return []
    schema = folder / "answer.json"
    schema.write_text(json.dumps(strict(prompt.answer)), encoding="utf-8")
    return ["--output-schema", str(schema)]


def _tools_codex_cli(prompt: Prompt, asked: CallTarget) -> Sequence[str]:
    """``shell`` runs commands in a sandbox that only reads, ``write`` in one that writes in the folder as well; neither
    has a network. Raises ModelRefused for anything else."""
    if not set(prompt.tools) <= {_SHELL, _MAY_WRITE}:
        raise failures.no_such_tool(asked, prompt.tools, f"{_SHELL}, {_MAY_WRITE}")
    return _WITH_TOOLS if prompt.tools else _WITHOUT_TOOLS


def _home_of_its_own(folder: Path, environ: Mapping[str, str]) -> Mapping[str, str]:
    """A home for one call, in which nothing is the owner's but the sign-in: no option keeps the AGENTS.md of the
    owner's home from being told, and each call would write there.

    The sign-in is linked, so that one that is renewed meanwhile is renewed where it lies. Where it is no file (a
    keyring may hold it, by the name of its home), and where nothing can be linked, the home is the owner's.
    """
    theirs = Path(environ.get("CODEX_HOME") or Path(user_home(environ)) / ".codex")
    if not ((theirs / _SIGN_IN).is_file() or any(environ.get(key) for key in _KEYS)):
        return {}
    ours = folder / "home"
    link(theirs, (_SIGN_IN, _INSTALLATION), ours)
    is_whole = (ours / _SIGN_IN).exists() or not (theirs / _SIGN_IN).is_file()
    return {"CODEX_HOME": str(ours)} if is_whole else {}


def _read_codex_cli(output: Output, asked: CallTarget) -> Completion:
    events = list(events_in(output.text, _EVENT))
    problem = _problem(events)
    said = [
        event.item.text for event in events if event.item and event.item.type == "agent_message"
    ]
    if output.failed or (problem and not said):
        raise failures.program_failed(asked, problem or output.failed)
    if not said:
        raise failures.no_answer(asked, output.text)
    usage = next((event.usage for event in reversed(events) if event.usage), _CodexCliUsage())
    tokens = Tokens(
        max(0, usage.input_tokens - usage.cached_input_tokens),
        usage.output_tokens,
        usage.cached_input_tokens,
    )
    thread = next((event.thread_id for event in events if event.thread_id), "")
    ended = (event.item for event in events if event.item and event.type == "item.completed")
    steps = tuple(filter(None, map(_step, ended)))
    return Completion(said[-1], tokens, asked.model, more={"id": thread, "steps": steps})


def _step(item: _Item) -> str:
    """What it did with its tools, in a line; empty where it did nothing."""
    changed = ", ".join(change.path for change in item.changes)
    return shorten(item.command or (f"changed {changed}" if changed else ""), _STEP_CHARACTERS)


def _problem(events: Sequence[_Event]) -> str:
    """The last that went wrong, in its words; empty where nothing did."""
    told = [event for event in events if event.type in ("turn.failed", "error")]
    return str((told[-1].error or {}).get("message") or told[-1].message) if told else ""


# ----------------------------------------------------------------------------
# Gemini CLI's own command, ``gemini``: without tools, and in a home of its own, with which its
# session goes.


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
    asked: CallTarget, capabilities: Capabilities, environ: Mapping[str, str]
) -> CommandModel:
    """A model by ``gemini``. Raises ModelRefused where that is not installed."""

    def invoke(prompt: Prompt, folder: Path) -> Invocation:
        theirs = Path(environ.get("GEMINI_CLI_HOME") or user_home(environ)) / ".gemini"
        ours, told = folder / "home" / ".gemini", folder / "instructions.md"
        link(theirs, _SIGN_IN_GEMINI_CLI, ours)
        settings = {
            **_SETTINGS_GEMINI_CLI,
            "security": {"folderTrust": {"enabled": False}, **_way_to_sign_in(theirs)},
        }
        (ours / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        told.write_text(instructions(prompt), encoding="utf-8")
        model = ["--model", asked.model] if asked.model not in ("", "default") else []
        return Invocation(
            [*_FLAGS_GEMINI_CLI, *model],
            {
                "GEMINI_CLI_HOME": str(ours.parent),
                "GEMINI_SYSTEM_MD": str(told),
                "GEMINI_CLI_NO_RELAUNCH": "true",
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
            },
        )

    return CommandModel(
        asked,
        capabilities,
        environ,
        program="gemini",
        invoke=invoke,
        read=_read_gemini_cli,
        complaint=lambda said: "".join(f"status {status}" for status in _STATUS.findall(said)[-1:]),
    )


def _way_to_sign_in(theirs: Path) -> Mapping[str, object]:
    """How the owner signs in, by the settings in their home: nothing else is taken from those."""
    with suppress(OSError, msgspec.DecodeError, RecursionError):
        found = json_values.parse_json_values((theirs / "settings.json").read_bytes(), _Own)
        return (
            {"auth": {"selectedType": found.security.auth.selectedType}}
            if found.security.auth.selectedType
            else {}
        )
    return {}


def _read_gemini_cli(output: Output, asked: CallTarget) -> Completion:
    found = _ERROR.search(output.failed)
    try:
        said = json_values.parse_json_values(
            found[0] if found else output.text.strip(), _GeminiCliResult
        )
    except (msgspec.DecodeError, RecursionError) as error:
        if output.failed:
            raise failures.program_failed(asked, output.failed) from error
        raise failures.no_answer(asked, output.text) from error
    if said.error or output.failed:
        problem = said.error or _Error()
        status = problem.code if isinstance(problem.code, int) and problem.code >= 400 else 0
        raise failures.program_failed(asked, problem.message or output.failed, status)
    used = [model.tokens for model in said.stats.models.values()]
    tokens = Tokens(
        sum(one.input for one in used),
        sum(one.candidates + one.thoughts for one in used),
        sum(one.cached for one in used),
    )
    return Completion(said.response or "", tokens, next(iter(said.stats.models), asked.model))


# ----------------------------------------------------------------------------
# OpenCode's command, ``opencode run``: an agent without tools, in a home of its own, with which its
# session goes.


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
    "npm_config_fetch_retries": "0",  # it installs what plugins need, and waits for it
}
_ERROR_OPENCODE_CLI = re.compile(r'\berror="((?:[^"\\]|\\.)*)"')
"""In its log, as it tries again: for minutes, and nothing keeps it from that."""

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
    asked: CallTarget, capabilities: Capabilities, environ: Mapping[str, str]
) -> CommandModel:
    """A model by ``opencode``. Raises ModelRefused where that is not installed."""

    def invoke(prompt: Prompt, folder: Path) -> Invocation:
        data = (
            Path(environ.get("XDG_DATA_HOME") or Path(user_home(environ)) / ".local" / "share")
            / "opencode"
        )
        link(data, ("auth.json",), folder / "data" / "opencode")
        folders = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in _FOLDERS}
        model = ["--model", asked.model] if asked.model not in ("", "default") else []
        home = str(folder / "home")
        own = {
            **folders,
            "HOME": home,
            "USERPROFILE": home,
            "OPENCODE_CONFIG_CONTENT": _config(prompt),
        }
        return Invocation([*_FLAGS_OPENCODE_CLI, *model], {**_ENVIRON_OPENCODE_CLI, **own})

    return CommandModel(
        asked,
        capabilities,
        environ,
        program="opencode",
        invoke=invoke,
        read=_read_opencode_cli,
        complaint=lambda said: "".join(_ERROR_OPENCODE_CLI.findall(said)[-1:]),
    )


def _config(prompt: Prompt) -> str:
    """Its configuration, in which ``{file:…}`` and ``{env:…}`` would be replaced by what they name."""
    told = _REFERENCE.sub("{ ", instructions(prompt))
    agents = {"nacre": {**_AGENT, "prompt": told}, "title": {"disable": True}}
    return json.dumps({"autoupdate": False, "share": "disabled", "agent": agents})


def _read_opencode_cli(output: Output, asked: CallTarget) -> Completion:
    events = list(events_in(output.text, _EVENT_OPENCODE_CLI))
    problem = next((event.error for event in reversed(events) if event.error), None)
    if problem or output.failed:
        told = (problem or {}).get("data") or {}
        status = told.get("statusCode") if isinstance(told, dict) else None
        words = told.get("message") if isinstance(told, dict) else None
        raise failures.program_failed(
            asked,
            str(words or (problem or {}).get("name") or output.failed),
            status if isinstance(status, int) else 0,
        )
    said = "".join(event.part.text for event in events if event.type == "text" and event.part)
    if not said:
        raise failures.no_answer(asked, output.text)
    used = [event.part.tokens for event in events if event.part and event.part.tokens]
    tokens = Tokens(
        sum(one.input for one in used),
        sum(one.output + one.reasoning for one in used),
        sum(one.cache.read for one in used),
        sum(one.cache.write for one in used),
    )
    return Completion(said, tokens, asked.model, more={"id": events[0].sessionID})
