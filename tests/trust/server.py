"""A process that has nacre loaded and forks one child for every run: a home is made, used, interrupted, looked at.

Reads requests from standard input, one JSON object a line, and answers each with one. No child opens a home that its
parent had open, so every one of them is what a fresh process would be.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nacre.cli import root
from nacre.errors import NacreError
from nacre.settings import load_settings
from tests.trust.scenarios import SCENARIOS, Command, Hand, Place, Scenario, Work, open_home
from tests.trust.shim import Fault, Shim
from tests.trust.state import State, between, finished, history, look, rebuilt

PATIENCE_SECONDS = 120.0
_PR_SET_CHILD_SUBREAPER = 36
_ALLOWED_CODES = (1, 5)
_DONE_BEFORE = (0, 3, 4)


@dataclass
class Ground:
    """What is known of a scenario before anything goes wrong: its home, its events, its state after each step."""

    template: Path
    states: list[State] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0


class Server:
    """Runs scenarios in one sandbox, one at a time."""

    def __init__(self, sandbox: Path) -> None:
        self.place = Place(sandbox / "user")
        self.sandbox = sandbox
        self.grounds: dict[str, Ground] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what is asked for: ``events`` of a scenario, or one ``run`` of it."""
        scenario = SCENARIOS[request["scenario"]]
        ground = self.ground(scenario)
        if request["do"] == "events":
            return {"events": ground.events, "seconds": ground.seconds}
        fault = Fault(**request["fault"]) if request.get("fault") else None
        began = time.perf_counter()
        run = self.play(scenario, ground, fault, delay=request.get("delay"))
        wrong = run["wrong"] + self.examine(scenario, ground, run, fault, deep=request.get("deep", True))
        return {
            "wrong": wrong, "killed": run["killed"], "failed": run["failed"], "said": run["said"],
            "seconds": time.perf_counter() - began,
        }  # fmt: skip

    def ground(self, scenario: Scenario) -> Ground:
        """Make a scenario's home, and play it once undisturbed."""
        if scenario.name in self.grounds:
            return self.grounds[scenario.name]
        ground = Ground(self.sandbox / "templates" / scenario.name.replace(" ", "-"))
        self._clear()
        self.place.user.mkdir(parents=True)
        _fork(lambda: _prepare(scenario, self.place)).expect()
        shutil.copytree(self.place.user, ground.template, symlinks=True)
        for count in range(len(scenario.steps) + 1):
            self._fresh(ground)
            done = _fork(lambda count=count: _play(scenario, self.place, None, last=count)).expect()
            ground.seconds = max(line.get("seconds", 0.0) for line in done)
            if any("error" in line for line in done):
                raise AssertionError(f"{scenario.name}: does not run undisturbed: {done}")
            (told,) = _fork(lambda: _look(scenario, ground.ids)).expect()
            if told["wrong"]:
                raise AssertionError(f"{scenario.name}, after {count} steps: {told['wrong']}")
            if count == 0:
                ground.ids = told["ids"]
                (told,) = _fork(lambda: _look(scenario, ground.ids)).expect()
            ground.states.append(told["state"])
            ground.events = [tuple(event) for line in done for event in line.get("events", ())]
        self.grounds[scenario.name] = ground
        return ground

    def play(self, scenario: Scenario, ground: Ground, fault: Fault | None, delay: float | None) -> dict[str, Any]:
        """Run the steps with a fault, or with a kill after ``delay`` seconds; how far did they get?"""
        self._fresh(ground)
        ended = _fork(lambda: _play(scenario, self.place, fault), delay=delay)
        wrong = ["it never ended"] if ended.hung else []
        acknowledged, failed, said = 0, None, ""
        for line in ended.lines:
            if "error" in line:
                failed = line["error"]
                wrong += _badly_told(line)
            elif "answer" in line:
                acknowledged = line["step"] + 1
            elif "stderr" in line:
                said = line["stderr"]
                wrong += ["a traceback was shown"] if "Traceback" in said else []
        if not ended.killed and not ended.hung and ended.status:
            wrong.append(f"it ended with {ended.status}: {said}")
        return {"wrong": wrong, "acknowledged": acknowledged, "failed": failed, "killed": ended.killed, "said": said}

    def examine(
        self, scenario: Scenario, ground: Ground, run: dict[str, Any], fault: Fault | None, *, deep: bool
    ) -> list[str]:
        """Open the home anew: is all there that was acknowledged, is nothing doubled, does the rest go on?"""
        first = run["acknowledged"]
        (found,) = _fork(lambda: _examine(scenario, self.place, ground, first, deep=deep)).expect()
        return list(found["wrong"])

    def _fresh(self, ground: Ground) -> None:
        self._clear()
        shutil.copytree(ground.template, self.place.user, symlinks=True)

    def _clear(self) -> None:
        shutil.rmtree(self.place.user, ignore_errors=True)


