"""Prove each wiring by a dry call of exactly what is written in the host's files."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from nacre.app.wiring.commands import installed_version
from nacre.app.wiring.planning import plan
from nacre.app.wiring.record import load
from nacre.app.wiring.trusting import untrusted
from nacre.app.wiring.warming import warmed
from nacre.app.wiring.ways import found_hosts, program_of, targets_of, way_of
from nacre.hosts import claude_code, codex, json_text
from nacre.hosts.host import SERVER, Way
from nacre.hosts.pieces import JsonHook, JsonKey, TomlServer, WholeFile
from nacre.hosts.terminals import PLUGIN_TOLD
from nacre.model.reports import Check
from nacre.model.wiring import WiringPlan, WiringWish
from nacre.settings import Settings

OK, WARNING, FAILURE = "ok", "warning", "failure"
_HOOK_SECONDS = 5.0
_MOST_RUNS = 3
_MCP_SECONDS = 15.0
_SLOW_SECONDS = 1.0
"""Hosts send their first request without the tools of a server that takes longer."""

_YAML = re.compile(r"^    (command|args|env): (.+)$", re.MULTILINE)
"""Continue's file is nacre's own, with values as JSON has them."""

_TOOLS = frozenset({"memory_search", "memory_get", "memory_store"})
_SAMPLE = {"session_id": "nacre-doctor", "hook_event_name": "SessionStart", "source": "startup", "prompt": ""}


@dataclass(frozen=True, slots=True)
class _Written:
    """What a host's files hold of nacre: hook command lines by event, and MCP commands with their environment."""

    hooks: Sequence[tuple[str, str]]
    servers: Sequence[tuple[Sequence[str], Mapping[str, str]]]


def prove_hosts(settings: Settings) -> list[Check]:
    """A finding for each wired host, and a word on those that are here and not wired."""
    wishes = load(settings.home).wishes
    with warmed(settings) if wishes else nullcontext():
        checks = [check for wish in wishes for check in _prove(settings, wish)]
    wired = {wish.host for wish in wishes}
    idle = [one.host.name for one in found_hosts(settings) if one.host.name not in wired]
    if idle:
        hint = f"nacre init --host {','.join(idle)}"
        checks.append(Check("not wired", OK if wishes else WARNING, ", ".join(idle), hint))
    return checks or [Check("hosts", OK, "no tool of an agent was found on this machine", "nacre init --host NAME")]


def hosts_in_a_line(settings: Settings) -> list[Check]:
    """Whether what was wired still stands in the files; nothing is run for it. None where nothing is wired."""
    wishes = load(settings.home).wishes
    if not wishes:
        return []
    broken = [wish.host for wish in wishes if _differences(plan(settings, [wish]))]
    names = ", ".join(dict.fromkeys(wish.host for wish in wishes))
    if broken:
        return [
            Check("hosts", WARNING, f"the wiring of {', '.join(dict.fromkeys(broken))} changed", "nacre doctor hosts")
        ]
    return [Check("hosts", OK, f"{names}; nacre doctor hosts proves them")]


def _prove(settings: Settings, wish: WiringWish) -> Iterator[Check]:
    name = wish.host if wish.project is None else f"{wish.host} in {wish.project}"
    mend = f"nacre init --host {wish.host}" + (f" --project {shlex.quote(str(wish.project))}" if wish.project else "")
    if wish.project and not wish.project.is_dir():
        yield Check(name, WARNING, f"there is no folder {wish.project} any more", f"{mend} --uninstall")
        return
    wanted = plan(settings, [wish])
    if found := _differences(wanted):
        yield Check(f"{name} files", FAILURE, found, mend)
    written = _written(settings, wish)
    for check in (*_prove_hooks(settings, wish, written), *_prove_servers(settings, wish, written)):
        yield Check(
            f"{name} {check.name}", check.state, check.detail, check.hint or (mend if check.state != OK else None)
        )
    plugins = (*_prove_plugin(settings, wish), *_prove_program(settings, wish))
    if not written.hooks and not written.servers and not plugins and not found:
        yield Check(name, FAILURE, "nothing of nacre is in its files", mend)
    for check in plugins:
        yield replace(check, name=f"{name} {check.name}", hint=check.hint or (mend if check.state != OK else None))


