"""Prove that hooks run and answer, and that Codex trusts them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from nacre import __version__
from nacre.base.link import Away, Refused, ask, start_daemon
from nacre.hosts import registry, ways
from nacre.hosts.connect import SAMPLE, is_own, plan, quiet, run_hook
from nacre.hosts.host import Server, proven_versions
from nacre.hosts.registry import PLUGIN_TOLD
from nacre.hosts.ways import (
    UNSEEN,
    Wired,
    Written,
    found_hosts,
    host_named,
    init_command,
    installed_version,
    json_in,
    load,
    own_programs,
    program_of,
    targets_of,
    text_of,
    trust_in,
    way_of,
    written,
)
from nacre.settings import Settings
from nacre.values.reports import FAILURE, OK, WARNING, Check, LeftAlone, WiringPlan, WiringWish

_MOST_RUNS = 3
_NOTED_SECONDS = 1.0
_LOOK_SECONDS = 0.02


def prove_hooks(settings: Settings, wish: WiringWish, written: Written) -> Iterator[Check]:
    """A finding for the hooks of a host, and where Codex has them, whether it trusts them."""
    slowest, failed, late, traces = 0.0, [], 0, 0
    for event, line in written.hooks:
        tried = _tried(settings, wish, event, line)
        slowest = max(slowest, tried.seconds)
        failed += [f"{event}: {tried.problem}"] if tried.problem else []
        late += tried.is_late
        traces += bool(tried.how)
    if failed:
        yield Check(
            "hooks", FAILURE, failed[0] + (f" (and {len(failed) - 1} more)" if failed[1:] else "")
        )
    elif written.hooks and not traces:
        yield Check(
            "hooks",
            FAILURE,
            f"they run, and none left a line in {_log(settings)}: {written.hooks[0][1]}",
        )
    elif late:
        told = f"they run; {late} of {len(written.hooks)} had no answer in time, however often, and said nothing"
        yield Check(
            "hooks", WARNING, told, "is this machine very busy? nacre doctor tells how the home is"
        )
    elif written.hooks:
        yield Check(
            "hooks", OK, f"{len(written.hooks)} answer, the slowest in {slowest * 1000:.0f} ms"
        )
    if wish.host == registry.NAME_CODEX and written.hooks and program_of(settings, "codex"):
        yield from _trusted(settings, wish)


def _tried(settings: Settings, wish: WiringWish, event: str, line: str) -> _Tried:
    """Run a hook, in no project: no session is to miss what it is told. One that comes late is run again: what it loads
    is in the system's memory then."""
    given = {**SAMPLE, "hook_event_name": event, "cwd": str(settings.home)}
    tried = _Tried(None, "", 0.0)
    for _ in range(_MOST_RUNS):
        began, noted = time.monotonic(), _log_size(settings)
        problem = run_hook(settings, line, given, wish.project)
        tried = _Tried(problem, "" if problem else _how(settings, noted), time.monotonic() - began)
        if not tried.is_late:
            break
    return tried


@dataclass(frozen=True, slots=True)
class _Tried:
    """A run of a hook: what is wrong, how it was answered, as its log tells, and for how long it ran."""

    problem: str | None
    how: str
    seconds: float

    @property
    def is_late(self) -> bool:
        """Whether it said nothing for want of time."""
        return not self.problem and self.how in ("late", "failed", "")


def _trusted(settings: Settings, wish: WiringWish) -> Iterator[Check]:
    found = trust_in(settings, wish)
    hint = f"{init_command(wish, '--trust-hooks')}, or open codex and type /hooks"
    if found is None:
        yield Check(
            "trust",
            WARNING,
            "Codex cannot be asked whether it trusts the hooks",
            "open codex and type /hooks",
        )
    elif not found.seen:
        yield Check(
            "trust",
            WARNING,
            f"Codex sees none of the hooks{f': {UNSEEN}' if wish.project else ''}",
            hint,
        )
    elif found.untrusted:
        yield Check(
            "trust", WARNING, f"Codex runs {found.untrusted} of the hooks once you trust them", hint
        )
    else:
        yield Check("trust", OK, "Codex trusts the hooks")


def _log(settings: Settings) -> Path:
    return settings.home / "logs" / "hooks.jsonl"


