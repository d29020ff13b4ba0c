"""Interrupted syncs continue by themselves and handle changes made meanwhile."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable

import pytest

from servers.remote.conftest import QUIET, Machine, Place, ingest
from tests.cli.conftest import SOURCE, Outcome
from tests.daemon.conftest import Serving
from tests.processes import Processes, wait

pytestmark = pytest.mark.usefixtures("user_home")

Machines = Callable[..., Machine]

SESSION = "7f3a1c2d-0000-4000-8000-00000000000a"
KILLED_AT = """
import os, signal, sys
from nacre_server import remote as connection
asked, kill_at = 0, int(sys.argv.pop(1))
ask = connection.Connection.ask

def counted(self, operation, answer, **request):
    global asked
    asked += 1
    if asked == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    found = ask(self, operation, answer, **request)
    if -asked == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return found

connection.Connection.ask = counted
import runpy
sys.argv[0] = "nacre"
runpy.run_module("nacre", run_name="__main__")
"""


def _environ(machine: Machine) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(SOURCE),
        "HOME": str(machine.folder),
        "TZ": "UTC",
        "NACRE_HOME": str(machine.folder / ".nacre"),
        **QUIET,
        **machine.environ,
    }


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no such signals")
@pytest.mark.parametrize("at", [2, -2, 3, -3, 4, -4])
def test_killed_sync_neither_loses_nor_duplicates_data(
    place: Place, machines: Machines, processes: Processes, at: int
) -> None:
    laptop, desk = machines("laptop"), machines("desk")
    laptop("store", "Dogs travel free.", "--subject", "Dogs")
    laptop.sync()
    desk.sync()
    desk("edit", "Dogs", "--importance", "9")
    desk("store", "The harbour office closes at six.")
    desk.sync()
    laptop("edit", "Dogs", "--tag", "ferry")
    laptop("store", "The ferry timetable is kept in the file tides.csv.")
    ingest(laptop, SESSION, ("user", "Where is the timetable?"), ("assistant", "In tides.csv."))
    killed = processes.start(
        [sys.executable, "-c", KILLED_AT, str(at), "server", "remote", "sync"], env=_environ(laptop)
    )
    assert killed.wait(60) == -signal.SIGKILL
    laptop.sync()
    desk.sync()
    laptop.sync()
    assert len(laptop.contents()) == 3
    assert laptop.documents() == desk.documents()
    dogs = laptop.file_of("Dogs travel free.").read_text()
    assert "importance: 9" in dogs
    assert "ferry" in dogs.partition("\n---\n")[0]
    with place.rows as rows:
        assert rows.execute("SELECT count(*) FROM nacre.turns").fetchone() == (2,)


def test_adding_a_server_asks_for_key_and_shows_data(
    place: Place, machines: Machines, dialog_process: Callable[..., Outcome]
) -> None:
    laptop = machines("laptop", added=False)
    laptop("store", "Dogs travel free.")
    answers = [("Key (not shown)", place.key), ("Send your memories (1) and sessions", "n")]
    environ = {**_environ(laptop), "NACRE_DB": "", "NACRE_REMOTE_KEY": ""}
    output = dialog_process("server", "remote", "add", place.url, answers=answers, environ=environ)
    assert output.code != 0
    assert place.key not in output.out
    assert "Dogs" not in place.texts()


def test_daemon_syncs_automatically_in_both_directions(
    place: Place, machines: Machines, serving: Callable[..., Serving]
) -> None:
    laptop, desk = machines("laptop"), machines("desk")
    daemon = serving(
        "--no-watch", environ={**_environ(desk), "NACRE_DB": "", "NACRE_REMOTE_EVERY_SECONDS": "1"}
    )
    laptop("store", "Dogs travel free.")
    laptop.sync()
    wait(lambda: any("Dogs travel free." in path.read_text() for path in desk.vault.rglob("*.md")))
    desk("store", "The harbour office closes at six.")
    wait(lambda: "harbour office" in place.texts())
    daemon.end()


def test_concurrent_changes_on_three_machines_converge(machines: Machines) -> None:
    random_ = random.Random(24)  # noqa: S311 - any will do
    them = [machines(name) for name in ("laptop", "desk", "phone")]
    for round_ in range(4):
        for number, machine in enumerate(them):
            for step in range(4):
                _random_change(machine, random_, f"{round_}-{number}-{step}")
            if random_.random() < 0.7:
                machine.sync()
    for _ in range(3):
        for machine in them:
            machine.sync()
    assert them[0].documents() == them[1].documents() == them[2].documents()
    assert len(them[0].documents()) > 5
    for machine in them:
        checks = machine("admin", "doctor", "--deep", "--json").json["checks"]
        assert [check for check in checks if check["state"] == "failure"] == []


def _random_change(machine: Machine, random_: random.Random, name: str) -> None:
    files = sorted(path for path in machine.vault.rglob("*.md") if "\nid: " in path.read_text())
    operation = random_.choice(["store", "store", "append", "delete", "tag", "reword"])
    if operation == "store" or not files:
        machine(
            "store",
            f"Boat {name} leaves at {random_.randrange(24)} o'clock.",
            "--subject",
            f"Boat {name}",
        )
        return
    file = random_.choice(files)
    text = file.read_text()
    match operation:
        case "append":
            file.write_text(f"{text}\nSeen by {name}.\n")
        case "delete":
            file.unlink()
        case "tag":
            file.write_text(text.replace("importance: 7", "importance: 8", 1))
        case "reword":
            file.write_text(text.replace("leaves", "departs", 1))
