"""A process that has nacre loaded and forks one child for every run: prepare, use, interrupt or check a home.

Reads requests from standard input, one JSON object a line, and answers each with one. No child opens a home that its
parent had open, so every child behaves like a fresh process.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nacre.cli import root
from nacre.cli.command import load_command
from nacre.errors import NacreError
from nacre.home.home import Home
from nacre.settings import load_settings
from tests.trust.scenarios import SCENARIOS, WARM, Command, Hand, Place, Scenario, Work, opened_home
from tests.trust.shim import Fault, Shim
from tests.trust.state import State, between, finished, history, look, rebuilt

PATIENCE_SECONDS = 120.0
_PR_SET_CHILD_SUBREAPER = 36
_ALLOWED_CODES = (1, 5)
_DONE_BEFORE = (0, 3, 4)
_UNAVAILABLE = 5


@dataclass
class Ground:
    """The fault-free facts of a scenario: its home, its events, its state after each step."""

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
        """Execute a request: ``events`` of a scenario, the ``time`` of its programs, or one ``run``."""
        scenario = SCENARIOS[request["scenario"]]
        ground = self.ground(scenario)
        if request["do"] == "events":
            return {"events": ground.events, "seconds": ground.seconds}
        if request["do"] == "time":
            self._fresh(ground)
            ended = _fork(lambda: _play_as_program(scenario, self.place))
            return {"seconds": max(line.get("seconds", 0.0) for line in ended.expect())}
        fault = Fault(**request["fault"]) if request.get("fault") else None
        began = time.perf_counter()
        run = self.play(
            scenario,
            ground,
            fault,
            request.get("delay"),
            as_program=request.get("as_program", False),
        )
        depth = Depth(request.get("deep", True), request.get("git", True))
        wrong = run["wrong"] + self.examine(scenario, ground, run, depth)
        return {
            "wrong": wrong,
            "killed": run["killed"],
            "failed": run["failed"],
            "said": run["said"],
            "seconds": time.perf_counter() - began,
        }

    def ground(self, scenario: Scenario) -> Ground:
        """Prepare a scenario's home, and play it once without faults."""
        if scenario.name in self.grounds:
            return self.grounds[scenario.name]
        ground = Ground(self.sandbox / "templates" / scenario.name.replace(" ", "-"))
        self._clear()
        self.place.user.mkdir(parents=True)
        _fork(lambda: _prepare(scenario, self.place)).expect()
        shutil.copytree(self.place.user, ground.template, symlinks=True)
        for count in range(len(scenario.steps) + 1):
            self._fresh(ground)
            lines = _fork(
                lambda count=count: _play(scenario, self.place, None, last=count)
            ).expect()
            ground.seconds = max(line.get("seconds", 0.0) for line in lines)
            if any("error" in line for line in lines):
                raise AssertionError(f"{scenario.name}: does not run undisturbed: {lines}")
            (look,) = _fork(lambda: _look(scenario, ground.ids)).expect()
            if look["wrong"]:
                raise AssertionError(f"{scenario.name}, after {count} steps: {look['wrong']}")
            if count == 0:
                ground.ids = look["ids"]
                (look,) = _fork(lambda: _look(scenario, ground.ids)).expect()
            ground.states.append(look["state"])
            ground.events = [tuple(event) for line in lines for event in line.get("events", ())]
        self.grounds[scenario.name] = ground
        return ground

    def play(
        self,
        scenario: Scenario,
        ground: Ground,
        fault: Fault | None,
        delay: float | None,
        *,
        as_program: bool = False,
    ) -> dict[str, Any]:
        """Run the steps with a fault, or with a kill after ``delay`` seconds; return the progress."""
        self._fresh(ground)
        if as_program:
            ended = _fork(lambda: _play_as_program(scenario, self.place, delay))
        else:
            ended = _fork(lambda: _play(scenario, self.place, fault), delay=delay)
        wrong = ["it never ended"] if ended.hung else []
        acknowledged, failed, stderr, killed = 0, None, "", ended.killed
        for line in ended.lines:
            if "error" in line:
                failed = line["error"]
                acknowledged = min(acknowledged, line["step"])
                wrong += _report_faults(line)
            elif "answer" in line:
                acknowledged = line["step"] + 1
            elif "killed" in line:
                killed = True
            elif "stderr" in line:
                stderr = line["stderr"]
                wrong += ["a traceback was shown"] if "Traceback" in stderr else []
        if not killed and not ended.hung and ended.status:
            wrong.append(f"it ended with {ended.status}: {stderr}")
        return {
            "wrong": wrong,
            "acknowledged": acknowledged,
            "failed": failed,
            "killed": killed,
            "said": stderr,
        }

    def examine(
        self, scenario: Scenario, ground: Ground, run: dict[str, Any], depth: Depth
    ) -> list[str]:
        """Reopen the home; check for lost writes, duplicates and failing later steps."""
        first = run["acknowledged"]
        (result,) = _fork(lambda: _examine(scenario, self.place, ground, first, depth)).expect()
        return list(result["wrong"])

    def _fresh(self, ground: Ground) -> None:
        self._clear()
        shutil.copytree(ground.template, self.place.user, symlinks=True)

    def _clear(self) -> None:
        shutil.rmtree(self.place.user, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Depth:
    """The extent of checks: ``deep`` adds a second run and a rebuild, ``git`` a first commit."""

    deep: bool = True
    git: bool = True


@dataclass
class Ended:
    """The lines of a child and its exit status."""

    lines: list[dict[str, Any]]
    status: int
    killed: bool
    hung: bool

    def expect(self) -> list[dict[str, Any]]:
        """Return the lines; raise AssertionError if the child failed."""
        if self.status or self.hung:
            raise AssertionError(f"a child ended with {self.status}: {self.lines}")
        return self.lines


def _fork(work: Callable[[], None], delay: float | None = None) -> Ended:
    """Do work in a child that prints one JSON object a line.

    With ``delay`` it is killed that many seconds after its first line.
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
    return Ended(
        lines,
        status,
        os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and not hung,
        hung,
    )


def _await_orphans() -> None:
    """Wait for programs that a killed child had started."""
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


def _emit(**values: Any) -> None:
    os.write(1, json.dumps(values, default=str).encode() + b"\n")


def _prepare(scenario: Scenario, place: Place) -> None:
    for item in scenario.before:
        if isinstance(item, Hand):
            item.do(place)
        else:
            code, answer = _run(item)
            if code:
                raise AssertionError(f"{scenario.name}: {item} ended with {code}: {answer}")


def _play(scenario: Scenario, place: Place, fault: Fault | None, last: int | None = None) -> None:
    """Run the steps under the shim; every answer is reported immediately."""
    _begin(scenario, place)
    shim = Shim(place.user, fault)
    errors = (place.user.parent / "stderr").open("w+", encoding="utf-8")
    os.dup2(errors.fileno(), 2)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    shim.arm()
    began = time.perf_counter()
    _emit(ready=True)
    for number, step in enumerate(scenario.steps[:last]):
        code, answer = _run(
            step.run, lambda answer, number=number: _emit(step=number, answer=answer)
        )
        if code or _undone(answer, code):
            _emit(step=number, error=answer, code=code)
            break
    _emit(seconds=time.perf_counter() - began)
    sys.stderr.flush()
    errors.seek(0)
    _emit(stderr=errors.read())
    if fault is None:
        _emit(events=[(event.kind, event.target) for event in shim.events])


def _begin(scenario: Scenario, place: Place) -> None:
    """Do the work that precedes the steps."""
    if scenario.before:
        context = opened_home()
        look(context)
        context.database.close()
    if scenario.by_hand:
        scenario.by_hand.do(place)


def _play_as_program(scenario: Scenario, place: Place, delay: float | None = None) -> None:
    """Run the steps as separate programs, like a shell; the program running after ``delay`` seconds is killed."""
    _begin(scenario, place)
    began = time.monotonic()
    for number, step in enumerate(scenario.steps):
        assert not callable(step.run), "only commands can run as programs"
        timeout = None if delay is None else max(0.0, began + delay - time.monotonic())
        program = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "nacre",
                *(_spelled(word, place) for word in step.run),
                "--json",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        try:
            out, err = program.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            program.kill()
            out, err = program.communicate()
            _emit(killed=True)
        answer = json.loads(out) if out.endswith(b"}\n") else {}
        undone = "error" in answer or _undone(answer, program.returncode)
        if answer:
            _emit(
                step=number,
                **({"error": answer, "code": program.returncode} if undone else {"answer": answer}),
            )
        _emit(stderr=err.decode("utf-8", "replace"))
        if program.returncode or undone:
            break
    _emit(seconds=time.monotonic() - began)


def _spelled(word: str, place: Place) -> str:
    """Return a word of a command as a shell passes it on."""
    return f"{place.user}{word[1:]}" if word.startswith("~/") else word


class _Output:
    """Standard output: each write acknowledges an answer."""

    encoding = "utf-8"

    def __init__(self, tell: Callable[[Any], None]) -> None:
        self.answers: list[Any] = []
        self._tell = tell

    def write(self, text: str) -> int:
        """Accept an answer. Errors are not acknowledgements."""
        if text.strip():
            answer = json.loads(text)
            self.answers.append(answer)
            if "error" not in answer:
                self._tell(answer)
        return len(text)

    def flush(self) -> None:
        """Do nothing."""

    def isatty(self) -> bool:
        """Return False, so that nacre asks no questions."""
        return False


def _run(
    step: Command | Work, acknowledge: Callable[[Any], None] = lambda _: None
) -> tuple[int, Any]:
    """Run one step like a separate call of nacre; return its exit code and answer."""
    if callable(step):
        return _run_work(step, acknowledge)
    output, real = _Output(acknowledge), sys.stdout
    sys.stdout = output  # type: ignore[assignment]
    try:
        root.cli.main([*step, "--json"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        sys.stdout = real
    return code, output.answers[-1] if output.answers else None


def _run_work(work: Work, acknowledge: Callable[[Any], None]) -> tuple[int, Any]:
    from nacre.cli.output import exit_code_of

    try:
        context = opened_home()
        try:
            work(context)
        finally:
            context.database.close()
    except NacreError as error:
        return exit_code_of(error), {
            "error": {"code": error.code, "message": error.message, "hint": error.hint}
        }
    except OSError as error:  # which the command line would report
        return 1, {
            "error": {"code": "failed", "message": str(error), "hint": "as the command line gives"}
        }
    acknowledge({"done": True})
    return 0, {"done": True}


def _undone(answer: Any, code: int) -> list[dict[str, Any]]:
    """Return the parts that an answer reports as not done. The same command completes them later."""
    checks = [check for check in answer.get("checks", ()) if check["state"] != "ok"]
    problems = [*checks, *(answer.get("archived") or {}).get("problems", ())]
    return problems + ([*answer.get("problems", ()), *answer.get("left_alone", ())] if code else [])


def _report_faults(line: dict[str, Any]) -> list[str]:
    """Return the faults of a failure's report. Each problem needs a hint.

    A failure of ingest to archive is only a warning, without an exit code: the next ingest tries again.
    """
    answer, code = line["error"] or {}, line["code"]
    problems = [answer["error"]] if answer.get("error") else _undone(answer, code)
    is_warning = code == 0 and "archived" in answer
    wrong = [] if code in _ALLOWED_CODES or is_warning else [f"exit code {code}: {problems}"]
    if not problems or any(
        item.get("code") == "unexpected" or not item.get("hint") for item in problems
    ):
        wrong.append(f"badly reported: {answer}")
    return wrong


def _look(scenario: Scenario, known: list[str]) -> None:
    context = opened_home()
    state, wrong = _state(scenario, context, known)
    _emit(state=state, wrong=wrong, ids=sorted(context.memories.all_ids()))
    context.database.close()


def _state(
    scenario: Scenario, context: Home, known: list[str], *, is_first: bool = False
) -> tuple[State, list[str]]:
    """Return the state of an open home and of the files outside it, as JSON values."""
    state, wrong = look(context, known, scenario.may_tell, scenario.may_leave if is_first else None)
    state["outside"] = (
        scenario.outside(Place(context.settings.user_home)) if scenario.outside else None
    )
    return json.loads(json.dumps(state, default=str)), wrong


def _examine(scenario: Scenario, place: Place, ground: Ground, first: int, depth: Depth) -> None:
    if not depth.git and not (place.vault / ".git").is_dir():
        os.environ["NACRE_GIT_ENABLED"] = "false"
    try:
        wrong = _findings(scenario, ground, first, deep=depth.deep)
    except NacreError as error:
        wrong = [f"it cannot be opened again: {error.message}"]
    except Exception:  # noqa: BLE001 - whatever happens here is a finding
        wrong = [f"it cannot be opened again: {traceback.format_exc()[-1500:]}"]
    _emit(wrong=wrong)


def _findings(scenario: Scenario, ground: Ground, first: int, *, deep: bool) -> list[str]:
    context = opened_home()
    state, wrong = _state(scenario, context, ground.ids, is_first=True)
    context.database.close()
    step = scenario.steps[first] if first < len(scenario.steps) else None
    after = ground.states[first + 1] if step else ground.states[first]
    wrong += between(state, ground.states[first], after, is_whole=step.is_whole if step else True)
    if wrong or not deep:
        return wrong
    for step in scenario.steps[first:]:
        code, answer = _run(step.run)
        if code == _UNAVAILABLE and _remove_locks(load_settings().vault / ".git", answer):
            code, answer = _run(step.run)
        if code not in _DONE_BEFORE:
            wrong.append(f"a second run ended with {code}: {answer}")
    if (load_settings().vault / ".git").is_dir():
        wrong += _commit(load_settings().vault / ".git")
    context = opened_home()
    state, more = _state(scenario, context, ground.ids)
    wrong += more + finished(state, ground.states[-1]) + history(context)
    return wrong + rebuilt(context, opened_home)


def _warm_up(folder: Path, user: Path) -> None:
    """Do a child's work once in a separate home, so that imports and caches are ready for all children."""
    place = Place(folder)
    os.environ |= {"HOME": str(folder), "NACRE_HOME": str(place.home)}
    folder.mkdir(parents=True)
    for item in WARM:
        if isinstance(item, Hand):
            item.do(place)
        else:
            _run(item)
    context = opened_home()
    look(context)
    history(context)
    rebuilt(context, opened_home)
    shutil.rmtree(folder)
    os.environ |= {"HOME": str(user), "NACRE_HOME": str(user / ".nacre")}


def _commit(repository: Path) -> list[str]:
    """Commit pending changes. Remove a lock left by a killed git as soon as nacre reports it."""
    for _ in range(3):
        _, answer = _run(
            (
                "admin",
                "commit",
            )
        )
        if not _remove_locks(repository, answer):
            break
    return [
        f"{lock} blocks git and was not reported: {answer}" for lock in repository.rglob("*.lock")
    ]


def _remove_locks(repository: Path, answer: Any) -> int:
    """Remove git locks that are named in an answer; return their number."""
    locks = [lock for lock in repository.rglob("*.lock") if str(lock) in json.dumps(answer)]
    for lock in locks:
        lock.unlink()
    return len(locks)


def main() -> None:
    """Answer requests until the input ends."""
    os.umask(0o077)
    sandbox = Path(sys.argv[1])
    user = sandbox / "user"
    os.environ |= {"HOME": str(user), "NACRE_HOME": str(user / ".nacre")}
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for section in root.SECTIONS.values():
        for place in section.values():
            load_command(place)
    _warm_up(sandbox / "warm", user)
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