def _differences(wanted: WiringPlan) -> str:
    """What of the files is not as it should be."""
    left = [f"{one.path}: {one.reason}" for one in wanted.left_alone]
    names = {"create": "is missing", "change": "is not as it should be"}
    return "; ".join([*left, *(f"{one.path} {names[one.action]}" for one in wanted.changes if one.action in names)])


def _written(settings: Settings, wish: WiringWish) -> _Written:
    """Read from the files, not from what should be in them: what the host will run is tried."""
    hooks: dict[tuple[str, str], None] = {}
    servers: list[tuple[Sequence[str], Mapping[str, str]]] = []
    for path, key in _places(settings, wish):
        held = _held(path)
        hooks |= dict.fromkeys(_hooks_in(held) if key == "hooks" else ())
        server = _server_in(held) if key == "server" else None
        servers += [server] if server else []
    return _Written(tuple(hooks), servers)


def _places(settings: Settings, wish: WiringWish) -> Iterator[tuple[Path, str]]:
    """The files that hold hooks or a server, and which."""
    way = way_of(settings, wish)
    if wish.host == claude_code.NAME and claude_code.is_plugin(way):
        folder = _plugin_folder(way)
        yield folder / "hooks" / "hooks.json", "hooks"
        yield folder / ".mcp.json", "server"
        return
    for target in targets_of(settings, wish):
        if any(isinstance(piece, JsonHook) for piece in target.pieces):
            yield target.path, "hooks"
        if any(isinstance(piece, JsonKey | TomlServer) and piece.path[-1] == SERVER for piece in target.pieces):
            yield target.path, "server"
        if target.path.suffix == ".yaml" and isinstance(target.pieces[0], WholeFile):
            yield target.path, "server"


def _plugin_folder(way: Way) -> Path:
    """Where Claude Code has copied the plugin to; where it has not yet, the folder it will copy."""
    version = installed_version(way)
    copied = claude_code.cached(way.places, version) if version else None
    return copied if copied and copied.is_dir() else claude_code.marketplace(way.places) / "plugin"