def _log_size(settings: Settings) -> int:
    return _log(settings).stat().st_size if _log(settings).exists() else 0


def _how(settings: Settings, since: int) -> str:
    """How the last run of a hook was answered, as its log tells; empty where it left no line."""
    until = time.monotonic() + _NOTED_SECONDS  # the daemon notes it once the hook has its answer
    while _log_size(settings) == since and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
    try:
        data = _log(settings).read_bytes()
        fresh = data[since if since <= len(data) else 0 :].splitlines()
        return str(json.loads(fresh[-1])["how"]) if fresh else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


# ----------------------------------------------------------------------------
# Prove plugins: that the host has the one that is meant for it, and that what it was told is true.


def prove_plugins(settings: Settings, wish: WiringWish, *, is_of_another: bool) -> Iterator[Check]:
    """A finding where a host has a plugin; one that another nacre wrote is not broken for that."""
    yield from _prove_installed(settings, wish, is_of_another=is_of_another)
    yield from _prove_program(settings, wish)


def _prove_installed(
    settings: Settings, wish: WiringWish, *, is_of_another: bool
) -> Iterator[Check]:
    """Whether Claude Code has the plugin that is meant for it."""
    way = way_of(settings, wish)
    if wish.host != registry.NAME or not registry.is_plugin(way):
        return
    wanted = registry.version_of(registry.plugin_files(way))
    found = installed_version(way)
    if found == wanted:
        yield Check("plugin", OK, f"version {found} is installed")
    elif found:
        state = WARNING if is_of_another else FAILURE
        yield Check("plugin", state, f"Claude Code has version {found}, not {wanted}")
    elif program_of(settings, "claude"):
        yield Check("plugin", FAILURE, "Claude Code has not installed it")
    else:
        yield Check(
            "plugin", WARNING, "Claude Code installs it at its next start", "start claude once"
        )


def _prove_program(settings: Settings, wish: WiringWish) -> Iterator[Check]:
    """A plugin that is a program itself: whether what it was told of nacre's programs is true."""
    told = next(
        (one.path for one in targets_of(settings, wish) if one.path.name == PLUGIN_TOLD), None
    )
    held = json_in(text_of(told)) if told else None
    if not isinstance(held, dict) or not isinstance(held.get("hook"), list):
        return
    environ = held.get("env") if isinstance(held.get("env"), dict) else {}
    home = ["--home", str(held["home"])] if held.get("home") else []
    words = (
        ["/usr/bin/env", *(f"{key}={value}" for key, value in (environ or {}).items())]
        if environ
        else []
    )
    words += [*map(str, held["hook"]), *home, wish.host, "session-start"]
    began = time.monotonic()
    given = {**SAMPLE, "cwd": str(settings.home)}
    problem = run_hook(settings, shlex.join(words), given, wish.project, says_json=False)
    took = (time.monotonic() - began) * 1000
    state = FAILURE if problem else OK
    yield Check(
        "plugin",
        state,
        problem or f"version {held.get('version')}; nacre answers it in {took:.0f} ms",
    )


# ----------------------------------------------------------------------------
# Ask an MCP server for its tools, as a host does when it starts.


_MCP_SECONDS = 15.0


def list_tools(settings: Settings, server: Server, folder: Path) -> tuple[list[str], str | None]:
    """Start an MCP server, and ask for its tools; returns their names, and what is wrong."""
    try:
        process = subprocess.Popen(
            server.words,
            env={**quiet(settings), **server.environ},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        return [], f"it cannot be started ({error.strerror})"
    lines: SimpleQueue[str | None] = SimpleQueue()

    def listen() -> None:
        for line in process.stdout or ():
            lines.put(line)
        lines.put(None)

    threading.Thread(target=listen, daemon=True).start()
    try:
        return _converse(process, lines)
    finally:
        _end(process)


def _converse(
    process: subprocess.Popen[str], lines: SimpleQueue[str | None]
) -> tuple[list[str], str | None]:
    opening = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "nacre", "version": "0"},
    }
    messages = (
        {"id": 1, "method": "initialize", "params": opening},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    )
    stream = process.stdin
    if stream is None:
        return [], "it takes no input"
    for message in messages:
        try:
            stream.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            stream.flush()
        except OSError:
            return [], _last_words(process)
        if "id" not in message:
            continue
        answer = _answer_to(message["id"], lines)
        if isinstance(answer, str):
            return [], _last_words(process) if answer == "ended" else answer
    tools = answer.get("tools", []) if isinstance(answer, dict) else []
    return [str(tool.get("name")) for tool in tools if isinstance(tool, dict)], None


