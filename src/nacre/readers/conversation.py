"""Shared code of the readers: command lines, injected text, senders and tool calls."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from nacre.base.frozen import frozen
from nacre.base.plain import Values, objects_in, string
from nacre.values.models import OWN_CALL
from nacre.values.session import Action, Flag, Session, Speaker, Tokens, ToolCall, Turn

_SETUP_PROGRAMS = frozenset("cd source export set echo pushd env sudo time timeout .".split())
_SUBCOMMAND_PROGRAMS = frozenset(
    "python python3 npx uv poetry bundle pnpm npm yarn make go cargo git docker mise kubectl terraform dotnet gradle "
    "mvn deno bun just rake gh mix swift flutter dart brew pip pip3 pdm hatch nx turbo supabase az aws gcloud heroku "
    "fly composer php ruby node sbt bazel".split()
)
_READ_ONLY_PROGRAMS = frozenset(
    {
        "grep",
        "rg",
        "ls",
        "cat",
        "head",
        "tail",
        "find",
        "which",
        "pwd",
        "tree",
        "wc",
        "stat",
        "file",
        "less",
        "ps",
    }
    | {f"git {verb}" for verb in ("status", "diff", "log", "show", "blame", "branch")}
)

_LEADING_KEYWORDS = frozenset("do then else if elif while until ! { (".split())
_BLOCK_KEYWORDS = frozenset("for done fi case esac } ) function select return exit".split())
_OMITTED_SUBCOMMANDS = frozenset("run exec compose tool pip pr issue x dlx stash worktree".split())
_NAME = re.compile(r"[A-Za-z_@][\w@:.+-]{0,30}")
_REDIRECTION = re.compile(r"\d?[<>]")


def looks(program: str) -> bool:
    """Return True if a program, such as ``git diff``, changes nothing."""
    return f"{program} ".startswith(tuple(f"{name} " for name in _READ_ONLY_PROGRAMS))


@lru_cache(maxsize=2048)
def names(command: str) -> tuple[str, ...]:
    """Return the programs that a command line runs, with subcommands, such as ``git commit``."""
    return tuple(invocation.name for invocation in invocations(command))


class Invocation(NamedTuple):
    """A program with its subcommands, such as ``git commit``.

    ``subcommands`` omits generic ones such as ``run``. ``words`` is the program followed by the
    whole command.
    """

    name: str
    subcommands: tuple[str, ...]
    words: tuple[str, ...]


def invocations(command: str) -> Iterator[Invocation]:
    """Yield each program that a command line runs, ignoring redirections and here-documents."""
    for part in parts(command.partition("<<")[0]):
        words = _plain_words(part)
        if not words or not _NAME.fullmatch(words[0]):
            continue
        subcommands = []
        for word in words[1:3] if words[0] in _SUBCOMMAND_PROGRAMS else ():
            if not _NAME.fullmatch(word):
                break
            subcommands.append(word)
            if word not in _OMITTED_SUBCOMMANDS:
                break
        yield Invocation(
            " ".join([words[0], *subcommands]),
            tuple(word for word in subcommands if word not in _OMITTED_SUBCOMMANDS),
            (words[0], *part),
        )


def _plain_words(part: Sequence[str]) -> list[str]:
    words = [
        word for word in part if "=" not in word.partition("/")[0] and not _REDIRECTION.match(word)
    ]
    while words and words[0] in _LEADING_KEYWORDS:
        words = words[1:]
    if words and words[0] in _BLOCK_KEYWORDS:
        return []
    while words and words[0] in _SETUP_PROGRAMS:
        words = [] if words[0] in ("cd", "echo", "source", "export", "pushd", ".") else words[1:]
    plain = [word for word in words if not word.startswith("-")]
    return [plain[0].rsplit("/", 1)[-1], *plain[1:]] if plain else []


def parts(command: str) -> Iterator[list[str]]:
    """Split a command line at ``&&``, ``||`` and ``;``, keeping only the start of each pipe."""
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        words = command.split()
    part: list[str] = []
    piped = False
    for word in (*words, ";"):
        if word in ("&&", "||", ";", "|", "&"):
            if part and not piped:
                yield part
            part, piped = [], word == "|"
        else:
            part.append(word)


# -- Injected text in messages -------------------------------------------------


_LESS_THAN = r"(?:<|&lt;|&amp;lt;|&#0*60;|&#x0*3c;|\\+u003c)"
_NAME_INJECTED = "nacre-context"
_OWN_FRAME = (
    re.compile(rf"{_LESS_THAN}\s*{_NAME_INJECTED}\b", re.I),
    re.compile(
        rf"{_LESS_THAN}\s*\\*/\s*{_NAME_INJECTED}[^\n>&\\]{{0,20}}(?:>|&gt;|&amp;gt;|\\+u003e)?",
        re.I,
    ),
)
_TAGS = tuple(
    "system-reminder system_reminder environment_details environment_context "
    "user-prompt-submit-hook hook_context session_context relevant-memories relevant_memories "
    "recalled-memories recalled_memories memory-context memory_context active_memory_plugin".split()
)
"""Tags that tools and other memory systems put around text from this machine."""

_MARKERS = (
    ("<<<EXTERNAL_UNTRUSTED_CONTENT", "<<<END_EXTERNAL_UNTRUSTED_CONTENT"),
    ("<<<BEGIN_UNTRUSTED_CHILD_RESULT", "<<<END_UNTRUSTED_CHILD_RESULT"),
    ("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT", "<<<END_OPENCLAW_INTERNAL_CONTEXT"),
)
"""Marks that OpenClaw puts around external text."""

_Marks = tuple[re.Pattern[str], re.Pattern[str]]
_LOCAL_FRAMES: dict[str, _Marks] = {
    f"<{tag}": (re.compile(rf"<{tag}\b[^>]*>"), re.compile(f"</{tag}>")) for tag in _TAGS
}
_OUTSIDE_FRAMES: dict[str, _Marks] = {
    # nacre puts these tags around external text when it writes answers to a pipe.
    "<untrusted>": (re.compile("<untrusted>"), re.compile("</untrusted>")),
    **{
        begin: (re.compile(f"{begin}[^>]*>>>"), re.compile(f"{end}[^>]*>>>"))
        for begin, end in _MARKERS
    },
}
_BASE64 = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/]{500,}={0,2}")
_SPACES = re.compile(r"\n{3,}")


@frozen
class Cleaned:
    """A message and the injected blocks that were removed from it.

    ``own`` is context from nacre, ``outside`` is external text, and ``local`` is text from this
    machine.
    """

    text: str
    own: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    local: tuple[str, ...] = ()

    @property
    def flags(self) -> Flag:
        """``Flag.INJECTED`` if nacre's context was removed from the message."""
        return Flag.INJECTED if self.own else Flag.NONE


