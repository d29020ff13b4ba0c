"""Environment variables. No other module reads them.

This module uses only the standard library, because hooks must start fast.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import PurePosixPath

OWN_CALL_VARIABLE = "NACRE_OWN_CALL"
"""Variable that nacre sets for agents that it starts, so that their hooks do nothing."""

AGENTS = {
    "CLAUDECODE": "claude-code",
    "CODEX_SANDBOX": "codex",
    "CODEX_SANDBOX_NETWORK_DISABLED": "codex",
    "CODEX_SHELL": "codex",
    "CODEX_THREAD_ID": "codex",
    "CURSOR_AGENT": "cursor",
    "OPENCLAW_SHELL": "openclaw",
    "GEMINI_CLI": "gemini-cli",
    "OPENCODE": "opencode",
    "OPENCODE_CLIENT": "opencode",
    "CLINE_ACTIVE": "cline",
    "AUGMENT_AGENT": "augment",
    "GOOSE_TERMINAL": "goose",
    "AI_AGENT": "an agent",
}
"""Variables that only agent tools set in their shells, with the name of each tool."""

OWNERS = frozenset({"NACRE_OWNER_IDENTITIES", "NACRE_INGEST_ROOTS"})
"""Settings that are ignored if an agent sets them by a variable or in a ``NACRE_CONFIG`` file.

Otherwise, an agent could pose as the owner.
"""

SESSIONS = {
    "CLAUDE_CODE_SESSION_ID": "claude-code",
    "CODEX_THREAD_ID": "codex",
    "GEMINI_SESSION_ID": "gemini-cli",
}
"""Variables that hold the session id in processes that a host started, with the host's name."""


def environment() -> dict[str, str]:
    """Return a copy of the process's environment variables."""
    return dict(os.environ)


def user_home(environ: Mapping[str, str]) -> str:
    """Return the user's home folder."""
    return environ.get("HOME") or environ.get("USERPROFILE") or _home_of_account()


def home_folder(environ: Mapping[str, str], home: str | None = None) -> str:
    """Return the absolute path of nacre's home: ``home``, else ``NACRE_HOME``, else ``~/.nacre``."""
    folder = home or environ.get("NACRE_HOME") or os.path.join(user_home(environ), ".nacre")
    if folder.startswith("~"):
        folder = os.path.join(user_home(environ), folder[1:].lstrip("/\\"))
    return os.path.abspath(folder)


def server_address(environ: Mapping[str, str]) -> str:
    """Return the PostgreSQL address in ``NACRE_DB``, or "" if it is unset or names a file."""
    address = environ.get("NACRE_DB", "")
    return address if address.startswith(("postgresql://", "postgres://")) else ""


def without_login(address: str) -> str:
    """Return a server's address without login, password and options, for display."""
    scheme, _, tail = address.partition("://")
    place, _, options = tail.partition("?")
    if "@" not in place and "@" in options:
        return f"{scheme}://…"  # the password can contain a question mark
    return f"{scheme}://{place.rpartition('@')[2]}"


def is_own_call(environ: Mapping[str, str]) -> bool:
    """Return True if nacre itself started this agent, so that nacre's hooks do nothing."""
    return bool(environ.get(OWN_CALL_VARIABLE))


def session_in(environ: Mapping[str, str]) -> str | None:
    """Return the calling agent's session as ``<tool>:<id>``, if its host sets a session id.

    Processes that outlive a session reset still have the old id.
    """
    return next(
        (f"{tool}:{environ[name]}" for name, tool in SESSIONS.items() if environ.get(name)), None
    )


def agent_in(environ: Mapping[str, str]) -> str | None:
    """Return the name of the agent tool that set these environment variables, if any."""
    return next((tool for name, tool in AGENTS.items() if environ.get(name)), None)


def of_the_owner(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without agents' variables and, if it had any, without the owner's
    settings.
    """
    removed = {*AGENTS, *SESSIONS, *(OWNERS if agent_in(environ) else ())}
    return {name: value for name, value in environ.items() if name not in removed}


def turn_off_telemetry() -> None:
    """Turn off the telemetry of onnxruntime. Call this before onnxruntime is imported."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"


def _home_of_account() -> str:
    try:
        import pwd  # noqa: PLC0415 - missing on Windows

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):
        return os.path.expanduser("~")


# -- Agents among a process's ancestors ------------------------------------------------------------
# A process started by an agent's program belongs to the agent. Editors with a built-in agent do not
# count, because their terminal belongs to the owner. On Windows, only the variables count.


