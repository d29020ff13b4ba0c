"""Command lines in parts: which programs they run, and whether these only look."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from nacre.values.session import Action, ToolCall

_SETTING_UP = frozenset({"cd", "source", "export", "set", "echo", "pushd", "env", "sudo", "time", "timeout", "."})
_CARRIERS = frozenset(
    "python python3 npx uv poetry bundle pnpm npm yarn make go cargo git docker mise kubectl terraform dotnet gradle "
    "mvn deno bun just rake gh mix swift flutter dart brew pip pip3 pdm hatch nx turbo supabase az aws gcloud heroku "
    "fly composer php ruby node sbt bazel".split()
)
_LOOKING = frozenset(
    {"grep", "rg", "ls", "cat", "head", "tail", "find", "which", "pwd", "tree", "wc", "stat", "file", "less", "ps"}
    | {f"git {verb}" for verb in ("status", "diff", "log", "show", "blame", "branch")}
)

_BETWEEN = frozenset({"do", "then", "else", "if", "elif", "while", "until", "!", "{", "("})
_BLOCKS = frozenset({"for", "done", "fi", "case", "esac", "}", ")", "function", "select", "return", "exit"})
_LEADING = frozenset({"run", "exec", "compose", "tool", "pip", "pr", "issue", "x", "dlx", "stash", "worktree"})
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
        yield Invocation(" ".join([words[0], *told]), tuple(word for word in told if word not in _LEADING), options)


def _plain_words(part: Sequence[str]) -> list[str]:
    """A simple command without what sets it up, its options and its redirections; its program without a folder."""
    words = [word for word in part if "=" not in word.partition("/")[0] and not _REDIRECTION.match(word)]
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