def clean(text: str) -> Cleaned:
    """Remove injected blocks and large base64 data, and replace lone surrogates with ``?``.

    A block ends at its last end mark, or else at the end of the message: losing text is safer than
    attributing other people's text to the speaker. Without a start mark, nacre's block starts the
    message.
    """
    if not text.isascii():
        text = text.encode("utf-8", errors="replace").decode("utf-8")
    text, own = _without_own(text)
    outside, local = list[str](), list[str]()
    if "<" in text:
        text = _without_frames(
            _without_frames(text, _OUTSIDE_FRAMES, outside), _LOCAL_FRAMES, local
        )
    text = _BASE64.sub("[base64]", text).replace("\x00", "")
    text = _SPACES.sub("\n\n", text)
    return Cleaned(text.strip(), own, tuple(outside), tuple(local))


def strip(text: str) -> Cleaned:
    """Remove only nacre's own context from a message."""
    text, own = _without_own(text)
    return Cleaned(text.strip() if own else text, own)


def _without_own(text: str) -> tuple[str, tuple[str, ...]]:
    if _NAME_INJECTED not in text.lower():
        return text, ()
    own: list[str] = []
    text = _without_frame(text, _OWN_FRAME, own)
    ends = [match.end() for match in _OWN_FRAME[1].finditer(text)]
    if ends:
        own.append(text[: ends[-1]])
        text = text[ends[-1] :]
    return text, tuple(own)


