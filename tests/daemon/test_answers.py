"""The daemon gives the same answers as the calling process, even after invalid requests."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from nacre.api import open_memory
from nacre.base.link import (
    PROTOCOL,
    DaemonAwayError,
    DaemonRefusedError,
    ask,
    ask_whole,
    socket_path,
)
from nacre.errors import NacreError
from nacre.home.home import Home, open_home
from nacre.memories.requests import ListRequest
from nacre.operations import Operation
from nacre.serve.catalogue import CATALOGUE
from nacre.serve.homes import Answering, Homes
from nacre.serve.server import Server
from nacre.settings import load_settings
from nacre.values.models import Call
from tests.cli.conftest import Nacre
from tests.daemon.conftest import (
    PATIENCE_SECONDS,
    Serving,
    body_of,
    call_daemon,
    call_raw,
    home,
    request_of,
)

Serve = Callable[..., Serving]

QUESTION = "which database does billing use?"
REQUESTS: dict[str, dict[str, Any]] = {
    "recall": {"text": QUESTION, "turns": 3, "update": False},
    "search-sessions": {"text": QUESTION},
    "store": {"content": "The mill stands on the left bank of the river"},
    "get": {"reference": "{memory}", "update": False},
    "retire": {"references": ["{memory}"]},
    "list": {"limit": 10},
    "context": {"moment": "prompt", "prompt": QUESTION, "folder": "/code/acme-billing"},
    "hook": {
        "host": "claude-code",
        "event": "prompt",
        "prompt": QUESTION,
        "folder": "/code/acme-billing",
    },
    "deep-recall": {"text": QUESTION},
    "look": {"reference": "{memory}", "update": False},
    "place": {"folder": "/code/acme-billing"},
    "sessions": {"limit": 10},
    "session": {"reference": "{session}"},
    "session-summary": {"reference": "{session}"},
    "did": {"path": "ledger.py"},
    "fix": {"error": "the ledger corrupts"},
    "history": {"reference": "{memory}"},
    "log": {"limit": 10},
    "diff": {},
    "traces": {},
    "cost": {},
    "extract": {},
    "review": {},
    "overview": {},
    "beliefs": {"replaced": True},
    "ingest": {},
    "handoff": {},
    "flush": {},
    "chores": {},
}
"""A request for each operation whose answer does not depend on the process."""

_DIFFERS = (
    "took_ms",
    "memory_id",
    "id",
    "seconds",
    "home",
    "database_bytes",
    "bytes",
)


def stable(answer: Any) -> Any:
    """Remove the values that always differ: durations, new ids, and times."""
    if isinstance(answer, float):
        return round(answer, 3)
    if isinstance(answer, dict):
        if answer.get("name") == "daemon":
            return {}
        if answer.keys() == {
            "at",
            "reason",
        }:  # a retirement: the two answers may differ by a second
            return answer["reason"]
        return {name: stable(value) for name, value in answer.items() if name not in _DIFFERS}
    return [stable(value) for value in answer] if isinstance(answer, list) else answer


@pytest.fixture
def places(learned: dict[str, Any], nacre: Nacre) -> dict[str, str]:
    """A memory and a session that exist."""
    session = nacre("sessions", "list", "--json").json["lines"][0]["session"]["session"]
    references = {
        "{memory}": nacre("list", "--json").json["memories"][0]["id"],
        "{session}": f"{session['tool']}:{session['native_id']}",
    }
    assert all(references.values())
    return references


def test_daemon_answers_equal_local_answers(
    serving: Serve, places: dict[str, str], tmp_path: Path
) -> None:
    """Operations that write run locally in a copy of the original home."""
    serving("--no-watch")
    differs, failed = [], []
    for number, entry in enumerate(
        sorted(map(CATALOGUE.__getitem__, REQUESTS), key=lambda entry: entry.writes)
    ):
        written = json.dumps(REQUESTS[entry.name])
        for place, value in places.items():
            written = written.replace(place, value)
        folder = home()
        if entry.writes:
            folder = tmp_path / str(number)
            shutil.copytree(home(), folder, ignore=lambda *_: ["daemon.sock"])
        there, here = by_daemon(entry.name, written), in_this_process(folder, entry, written)
        differs += [(entry.name, there, here)] if stable(there) != stable(here) else []
        failed += [(entry.name, here)] if REQUESTS[entry.name] and isinstance(here, str) else []
    assert not differs
    assert not failed


def by_daemon(operation: str, request: str) -> Any:
    """Return the daemon's answer, or the code of an error."""
    try:
        return call_daemon(operation, json.loads(request), 60)
    except DaemonRefusedError as refused:
        return refused.error["code"]