def _answer_to(number: object, lines: SimpleQueue[str | None]) -> dict[str, Any] | str:
    """The result of a request, or what is wrong."""
    until = time.monotonic() + _MCP_SECONDS
    while True:
        try:
            line = lines.get(timeout=max(0.01, until - time.monotonic()))
        except Empty:
            return f"no answer within {_MCP_SECONDS:.0f} seconds"
        if line is None:
            return "ended"
        try:
            message = json.loads(line)
        except ValueError:
            return "it writes what is no JSON-RPC"
        if isinstance(message, dict) and message.get("id") == number:
            result = message.get("result")
            return result if isinstance(result, dict) else "it refuses"


def _last_words(process: subprocess.Popen[str]) -> str:
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=2)
    said = process.stderr.read() if process.stderr and process.poll() is not None else ""
    return "it ended" + (f": {' '.join(said.split())[-200:]}" if said.strip() else "")


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin:
        with suppress(OSError):  # it ended before it was asked
            process.stdin.close()
    try:
        process.wait(timeout=3)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()


# ----------------------------------------------------------------------------
# Prove that MCP servers start in time, and have nacre's tools.


_TOOLS = frozenset({"memory_search", "memory_get", "memory_store"})
_SLOW_SECONDS = 1.0
"""Hosts send their first request without the tools of a server that takes longer."""


def prove_servers(
    settings: Settings, wish: WiringWish, written: Written, kept: Sequence[LeftAlone]
) -> Iterator[Check]:
    """A finding for each server; one of the owner's that runs something else is the owner's matter.

    But not in a project: anybody may have put it there.
    """
    own = {target.path.resolve() for target in targets_of(settings, wish)}
    hint = next((one.hint for one in kept if one.path.resolve() in own), None)
    for server in written.servers:
        if is_own(server.words, wish.project):
            yield _prove(settings, wish, server, hint)
        elif hint is None or wish.project:
            yield Check("tools", FAILURE, f"it runs something else: {shlex.join(server.words)}")


def _prove(settings: Settings, wish: WiringWish, server: Server, hint: str | None) -> Check:
    began = time.monotonic()
    tools, problem = list_tools(settings, server, wish.project or settings.user_home)
    took = time.monotonic() - began
    missing = _TOOLS - set(tools)
    if problem or missing:
        told = problem or f"it has no {', '.join(sorted(missing))}"
        return Check("tools", FAILURE, f"{told}: {shlex.join(server.words)}", hint)
    told = f"{len(tools)} offered after {took * 1000:.0f} ms"
    if took > _SLOW_SECONDS:
        return Check(
            "tools", WARNING, told, "hosts may send their first request without tools that late"
        )
    return Check("tools", OK, told)


# ----------------------------------------------------------------------------
# Which version of a host is installed, beside those that were driven for real.


_SECONDS = 10.0
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


def prove_versions(settings: Settings, hosts: Iterable[str]) -> Iterator[Check]:
    """A word on each host that was driven and whose program is here; another version is no failure."""
    for name in hosts:
        found = next(
            filter(None, (program_of(settings, one) for one in host_named(name).programs)), None
        )
        proven = proven_versions().get(name)
        version = proven and found and _version(settings, Path(found))
        if proven and version:
            told = f"{version} is installed; driven for real: {', '.join(proven.versions)} ({proven.on})"
            yield Check(f"{name} version", OK, told)


def _version(settings: Settings, program: Path) -> str:
    """What npm's package of a program says, else the program itself: that takes some seconds, and may leave files."""
    return _of_package(program) or _as_said(settings, program)


def _of_package(program: Path) -> str:
    folders = (folder for folder in program.resolve().parents if "node_modules" in folder.parts)
    held = next(
        filter(None, (json_in(text_of(folder / "package.json")) for folder in folders)), None
    )
    return str(held.get("version", "")) if isinstance(held, dict) else ""