def _without_frames(text: str, frames: Mapping[str, _Marks], removed: list[str]) -> str:
    for mark, marks in frames.items():
        if mark in text:
            text = _without_frame(text, marks, removed)
    return text


def _without_frame(text: str, marks: _Marks, removed: list[str]) -> str:
    begin = marks[0].search(text)
    if begin is None:
        return text
    ends = [match.end() for match in marks[1].finditer(text, begin.end())]
    end = ends[-1] if ends else len(text)
    removed.append(text[begin.start() : end])
    return text[: begin.start()] + text[end:]


# -- Text that tools write into the owner's messages ---------------------------
# ``phrases.toml`` lists this text.


_EVERY_TOOL = "any"
_EXPORTING = ("claude-code", "codex", "opencode")
"""Tools whose inserted text often occurs in exported chats."""
_CLOSED = re.compile(r"\][^\S\n]*$", re.MULTILINE)


def is_tools(tool: str, text: str) -> bool:
    """Return True if the tool, not the user, wrote a message."""
    text = text.strip()
    return any(
        text.startswith(phrases["begins"])
        or text in phrases["whole"]
        or any(_at_lines(text, phrases["holds"]))
        for phrases in _phrases_of(tool)
    )


def without_tools_lines(tool: str, text: str) -> tuple[str, tuple[str, ...]]:
    """Separate a message's text from the lines that the tool inserted, and return both."""
    cut: list[str] = []
    for phrases in _phrases_of(tool):
        end = next(_at_lines(text, phrases["ends"]), len(text))
        cut += [text[end:]] if end < len(text) else []
        text = text[:end]
        for at in reversed(list(_at_lines(text, phrases["lines"]))):
            end = _end_of_line(text, at)
            cut.append(text[at:end])
            text = text[:at] + text[end:].lstrip("\n")
    return (text.strip(), tuple(reversed(cut))) if cut else (text, ())


def channels() -> list[str]:
    """Return the names of channels that chat bridges write into messages."""
    return _phrase_tables()["channels"]["names"]


def _end_of_line(text: str, at: int) -> int:
    closed = _CLOSED.search(text, at) if text[at] == "[" else None
    end = text.find("\n", at)
    return closed.end() if closed else (end if end >= 0 else len(text))


def _at_lines(text: str, phrases: tuple[str, ...]) -> Iterator[int]:
    at = 0 if any(phrase in text for phrase in phrases) else len(text)
    while at < len(text):
        if text.startswith(phrases, at):
            yield at
        at = text.find("\n", at) + 1 or len(text)


@cache
def _phrases_of(tool: str) -> list[Mapping[str, tuple[str, ...]]]:
    more = _EXPORTING if tool in ("markdown", "text") else ()
    tables = [_phrase_tables().get(name, {}) for name in (_EVERY_TOOL, tool, *more)]
    kinds = ("begins", "whole", "holds", "lines", "ends")
    return [{kind: tuple(table.get(kind, ())) for kind in kinds} for table in tables]


