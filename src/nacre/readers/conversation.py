"""Command lines in parts: which programs they run, and whether these only look."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from nacre.values.models import OWN_CALL
from nacre.values.session import Action, Session, Speaker, ToolCall, Turn

_SETTING_UP = frozenset(
    {"cd", "source", "export", "set", "echo", "pushd", "env", "sudo", "time", "timeout", "."}
)
_CARRIERS = frozenset(
    "python python3 npx uv poetry bundle pnpm npm yarn make go cargo git docker mise kubectl terraform dotnet gradle "
    "mvn deno bun just rake gh mix swift flutter dart brew pip pip3 pdm hatch nx turbo supabase az aws gcloud heroku "
    "fly composer php ruby node sbt bazel".split()
)
_LOOKING = frozenset(
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

_BETWEEN = frozenset({"do", "then", "else", "if", "elif", "while", "until", "!", "{", "("})
_BLOCKS = frozenset(
    {"for", "done", "fi", "case", "esac", "}", ")", "function", "select", "return", "exit"}
)
_LEADING = frozenset(
    {"run", "exec", "compose", "tool", "pip", "pr", "issue", "x", "dlx", "stash", "worktree"}
)
_NAME = re.compile(r"[A-Za-z_@][\w@:.+-]{0,30}")
_REDIRECTION = re.compile(r"\d?[<>]")
_OPTION = re.compile(r"--([a-z][\w-]*)")


def only_looks(call: ToolCall) -> bool:
    """Whether a call runs nothing but programs that change nothing and prove nothing."""
    found = list(programs(call.input)) if call.action is Action.RUN else []
    return bool(found) and all(map(looks, found))


def looks(program: str) -> bool:
    """Whether a program, as :func:`programs` and :func:`names` give it, only looks."""
    return f"{program} ".startswith(tuple(f"{known} " for known in _LOOKING))


def programs(command: str) -> Iterator[str]:
    """The programs that a command line runs, each with what it is told first where that makes it what it is."""
    for words in map(_plain_words, parts(command)):
        if words:
            told = " ".join(words[1:3]) if words[0] in _CARRIERS else ""
            yield f"{words[0]} {told}".strip()


@lru_cache(maxsize=2048)
def names(command: str) -> tuple[str, ...]:
    """The same as people call it: ``git commit``, ``npm run test``; without files, code and what is fed to it."""
    return tuple(_names(command))


def _names(command: str) -> Iterator[str]:
    for one in invocations(command):
        yield one.name


class Invocation(NamedTuple):
    """A program as people call it (``git commit``), what it is told to do (``commit``, without words such as ``run``)
    and its long options, without dashes and values."""

    name: str
    told: tuple[str, ...]
    options: tuple[str, ...]


def invocations(command: str) -> Iterator[Invocation]:
    """The programs that a command line runs, by name; without files, code and what is fed to them."""
    for part in parts(command.partition("<<")[0]):
        words = _plain_words(part)
        if not words or not _NAME.fullmatch(words[0]):
            continue
        told = []
        for word in words[1:3] if words[0] in _CARRIERS else ():
            if not _NAME.fullmatch(word):
                break
            told.append(word)
            if word not in _LEADING:
                break
        options = tuple(found[1] for word in part if (found := _OPTION.match(word)))
        yield Invocation(
            " ".join([words[0], *told]),
            tuple(word for word in told if word not in _LEADING),
            options,
        )


def _plain_words(part: Sequence[str]) -> list[str]:
    """A simple command without what sets it up, its options and its redirections; its program without a folder."""
    words = [
        word for word in part if "=" not in word.partition("/")[0] and not _REDIRECTION.match(word)
    ]
    while words and words[0] in _BETWEEN:
        words = words[1:]
    if words and words[0] in _BLOCKS:
        return []
    while words and words[0] in _SETTING_UP:
        words = [] if words[0] in ("cd", "echo", "source", "export", "pushd", ".") else words[1:]
    plain = [word for word in words if not word.startswith("-")]
    return [plain[0].rsplit("/", 1)[-1], *plain[1:]] if plain else []


def parts(command: str) -> Iterator[list[str]]:
    """A command line at ``&&``, ``||``, ``;`` and ``|``; the head of a pipe is what succeeds or fails."""
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        words = command.split()
    part: list[str] = []
    piped = False
    for word in words:
        if word in ("&&", "||", ";", "|", "&"):
            if part and not piped:
                yield part
            part, piped = [], word == "|"
        else:
            part.append(word)
    if part and not piped:
        yield part


# ----------------------------------------------------------------------------
# Take out of a message what its speaker did not say: nacre's own context, reminders of the harness,
# bulk.


_LESS = r"(?:<|&lt;|&amp;lt;|&#0*60;|&#x0*3c;|\\+u003c)"
_NAME_INJECTED = "nacre-context"
_OWN = (
    re.compile(rf"{_LESS}\s*{_NAME_INJECTED}\b", re.I),
    re.compile(
        rf"{_LESS}\s*\\*/\s*{_NAME_INJECTED}[^\n>&\\]{{0,20}}(?:>|&gt;|&amp;gt;|\\+u003e)?", re.I
    ),
)
_TAGS = (
    "system-reminder",
    "system_reminder",
    "environment_details",
    "environment_context",
    "user-prompt-submit-hook",
    "hook_context",
    "session_context",
    "relevant-memories",
    "relevant_memories",
    "recalled-memories",
    "recalled_memories",
    "memory-context",
    "memory_context",
    "active_memory_plugin",
)
"""Frames of harnesses and of other memories, around what lies on this machine."""

_OUTSIDE_TAGS = ("untrusted",)
"""nacre's own frame around what is from outside, where its answer is read in a pipe."""

