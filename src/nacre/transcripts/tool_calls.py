"""Tool calls in brief: what was asked for, in one readable line, and how it came out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

INPUT_CHARACTERS = 16_000
"""What an adapter keeps of an input or an outcome. Whoever stores it takes secrets out first and cuts then: half a
secret would not be recognised."""

_PATCHED_FILE = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_PATCH_START = "*** Begin Patch"
_SHELLS = ("sh", "bash", "zsh", "dash", "fish", "powershell", "pwsh", "cmd", "cmd.exe", "powershell.exe")
_SHELL_FLAG = re.compile(r"-[a-z]*c|/c|-command", re.IGNORECASE)
_ERROR_PREFIX = re.compile(r"^(?:<tool_use_error>\s*)?(?:error:\s*)?", re.IGNORECASE)
_TAG = re.compile(r"</?tool_use_error>")


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
    if _PATCH_START not in text:
        return ""
    return ", ".join(dict.fromkeys(path.strip() for path in _PATCHED_FILE.findall(text)))


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
    if not isinstance(value, Iterable) or isinstance(value, str):
        return ""
    items = [item for item in value if isinstance(item, Mapping)][:5]
    return "; ".join(str(item.get("content") or item.get("step") or item.get("question")) for item in items)


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