@cache
def _phrase_tables() -> dict[str, dict[str, list[str]]]:
    file = Path(__file__).with_name("phrases.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


# -- Senders of chat messages --------------------------------------------------


_IDS = ("id", "e164", "username", "tag")
_NAMES = ("name", "label")
_ELAPSED_AND_DATE = re.compile(
    r"\s*(?:\+\d+[smhdw]\S{0,12}(?:\s+|\Z))?(?:(?:[A-Z][a-z]{2} )?\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}.*)?\Z"
)
"""Matches the elapsed time and the date at the end of a message header."""
_ID = re.compile(r"\s*\(?\bid:([^\s)]+)\)?")
_HANDLE = re.compile(r"\s*\((@[^)\s]+)\)")
_FROM = re.compile(r"^\[from: ([^\]\n]{1,120}?)(?: \(([^)\n]*)\))?\][^\S\n]*\Z", re.MULTILINE)
_UNKNOWN_SENDER = "somebody"


@frozen
class Sender:
    """The sender of a chat message, with every name that ``owner.identities`` could list."""

    author: str
    names: frozenset[str]

    def is_one_of(self, identities: Iterable[str]) -> bool:
        """Return True if ``identities`` lists the sender."""
        return any(identity.strip().casefold() in self.names for identity in identities)


def read_sender(text: str) -> tuple[str, Sender | None]:
    """Split a message into its text and its sender.

    The sender stands before the text (``[Feishu] Otto:``) or after it (``[from: Otto]``).
    """
    footer = _FROM.search(text)
    footer_sender = _sender("", footer[2] or footer[1], display=footer[1]) if footer else None
    text = text[: footer.start()].rstrip() if footer else text
    header = _channel_prefix().match(text)
    if header is None:
        return text, footer_sender
    bracketed = _person(header["channel"], header["rest"].strip())
    if bracketed:
        return text[header.end("bracket") :].lstrip(), bracketed
    if header["name"]:
        return text[header.end() :].lstrip(), _sender(header["channel"], header["name"])
    return text, footer_sender


def sender_in(head: str) -> Sender:
    """Return the sender in a chat message's header, even if the channel is unknown."""
    match = _channel_prefix().match(f"[{head}]")
    channel, _, description = (
        (match["channel"], "", match["rest"]) if match else head.partition(" ")
    )
    return _person(channel, description.strip()) or Sender(head, frozenset())


def sender_of(facts: Values) -> Sender | None:
    """Return the sender that a tool's record names, if any."""
    ids = [str(facts[key]) for key in _IDS if facts.get(key)]
    names = [str(facts[key]) for key in _NAMES if facts.get(key)]
    return _sender("", *(ids or names), display=(names or ids)[0]) if ids or names else None


def _person(channel: str, description: str) -> Sender | None:
    description = _ELAPSED_AND_DATE.sub("", f" {description}").strip()
    ids, handles = _ID.findall(description), _HANDLE.findall(description)
    name = _HANDLE.sub("", _ID.sub("", description)).strip()
    if not (name or ids) or (name.startswith("#") and not ids):
        return None
    # The channel writes its id last, after any name that looks like an id.
    return _sender(channel, *(ids[-1:] or [name, *handles[-1:]]), display=name or ids[-1])


def _sender(channel: str, *names: str, display: str = "") -> Sender:
    folded = [name.strip().casefold() for name in names if name.strip()]
    qualified = {f"{channel.casefold()}:{name}" for name in folded} if channel else set()
    return Sender(
        display.strip() or (names[0] if folded else _UNKNOWN_SENDER),
        frozenset(qualified.union(folded)),
    )


@cache
def _channel_prefix() -> re.Pattern[str]:
    names = "|".join(re.escape(name) for name in sorted(channels(), key=len, reverse=True))
    return re.compile(
        rf"\A\s*(?P<bracket>\[(?P<channel>{names})(?![\w-])(?P<rest>[^\]\n]{{0,200}})\])[^\S\n]*"
        r"(?:(?P<name>[^:\n\[\]]{1,80}):[^\S\n])?"
    )


# -- Summaries of tool calls: input, action, files, outcome --------------------


INPUT_CHARACTERS = 16_000
"""Maximum length in characters of a call's input or outcome from an adapter.

Callers must remove secrets before shortening it further, because half a secret is not recognised.
"""

ERROR_CHARACTERS = 600
"""Maximum length in characters of the stored output of a failed call."""

_MAX_PATHS = 50
_MAX_ERROR_LINES = 4
_ERROR_WORDS = re.compile(
    r"error|exception|fail(?:ed|ure)|fatal|panic|cannot|can't|not found|no such|denied|refused|undefined|unexpected|"
    r"timed? ?out|abort|segfault|unhandled|rejected|invalid|missing|conflict|assert|not recogni[sz]ed|错误|失败|异常",
    re.IGNORECASE,
)
_RUNNER_ERROR = re.compile(
    r"npm (?:error|ERR!)|error Command failed|\S*\s?ELIFECYCLE|g?make(?:\[\d+\])?: \*\*\*|error: script \"|husky - "
    r"|\+ (?:CategoryInfo|FullyQualifiedErrorId)\b"
)
"""Matches a task runner's error report, which says less than the failed program's own output."""
_PATH_KEYS = tuple(
    "file_path notebook_path path filePath filepath file target_file relative_path "
    "absolute_path target_notebook filename relative_workspace_path relativeWorkspacePath "
    "targetFile paths files file_paths filePaths edits replacements changes".split()
)
_ACTION_KEYS = {
    Action.RUN: ("command", "cmd", "commandLine"),
    Action.EDIT: (
        "old_string",
        "new_string",
        "oldString",
        "newString",
        "diff",
        "new_str",
        "content",
        "contents",
    ),
    Action.SEARCH: ("pattern", "query", "regex", "glob"),
    Action.FETCH: ("url", "urls"),
}
_NAME_PREFIX = re.compile(r"^(?:builtin_|copilot_|functions\.)|^.*(?:__|\.)")
_PATCHED_FILE = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_PATCH_START = "*** Begin Patch"
_SHELLS = tuple("sh bash zsh dash fish powershell pwsh cmd cmd.exe powershell.exe".split())
_SHELL_FLAG = re.compile(r"-[a-z]*c|/c|-command", re.IGNORECASE)
_ERROR_PREFIX = re.compile(r"^(?:<tool_use_error>\s*)?(?:error:\s*)?", re.IGNORECASE)
_COUNT = re.compile(
    r"(input(?:tokens|other)?|tokensin|(?:input)?cache(?:writes?|creation)(?:input)?(?:tokens)?)"
    r"|((?:input)?cachereads?(?:input)?(?:tokens)?)|(output(?:tokens)?|tokensout)"
)
"""Matches names of token counts: new input, cached input, and output."""
_EXIT = re.compile(r"exit(?:ed with)?(?: exit)? code:? (-?[1-9]\d{0,8})", re.IGNORECASE)
_REFUSED = re.compile(
    r"(?:the )?user (?:has )?(?:declined|denied|rejected|dismissed|cancell?ed)"
    r"|(?:\b(?:tool|permission)\b[^\n]{0,40} )?(?:declined|denied|rejected|cancell?ed) by (?:the )?user"
    r"|(?:the )?user has specified a rule",
    re.IGNORECASE,
)
_EXIT_LINE = re.compile(
    r"exit code:? \d+|(?:command (?:failed|exited)|process exited|wall time).*|output:|\(no output\)",
    re.IGNORECASE,
)
_MAX_PATH_CHARACTERS = 500
_MAX_MADE = 10
MEMORY_MADE = "memory "
"""Prefix in ``ToolCall.made`` before the last digits of the id of a stored memory."""

_MAKING_COMMAND = re.compile(
    r"\bgit\b.{0,200}?\b(?:commit|merge|cherry-pick|revert|push)\b|\b(?:gh|glab|hub)\b.{0,80}?\b(?:pr|mr|pull-request)\b|\bnacre\s+store\b",
    re.DOTALL,
)
_MAKING_TOOL = re.compile(
    r"(?:create|open)_?(?:pull|merge)_?request|^TaskCreate$|(?:memory|nacre)_store$", re.IGNORECASE
)
_COMMITTED = re.compile(r"^\[[^\]\n]{1,200}?\b([0-9a-f]{7,12})[0-9a-f]{0,28}\] ", re.MULTILINE)
_PULL_REQUEST = re.compile(
    r"https://[\w.-]{3,100}/[\w./-]{3,200}?/(?:pull|merge_requests)/\d{1,9}\b"
)
_STORED = re.compile(
    r"^(?:- \[([0-9a-f]{8})\] Stored|Stored: .{0,400}\b([0-9a-f]{8})$)", re.MULTILINE
)
_TASK = re.compile(r"^Task #(\w{1,20}) created", re.MULTILINE)
_CLOSED_TOOL_CALLS = frozenset({"completed", "complete", "done", "finished"})
_DROPPED = frozenset({"cancelled", "canceled", "deleted"})
_MAX_STATE_STEPS = 12
_MAX_STATELESS_STEPS = 5
_MAX_STEPS_READ = 100
_TAG = re.compile(r"</?tool_use_error>")


def new_call(name: str, arguments: Values | str) -> ToolCall:
    """Return a call without an outcome, given a tool's name and arguments.

    ``arguments`` is an object, JSON text, or plain text such as a patch. The call's input is its
    main argument as one line, such as a command, path, query or URL.
    """
    decoded = _decode_object(arguments) if isinstance(arguments, str) else arguments
    text = str(arguments)
    brief = _patched_files(text) or text if decoded is None else _brief(name, decoded)
    decoded = decoded or {}
    action = action_of(name, decoded)
    paths: Iterable[str] = ()
    if action in (Action.READ, Action.EDIT, Action.OTHER):
        paths = _paths(decoded)
    if action in (Action.EDIT, Action.RUN):
        patched = [path for text in _patches(arguments, decoded) for path in _list_patched(text)]
        action, paths = (Action.EDIT, patched) if patched else (action, paths)
    shown = tuple(dict.fromkeys(paths))[:_MAX_PATHS]
    return ToolCall(name, _shorten(brief), action=action, paths=shown)


def with_outcome(call: ToolCall, result: str | None, output: str = "") -> ToolCall:
    """Return the call with its outcome, and with the error or created objects in its output."""
    call = replace(call, outcome=result)
    if call.failed:
        return replace(call, error=telling(output) or None)
    is_making = result == "ok" and (
        _MAKING_COMMAND.search(call.input)
        if call.action is Action.RUN
        else _MAKING_TOOL.search(call.name)
    )
    return replace(call, made=_made_objects(output)) if is_making else call


def action_of(name: str, arguments: Values | None = None) -> Action:
    """Return a call's action, according to the tool's name or else to its arguments."""
    actions = _actions()
    lowered = name.lower()
    action = actions.get(lowered) or actions.get(_NAME_PREFIX.sub("", lowered))
    if action is None and arguments and "__" not in name:
        action = next(
            (a for a, keys in _ACTION_KEYS.items() if any(arguments.get(key) for key in keys)),
            None,
        )
    return action or Action.OTHER


def telling(output: str) -> str:
    """Return up to four error lines from a failed call's output, or else its last lines."""
    text = _TAG.sub("", output[-INPUT_CHARACTERS:])
    lines = [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not _EXIT_LINE.fullmatch(line.strip())
    ]
    error_lines = [line for line in lines if _ERROR_WORDS.search(line)]
    selected = (
        [line for line in error_lines if not _RUNNER_ERROR.match(line)] or error_lines or lines
    )
    selected = selected[-_MAX_ERROR_LINES:]
    return "\n".join(dict.fromkeys(line[:ERROR_CHARACTERS] for line in selected))[:INPUT_CHARACTERS]


@cache
def _actions() -> dict[str, Action]:
    actions: dict[str, Action] = {}
    for file in (Path(__file__).parent / "actions").glob("*.toml"):
        for action, names in tomllib.loads(file.read_text(encoding="utf-8")).items():
            actions |= dict.fromkeys(names, Action(action))
    return actions


def memories_made(turns: Iterable[Turn]) -> Iterator[str]:
    """Yield the last eight digits of the ids of memories that the agent stored in ``turns``."""
    for call in (call for turn in turns for call in turn.tool_calls):
        yield from (
            name.removeprefix(MEMORY_MADE) for name in call.made if name.startswith(MEMORY_MADE)
        )


def _made_objects(output: str) -> tuple[str, ...]:
    text = output[:INPUT_CHARACTERS]
    names = [f"commit {match[1]}" for match in _COMMITTED.finditer(text)]
    names += [match[0] for match in _PULL_REQUEST.finditer(text)]
    names += [f"{MEMORY_MADE}{match[1] or match[2]}" for match in _STORED.finditer(text)]
    names += [f"task {match[1]}" for match in _TASK.finditer(text)]
    return tuple(dict.fromkeys(names))[:_MAX_MADE]


def _paths(arguments: Values) -> Iterator[str]:
    for key in _PATH_KEYS:
        value = arguments.get(key)
        if isinstance(value, str):
            yield from _whole_path(value)
        elif isinstance(value, list):
            for item in value[:_MAX_PATHS]:
                if isinstance(item, str):
                    yield from _whole_path(item)
                elif isinstance(item, Mapping):
                    yield from _paths(item)
        elif isinstance(value, Mapping) and key == "changes":
            yield from (path for path in value if isinstance(path, str))


def _whole_path(text: str) -> Iterator[str]:
    path = text.strip().removeprefix("file://")
    if path and "\n" not in path and len(path) <= _MAX_PATH_CHARACTERS:
        yield path


def _patches(arguments: Values | str, decoded: Values) -> Iterator[str]:
    if isinstance(arguments, str) and not decoded:
        yield arguments
    for key in ("input", "patch", "command", "cmd", "patchText"):
        value = decoded.get(key)
        yield from (
            text
            for text in (value if isinstance(value, list) else [value])
            if isinstance(text, str)
        )


def _list_patched(text: str) -> list[str]:
    return [path.strip() for path in _PATCHED_FILE.findall(text)] if _PATCH_START in text else []


def _brief(name: str, arguments: Values) -> str:
    for key in _DESCRIBED_KEYS:
        if arguments.get(key) and (text := _describe(key, arguments)).strip():
            return text
    strings = (value for value in arguments.values() if isinstance(value, str) and value.strip())
    text = next(strings, "")
    return (_patched_files(text) if name == "apply_patch" else "") or text


def outcome(output: str = "", *, exit_code: int | str | None = None, is_error: bool = False) -> str:
    """Return the outcome of a call: ``"ok"``, ``"exit 2"`` or ``"error: <first line>"``.

    An exit code takes priority over ``is_error``.
    """
    if exit_code is not None:
        return f"exit {code}" if (code := int(exit_code)) else "ok"
    return f"error: {_first_line(output)}".rstrip(": ") if is_error else "ok"


def tokens_of(usage: Values) -> Tokens:
    """Return the total tokens of a usage record whose input count excludes cached tokens."""
    counts = [0, 0, 0]
    for name, value in usage.items():
        kind = _COUNT.fullmatch(name.replace("_", "").lower())
        if kind and kind.lastindex and type(value) is int:
            counts[kind.lastindex - 1] += value
    return Tokens(*counts).bounded


def ending(output: str, *, exit_code: object = None, is_error: bool = False) -> str:
    """Return a call's outcome, using an exit code or a refusal by the user in its output."""
    if type(exit_code) is not int:
        lines = output.strip().splitlines() if is_error else []
        codes = _EXIT.findall("\n".join(lines[:1] + lines[-1:]))
        exit_code = int(codes[-1]) if codes else None
    is_refused = _REFUSED.search(output[:300]) if is_error else _REFUSED.match(output)
    return "rejected" if is_refused else outcome(output, exit_code=exit_code, is_error=is_error)


def command_line(command: object) -> str:
    """Return a command as typed in a shell: ``script`` for ``["bash", "-lc", script]``."""
    if isinstance(command, str):
        return _brief_patch(command)
    if not isinstance(command, Sequence):
        return ""
    words = [str(word) for word in command]
    if words[:1] == ["apply_patch"]:
        return _brief_patch(" ".join(words))
    shell = words[0].replace("\\", "/").rsplit("/", 1)[-1].lower() if words else ""
    if len(words) >= 3 and shell in _SHELLS and _SHELL_FLAG.fullmatch(words[-2]):
        return _brief_patch(words[-1])
    return shlex.join(words)


def _brief_patch(command: str) -> str:
    files = _patched_files(command)
    return f"apply_patch {files}" if files else command


def _patched_files(text: str) -> str:
    return ", ".join(dict.fromkeys(_list_patched(text)))


def _describe(key: str, arguments: Values) -> str:
    value = arguments[key]
    match key:
        case "command" | "cmd":
            return command_line(value)
        case "input" | "patch":
            return _patched_files(value) if isinstance(value, str) else ""
        case "pattern":
            where = arguments.get("path") or arguments.get("glob")
            return f"{value} in {where}" if where else str(value)
        case "todos" | "plan" | "questions":
            return _steps(value)
        case "taskId":  # the number of a task in a list, and its new status
            return " ".join([f"#{value}", *filter(None, [string(arguments, "status")])])
        case _ if isinstance(value, list):
            return ", ".join(item for item in value if isinstance(item, str))
    return value if isinstance(value, str) else ""


def _steps(value: object) -> str:
    items = [item for item in objects_in(value) if item.get("status") not in _DROPPED]
    items = items[:_MAX_STEPS_READ]
    if not any("status" in item for item in items):
        return "; ".join(map(_step, items[:_MAX_STATELESS_STEPS]))
    done = [item for item in items if item.get("status") in _CLOSED_TOOL_CALLS]
    open_steps = [item for item in items if item not in done]
    return "; ".join(
        [*(f"[ ] {_step(item)}" for item in open_steps), *(f"[x] {_step(item)}" for item in done)][
            :_MAX_STATE_STEPS
        ]
    )


def _step(item: Values) -> str:
    return string(item, "content", "step", "question", "description", "title", "text") or ""


_DESCRIBED_KEYS = tuple(
    "command cmd input patch file_path notebook_path pattern query queries search_query url "
    "path filePath file todos plan questions taskId subject skill description prompt".split()
)
"""Names of arguments, the most informative first. A command precedes its description."""


def _decode_object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = msgspec.json.decode(text.encode("utf-8", errors="replace"))
    except (msgspec.DecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _shorten(text: str) -> str:
    text = " ".join(text[: INPUT_CHARACTERS * 2].split())
    text = text.encode("utf-8", errors="replace").decode("utf-8")
    return text if len(text) <= INPUT_CHARACTERS else text[: INPUT_CHARACTERS - 1] + "…"


def _first_line(text: str) -> str:
    line = next((line.strip() for line in _TAG.sub("", text).splitlines() if line.strip()), "")
    return _shorten(_ERROR_PREFIX.sub("", line))


# -- Sessions that nacre itself started through an agent's command -------------
# These sessions are not read.


TOOLS = ("claude-code", "codex")
HEAD_BYTES = 262_144
_MARK = OWN_CALL.partition("]")[0] + "]"
_BEGINS = re.compile(rb'(?<!\\)"' + re.escape(_MARK.encode()))


def may_be_own(head: bytes) -> bool:
    """Return True if the start of a transcript may contain one of nacre's own prompts."""
    return _BEGINS.search(head) is not None


def is_own_call(items: Iterable[Session | Turn]) -> bool:
    """Return True if nacre itself started the session, as its first prompt shows."""
    for item in items:
        if isinstance(item, Turn) and item.speaker is Speaker.OWNER:
            return item.text.lstrip().startswith(_MARK)
    return False
