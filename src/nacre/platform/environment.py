"""The environment: read here and nowhere else. Standard library only, and little of it: hooks pay for every import."""

from __future__ import annotations

import os
from collections.abc import Mapping

OWN_CALL_VARIABLE = "NACRE_OWN_CALL"
"""Set in the environment of an agent's command that nacre asks: nacre, run there by a hook, does nothing."""

AGENTS = {
    "CLAUDECODE": "claude-code", "CODEX_SANDBOX": "codex", "CODEX_SANDBOX_NETWORK_DISABLED": "codex",
    "CODEX_SHELL": "codex", "CODEX_THREAD_ID": "codex", "CURSOR_AGENT": "cursor", "OPENCLAW_SHELL": "openclaw",
    "GEMINI_CLI": "gemini-cli", "OPENCODE": "opencode", "OPENCODE_CLIENT": "opencode", "CLINE_ACTIVE": "cline",
    "AUGMENT_AGENT": "augment", "GOOSE_TERMINAL": "goose", "AI_AGENT": "an agent",
}  # fmt: skip
"""Variables that agent tools set in the shells in which their agents run commands, and people do not set; the tools."""

OWNERS = frozenset({"NACRE_OWNER_IDENTITIES", "NACRE_INGEST_ROOTS"})
"""Variables of settings that count for nothing where an agent sets them, as does a file that it names in
``NACRE_CONFIG``: it could speak as the owner, or name what does."""

SESSIONS = {
    "CLAUDE_CODE_SESSION_ID": "claude-code", "CODEX_THREAD_ID": "codex", "GEMINI_SESSION_ID": "gemini-cli",
}  # fmt: skip
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
    return next((f"{tool}:{environ[name]}" for name, tool in SESSIONS.items() if environ.get(name)), None)


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
