"""Checks of connected hosts: hooks, trust, plugins, MCP servers, files and other installations."""

from __future__ import annotations

import json
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from nacre import __version__
from nacre.base.link import DaemonAwayError, DaemonRefusedError, ask, ask_to_stop, start_daemon
from nacre.base.plain import Values, mapping, objects
from nacre.hosts import registry, ways
from nacre.hosts.connect import SAMPLE, is_own, plan, quiet, run_hook
from nacre.hosts.host import Server
from nacre.hosts.ways import (
    UNSEEN,
    HostParts,
    RpcError,
    RpcProcess,
    Wired,
    found_hosts,
    init_command,
    json_in,
    load,
    own_programs,
    program_of,
    read_parts,
    targets_of,
    text_of,
    trust_in,
)
from nacre.operations import operation
from nacre.settings import Settings
from nacre.values.reports import FAILURE, OK, WARNING, Check, LeftAlone, WiringPlan, WiringWish

_MAX_RUNS = 3
_LOG_WAIT_SECONDS = 1.0
_LOG_POLL_SECONDS = 0.02
_LATE = ("late", "failed", "")
"""Results in the hook log of hooks that did not answer in time."""


def prove_hooks(settings: Settings, wish: WiringWish, written: HostParts) -> Iterator[Check]:
    """Run a host's hooks and yield the findings. For Codex, also check if it trusts the hooks."""
    if not written.hooks:
        return
    slowest, failed, late, traces = 0.0, [], 0, 0
    for event, line in written.hooks:
        problem, how, seconds = _run_until_in_time(settings, wish, event, line)
        slowest = max(slowest, seconds)
        failed += [f"{event}: {problem}"] if problem else []
        late += not problem and how in _LATE
        traces += bool(how)
    state, hint = FAILURE, None
    if failed:
        finding = failed[0] + (f" (and {len(failed) - 1} more)" if failed[1:] else "")
    elif not traces:
        finding = f"they run, but none wrote a line to {_log(settings)}: {written.hooks[0][1]}"
    elif late:
        state, hint = WARNING, "is this machine very busy? nacre admin doctor checks the home"
        finding = (
            f"they run; {late} of {len(written.hooks)} gave no answer in time, even when repeated"
        )
    else:
        state = OK
        finding = f"{len(written.hooks)} answer, the slowest in {slowest * 1000:.0f} ms"
    yield Check("hooks", state, finding, hint)
    if wish.host == registry.NAME_CODEX and program_of(settings, "codex"):
        yield _prove_trust(settings, wish)


def _run_until_in_time(
    settings: Settings, wish: WiringWish, event: str, line: str
) -> tuple[str | None, str, float]:
    hook_input = {**SAMPLE, "hook_event_name": event, "cwd": str(settings.home)}
    problem, how, seconds = None, "", 0.0
    for _ in range(_MAX_RUNS):
        began, noted = time.monotonic(), _log_size(settings)
        problem = run_hook(settings, line, hook_input, wish.project)
        how = "" if problem else _last_answer_source(settings, noted)
        seconds = time.monotonic() - began
        if problem or how not in _LATE:
            break
    return problem, how, seconds


def _prove_trust(settings: Settings, wish: WiringWish) -> Check:
    trust = trust_in(settings, wish)
    hint = f"{init_command(wish, '--trust-hooks')}, or open codex and type /hooks"
    if trust is None:
        finding, hint = "it is unknown whether Codex trusts the hooks", "open codex and type /hooks"
    elif not trust.hooks:
        finding = f"Codex sees none of the hooks{f': {UNSEEN}' if wish.project else ''}"
    elif trust.untrusted:
        finding = f"Codex runs {trust.untrusted} of the hooks once you trust them"
    else:
        return Check("trust", OK, "Codex trusts the hooks")
    return Check("trust", WARNING, finding, hint)


def _log(settings: Settings) -> Path:
    return settings.home / "logs" / "hooks.jsonl"


def _log_size(settings: Settings) -> int:
    return _log(settings).stat().st_size if _log(settings).exists() else 0


def _last_answer_source(settings: Settings, since: int) -> str:
    # The daemon writes the line after it has answered the hook.
    until = time.monotonic() + _LOG_WAIT_SECONDS
    while _log_size(settings) == since and time.monotonic() < until:
        time.sleep(_LOG_POLL_SECONDS)
    try:
        data = _log(settings).read_bytes()
        fresh = data[since if since <= len(data) else 0 :].splitlines()
        return str(json.loads(fresh[-1])["how"]) if fresh else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


# -- Plugins ---------------------------------------------------------------------------------------
# Does the plugin contain the correct paths of nacre's programs?


