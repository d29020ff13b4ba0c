"""Whether an agent's program is among the parents of a process: what it runs is the agent's, whatever it says.

Editors that hold an agent are none: the terminal in them is the owner's. Where processes cannot be looked at (Windows),
the variables that agents set tell alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import PurePosixPath

from nacre.platform.environment import agent_in

_PROGRAMS = {
    "claude": "claude-code", "claude-code": "claude-code", "codex": "codex", "gemini": "gemini-cli",
    "gemini-cli": "gemini-cli", "cursor-agent": "cursor", "openclaw": "openclaw", "openclaw-gateway": "openclaw",
    "opencode": "opencode", "aider": "aider", "goose": "goose", "qwen": "qwen-code", "qwen-code": "qwen-code",
    "copilot": "copilot", "crush": "crush", "amp": "amp", "droid": "droid", "auggie": "augment",
}  # fmt: skip
"""Programs that are agents, and the tools they are, as transcripts call them."""

_FIRST = frozenset({"systemd", "init"})
"""Programs that become the parent of processes whose own has ended."""

_INTERPRETERS = re.compile(r"(?:node|nodejs|bun|deno|python[\d.]*|pypy[\d.]*|uv|npx)(?:\.exe)?\Z")
_PACKAGES = re.compile(r"/(?:node_modules|site-packages)/(?:@[^/]+/)?([^/]+)/")
_MOST_PARENTS = 40
_MOST_BYTES = 8_192
_SECONDS = 2


def agent_above(pid: int | None = None) -> str | None:
    """The nearest agent among the parents of a process (this one, by default), by its tool's name."""
    parent_of = _parent_by_proc if os.path.isdir("/proc/self") else _parent_by_ps
    at = os.getpid() if pid is None else pid
    for _ in range(_MOST_PARENTS):
        parent = parent_of(at)
        if parent is None:
            return None
        at, words = parent
        if found := agent_of(words):
            return found
    return None


def agent_of_process(pid: int) -> str | None:
    """The agent that runs another process: one among its parents, or the one whose variables it was started with, which
    it keeps when its parents end."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = (pair.partition("=") for pair in file.read().decode("utf-8", "replace").split("\0"))
            environ = {name: value for name, _, value in pairs}
    except OSError:
        environ = {}
    return agent_above(pid) or agent_in(environ)


def is_orphan(pid: int) -> bool:
    """Whether a process has no terminal and whoever started it has ended, so that nothing tells who that was."""
    above = _parent_by_proc(pid)
    if above is None:
        return False
    parent, words = above
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            terminal = int(file.read().rpartition(b")")[2].split()[4])
    except (OSError, ValueError, IndexError):
        return True
    return not terminal and (parent == 1 or _stem(words[0]) in _FIRST)


@cache
def own_agent() -> str | None:
    """The agent that started this process; its parents may be gone when it is asked for again."""
    return agent_above()


def agent_of(words: tuple[str, ...]) -> str | None:
    """The agent that a command line is: its program, or the script that an interpreter runs."""
    if not words:
        return None
    program = _stem(words[0])
    if program in _PROGRAMS:
        return _PROGRAMS[program]
    if not _INTERPRETERS.match(program):
        return None
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    package = _PACKAGES.search(script.replace("\\", "/"))
    return _PROGRAMS.get(_stem(script)) or (_PROGRAMS.get(package[1]) if package else None)


def _stem(path: str) -> str:
    name = PurePosixPath(path.replace("\\", "/")).name
    return re.sub(r"\.(?:exe|cmd|[cm]?js|py)\Z", "", name).lower()


def _parent_by_proc(pid: int) -> tuple[int, tuple[str, ...]] | None:
    """The parent of a process, and its command line."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            parent = int(file.read().rpartition(b")")[2].split()[1])
        with open(f"/proc/{parent}/cmdline", "rb") as file:
            words = file.read(_MOST_BYTES).decode("utf-8", "replace").rstrip("\0").split("\0")
    except (OSError, ValueError, IndexError):
        return None
    if len(words) == 1:  # a program that gave itself a title
        words = words[0].split()
    return (parent, tuple(words)) if parent > 0 else None


def _parent_by_ps(pid: int) -> tuple[int, tuple[str, ...]] | None:
    table = _processes()
    parent = table.get(pid, (0, ""))[0]
    return (parent, tuple(table[parent][1].split())) if parent in table else None


@cache
def _processes() -> Mapping[int, tuple[int, str]]:
    """Every process with its parent and command line; empty where none can be listed."""
    import subprocess  # noqa: PLC0415 - 8 ms that only systems without /proc pay

    try:
        told = subprocess.run(
            ["/bin/ps", "-axo", "pid=,ppid=,command="], capture_output=True, timeout=_SECONDS, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    rows = (line.split(None, 2) for line in told.decode("utf-8", "replace").splitlines())
    return {int(row[0]): (int(row[1]), row[2]) for row in rows if len(row) == 3}