_MARKERS = (
    ("<<<EXTERNAL_UNTRUSTED_CONTENT", "<<<END_EXTERNAL_UNTRUSTED_CONTENT"),
    ("<<<BEGIN_UNTRUSTED_CHILD_RESULT", "<<<END_UNTRUSTED_CHILD_RESULT"),
    ("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT", "<<<END_OPENCLAW_INTERNAL_CONTEXT"),
)
"""OpenClaw's frames around what is from outside."""

_Marks = tuple[re.Pattern[str], re.Pattern[str]]
_LOCAL_FRAMES: dict[str, _Marks] = {
    f"<{tag}": (re.compile(rf"<{tag}\b[^>]*>"), re.compile(f"</{tag}>")) for tag in _TAGS
}
_OUTSIDE_FRAMES: dict[str, _Marks] = {
    **{f"<{tag}>": (re.compile(f"<{tag}>"), re.compile(f"</{tag}>")) for tag in _OUTSIDE_TAGS},
    **{
        begin: (re.compile(f"{begin}[^>]*>>>"), re.compile(f"{end}[^>]*>>>"))
        for begin, end in _MARKERS
    },
}
_BASE64 = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/]{500,}={0,2}")
_BULK = 500
_SPACES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The words that are left; ``own`` is what was taken out of nacre's own context, ``outside`` what stood in frames
    around text from outside, ``local`` in those around what this machine has to say."""

    text: str
    own: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    local: tuple[str, ...] = ()

    @property
    def injected(self) -> bool:
        """Whether nacre's own context was among what was taken out."""
        return bool(self.own)


def clean(text: str) -> Cleaned:
    """Strip injected blocks and base64 bulk; lone surrogates become U+FFFD.

    A block runs to the last mark that ends it, for what stands in it may hold such a mark, and one that never ends to
    the end of the text; one of nacre's own that never begins starts with the text: better to lose words than to take
    somebody else's for the speaker's. Of nacre's own escaped marks count, too: summaries and JSON quote them.
    """
    if not text.isascii():
        text = text.encode("utf-8", errors="replace").decode("utf-8")
    own: tuple[str, ...] = ()
    if _may_hold_own(text):
        text, own = _without_own(text)
    outside, local = list[str](), list[str]()
    if "<" in text:
        text = _without_frames(
            _without_frames(text, _OUTSIDE_FRAMES, outside), _LOCAL_FRAMES, local
        )
    if _may_hold_bulk(text):
        text = _BASE64.sub("[base64]", text)
    if "\x00" in text:
        text = text.replace("\x00", "")
    if "\n\n\n" in text:
        text = _SPACES.sub("\n\n", text)
    return Cleaned(text.strip(), own, tuple(outside), tuple(local))


def strip(text: str) -> Cleaned:
    """Strip nacre's own context alone: the last door, for what an adapter let pass."""
    left, own = _without_own(text)
    return Cleaned(left.strip() if own else text, own)