def _prove_program(settings: Settings, wish: WiringWish) -> Iterator[Check]:
    path = next(
        (
            target.path
            for target in targets_of(settings, wish)
            if target.path.name == registry.PROGRAMS_FILE
        ),
        None,
    )
    record = json_in(text_of(path)) if path else None
    if not isinstance(record, dict) or not isinstance(record.get("hook"), list):
        return
    home = ["--home", str(record["home"])] if record.get("home") else []
    words = [*map(str, record["hook"]), *home, wish.host, "session-start"]
    if environ := mapping(record, "env"):
        words = ["/usr/bin/env", *(f"{key}={value}" for key, value in environ.items()), *words]
    began = time.monotonic()
    hook_input = {**SAMPLE, "cwd": str(settings.home)}
    problem = run_hook(settings, shlex.join(words), hook_input, wish.project, says_json=False)
    took = (time.monotonic() - began) * 1000
    finding = problem or f"version {record.get('version')}; nacre answers it in {took:.0f} ms"
    yield Check("plugin", FAILURE if problem else OK, finding)


# -- MCP servers -----------------------------------------------------------------------------------
# Do the servers start in time and offer nacre's tools?


_TOOLS = frozenset({"memory_search", "memory_get", "memory_store"})
_MCP_TIMEOUT_SECONDS = 15.0
_SLOW_SECONDS = 1.0
"""Seconds after which hosts stop waiting for a server's tools."""


def prove_servers(
    settings: Settings, wish: WiringWish, written: HostParts, left_alone: Sequence[LeftAlone]
) -> Iterator[Check]:
    """Check each configured MCP server and yield a finding.

    A server that runs another program is tolerated only in the user's settings, because anyone can
    add servers to a project.
    """
    own = {target.path.resolve() for target in targets_of(settings, wish)}
    hint = next(
        (skipped_file.hint for skipped_file in left_alone if skipped_file.path.resolve() in own),
        None,
    )
    for server in written.servers:
        if is_own(server.words, wish.project):
            yield _check_server(settings, wish, server, hint)
        elif hint is None or wish.project:
            yield Check("tools", FAILURE, f"it runs something else: {shlex.join(server.words)}")


def _check_server(settings: Settings, wish: WiringWish, server: Server, hint: str | None) -> Check:
    opening = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "nacre", "version": "0"},
    }
    environ, folder = {**quiet(settings), **server.environ}, wish.project or settings.user_home
    began, tools, problem = time.monotonic(), set[str](), ""
    try:
        with RpcProcess(server.words, environ, folder, _MCP_TIMEOUT_SECONDS) as process:
            process.ask("initialize", opening)
            process.send("notifications/initialized")
            answer = process.ask("tools/list", {})
        tools = {str(tool.get("name")) for tool in objects(answer, "tools")}
    except RpcError as error:
        problem = str(error)
    took = time.monotonic() - began
    missing = _TOOLS - tools
    if problem or missing:
        finding = problem or f"it has no {', '.join(sorted(missing))}"
        return Check("tools", FAILURE, f"{finding}: {shlex.join(server.words)}", hint)
    finding = f"{len(tools)} offered after {took * 1000:.0f} ms"
    if took > _SLOW_SECONDS:
        hint = "after such a delay, hosts send their first request without tools"
        return Check("tools", WARNING, finding, hint)
    return Check("tools", OK, finding)


# -- Other installations of nacre ------------------------------------------------------------------


def written_by_another(settings: Settings, wired: Wired) -> str:
    """Describe the installation that last connected hosts, or return "" if it is this one."""
    program = shlex.join(own_programs(settings).nacre)
    if not wired.nacre or (wired.nacre, wired.program) == (__version__, program):
        return ""
    if wired.nacre != __version__:
        return f"nacre {wired.nacre} wrote it, but this is {__version__}"
    return f"the nacre at {wired.program} wrote it, but this is {program}"


def daemon_of_another(settings: Settings) -> Iterator[Check]:
    """Yield a finding if the daemon runs another version of nacre."""
    version = _daemon_status(settings.home).get("version", __version__)
    if version != __version__:
        finding = f"nacre {version} serves this home, but this is {__version__}"
        yield Check(
            "daemon", WARNING, finding, "nacre serve stop; the next session starts this version"
        )


def _daemon_status(home: Path) -> Values:
    try:
        return mapping(ask(home, "hello", {}, seconds=_REQUEST_TIMEOUT_SECONDS))
    except (DaemonAwayError, DaemonRefusedError):
        return {}


# -- A daemon for the checks -----------------------------------------------------------------------
# A host's first session is slower, because it starts the daemon. The checks measure later sessions.


_WARM_UP_SECONDS = 30.0
_DAEMON_POLL_SECONDS = 0.05
_REQUEST_TIMEOUT_SECONDS = 2.0


@contextmanager
def warm_daemon(settings: Settings) -> Iterator[None]:
    """Run the home's daemon during the block, unless it runs already or hooks cannot start it."""
    home, daemon = settings.home, None
    with suppress(OSError):
        if settings.flag("daemon.enabled"):
            daemon = start_daemon(home, settings.environ, "--no-watch")
    if daemon is None:
        yield
        return
    try:
        until = time.monotonic() + _WARM_UP_SECONDS
        while daemon.poll() is None and time.monotonic() < until:
            if _daemon_status(home).get("is_warm"):
                break
            time.sleep(_DAEMON_POLL_SECONDS)
        yield
    finally:
        if not ask_to_stop(home):
            daemon.kill()
        daemon.wait()