@dataclass
class Ended:
    """What a child said, and how it ended."""

    lines: list[dict[str, Any]]
    status: int
    killed: bool
    hung: bool

    def expect(self) -> list[dict[str, Any]]:
        """What it said; it should have ended well."""
        if self.status or self.hung:
            raise AssertionError(f"a child ended with {self.status}: {self.lines}")
        return self.lines


def _fork(work: Callable[[], None], delay: float | None = None) -> Ended:
    """Do work in a child, which prints one JSON object a line.

    With ``delay`` it is killed so many seconds after its first line.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _child(work, writer)
    os.close(writer)
    hung = False
    if delay is not None:
        select.select([reader], [], [], PATIENCE_SECONDS)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    data, until = bytearray(), time.monotonic() + PATIENCE_SECONDS
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            hung = True
            os.kill(child, signal.SIGKILL)
            break
        piece = os.read(reader, 65536)
        if not piece:
            break
        data += piece
    os.close(reader)
    _, status = os.waitpid(child, 0)
    _await_orphans()
    lines = [json.loads(line) for line in data.split(b"\n")[:-1]]
    return Ended(lines, status, os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and not hung, hung)


def _await_orphans() -> None:
    """Programs that a killed child had started go on; wait until they are done."""
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _child(work: Callable[[], None], writer: int) -> None:
    try:
        os.dup2(writer, 1)
        os.close(writer)
        os.set_inheritable(1, False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        work()
        sys.stdout.flush()
        os._exit(0)
    except BaseException:  # noqa: BLE001 - a child must not go on as its parent
        traceback.print_exc(file=sys.__stderr__)
        os._exit(70)


def _tell(**values: Any) -> None:
    os.write(1, json.dumps(values, default=str).encode() + b"\n")


def _prepare(scenario: Scenario, place: Place) -> None:
    for one in scenario.before:
        if isinstance(one, Hand):
            one.do(place)
        else:
            code, said = _run(one)
            if code:
                raise AssertionError(f"{scenario.name}: {one} ended with {code}: {said}")


def _play(scenario: Scenario, place: Place, fault: Fault | None, last: int | None = None) -> None:
    """Run the steps under the shim; every answer is told as it comes."""
    if scenario.before:
        context = open_home()
        look(context)
        context.database.close()
    if scenario.by_hand:
        scenario.by_hand.do(place)
    shim = Shim(place.user, fault)
    errors = (place.user.parent / "stderr").open("w+", encoding="utf-8")
    os.dup2(errors.fileno(), 2)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    shim.arm()
    began = time.perf_counter()
    _tell(ready=True)
    for number, step in enumerate(scenario.steps[:last]):
        code, said = _run(step.run, lambda said, number=number: _tell(step=number, answer=said))
        if code:
            _tell(step=number, error=said, code=code)
            break
    _tell(seconds=time.perf_counter() - began)
    sys.stderr.flush()
    errors.seek(0)
    _tell(stderr=errors.read())
    if fault is None:
        _tell(events=[(event.kind, event.target) for event in shim.events])


class _Answers:
    """Standard output: what nacre writes there is acknowledged the moment it is written."""

    encoding = "utf-8"

    def __init__(self, tell: Callable[[Any], None]) -> None:
        self.said: list[Any] = []
        self._tell = tell

    def write(self, text: str) -> int:
        """Take an answer; an error is no acknowledgement."""
        if text.strip():
            said = json.loads(text)
            self.said.append(said)
            if "error" not in said:
                self._tell(said)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        """Nobody is asked."""
        return False


def _run(step: Command | Work, acknowledge: Callable[[Any], None] = lambda _: None) -> tuple[int, Any]:
    """Run one step as its own call of nacre would; returns its exit code and what it said."""
    if callable(step):
        return _run_work(step, acknowledge)
    answers, real = _Answers(acknowledge), sys.stdout
    sys.stdout = answers  # type: ignore[assignment]
    try:
        root.cli.main([*step, "--json"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        sys.stdout = real
    return code, answers.said[-1] if answers.said else None


def _run_work(work: Work, acknowledge: Callable[[Any], None]) -> tuple[int, Any]:
    from nacre.cli.boundary import exit_code_of

    try:
        context = open_home()
        try:
            work(context)
        finally:
            context.database.close()
    except NacreError as error:
        return exit_code_of(error), {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
    acknowledge({"done": True})
    return 0, {"done": True}


def _badly_told(line: dict[str, Any]) -> list[str]:
    said = (line["error"] or {}).get("error") or {}
    wrong = [] if line["code"] in _ALLOWED_CODES else [f"exit code {line['code']}: {said}"]
    if said.get("code") == "unexpected" or not said.get("hint"):
        wrong.append(f"not told well: {said}")
    return wrong


def _look(scenario: Scenario, known: list[str]) -> None:
    context = open_home()
    state, wrong = look(context, known, scenario.may_tell)
    _tell(state=state, wrong=wrong, ids=sorted(context.memories.all_ids()))
    context.database.close()


def _examine(scenario: Scenario, place: Place, ground: Ground, first: int, *, deep: bool) -> None:
    try:
        wrong = _findings(scenario, ground, first, deep=deep)
    except NacreError as error:
        wrong = [f"it cannot be opened again: {error.message}"]
    except Exception:  # noqa: BLE001 - whatever happens here is a finding
        wrong = [f"it cannot be opened again: {traceback.format_exc()[-1500:]}"]
    _tell(wrong=wrong)


def _findings(scenario: Scenario, ground: Ground, first: int, *, deep: bool) -> list[str]:
    context = open_home()
    state, wrong = look(context, ground.ids, scenario.may_tell)
    context.database.close()
    state = json.loads(json.dumps(state, default=str))
    step = scenario.steps[first] if first < len(scenario.steps) else None
    after = ground.states[first + 1] if step else ground.states[first]
    wrong += between(state, ground.states[first], after, is_whole=step.is_whole if step else True)
    if wrong or not deep:
        return wrong
    for step in scenario.steps[first:]:
        code, said = _run(step.run)
        if code not in _DONE_BEFORE:
            wrong.append(f"a second run ended with {code}: {said}")
    if (load_settings().vault / ".git").is_dir():
        _run(("commit",))
    context = open_home()
    state, more = look(context, ground.ids, scenario.may_tell)
    state = json.loads(json.dumps(state, default=str))
    wrong += more + finished(state, ground.states[-1]) + history(context)
    return wrong + rebuilt(context, open_home)


def main() -> None:
    """Serve requests until there are no more."""
    os.umask(0o077)
    sandbox = Path(sys.argv[1])
    user = sandbox / "user"
    os.environ |= {"HOME": str(user), "NACRE_HOME": str(user / ".nacre")}
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for section in root.SECTIONS.values():
        for name, entry in section.items():
            if name != "benchmark":
                module = entry.place.partition(":")[0]
                importlib.import_module(module if "." in module else f"nacre.cli.commands.{module}")
    server = Server(sandbox)
    for line in sys.stdin:
        try:
            answer = server.answer(json.loads(line))
        except Exception:  # noqa: BLE001 - told to whoever asked
            answer = {"broken": traceback.format_exc()}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