def _as_said(settings: Settings, program: Path) -> str:
    try:
        said = subprocess.run(
            [program, "--version"],
            env=quiet(settings),
            cwd=settings.user_home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        ).stdout
    except (subprocess.TimeoutExpired, OSError):
        return ""
    found = _VERSION.search(said)
    return found[0] if found else ""


# ----------------------------------------------------------------------------
# Whether another nacre than this one is at work: in what was wired, and as the daemon.


_SECONDS_VERSIONS = 1.0


def written_by_another(settings: Settings, wired: Wired) -> str:
    """Which nacre wrote the wirings last, where it is not this one: of another version, or at another place."""
    program = shlex.join(own_programs(settings).nacre)
    if not wired.nacre or (wired.nacre, wired.program) == (__version__, program):
        return ""
    if wired.nacre != __version__:
        return f"nacre {wired.nacre} wrote it, this is {__version__}"
    return f"the nacre at {wired.program} wrote it, this is {program}"


def daemon_of_another(settings: Settings) -> Iterator[Check]:
    """A finding where the daemon is of another version."""
    try:
        version = str(ask(str(settings.home), "hello", {}, seconds=_SECONDS_VERSIONS)["version"])
    except (Away, Refused, KeyError, TypeError):
        return
    if version != __version__:
        told = f"nacre {version} serves this home, this is {__version__}"
        yield Check("daemon", WARNING, told, "nacre serve stop; the next session starts this one's")


# ----------------------------------------------------------------------------
# A daemon for as long as wirings are proved: the first session of a host starts it, and what comes
# after is proved.


_WARM_SECONDS = 30.0
_END_SECONDS = 5.0
_LOOK_SECONDS_WARM_DAEMON = 0.05
_ASK_SECONDS = 2.0


@contextmanager
def warmed(settings: Settings) -> Iterator[None]:
    """Have the home's daemon up within, where hooks may start one; it ends afterwards, unless it was there before."""
    home = str(settings.home)
    daemon = None
    with suppress(OSError):
        daemon = (
            start_daemon(home, settings.environ, "--no-watch")
            if settings.flag("daemon.enabled")
            else None
        )
    if daemon is None:
        yield
        return
    try:
        until = time.monotonic() + _WARM_SECONDS
        while daemon.poll() is None and not _is_warm(home) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS_WARM_DAEMON)
        yield
    finally:
        _end_warm_daemon(daemon, home)


def _end_warm_daemon(daemon: subprocess.Popen[bytes], home: str) -> None:
    """End it; where another one was faster, it ended by itself, and that one stays."""
    if daemon.poll() is None:
        with suppress(Away, Refused):
            ask(home, "stop", {}, seconds=_ASK_SECONDS)
    try:
        daemon.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def _is_warm(home: str) -> bool:
    try:
        return bool(ask(home, "hello", {}, seconds=_ASK_SECONDS)["is_warm"])
    except (Away, Refused, KeyError, TypeError):
        return False


# ----------------------------------------------------------------------------
# Prove each wiring by a dry call of exactly what is written in the host's files.


_MOST_NAMED = 3
_DIFFERS = {"create": "is missing", "change": "is not as it should be"}


def prove_hosts(settings: Settings) -> list[Check]:
    """A finding for each wired host, and a word on those that are here and not wired."""
    wired = load(settings.home)
    wishes = wired.wishes
    checks = list(daemon_of_another(settings))
    with warmed(settings) if wishes else nullcontext():
        names = _names(wishes)
        checks += [
            check
            for wish in wishes
            for check in _prove_prove(settings, wired, wish, names[wish.place])
        ]
    hosts = dict.fromkeys(wish.host for wish in wishes)
    checks += prove_versions(settings, hosts)
    idle = [one.host.name for one in found_hosts(settings) if one.host.name not in hosts]
    if idle:
        hint = f"nacre init --host {','.join(idle)}"
        checks.append(Check("not wired", OK if wishes else WARNING, ", ".join(idle), hint))
    return checks or [
        Check(
            "hosts", OK, "no tool of an agent was found on this machine", "nacre init --host NAME"
        )
    ]