# -- All checks ------------------------------------------------------------------------------------
# The checks run exactly the commands in the hosts' files.


_MAX_NAMED_FILES = 3
_DIFFERS = {"create": "is missing", "change": "differs from nacre's settings"}


@operation("doctor-hosts", takes_long=True)
def prove_hosts(settings: Settings) -> list[Check]:
    """Return findings about connected hosts, and a note about other installed hosts."""
    wired = load(settings.home)
    wishes = wired.wishes
    checks = list(daemon_of_another(settings))
    with warm_daemon(settings) if wishes else nullcontext():
        names = _names(wishes)
        checks += [
            check
            for wish in wishes
            for check in _check_wiring(settings, wired, wish, names[wish.place])
        ]
    hosts = {wish.host for wish in wishes}
    names_found = (found_host.host.name for found_host in found_hosts(settings))
    if idle := [name for name in names_found if name not in hosts]:
        hint = f"nacre init --host {','.join(idle)}"
        checks.append(Check("not wired", OK if wishes else WARNING, ", ".join(idle), hint))
    return checks or [
        Check("hosts", OK, "no agent tool was found on this machine", "nacre init --host NAME")
    ]


def hosts_in_a_line(settings: Settings) -> list[Check]:
    """Return findings about the files of all connected hosts, without running any program."""
    wired = load(settings.home)
    if not wired.wishes:
        return []
    plans = [(wish.host, plan(settings, [wish])) for wish in wired.wishes]
    broken = dict.fromkeys(
        host
        for host, expected in plans
        if expected.left_alone or any(change.action in _DIFFERS for change in expected.changes)
    )
    if broken and (other := written_by_another(settings, wired)):
        finding = f"{', '.join(broken)}: {other}"
        return [Check("hosts", WARNING, finding, "nacre init updates them")]
    enabled_again = [
        host
        for host, expected in plans
        if any(memory.state == ways.CONFLICT for memory in expected.own_memories)
    ]
    if broken or enabled_again:
        finding = f"{', '.join(enabled_again)} turned its own memory on again"
        if broken:
            finding = f"the files of {', '.join(broken)} changed"
        return [Check("hosts", WARNING, finding, "nacre admin doctor hosts")]
    names = ", ".join(dict.fromkeys(wish.host for wish in wired.wishes))
    return [Check("hosts", OK, f"{names}; nacre admin doctor hosts tests them")]


def _names(wishes: Sequence[WiringWish]) -> dict[tuple[str, str], str]:
    alike = Counter((wish.host, wish.project.name) for wish in wishes if wish.project)
    return {
        wish.place: wish.host
        if wish.project is None
        else f"{wish.host} in {wish.project.name if alike[wish.host, wish.project.name] == 1 else wish.project}"
        for wish in wishes
    }


def _check_wiring(settings: Settings, wired: Wired, wish: WiringWish, name: str) -> Iterator[Check]:
    if wish.project and not wish.project.is_dir():
        finding = f"the folder {wish.project} no longer exists"
        yield Check(name, WARNING, finding, init_command(wish, "--uninstall"))
        return
    mend = init_command(wish)
    for check in _findings(settings, wired, wish):
        hint = check.hint or (mend if check.state != OK else None)
        yield replace(check, name=f"{name} {check.name}".strip(), hint=hint)


def _findings(settings: Settings, wired: Wired, wish: WiringWish) -> Iterator[Check]:
    expected = plan(settings, [wish])
    other = written_by_another(settings, wired)
    files = list(_prove_files(expected, other))
    yield from files
    for item in expected.own_memories:
        state = WARNING if item.state == ways.CONFLICT else OK
        yield Check("own memory", state, f"{item.state}: {item.told}", item.hint or None)
    contents = read_parts(settings, wish)
    yield from (
        Check("server", WARNING, f"{item.path}: {item.reason}", item.hint) for item in expected.kept
    )
    yield from prove_hooks(settings, wish, contents)
    yield from prove_servers(settings, wish, contents, expected.kept)
    plugins = [] if expected.left_alone else list(_prove_program(settings, wish))
    yield from plugins
    if not (contents.hooks or contents.servers or plugins or files):
        yield Check("", FAILURE, "its files contain nothing from nacre")


def _prove_files(expected: WiringPlan, other: str) -> Iterator[Check]:
    for skipped_file in expected.left_alone:
        yield Check(
            "files", FAILURE, f"{skipped_file.path}: {skipped_file.reason}", skipped_file.hint
        )
    differs = [change for change in expected.changes if change.action in _DIFFERS]
    if other and differs:
        finding = f"{len(differs)} file{'s' if differs[1:] else ''} would be different"
        yield Check("files", WARNING, f"{other}; {finding}")
    elif differs:
        named = [
            f"{change.path} {_DIFFERS[change.action]}" for change in differs[:_MAX_NAMED_FILES]
        ]
        if more := differs[_MAX_NAMED_FILES:]:
            named.append(f"{len(more)} more")
        yield Check("files", FAILURE, "; ".join(named))
