"""A process for ``python -m benchmarks writers`` with one client, or with several in threads.

Its only argument is a :class:`Task` as JSON. It prints ``ready``, waits for a line, does its work,
and prints its logs as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import random
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from benchmarks.load.statements import PLACES, THINGS, statement
from nacre.api import MemoryHome
from nacre.base.frozen import frozen
from nacre.errors import NacreError
from nacre.home.home import Home, open_home
from nacre.settings import load_settings

REPEATED = tuple(
    f"The {room} of the lighthouse is swept on the {day} day of the month."
    for day, room in enumerate(
        ("kitchen", "lamp room", "cellar", "workshop", "boat house"), start=3
    )
)
"""Statements that many clients store. There must be one memory for each at the end."""

KEYS = 8
"""Number of canonical keys that constantly get new values.

There must be one memory for each at the end.
"""


@frozen
class Task:
    """A process's task: ``clients`` threads that work for ``seconds``.

    ``recalls`` and ``updates`` are shares of operations.
    """

    home: str
    hot: str
    number: int
    clients: int
    seconds: float
    recalls: float
    updates: float


@dataclass
class ClientLog:
    """A client's log. Times are in seconds.

    ``acknowledged`` contains the id, action and text of each store.

    ``added`` contains acknowledged tags of the memory that all clients update, ``held`` how long
    locks were held.
    """

    stores: list[float] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)
    updates: list[float] = field(default_factory=list)
    acknowledged: list[tuple[str, str, str]] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    cpu: float = 0.0
    errors: dict[str, int] = field(default_factory=dict)
    held: dict[str, list[float]] = field(default_factory=dict)

    def failed(self, how: str) -> None:
        self.errors[how] = self.errors.get(how, 0) + 1


def open_observed(home: Path, log: ClientLog) -> Home:
    """Open a home without the embedding model. It logs how long locks are held."""
    settings = load_settings(home, {"HOME": str(home), "NACRE_EMBEDDING_MODEL": "none"})
    return open_home(
        settings, observe=lambda name, seconds: log.held.setdefault(name, []).append(seconds)
    )


def work(task: Task, client: int, until: float, log: ClientLog, memory: MemoryHome) -> None:
    """Store, recall and update until the deadline."""
    name = f"{task.number}-{client}"
    draw = random.Random(name)  # noqa: S311 - the same statements in every run
    for step in range(sys.maxsize):
        if time.monotonic() >= until:
            return
        started = time.perf_counter()
        chance = draw.random()
        try:
            if chance < task.updates:
                tag = f"{name}-{step}"
                memory.edit(task.hot, add_tags=[tag])
                log.added.append(tag)
                log.updates.append(time.perf_counter() - started)
            elif chance < task.updates + task.recalls:
                memory.recall(f"what does the {draw.choice(THINGS)} of {draw.choice(PLACES)} do?")
                log.recalls.append(time.perf_counter() - started)
            else:
                text, key = _statement(draw, name, step)
                outcome = memory.store(text, canonical_key=key)
                log.stores.append(time.perf_counter() - started)
                log.acknowledged.append((outcome.memory_id, outcome.action, text))
        except NacreError as error:
            log.failed(error.code)
        except (apsw.Error, OSError, RuntimeError, ValueError, TypeError, LookupError) as error:
            log.failed(f"{type(error).__name__}: {error}"[:200])


def _statement(draw: random.Random, name: str, step: int) -> tuple[str, str | None]:
    chance = draw.random()
    if chance < 0.06:
        return draw.choice(REPEATED), None
    if chance < 0.12:
        number = draw.randrange(KEYS)
        return (
            f"The depth of basin {number} is {draw.randrange(10_000)} fathoms.",
            f"basin.{number}.depth",
        )
    return statement(draw, f"{name}-{step}").capitalize(), None


def main() -> None:
    """Run the task in the first argument."""
    task = Task(**json.loads(sys.argv[1]))
    logs = [ClientLog() for _ in range(task.clients)]
    go = threading.Event()
    until = [0.0]

    def run(client: int) -> None:
        log = logs[client]
        with MemoryHome(open_observed(Path(task.home), log)) as memory:
            opened.release()
            go.wait()
            work(task, client, until[0], log, memory)

    opened = threading.Semaphore(0)
    threads = [threading.Thread(target=run, args=(client,)) for client in range(task.clients)]
    for thread in threads:
        thread.start()
        opened.acquire()
    print("ready", flush=True)  # noqa: T201 - its protocol
    sys.stdin.readline()
    until[0] = time.monotonic() + task.seconds
    go.set()
    before = time.process_time()
    for thread in threads:
        thread.join()
    logs[0].cpu = time.process_time() - before
    print(json.dumps([dataclasses.asdict(log) for log in logs]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