def _without_own(text: str) -> tuple[str, tuple[str, ...]]:
    """A text without nacre's own context, and what that was."""
    if not _may_hold_own(text) or _NAME_INJECTED not in text.lower():
        return text, ()
    own: list[str] = []
    text = _without_frame(text, _OWN, own)
    ends = [match.end() for match in _OWN[1].finditer(text)]
    if ends:
        own.append(text[: ends[-1]])
        text = text[ends[-1] :]
    return text, tuple(own)


def _without_frames(text: str, frames: Mapping[str, _Marks], inside: list[str]) -> str:
    """A text without some frames; what stood in them is added to ``inside``."""
    for mark, marks in frames.items():
        if mark in text:
            text = _without_frame(text, marks, inside)
    return text


def _without_frame(text: str, marks: _Marks, inside: list[str]) -> str:
    """A text without what stands from the first mark that begins a frame to the last one that ends it."""
    begin = marks[0].search(text)
    if begin is None:
        return text
    ends = [match.end() for match in marks[1].finditer(text, begin.end())]
    end = ends[-1] if ends else len(text)
    inside.append(text[begin.start() : end])
    return text[: begin.start()] + text[end:]


def _may_hold_own(text: str) -> bool:
    return "-context" in text or "-Context" in text or "-CONTEXT" in text


def _may_hold_bulk(text: str) -> bool:
    """Whether some run of signs is as long as bulk: then one whole half of that length, at least, has no blank."""
    half = _BULK // 2
    for at in range(0, len(text) - half + 1, half):
        if text.find(" ", at, at + half) < 0 and text.find("\n", at, at + half) < 0:
            return len(text) >= _BULK
    return False


# ----------------------------------------------------------------------------
# What tools themselves write where the owner's words stand: ``phrases.toml`` lists it.