def in_this_process(folder: Path, entry: Operation, request: str) -> Any:
    """Return the local answer, or the code of an error."""
    context = open_home(load_settings(folder))
    try:
        return json.loads(entry.answer(context, request.encode()))
    except NacreError as error:
        return error.code
    finally:
        context.close()


QUESTIONS = (
    ("recall", QUESTION),
    ("recall", QUESTION, "--explain", "--turns", "5"),
    ("recall", "what shall we have for dinner?"),
    ("recall", "--browse"),
    ("recall", QUESTION, "--project", "nowhere"),
    ("recall", ""),
    ("context", QUESTION, "--folder", "/code/acme-billing"),
    ("context", "--folder", "/code/acme-billing", "--explain"),
)


def test_command_output_is_identical_with_a_daemon(
    serving: Serve, places: dict[str, str], nacre: Nacre
) -> None:
    alone = [(nacre(*words, code=None), nacre(*words, "--json", code=None)) for words in QUESTIONS]
    serving("--no-watch")
    for words, (text, record) in zip(QUESTIONS, alone, strict=True):
        before = call_daemon("hello")["answered"]
        again, through = nacre(*words, code=None), nacre(*words, "--json", code=None)
        through_all = call_daemon("hello")["answered"]
        assert through_all >= before + 3, words  # including this hello
        assert (again.code, _timeless(again.out), again.err) == (
            text.code,
            _timeless(text.out),
            text.err,
        )
        assert stable(through.json) == stable(record.json)
        nacre(*words, "--no-daemon", code=None)
        assert call_daemon("hello")["answered"] == through_all + 1, words


READING = (
    ("list",),
    ("list", "--all", "--project", "acme-billing"),
    ("show", "{memory}", "--no-update"),
    ("show", "{memory}", "--history"),
    ("todo",),
    ("log",),
    ("log", "{memory}", "--limit", "2"),
    (
        "log",
        "--diff",
    ),
    ("sessions", "list"),
    ("sessions", "list", "--project", "acme-billing"),
    ("sessions", "show", "{session}"),
    ("sessions", "show", "--tail", "{session}"),
    ("sessions", "summary", "{session}"),
    ("search", QUESTION),
    ("search", "database", "--role", "owner", "--scope", "decisions", "--offset", "1"),
    ("did", "ledger.py"),
    ("fix", "the ledger corrupts"),
    ("review",),
    (
        "writer",
        "traces",
    ),
    ("writer", "traces", "{trace}"),
    (
        "writer",
        "cost",
    ),
)


def test_read_only_commands_are_answered_by_the_daemon(
    serving: Serve, places: dict[str, str], nacre: Nacre
) -> None:
    nacre("recall", QUESTION)
    with open_memory() as memory:
        home = memory._home
        home.spending.add(
            Call(
                home.ids(),
                home.clock(),
                home.today(),
                "dedup",
                "fake:m",
                False,
                prompt="Which is newer?",
            )
        )
    places["{trace}"] = nacre("writer", "traces", "--json").json["traces"][0]["id"]
    commands = [[places.get(word, word) for word in words] for words in READING]
    alone = [(nacre(*words), nacre(*words, "--json")) for words in commands]
    serving("--no-watch")
    for words, (text, record) in zip(commands, alone, strict=True):
        before = call_daemon("hello")["answered"]
        again, through = nacre(*words), nacre(*words, "--json")
        assert call_daemon("hello")["answered"] >= before + 3, (
            words
        )  # both commands, and this hello
        assert (_timeless(again.out), again.err) == (_timeless(text.out), text.err), words
        assert stable(through.json) == stable(record.json), words


