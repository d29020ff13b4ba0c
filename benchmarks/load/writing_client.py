"""One process of ``python -m benchmarks writers``: a client, or several in threads, that stores and recalls.

Started with its :class:`Task` as JSON in its only argument. It says ``ready``, waits for a line, works, and says what
happened as one JSON object.
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
from nacre.errors import NacreError
from nacre.home.home import Home, open_home
from nacre.settings import load_settings

REPEATED = tuple(
    f"The {room} of the lighthouse is swept on the {day} day of the month."
    for day, room in enumerate(
        ("kitchen", "lamp room", "cellar", "workshop", "boat house"), start=3
    )
)
"""Statements that many clients store: each is one memory in the end."""

KEYS = 8
"""So many canonical keys get new values all the time: each is held by one memory in the end."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a process does: ``clients`` threads for ``seconds``; shares are of all that a client does."""

    home: str
    hot: str
    number: int
    clients: int
    seconds: float
    recalls: float
    updates: float


@dataclass
class Told:
    """What one client did. Times are seconds; ``acknowledged`` pairs the id of a store's answer with what it said.

    ``added`` are the tags that were acknowledged on the hot memory; ``held`` are how long locks were held.
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
        """Count something that went wrong."""
        self.errors[how] = self.errors.get(how, 0) + 1


def open_observed(home: Path, told: Told) -> Home:
    """A home without the embedding model whose locks tell how long they were held."""
    settings = load_settings(home, {"HOME": str(home), "NACRE_EMBEDDING_MODEL": "none"})
    return open_home(
        settings, observe=lambda name, seconds: told.held.setdefault(name, []).append(seconds)
    )


def work(task: Task, client: int, until: float, told: Told, memory: MemoryHome) -> None:
    """Store, recall and update until it is time."""
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
                told.added.append(tag)
                told.updates.append(time.perf_counter() - started)
            elif chance < task.updates + task.recalls:
                memory.recall(f"what does the {draw.choice(THINGS)} of {draw.choice(PLACES)} do?")
                told.recalls.append(time.perf_counter() - started)
            else:
                text, key = _statement(draw, name, step)
                outcome = memory.store(text, canonical_key=key)
                told.stores.append(time.perf_counter() - started)
                told.acknowledged.append((outcome.memory_id, outcome.action, text))
        except NacreError as error:
            told.failed(error.code)
        except (apsw.Error, OSError, RuntimeError, ValueError, TypeError, LookupError) as error:
            told.failed(f"{type(error).__name__}: {error}"[:200])


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
    """Do the task in the first argument."""
    task = Task(**json.loads(sys.argv[1]))
    all_told = [Told() for _ in range(task.clients)]
    go = threading.Event()
    until = [0.0]

    def run(client: int) -> None:
        told = all_told[client]
        with MemoryHome(open_observed(Path(task.home), told)) as memory:
            opened.release()
            go.wait()
            work(task, client, until[0], told, memory)

    opened = threading.Semaphore(0)
    threads = [threading.Thread(target=run, args=(client,)) for client in range(task.clients)]
    for thread in threads:
        thread.start()
        opened.acquire()
    print("ready", flush=True)  # noqa: T201 - this is how it talks
    sys.stdin.readline()
    until[0] = time.monotonic() + task.seconds
    go.set()
    before = time.process_time()
    for thread in threads:
        thread.join()
    all_told[0].cpu = time.process_time() - before
    print(json.dumps([dataclasses.asdict(told) for told in all_told]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