_EVERY_TOOL = "any"
_CLOSED = re.compile(r"\][^\S\n]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Phrases:
    """What one tool writes; ``phrases.toml`` says what each of them means."""

    begins: tuple[str, ...]
    whole: tuple[str, ...]
    holds: tuple[str, ...]
    lines: tuple[str, ...]
    ends: tuple[str, ...]


def is_tools(tool: str, text: str) -> bool:
    """Whether the tool itself wrote a message."""
    text = text.strip()
    return any(
        text.startswith(phrases.begins)
        or text in phrases.whole
        or any(_at_lines(text, phrases.holds))
        for phrases in _phrases_of(tool)
    )


def without_tools_lines(tool: str, text: str) -> tuple[str, tuple[str, ...]]:
    """A message without the lines that its tool wrote, and those."""
    cut: list[str] = []
    for phrases in _phrases_of(tool):
        end = next(_at_lines(text, phrases.ends), len(text))
        cut += [text[end:]] if end < len(text) else []
        text = text[:end]
        for at in reversed(list(_at_lines(text, phrases.lines))):
            end = _end_of_line(text, at)
            cut.append(text[at:end])
            text = text[:at] + text[end:].lstrip("\n")
    return (text.strip(), tuple(reversed(cut))) if cut else (text, ())


def channels() -> list[str]:
    """What bridges to chats call their channels."""
    return _tables()["channels"]["names"]


def _end_of_line(text: str, at: int) -> int:
    """Where a tool's line ends: one in brackets may be several."""
    closed = _CLOSED.search(text, at) if text[at] == "[" else None
    end = text.find("\n", at)
    return closed.end() if closed else (end if end >= 0 else len(text))


def _at_lines(text: str, phrases: tuple[str, ...]) -> Iterator[int]:
    """The places of the lines that begin with one of some phrases."""
    at = 0 if any(phrase in text for phrase in phrases) else len(text)
    while at < len(text):
        if text.startswith(phrases, at):
            yield at
        at = text.find("\n", at) + 1 or len(text)


@cache
def _phrases_of(tool: str) -> tuple[Phrases, ...]:
    """The phrases of every tool, and those of one."""
    found = [_tables().get(name, {}) for name in (_EVERY_TOOL, tool)]
    return tuple(
        Phrases(
            *(tuple(told.get(kind, ())) for kind in ("begins", "whole", "holds", "lines", "ends"))
        )
        for told in found
    )


@cache
def _tables() -> dict[str, dict[str, list[str]]]:
    file = Path(__file__).with_name("phrases.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


# ----------------------------------------------------------------------------
# Who wrote a message in a chat, as bridges and tools write it there, and whether that is the owner.


_IDS = ("id", "e164", "username", "tag")
_NAMES = ("name", "label")
_WHEN = re.compile(
    r"\s*(?:\+\d+[smhdw]\S{0,12}(?:\s+|\Z))?(?:(?:[A-Z][a-z]{2} )?\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}.*)?\Z"
)
"""How long after the message before, and when, at the end of what stands in the brackets."""
_ID = re.compile(r"\s*\(?\bid:([^\s)]+)\)?")
_HANDLE = re.compile(r"\s*\((@[^)\s]+)\)")
_FROM = re.compile(r"^\[from: ([^\]\n]{1,120}?)(?: \(([^)\n]*)\))?\][^\S\n]*\Z", re.MULTILINE)
_SOMEBODY = "somebody"


@dataclass(frozen=True, slots=True)
class Sender:
    """Whom a message in a chat names; ``names`` are those by which the owner may have configured them."""

    author: str
    names: frozenset[str]

    def is_one_of(self, identities: Iterable[str]) -> bool:
        """Whether the owner configured one of the names."""
        return any(identity.strip().casefold() in self.names for identity in identities)


def read_sender(text: str) -> tuple[str, Sender | None]:
    """A message without what names its sender, ``[Feishu] Otto:`` before it or ``[from: Otto]`` after it, and the
    sender; of several the one before it.
    """
    end = _FROM.search(text)
    after = _sender("", end[2] or end[1], shown=end[1]) if end else None
    text = text[: end.start()].rstrip() if end else text
    begin = _line().match(text)
    if begin is None:
        return text, after
    inside = _person(begin["channel"], begin["rest"].strip())
    if inside:
        return text[begin.end("bracket") :].lstrip(), inside
    if begin["name"]:
        return text[begin.end() :].lstrip(), _sender(begin["channel"], begin["name"])
    return text, after


def sender_in(head: str) -> Sender:
    """The sender whom an envelope names before its time: the channel, of whatever name, and who writes there."""
    known = _line().match(f"[{head}]")
    channel, _, rest = (known["channel"], "", known["rest"]) if known else head.partition(" ")
    return _person(channel, rest.strip()) or Sender(head, frozenset())


def sender_of(facts: Mapping[str, Any]) -> Sender | None:
    """The sender whom a tool describes; nobody where it names none."""
    ids = [str(facts[key]) for key in _IDS if facts.get(key)]
    names = [str(facts[key]) for key in _NAMES if facts.get(key)]
    return _sender("", *(ids or names), shown=(names or ids)[0]) if ids or names else None


def _person(channel: str, rest: str) -> Sender | None:
    """Who is named in the brackets; nobody where they name a room, or a time alone.

    An id, where there is one, is the only name that counts, and the last one is the channel's: anybody may take a name.
    """
    rest = _WHEN.sub("", f" {rest}").strip()
    ids, handles = _ID.findall(rest), _HANDLE.findall(rest)
    name = _HANDLE.sub("", _ID.sub("", rest)).strip()
    if not (name or ids) or (name.startswith("#") and not ids):
        return None
    return _sender(channel, *(ids[-1:] or [name, *handles[-1:]]), shown=name or ids[-1])


def _sender(channel: str, *names: str, shown: str = "") -> Sender:
    told = [name.strip().casefold() for name in names if name.strip()]
    known = {f"{channel.casefold()}:{name}" for name in told} if channel else set()
    return Sender(shown.strip() or (names[0] if told else _SOMEBODY), frozenset(known.union(told)))


@cache
def _line() -> re.Pattern[str]:
    names = "|".join(re.escape(name) for name in sorted(channels(), key=len, reverse=True))
    return re.compile(
        rf"\A\s*(?P<bracket>\[(?P<channel>{names})(?![\w-])(?P<rest>[^\]\n]{{0,200}})\])[^\S\n]*"
        r"(?:(?P<name>[^:\n\[\]]{1,80}):[^\S\n])?"
    )


# ----------------------------------------------------------------------------
# Tool calls in brief: what was asked for, in one readable line, what it does to which files, how it
# came out.


INPUT_CHARACTERS = 16_000
"""What an adapter keeps of an input or an outcome. Whoever stores it takes secrets out first and cuts then: half a
secret would not be recognised."""

ERROR_CHARACTERS = 600
"""How much is kept of what a call that failed put out."""

_PATHS = 50
_ERROR_LINES = 4
_TELLING = re.compile(
    r"error|exception|fail(?:ed|ure)|fatal|panic|cannot|can't|not found|no such|denied|refused|undefined|unexpected|"
    r"timed? ?out|abort|segfault|unhandled|rejected|invalid|missing|conflict|assert|not recogni[sz]ed|错误|失败|异常",
    re.IGNORECASE,
)
_RUNNERS = re.compile(
    r"npm (?:error|ERR!)|error Command failed|\S*\s?ELIFECYCLE|g?make(?:\[\d+\])?: \*\*\*|error: script \"|husky - "
    r"|\+ (?:CategoryInfo|FullyQualifiedErrorId)\b"
)
"""How lines begin in which what ran a program says that it failed: the program's own say why."""
_PATH_KEYS = (
    "file_path",
    "notebook_path",
    "path",
    "filePath",
    "filepath",
    "file",
    "target_file",
    "relative_path",
    "absolute_path",
    "target_notebook",
    "filename",
    "relative_workspace_path",
    "relativeWorkspacePath",
    "targetFile",
    "paths",
    "files",
    "file_paths",
    "filePaths",
    "edits",
    "replacements",
    "changes",
)
_WORKING_KEYS = {
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
_NAME_DRESS = re.compile(r"^(?:builtin_|copilot_|functions\.)|^.*(?:__|\.)")
_PATCHED_FILE = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_PATCH_START = "*** Begin Patch"
_SHELLS = (
    "sh",
    "bash",
    "zsh",
    "dash",
    "fish",
    "powershell",
    "pwsh",
    "cmd",
    "cmd.exe",
    "powershell.exe",
)
_SHELL_FLAG = re.compile(r"-[a-z]*c|/c|-command", re.IGNORECASE)
_ERROR_PREFIX = re.compile(r"^(?:<tool_use_error>\s*)?(?:error:\s*)?", re.IGNORECASE)
_EXIT_LINE = re.compile(
    r"(?:exit code:? \d+|command failed.*|process exited.*|wall time.*|output:|"
    r"command exited with code -?\d+|\(no output\))",
    re.IGNORECASE,
)
_PATH_CHARACTERS = 500
_MOST_MADE = 10
MEMORY_MADE = "memory "
"""What a call that stored a memory made begins with; its id ends with the rest."""

_MAKING = re.compile(
    r"\bgit\b.{0,200}?\b(?:commit|merge|cherry-pick|revert|push)\b|\b(?:gh|glab|hub)\b.{0,80}?\b(?:pr|mr|pull-request)\b|\bnacre\s+store\b",
    re.DOTALL,
)
_MAKER = re.compile(
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
_STEPS_KEPT = 12
_STEPS_SHOWN = 5
_MOST_STEPS = 100
_TAG = re.compile(r"</?tool_use_error>")


def asked(name: str, arguments: Mapping[str, Any] | str) -> ToolCall:
    """A call as it was made: its brief input, what it does, and to which files.

    ``arguments`` is what the model passed, as an object, as JSON text, or as plain text (a patch).
    """
    decoded = (_decode_object(arguments) if isinstance(arguments, str) else arguments) or {}
    brief = short_input(name, arguments)
    action = action_of(name, decoded)
    paths: Iterable[str] = ()
    if action in (Action.READ, Action.EDIT, Action.OTHER):
        paths = _paths(decoded)
    if action in (Action.EDIT, Action.RUN):
        patched = [path for text in _patches(arguments, decoded) for path in _list_patched(text)]
        action, paths = (Action.EDIT, patched) if patched else (action, paths)
    return ToolCall(name, brief, action=action, paths=tuple(dict.fromkeys(paths))[:_PATHS])


def answered(call: ToolCall, result: str | None, output: Callable[[], str] = str) -> ToolCall:
    """A call with how it came out; what it put out is looked at only when it failed, or makes what has a name."""
    call = replace(call, outcome=result)
    if call.failed:
        return replace(call, error=telling(output()) or None)
    is_making = result == "ok" and (
        _MAKING.search(call.input) if call.action is Action.RUN else _MAKER.search(call.name)
    )
    return replace(call, made=_made_known(output())) if is_making else call


def action_of(name: str, arguments: Mapping[str, Any] | None = None) -> Action:
    """What a call does, by the tool's name, else by what it was given."""
    known = _actions()
    lowered = name.lower()
    action = known.get(lowered) or known.get(_NAME_DRESS.sub("", lowered))
    if action is None and arguments and "__" not in name:
        action = next(
            (a for a, keys in _WORKING_KEYS.items() if any(arguments.get(key) for key in keys)),
            None,
        )
    return action or Action.OTHER


def telling(output: str) -> str:
    """The lines of an output that say what went wrong, else its last ones; at most 600 characters."""
    text = _TAG.sub("", output[-INPUT_CHARACTERS:])
    lines = [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not _EXIT_LINE.fullmatch(line.strip())
    ]
    told = [line for line in lines if _TELLING.search(line)]
    found = [line for line in told if not _RUNNERS.match(line)] or told or lines
    found = found[-_ERROR_LINES:]
    return "\n".join(dict.fromkeys(line[:ERROR_CHARACTERS] for line in found))[:INPUT_CHARACTERS]


@cache
def _actions() -> dict[str, Action]:
    """The names in every ``actions.toml``. No adapter is loaded for it."""
    here = Path(__file__).parent
    found: dict[str, Action] = {}
    for file in sorted((here / "actions").glob("*.toml")):
        for action, names in tomllib.loads(file.read_text(encoding="utf-8")).items():
            for name in names:
                if found.setdefault(name, Action(action)).value != action:
                    raise ValueError(f"{file}: {name!r} does something else already")
    return found


def memories_made(turns: Iterable[Turn]) -> Iterator[str]:
    """The ends of the ids of memories that an agent stored in some turns."""
    for call in (call for turn in turns for call in turn.tool_calls):
        yield from (
            made.removeprefix(MEMORY_MADE) for made in call.made if made.startswith(MEMORY_MADE)
        )


def _made_known(output: str) -> tuple[str, ...]:
    """Commits, pull requests, memories and tasks that an output tells of."""
    text = output[:INPUT_CHARACTERS]
    found = [f"commit {match[1]}" for match in _COMMITTED.finditer(text)]
    found += [match[0] for match in _PULL_REQUEST.finditer(text)]
    found += [f"{MEMORY_MADE}{match[1] or match[2]}" for match in _STORED.finditer(text)]
    found += [f"task {match[1]}" for match in _TASK.finditer(text)]
    return tuple(dict.fromkeys(found))[:_MOST_MADE]


def _paths(arguments: Mapping[str, Any]) -> Iterator[str]:
    for key in _PATH_KEYS:
        value = arguments.get(key)
        if isinstance(value, str):
            yield from _whole_path(value)
        elif isinstance(value, list):
            for item in value[:_PATHS]:
                if isinstance(item, str):
                    yield from _whole_path(item)
                elif isinstance(item, Mapping):
                    yield from _paths(item)
        elif isinstance(value, Mapping) and key == "changes":
            yield from (path for path in value if isinstance(path, str))


def _whole_path(text: str) -> Iterator[str]:
    path = text.strip().removeprefix("file://")
    if path and "\n" not in path and len(path) <= _PATH_CHARACTERS:
        yield path


def _patches(arguments: Mapping[str, Any] | str, decoded: Mapping[str, Any]) -> Iterator[str]:
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


def short_input(name: str, arguments: Mapping[str, Any] | str) -> str:
    """A command line, path, pattern, query or URL: what a person would say the call was about; in one line, uncut.

    ``arguments`` is what the model passed, as an object, as JSON text, or as plain text (a patch).
    """
    if isinstance(arguments, str):
        decoded = _decode_object(arguments)
        if decoded is None:
            return _shorten(_patched_files(arguments) or arguments)
        arguments = decoded
    for key, describe in _DESCRIBERS.items():
        if arguments.get(key):
            text = describe(arguments[key], arguments)
            if text.strip():
                return _shorten(text)
    strings = (value for value in arguments.values() if isinstance(value, str) and value.strip())
    text = next(strings, "")
    return _shorten((_patched_files(text) if name == "apply_patch" else "") or text)


def outcome(output: str = "", *, exit_code: int | None = None, is_error: bool = False) -> str:
    """``"ok"``, ``"exit 2"`` or ``"error: <first line>"``; an exit code says more than that it failed."""
    if exit_code is not None:
        return "ok" if exit_code == 0 else f"exit {exit_code}"
    return f"error: {_first_line(output)}".rstrip(": ") if is_error else "ok"


def command_line(command: object) -> str:
    """A command as typed: the script of ``["bash", "-lc", script]``, else the words joined."""
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
    """A command that carries a whole patch is named by the files it changes."""
    files = _patched_files(command)
    return f"apply_patch {files}" if files else command


def _patched_files(text: str) -> str:
    return ", ".join(dict.fromkeys(_list_patched(text)))


def _command(value: object, _: Mapping[str, Any]) -> str:
    return command_line(value)


def _text(value: object, _: Mapping[str, Any]) -> str:
    if isinstance(value, list):
        return ", ".join(item for item in value if isinstance(item, str))
    return value if isinstance(value, str) else ""


def _pattern(value: object, arguments: Mapping[str, Any]) -> str:
    where = arguments.get("path") or arguments.get("glob")
    return f"{value} in {where}" if where else str(value)


def _patch(value: object, _: Mapping[str, Any]) -> str:
    return _patched_files(value) if isinstance(value, str) else ""


def _steps(value: object, _: Mapping[str, Any]) -> str:
    """A plan: what is left of it first, with a box that is empty, or ticked; no boxes where nothing has a state."""
    if not isinstance(value, Iterable) or isinstance(value, str):
        return ""
    items = [
        item for item in value if isinstance(item, Mapping) and item.get("status") not in _DROPPED
    ][:_MOST_STEPS]
    if not any("status" in item for item in items):
        return "; ".join(map(_step, items[:_STEPS_SHOWN]))
    done = [item for item in items if item.get("status") in _CLOSED_TOOL_CALLS]
    left = [item for item in items if item not in done]
    return "; ".join(
        [*(f"[ ] {_step(item)}" for item in left), *(f"[x] {_step(item)}" for item in done)][
            :_STEPS_KEPT
        ]
    )


def _step(item: Mapping[str, Any]) -> str:
    keys = ("content", "step", "question", "description", "title", "text")
    return next((value for key in keys if isinstance(value := item.get(key), str) and value), "")


def _task(value: object, arguments: Mapping[str, Any]) -> str:
    """A task of a list and what becomes of it."""
    return (
        f"#{value} {arguments['status']}"
        if isinstance(arguments.get("status"), str)
        else f"#{value}"
    )


_DESCRIBERS: dict[str, Callable[[Any, Mapping[str, Any]], str]] = {
    "command": _command,
    "cmd": _command,
    "input": _patch,
    "patch": _patch,
    "file_path": _text,
    "notebook_path": _text,
    "pattern": _pattern,
    "query": _text,
    "queries": _text,
    "search_query": _text,
    "url": _text,
    "path": _text,
    "filePath": _text,
    "file": _text,
    "todos": _steps,
    "plan": _steps,
    "questions": _steps,
    "taskId": _task,
    "subject": _text,
    "skill": _text,
    "description": _text,
    "prompt": _text,
}
"""The argument that tells most comes first: a shell call has a command and a description."""


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


# ----------------------------------------------------------------------------
# Sessions that nacre began itself, by asking a model through an agent's own command: they are not
# read.


TOOLS = ("claude-code", "codex")
HEAD_BYTES = 262_144
_MARK = OWN_CALL.partition("]")[0] + "]"
_BEGINS = re.compile(rb'(?<!\\)"' + re.escape(_MARK.encode()))


def may_be_own(head: bytes) -> bool:
    """Whether some text in the first bytes of a transcript begins as nacre's questions do."""
    return _BEGINS.search(head) is not None


def is_own_call(items: Iterable[Session | Turn]) -> bool:
    """Whether the first that was said is a question of nacre's. A session that quotes one later on is a session."""
    for item in items:
        if isinstance(item, Turn) and item.speaker is Speaker.OWNER:
            return item.text.lstrip().startswith(_MARK)
    return False