def test_daemon_uses_the_callers_folder_for_default_session(
    serving: Serve,
    places: dict[str, str],
    nacre: Nacre,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serving("--no-watch")
    monkeypatch.chdir(tmp_path)
    for command in ("show", "summary", "export"):
        outcome = nacre("sessions", command)
        assert "No known session in this folder" in outcome.err, command


def _timeless(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if " ms" not in line)


def test_daemon_answers_include_warnings(
    serving: Serve, places: dict[str, str], process: Nacre
) -> None:
    serving("--no-watch")
    file = next((home() / "vault").rglob("*/decision/*.md"))
    file.write_text("---\nkind: [\n---\nbroken", encoding="utf-8")
    through = process("recall", QUESTION)
    assert call_daemon("hello")["answered"] >= 1
    assert "warning" in through.err
    assert through.err == process("recall", QUESTION, "--no-daemon").err


def test_daemon_refuses_callers_with_different_settings(
    serving: Serve, places: dict[str, str], process: Nacre
) -> None:
    process("store", "The billing database is backed up on Sundays to the other machine")
    serving("--no-watch")
    assert len(process("recall", "--browse", "--json").json["hits"]) > 1
    other = process(
        "recall",
        QUESTION,
        "--json",
        environ={"NACRE_RECALL_TURNS": "0"},
    )
    assert other.json["turns"] == []
    with pytest.raises(DaemonAwayError, match="different settings"):
        ask_whole(str(home()), "list", {}, seconds=20, settings="others")


def test_changed_settings_apply_immediately(
    serving: Serve, places: dict[str, str], process: Nacre
) -> None:
    serving("--no-watch")
    mark = load_settings().mark
    assert ask_whole(str(home()), "list", {}, seconds=20, settings=mark)["result"]
    process("config", "set", "recall.limit", "1")
    assert load_settings().mark != mark
    assert ask_whole(str(home()), "list", {}, seconds=20, settings=load_settings().mark)["result"]


def test_daemon_answers_from_a_rebuilt_database(
    serving: Serve, places: dict[str, str], process: Nacre
) -> None:
    serving("--no-watch")
    before = stable(call_daemon("list"))
    process("admin", "db", "rebuild", "--yes", code=None)
    assert stable(call_daemon("list")) == before
    memory_id = process("store", "The weir is opened at six", "--json").json["memory_id"]
    assert call_daemon("get", {"reference": memory_id})["id"] == memory_id


NO_QUESTIONS = (
    ("list", b"", "invalid_input"),
    ("list", b"[]", "invalid_input"),
    ("list", b'{"protocol": "1"}', "invalid_input"),
    ("nonsense", b'{"protocol": 1}', "invalid_input"),
    ("recall", b'{"protocol": 1, "request": {"text": 7}}', "invalid_input"),
    ("recall", b'{"protocol": 1, "request": {"text": ""}}', "query_invalid"),
    ("recall", b'{"protocol": 2, "request": {"text": "x"}}', "other_version"),
)


def test_invalid_request_is_refused_and_later_requests_are_answered(
    serving: Serve, learned: Any
) -> None:
    serving("--no-watch")
    for operation, body, code in NO_QUESTIONS:
        error = call_raw(operation, body)["error"]
        assert error["code"] == code, body
        assert "Traceback" not in error["message"]
    assert call_daemon("list")["total"] >= 1
    assert call_daemon("recall", {"text": "half of a smile \ud83d"})["query"] == "half of a smile ?"


def test_half_closed_caller_is_answered(serving: Serve, learned: Any) -> None:
    serving("--no-watch")
    assert call_raw("list", b'{"protocol": 1}', half=True)["result"]["total"] >= 1


@pytest.mark.parametrize(
    "line", [b"GET / HTTP/1.1", b"POST / HTTP/1.1", b"POST /call/../x HTTP/1.1", b"RECALL"]
)
def test_invalid_request_line_is_not_found(line: bytes, serving: Serve) -> None:
    serving("--no-watch")
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(PATIENCE_SECONDS)
        link.connect(socket_path(str(home())))
        link.sendall(line + b"\r\n\r\n")
        assert link.recv(100).startswith(b"HTTP/1.1 404 ")


def test_silent_callers_do_not_block_others(serving: Serve, learned: Any) -> None:
    serving("--no-watch")
    silent = [socket.socket(socket.AF_UNIX) for _ in range(40)]
    for link in silent:
        link.connect(socket_path(str(home())))
    assert call_daemon("list")["total"] >= 1
    for link in silent:
        link.close()


def test_concurrent_recalls_and_stores_lose_nothing(serving: Serve, learned: Any) -> None:
    serving("--no-watch")
    before = call_daemon("list")["total"]
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for part in range(3):
                call_daemon(
                    "store",
                    {"content": f"Machine {number} has part {part} in drawer {number * 10 + part}"},
                    60,
                )
                call_daemon("recall", {"text": f"where is part {part} of machine {number}?"}, 60)
        except (DaemonAwayError, DaemonRefusedError) as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    call_daemon("recall", {"text": "drawer"})
    assert call_daemon("list", {"limit": 100})["total"] == before + 24


class Slow:
    """An operation that blocks until released, and counts its runs."""

    def __init__(self) -> None:
        self.ran = 0
        self.begun = threading.Semaphore(0)
        self.go = threading.Event()

    def run(self, _: Home, request: ListRequest) -> int:
        self.ran += 1
        self.begun.release()
        assert self.go.wait(PATIENCE_SECONDS)
        return request.limit


def quick(_: Home, request: ListRequest) -> int:
    return 7


@contextmanager
def served(*entries: Operation, most: int = 1) -> Iterator[Homes]:
    """Run a server in this process with custom operations, over a number of homes."""
    settings = load_settings()
    homes = Homes(lambda: open_home(settings), settings.home, settings.config, most)
    with homes.lent():
        pass
    lines: list[str] = []
    answering = Answering(homes, lines.append, {}, {entry.name: entry for entry in entries}.get)
    server = Server(settings.home, answering.answer, lines.append)
    server.start()
    stop = threading.Event()
    minding = threading.Thread(target=answering.mind, args=(stop,))
    minding.start()
    try:
        yield homes
    finally:
        stop.set()
        minding.join()
        server.stop()
        homes.close()
    assert not lines


def begin(operation: str, **more: Any) -> socket.socket:
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(PATIENCE_SECONDS)
    link.connect(socket_path(str(home())))
    link.sendall(request_of(operation, json.dumps({"protocol": PROTOCOL, **more}).encode()))
    return link


def answer(link: socket.socket) -> Any:
    with link:
        return body_of(link)


def test_abandoned_requests_are_not_executed() -> None:
    slow = Slow()
    with served(Operation("slow", slow.run)):
        first = begin("slow", request={"limit": 1})
        slow.begun.acquire()
        begin("slow").close()
        late = begin("slow", seconds=0.05)
        assert answer(late)["error"]["code"] == "unavailable"
        last = begin("slow", request={"limit": 2})
        slow.go.set()
        assert answer(first) == {"result": 1}
        assert answer(last) == {"result": 2}
    assert slow.ran == 2


def test_abandoned_operation_is_interrupted() -> None:
    begun = threading.Event()

    def endless(context: Home, _: ListRequest) -> int:
        begun.set()
        counting = (
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
        )
        return len(context.database.rows(counting))

    with served(
        Operation("endless", endless),
        Operation("quick", quick),
    ):
        first = begin("endless")
        assert begun.wait(PATIENCE_SECONDS)
        first.close()
        assert answer(begin("quick")) == {"result": 7}


def test_long_operations_leave_capacity_for_others() -> None:
    slow = Slow()
    entries = (
        Operation("long", slow.run, takes_long=True),
        Operation("quick", quick),
    )
    with served(*entries, most=3):
        long = [begin("long", seconds=60) for _ in range(3)]
        slow.begun.acquire()
        slow.begun.acquire()
        assert answer(begin("quick")) == {"result": 7}
        assert slow.ran == 2
        slow.go.set()
        assert [answer(link) for link in long] == [{"result": 50}] * 3


def test_single_writer_runs_alongside_readers() -> None:
    slow = Slow()
    with served(
        Operation("write", slow.run, writes=True),
        Operation("read", quick),
        most=3,
    ):
        writing = [begin("write") for _ in range(2)]
        slow.begun.acquire()
        assert answer(begin("read")) == {"result": 7}
        assert slow.ran == 1
        slow.go.set()
        assert [answer(link) for link in writing] == [{"result": 50}] * 2


def test_failing_operation_does_not_affect_later_requests(tmp_path: Path) -> None:
    settings = load_settings()
    homes = Homes(lambda: open_home(settings), settings.home, settings.config)
    lines: list[str] = []

    def broken(*_: Any) -> int:
        raise ZeroDivisionError

    entry = Operation("broken", broken)
    server = Server(
        settings.home,
        Answering(homes, lines.append, {}, {"broken": entry}.get).answer,
        lines.append,
    )
    with homes.lent():
        pass
    server.start()
    for _ in range(20):
        with pytest.raises(DaemonRefusedError) as refused:
            ask(str(home()), "broken", {}, seconds=20)
        assert refused.value.error["code"] == "internal"
    server.stop()
    homes.close()
    assert "ZeroDivisionError" in lines[0]


@pytest.mark.parametrize("begun", [b"", b"POST /call/list HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"])
def test_hanging_callers_do_not_delay_others(begun: bytes, serving: Serve) -> None:
    daemon = serving("--no-watch")
    with ExitStack() as stack:
        for _ in range(150):
            link = stack.enter_context(socket.socket(socket.AF_UNIX))
            link.connect(socket_path(str(home())))
            link.sendall(begun)
        assert call_daemon("hello", seconds=3.0)["at_work"] > 0
    assert daemon.end() == 0


def test_callers_that_read_no_answer_do_not_delay_others() -> None:
    lines: list[str] = []
    server = Server(
        load_settings().home,
        lambda operation, body, _: (
            HTTPStatus.OK,
            body if operation == "hello" else bytes(1_000_000),
        ),
        lines.append,
    )
    server.start()
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(begin("much"))
        assert call_raw("hello", b'{"a":1}', seconds=3.0) == {"a": 1}
    server.stop()
    assert not lines