def _held(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".toml":
            return tomllib.loads(text)
        if path.suffix == ".yaml":
            found = {key: json.loads(value) for key, value in _YAML.findall(text)}
            return {"mcpServers": {SERVER: found}}
        return json_text.read(text)
    except (OSError, ValueError):
        return {}


def _hooks_in(held: Any) -> Iterator[tuple[str, str]]:
    events = held.get("hooks") if isinstance(held, dict) else None
    for event, groups in events.items() if isinstance(events, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            for entry in group.get("hooks", [group]) if isinstance(group, dict) else ():
                command = str(entry.get("command", "")) if isinstance(entry, dict) else ""
                if "nacre-hook" in command or "nacre.hooks.process" in command:
                    yield event, command


def _server_in(held: Any) -> tuple[Sequence[str], Mapping[str, str]] | None:
    for key in ("mcpServers", "mcp_servers", "servers", "mcp"):
        table = held.get(key) if isinstance(held, dict) else None
        if isinstance(table, list):
            table = {str(one.get("name")): one for one in table if isinstance(one, dict)}
        one = table.get(SERVER) if isinstance(table, dict) else None
        if isinstance(one, dict) and one.get("command"):
            first = one["command"]
            words = list(first) if isinstance(first, list) else [str(first), *map(str, one.get("args") or ())]
            return words, one.get("env") or one.get("environment") or {}
    return None


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


def _tried(settings: Settings, wish: WiringWish, event: str, line: str) -> _Tried:
    """Run a hook, in no project: no session is to miss what it is told. One that comes late is run again: what it loads
    is in the system's memory then."""
    given = {**_SAMPLE, "hook_event_name": event, "cwd": str(settings.home)}
    tried = _Tried(None, "", 0.0)
    for _ in range(_MOST_RUNS):
        began, noted = time.monotonic(), _log_size(settings)
        problem = _run_hook(settings, line, given, wish.project)
        tried = _Tried(problem, "" if problem else _how(settings, noted), time.monotonic() - began)
        if not tried.is_late:
            break
    return tried


def _prove_hooks(settings: Settings, wish: WiringWish, written: _Written) -> Iterator[Check]:
    slowest, failed, late, traces = 0.0, [], 0, 0
    for event, line in written.hooks:
        tried = _tried(settings, wish, event, line)
        slowest = max(slowest, tried.seconds)
        failed += [f"{event}: {tried.problem}"] if tried.problem else []
        late += tried.is_late
        traces += bool(tried.how)
    if failed:
        yield Check("hooks", FAILURE, failed[0] + (f" (and {len(failed) - 1} more)" if failed[1:] else ""))
    elif written.hooks and not traces:
        yield Check("hooks", FAILURE, f"they run, and none left a line in {_log(settings)}: {written.hooks[0][1]}")
    elif late:
        told = f"they run; {late} of {len(written.hooks)} had no answer in time, however often, and said nothing"
        yield Check("hooks", WARNING, told, "is this machine very busy? nacre health tells how the home is")
    elif written.hooks:
        yield Check("hooks", OK, f"{len(written.hooks)} answer, the slowest in {slowest * 1000:.0f} ms")
    if wish.host == codex.NAME and written.hooks and program_of(settings, "codex"):
        yield from _trusted(settings, wish)


def _trusted(settings: Settings, wish: WiringWish) -> Iterator[Check]:
    left = untrusted(settings, wish)
    if left:
        hint = "nacre init --host codex --trust-hooks, or open codex and type /hooks"
        told = f"Codex runs {len(left)} of the hooks once you trust them"
        yield Check("trust", WARNING, told, hint)
    elif left is None:
        yield Check("trust", WARNING, "Codex cannot be asked whether it trusts the hooks", "open codex and type /hooks")
    else:
        yield Check("trust", OK, "Codex trusts the hooks")


def _run_hook(
    settings: Settings, line: str, given: Mapping[str, str], project: Path | None, *, says_json: bool = True
) -> str | None:
    """Run a hook as the host does, without a shell: nacre's own lines need none. Returns what is wrong."""
    words = [line] if settings.platform == "win32" else shlex.split(line)
    if settings.platform != "win32" and not _is_own(words, project):
        return f"it runs something else: {line}"
    try:
        done = subprocess.run(
            line if settings.platform == "win32" else words, env=_quiet(settings), input=json.dumps(given),
            capture_output=True, text=True, errors="replace", timeout=_HOOK_SECONDS, check=False,
            cwd=project or settings.user_home,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no answer within {_HOOK_SECONDS:.0f} seconds: {line}"
    except OSError as error:
        return f"{error.strerror}: {line}"
    if done.returncode:
        said = " ".join(done.stderr.split())[-200:]
        return f"it ended with {done.returncode}{f' ({said})' if said else ''}: {line}"
    if says_json and done.stdout.strip():
        try:
            json.loads(done.stdout)
        except ValueError:
            return f"its answer is not JSON: {line}"
    return None


def _quiet(settings: Settings) -> dict[str, str]:
    """The environment of a dry call: it leaves no daemon behind."""
    return {**settings.environ, "NACRE_DAEMON_ENABLED": "false"}


def _log(settings: Settings) -> Path:
    return settings.home / "logs" / "hooks.jsonl"


def _log_size(settings: Settings) -> int:
    return _log(settings).stat().st_size if _log(settings).exists() else 0


def _how(settings: Settings, since: int) -> str:
    """How the last run of a hook was answered, as its log tells; empty where it left no line."""
    try:
        data = _log(settings).read_bytes()
        fresh = data[since if since <= len(data) else 0 :].splitlines()
        return str(json.loads(fresh[-1])["how"]) if fresh else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _is_own(words: Sequence[str], project: Path | None) -> bool:
    """Whether a command is nacre's. What a project brings along is not run: anybody may have put it there."""
    program = Path(next((word for word in words if Path(word).name != "env" and "=" not in word), ""))
    named = program.stem in ("nacre", "nacre-hook") or any(
        (first, second.partition(".")[0]) == ("-m", "nacre") for first, second in pairwise(words)
    )
    return named and not (project and program.resolve().is_relative_to(project) and not _is_interpreter(program))


def _is_interpreter(program: Path) -> bool:
    """Whether it is what runs this nacre, wherever that is installed."""
    return program.parent == Path(sys.executable).parent


def _prove_servers(settings: Settings, wish: WiringWish, written: _Written) -> Iterator[Check]:
    for words, environ in written.servers:
        if not _is_own(words, wish.project):
            yield Check("tools", FAILURE, f"it runs something else: {shlex.join(words)}")
            continue
        began = time.monotonic()
        tools, problem = _list_tools(settings, words, environ, wish.project or settings.user_home)
        took = time.monotonic() - began
        missing = _TOOLS - set(tools)
        if problem or missing:
            told = problem or f"it has no {', '.join(sorted(missing))}"
            yield Check("tools", FAILURE, f"{told}: {shlex.join(words)}")
        else:
            state = WARNING if took > _SLOW_SECONDS else OK
            hint = "hosts may send their first request without tools that late" if state == WARNING else None
            yield Check("tools", state, f"{len(tools)} offered after {took * 1000:.0f} ms", hint)


def _list_tools(
    settings: Settings, words: Sequence[str], environ: Mapping[str, str], folder: Path
) -> tuple[list[str], str | None]:  # fmt: skip
    """Start an MCP server, and ask for its tools; returns their names, and what is wrong."""
    try:
        process = subprocess.Popen(
            words, env={**_quiet(settings), **environ}, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip
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


def _converse(process: subprocess.Popen[str], lines: SimpleQueue[str | None]) -> tuple[list[str], str | None]:
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "nacre", "version": "0"}}
    messages = (
        {"id": 1, "method": "initialize", "params": opening}, {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    )  # fmt: skip
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
        process.stdin.close()
    try:
        process.wait(timeout=3)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()


def _prove_program(settings: Settings, wish: WiringWish) -> Iterator[Check]:
    """A plugin that is a program itself: whether what it was told of nacre's programs is true."""
    told = next((one.path for one in targets_of(settings, wish) if one.path.name == PLUGIN_TOLD), None)
    held = _held(told) if told else None
    if not isinstance(held, dict) or not isinstance(held.get("hook"), list):
        return
    environ = held.get("env") if isinstance(held.get("env"), dict) else {}
    home = ["--home", str(held["home"])] if held.get("home") else []
    words = ["/usr/bin/env", *(f"{key}={value}" for key, value in (environ or {}).items())] if environ else []
    words += [*map(str, held["hook"]), *home, wish.host, "session-start"]
    began = time.monotonic()
    given = {**_SAMPLE, "cwd": str(settings.home)}
    problem = _run_hook(settings, shlex.join(words), given, wish.project, says_json=False)
    took = (time.monotonic() - began) * 1000
    state = FAILURE if problem else OK
    yield Check("plugin", state, problem or f"version {held.get('version')}; nacre answers it in {took:.0f} ms")


def _prove_plugin(settings: Settings, wish: WiringWish) -> Iterator[Check]:
    """Whether the host has the plugin that is meant for it."""
    way = way_of(settings, wish)
    if wish.host != claude_code.NAME or not claude_code.is_plugin(way):
        return
    wanted = claude_code.version_of(claude_code.plugin_files(way))
    found = installed_version(way)
    if found == wanted:
        yield Check("plugin", OK, f"version {found} is installed")
    elif found:
        yield Check("plugin", FAILURE, f"Claude Code has version {found}, not {wanted}")
    elif program_of(settings, "claude"):
        yield Check("plugin", FAILURE, "Claude Code has not installed it")
    else:
        yield Check("plugin", WARNING, "Claude Code installs it at its next start", "start claude once")
