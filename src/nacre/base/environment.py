"""The environment: read here and nowhere else. Standard library only, and little of it: hooks pay for every import."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

OWN_CALL_VARIABLE = "NACRE_OWN_CALL"
"""Set in the environment of an agent's command that nacre asks: nacre, run there by a hook, does nothing."""

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
"""Variables that agent tools set in the shells in which their agents run commands, and people do not set; the tools."""

OWNERS = frozenset({"NACRE_OWNER_IDENTITIES", "NACRE_INGEST_ROOTS"})
"""Variables of settings that count for nothing where an agent sets them, as does a file that it names in
``NACRE_CONFIG``: it could speak as the owner, or name what does."""

SESSIONS = {
    "CLAUDE_CODE_SESSION_ID": "claude-code",
    "CODEX_THREAD_ID": "codex",
    "GEMINI_SESSION_ID": "gemini-cli",
}
"""Variables in which hosts name their session to what they start, and the tool as its transcripts' adapter calls it."""


def environment() -> dict[str, str]:
    """The variables of this process, as they are now."""
    return dict(os.environ)


def user_home(environ: Mapping[str, str]) -> str:
    """The folder of whoever runs this."""
    return environ.get("HOME") or environ.get("USERPROFILE") or _home_of_account()


def home_folder(environ: Mapping[str, str], home: str | None = None) -> str:
    """nacre's home: as it is named, else ``NACRE_HOME``, else ``~/.nacre``; absolute."""
    found = home or environ.get("NACRE_HOME") or os.path.join(user_home(environ), ".nacre")
    if found.startswith("~"):
        found = os.path.join(user_home(environ), found[1:].lstrip("/\\"))
    return os.path.abspath(found)


def server_address(environ: Mapping[str, str]) -> str:
    """The address of the PostgreSQL server that ``NACRE_DB`` names; empty where it names a file, or nothing."""
    named = environ.get("NACRE_DB", "")
    return named if is_server(named) else ""


def is_server(address: str) -> bool:
    """Whether it is the address of a PostgreSQL server, and not the path of a file."""
    return address.startswith(("postgresql://", "postgres://"))


def without_login(address: str) -> str:
    """An address of a server as people are told it: without login, password and options."""
    scheme, _, rest = address.partition("://")
    place, _, options = rest.partition("?")
    if "@" not in place and "@" in options:
        return f"{scheme}://…"  # a password may hold the question mark
    return f"{scheme}://{place.rpartition('@')[2]}"


def is_own_call(environ: Mapping[str, str]) -> bool:
    """Whether nacre runs within a command by which it asks a model itself: then there is nothing to do."""
    return bool(environ.get(OWN_CALL_VARIABLE))


def session_in(environ: Mapping[str, str]) -> str | None:
    """The session of the agent that runs this, as ``<tool>:<id>``, where its host names it.

    In what was started before a reset of the session it is the one before.
    """
    return next(
        (f"{tool}:{environ[name]}" for name, tool in SESSIONS.items() if environ.get(name)), None
    )


def agent_in(environ: Mapping[str, str]) -> str | None:
    """The tool in whose agent's shell this runs, if its variables tell."""
    return next((tool for name, tool in AGENTS.items() if environ.get(name)), None)


def of_the_owner(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables without those that say that an agent runs this, and which: what a hook starts is no agent's. What
    an agent said in the owner's place goes, too."""
    gone = {*AGENTS, *SESSIONS, *(OWNERS if any(environ.get(name) for name in AGENTS) else ())}
    return {name: value for name, value in environ.items() if name not in gone}


def turn_off_telemetry() -> None:
    """Before onnxruntime is imported: else it numbers the device, keeps a file of events under the user's home, and has
    an address of its maker's to send them to."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"


def _home_of_account() -> str:
    """What the system says of the account: an empty ``HOME`` would be the root of all files."""
    if os.name == "nt":
        return os.path.expanduser("~")
    import pwd  # noqa: PLC0415 - Windows has no such module

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return os.path.expanduser("~")


# ----------------------------------------------------------------------------
# Whether an agent's program is among the parents of a process: what it runs is the agent's, whatever
# it says.
#
# Editors that hold an agent are none: the terminal in them is the owner's. Where processes cannot be
# looked at (Windows),
# the variables that agents set tell alone.


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
            pairs = (
                pair.partition("=") for pair in file.read().decode("utf-8", "replace").split("\0")
            )
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
            ["/bin/ps", "-axo", "pid=,ppid=,command="],
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    rows = (line.split(None, 2) for line in told.decode("utf-8", "replace").splitlines())
    return {int(row[0]): (int(row[1]), row[2]) for row in rows if len(row) == 3}


# ----------------------------------------------------------------------------
# What can be imported here. Apart from :mod:`nacre.base.lazy`, which hooks load.


def is_installed(name: str) -> bool:
    """Whether a module can be imported; it is not."""
    return find_spec(name) is not None


# ----------------------------------------------------------------------------
# The distribution that brings nacre, whose name on an index is not that of the package.


NAME = "nacre-memory"


NO_VECTORS = f"pip install '{NAME}[vectors]'; the lexical mode needs none of it"
"""What to do where the libraries of the vector lane are missing."""


def install_hint(extra: str) -> str:
    """The command that adds an optional part, as a hint."""
    return f"pip install '{NAME}[{extra}]'"


# ----------------------------------------------------------------------------
# Whether this machine runs on its battery.


SUPPLIES = Path("/sys/class/power_supply")


def is_on_battery(supplies: Path = SUPPLIES) -> bool:
    """Whether a battery is being used up and no mains is connected; ``False`` where nothing tells, as off Linux."""
    own = [
        one for one in _entries(supplies) if _read(one / "scope") != "Device"
    ]  # a mouse has a battery, too
    if any(_read(one / "type") == "Mains" and _read(one / "online") == "1" for one in own):
        return False
    return any(
        _read(one / "type") == "Battery" and _read(one / "status") == "Discharging" for one in own
    )


def _entries(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(folder.iterdir())
    return []


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").strip()
    return ""
