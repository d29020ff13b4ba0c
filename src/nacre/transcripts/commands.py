"""Command lines in parts: which programs they run, and whether these only look."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from nacre.model.session import Action, ToolCall

_SETTING_UP = frozenset({"cd", "source", "export", "set", "echo", "pushd", "env", "sudo", "time", "timeout", "."})
_CARRIERS = frozenset(
    "python python3 npx uv poetry bundle pnpm npm yarn make go cargo git docker mise kubectl terraform dotnet gradle "
    "mvn deno bun just rake composer php ruby node sbt bazel".split()
)
_LOOKING = frozenset(
    {"grep", "rg", "ls", "cat", "head", "tail", "find", "which", "pwd", "tree", "wc", "stat", "file", "less", "ps"}
    | {f"git {verb}" for verb in ("status", "diff", "log", "show", "blame", "branch")}
)


def only_looks(call: ToolCall) -> bool:
    """Whether a call runs nothing but programs that change nothing and prove nothing."""
    found = list(programs(call.input)) if call.action is Action.RUN else []
    return bool(found) and all(f"{name} ".startswith(tuple(f"{known} " for known in _LOOKING)) for name in found)


def programs(command: str) -> Iterator[str]:
    """The programs that a command line runs, each with what it is told first where that makes it what it is."""
    for part in parts(command):
        words = [word for word in part if "=" not in word.partition("/")[0]]
        while words and words[0] in _SETTING_UP:
            words = [] if words[0] in ("cd", "echo", "source", "export", "pushd", ".") else words[1:]
        plain = [word for word in words if not word.startswith("-")]
        if plain:
            name = plain[0].rsplit("/", 1)[-1]
            told = " ".join(plain[1:3]) if name in _CARRIERS else ""
            yield f"{name} {told}".strip()


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