_PROGRAMS = {
    "claude": "claude-code",
    "claude-code": "claude-code",
    "codex": "codex",
    "gemini": "gemini-cli",
    "gemini-cli": "gemini-cli",
    "cursor-agent": "cursor",
    "openclaw": "openclaw",
    "openclaw-gateway": "openclaw",
    "opencode": "opencode",
    "aider": "aider",
    "goose": "goose",
    "qwen": "qwen-code",
    "qwen-code": "qwen-code",
    "copilot": "copilot",
    "crush": "crush",
    "amp": "amp",
    "droid": "droid",
    "auggie": "augment",
}
"""The names of agents' programs, and the tool to which each belongs."""

_ADOPTERS = frozenset({"systemd", "init"})
"""Programs that become the parents of orphaned processes."""

_INTERPRETERS = re.compile(r"(?:node|nodejs|bun|deno|python[\d.]*|pypy[\d.]*|uv|npx)(?:\.exe)?\Z")
_PACKAGE_IN_PATH = re.compile(r"/(?:node_modules|site-packages)/(?:@[^/]+/)?([^/]+)/")
_MAX_PARENTS = 40
_MAX_COMMAND_BYTES = 8_192
_PS_TIMEOUT_SECONDS = 2


def agent_above(pid: int | None = None) -> str | None:
    """Return the closest agent tool among a process's ancestors (default: this process)."""
    parent_of = _parent_by_proc if os.path.isdir("/proc/self") else _parent_by_ps
    at = os.getpid() if pid is None else pid
    for _ in range(_MAX_PARENTS):
        parent = parent_of(at)
        if parent is None:
            return None
        at, words = parent
        if agent := agent_of(words):
            return agent
    return None


def agent_of_process(pid: int) -> str | None:
    """Return the agent tool that runs a process, according to its ancestors or its environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = (
                pair.partition("=") for pair in file.read().decode("utf-8", "replace").split("\0")
            )
            environ = {name: value for name, _, value in pairs}
    except OSError:
        environ = {}
    return agent_above(pid) or agent_in(environ)


def is_orphan(pid: int) -> bool:
    """Return True if a process has no terminal and its parent has exited."""
    parent_and_words = _parent_by_proc(pid)
    if parent_and_words is None:
        return False
    parent, words = parent_and_words
    try:
        terminal = _status(pid)[4]
    except (OSError, IndexError):
        return True
    return terminal == "0" and (parent == 1 or _stem(words[0]) in _ADOPTERS)


@cache
def own_agent() -> str | None:
    """Return the agent tool that started this process, even if its parents have since exited."""
    return agent_above()


def agent_of(words: tuple[str, ...]) -> str | None:
    """Return the agent tool that a command line runs, directly or through an interpreter."""
    if not words:
        return None
    program = _stem(words[0])
    if program in _PROGRAMS:
        return _PROGRAMS[program]
    if not _INTERPRETERS.match(program):
        return None
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    package = _PACKAGE_IN_PATH.search(script.replace("\\", "/"))
    return _PROGRAMS.get(_stem(script)) or (_PROGRAMS.get(package[1]) if package else None)


def _stem(path: str) -> str:
    name = PurePosixPath(path.replace("\\", "/")).name
    return re.sub(r"\.(?:exe|cmd|[cm]?js|py)\Z", "", name).lower()


def _status(pid: int) -> list[str]:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _parent_by_proc(pid: int) -> tuple[int, tuple[str, ...]] | None:
    try:
        parent = int(_status(pid)[1])
        with open(f"/proc/{parent}/cmdline", "rb") as file:
            words = (
                file.read(_MAX_COMMAND_BYTES).decode("utf-8", "replace").rstrip("\0").split("\0")
            )
    except (OSError, ValueError, IndexError):
        return None
    if len(words) == 1:  # the program has set a process title
        words = words[0].split()
    return (parent, tuple(words)) if parent > 0 else None


def _parent_by_ps(pid: int) -> tuple[int, tuple[str, ...]] | None:
    table = _processes()
    parent = table.get(pid, (0, ""))[0]
    return (parent, tuple(table[parent][1].split())) if parent in table else None


@cache
def _processes() -> Mapping[int, tuple[int, str]]:
    import subprocess  # noqa: PLC0415 - 8 ms, needed only without /proc

    try:
        listing = subprocess.run(
            ["/bin/ps", "-axo", "pid=,ppid=,command="],
            capture_output=True,
            timeout=_PS_TIMEOUT_SECONDS,
            check=False,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    rows = (line.split(None, 2) for line in listing.decode("utf-8", "replace").splitlines())
    return {int(row[0]): (int(row[1]), row[2]) for row in rows if len(row) == 3}


# -- Installed packages ----------------------------------------------------------------------------


def is_installed(name: str) -> bool:
    """Return True if a module can be imported, without importing it."""
    return find_spec(name) is not None


NAME = "nacre-memory"


NO_VECTORS = f"pip install '{NAME}[vectors]'; lexical search works without it"
"""Hint for missing vector libraries."""


def install_hint(extra: str) -> str:
    """Return the command that installs an optional dependency group."""
    return f"pip install '{NAME}[{extra}]'"
