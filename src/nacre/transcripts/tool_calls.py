"""Tool calls in brief: what was asked for, in one readable line, what it does to which files, how it came out."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from nacre.values.session import Action, ToolCall, Turn

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
    "file_path", "notebook_path", "path", "filePath", "filepath", "file", "target_file", "relative_path",
    "absolute_path", "target_notebook", "filename", "relative_workspace_path", "relativeWorkspacePath",
    "targetFile", "paths", "files",
    "file_paths", "filePaths", "edits", "replacements", "changes",
)  # fmt: skip
_WORKING_KEYS = {
    Action.RUN: ("command", "cmd", "commandLine"),
    Action.EDIT: ("old_string", "new_string", "oldString", "newString", "diff", "new_str", "content", "contents"),
    Action.SEARCH: ("pattern", "query", "regex", "glob"),
    Action.FETCH: ("url", "urls"),
}
_NAME_DRESS = re.compile(r"^(?:builtin_|copilot_|functions\.)|^.*(?:__|\.)")
_PATCHED_FILE = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_PATCH_START = "*** Begin Patch"
_SHELLS = ("sh", "bash", "zsh", "dash", "fish", "powershell", "pwsh", "cmd", "cmd.exe", "powershell.exe")
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
_MAKER = re.compile(r"(?:create|open)_?(?:pull|merge)_?request|^TaskCreate$|(?:memory|nacre)_store$", re.IGNORECASE)
_COMMITTED = re.compile(r"^\[[^\]\n]{1,200}?\b([0-9a-f]{7,12})[0-9a-f]{0,28}\] ", re.MULTILINE)
_PULL_REQUEST = re.compile(r"https://[\w.-]{3,100}/[\w./-]{3,200}?/(?:pull|merge_requests)/\d{1,9}\b")
_STORED = re.compile(r"^(?:- \[([0-9a-f]{8})\] Stored|Stored: .{0,400}\b([0-9a-f]{8})$)", re.MULTILINE)
_TASK = re.compile(r"^Task #(\w{1,20}) created", re.MULTILINE)
_CLOSED = frozenset({"completed", "complete", "done", "finished"})
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
        action = next((a for a, keys in _WORKING_KEYS.items() if any(arguments.get(key) for key in keys)), None)
    return action or Action.OTHER


def telling(output: str) -> str:
    """The lines of an output that say what went wrong, else its last ones; at most 600 characters."""
    text = _TAG.sub("", output[-INPUT_CHARACTERS:])
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _EXIT_LINE.fullmatch(line.strip())]
    told = [line for line in lines if _TELLING.search(line)]
    found = [line for line in told if not _RUNNERS.match(line)] or told or lines
    found = found[-_ERROR_LINES:]
    return "\n".join(dict.fromkeys(line[:ERROR_CHARACTERS] for line in found))[:INPUT_CHARACTERS]


@cache
def _actions() -> dict[str, Action]:
    """The names in every ``actions.toml``. No adapter is loaded for it."""
    here = Path(__file__).parent
    found: dict[str, Action] = {}
    for file in (here / "actions.toml", *here.glob("*/actions.toml")):
        for action, names in tomllib.loads(file.read_text(encoding="utf-8")).items():
            for name in names:
                if found.setdefault(name, Action(action)).value != action:
                    raise ValueError(f"{file}: {name!r} does something else already")
    return found


def memories_made(turns: Iterable[Turn]) -> Iterator[str]:
    """The ends of the ids of memories that an agent stored in some turns."""
    for call in (call for turn in turns for call in turn.tool_calls):
        yield from (made.removeprefix(MEMORY_MADE) for made in call.made if made.startswith(MEMORY_MADE))


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
        yield from (text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str))


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
    items = [item for item in value if isinstance(item, Mapping) and item.get("status") not in _DROPPED][:_MOST_STEPS]
    if not any("status" in item for item in items):
        return "; ".join(map(_step, items[:_STEPS_SHOWN]))
    done = [item for item in items if item.get("status") in _CLOSED]
    left = [item for item in items if item not in done]
    return "; ".join([*(f"[ ] {_step(item)}" for item in left), *(f"[x] {_step(item)}" for item in done)][:_STEPS_KEPT])


def _step(item: Mapping[str, Any]) -> str:
    keys = ("content", "step", "question", "description", "title", "text")
    return next((value for key in keys if isinstance(value := item.get(key), str) and value), "")


def _task(value: object, arguments: Mapping[str, Any]) -> str:
    """A task of a list and what becomes of it."""
    return f"#{value} {arguments['status']}" if isinstance(arguments.get("status"), str) else f"#{value}"


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