def hosts_in_a_line(settings: Settings) -> list[Check]:
    """Whether what was wired still stands in the files; nothing is run for it. None where nothing is wired."""
    wired = load(settings.home)
    if not wired.wishes:
        return []
    broken = dict.fromkeys(
        wish.host for wish in wired.wishes if _differences(plan(settings, [wish]))
    )
    if broken and (another := written_by_another(settings, wired)):
        return [
            Check(
                "hosts",
                WARNING,
                f"{', '.join(broken)}: {another}",
                "nacre init fits them to this one",
            )
        ]
    if broken:
        return [
            Check(
                "hosts", WARNING, f"the wiring of {', '.join(broken)} changed", "nacre doctor hosts"
            )
        ]
    again = [wish.host for wish in wired.wishes if _is_on_again(settings, wish)]
    if again:
        return [
            Check(
                "hosts",
                WARNING,
                f"the own memory of {', '.join(again)} was turned on again",
                "nacre doctor hosts",
            )
        ]
    names = ", ".join(dict.fromkeys(wish.host for wish in wired.wishes))
    return [Check("hosts", OK, f"{names}; nacre doctor hosts proves them")]


def _names(wishes: Sequence[WiringWish]) -> dict[tuple[str, str], str]:
    """What wirings are called: a project by its folder's name, unless another one has that, too."""
    alike = Counter((wish.host, wish.project.name) for wish in wishes if wish.project)
    return {
        wish.place: wish.host
        if wish.project is None
        else f"{wish.host} in {wish.project.name if alike[wish.host, wish.project.name] == 1 else wish.project}"
        for wish in wishes
    }


def _prove_prove(settings: Settings, wired: Wired, wish: WiringWish, name: str) -> Iterator[Check]:
    if wish.project and not wish.project.is_dir():
        told = f"there is no folder {wish.project} any more"
        yield Check(name, WARNING, told, init_command(wish, "--uninstall"))
        return
    mend = init_command(wish)
    for check in _findings(settings, wired, wish):
        hint = check.hint or (mend if check.state != OK else None)
        yield replace(check, name=f"{name} {check.name}".strip(), hint=hint)


def _findings(settings: Settings, wired: Wired, wish: WiringWish) -> Iterator[Check]:
    wanted = plan(settings, [wish])
    another = written_by_another(settings, wired)
    files = list(_prove_files(wanted, another))
    yield from files
    for one in wanted.own_memories:
        state = WARNING if one.state == ways.CONFLICT else OK
        yield Check("own memory", state, f"{one.state}: {one.told}", one.hint or None)
    found = written(settings, wish)
    yield from (
        Check("server", WARNING, f"{one.path}: {one.reason}", one.hint) for one in wanted.kept
    )
    yield from prove_hooks(settings, wish, found)
    yield from prove_servers(settings, wish, found, wanted.kept)
    plugins = (
        []
        if wanted.left_alone
        else list(prove_plugins(settings, wish, is_of_another=bool(another)))
    )
    yield from plugins
    if not (found.hooks or found.servers or plugins or files):
        yield Check("", FAILURE, "nothing of nacre is in its files")


def _prove_files(wanted: WiringPlan, another: str) -> Iterator[Check]:
    """Whether the files are as they should be: those of another nacre are not broken for that."""
    for one in wanted.left_alone:
        yield Check("files", FAILURE, f"{one.path}: {one.reason}", one.hint)
    differs = [one for one in wanted.changes if one.action in _DIFFERS]
    if another and differs:
        told = f"{len(differs)} file{'s' if differs[1:] else ''} would be otherwise"
        yield Check("files", WARNING, f"{another}; {told}")
    elif differs:
        named = [f"{one.path} {_DIFFERS[one.action]}" for one in differs[:_MOST_NAMED]]
        more = [f"{len(differs) - _MOST_NAMED} more"] if len(differs) > _MOST_NAMED else []
        yield Check("files", FAILURE, "; ".join([*named, *more]))


def _is_on_again(settings: Settings, wish: WiringWish) -> bool:
    """Whether somebody turned on a host's own memory that nacre had turned off."""
    return wish.isolates and any(
        one.state == ways.CONFLICT for one in plan(settings, [wish]).own_memories
    )


def _differences(wanted: WiringPlan) -> bool:
    """Whether something of the files is not as it should be."""
    return bool(wanted.left_alone) or any(one.action in _DIFFERS for one in wanted.changes)
