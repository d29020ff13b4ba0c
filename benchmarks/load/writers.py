"""Many clients on one home: how many memories are durable a second, how long recall waits, and whether all is there."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.figures import Spread, spread
from benchmarks.load.writing_client import KEYS, REPEATED, Task, Told, open_observed
from nacre.api import MemoryHome
from nacre.care.health import doctor
from nacre.errors import NacreError
from nacre.home.home import Home
from nacre.values.reports import OnProgress, Progress

_HOT = "The harbour log names every ship that came in."


@dataclass(frozen=True, slots=True)
class WritersResult:
    """What many clients got done, and what was found afterwards.

    ``cpu_seconds`` is what all clients used together. ``wrong`` says in words what is not as it was acknowledged; empty
    when all is well.
    """

    processes: int
    threads: int
    seconds: float
    stores_per_second: float
    cpu_seconds: float
    outcomes: dict[str, int]
    stores: Spread
    recalls: Spread
    updates: Spread
    write_lock: Spread
    vault_lock: Spread
    errors: dict[str, int]
    memories: int
    wrong: tuple[str, ...]


def measure_writers(
    home: Path,
    *,
    processes: int,
    threads: int,
    seconds: float,
    recalls: float = 0.2,
    updates: float = 0.02,
    notify: OnProgress = lambda _: None,
) -> WritersResult:
    """Let clients work on ``home``, which should be new: ``processes`` of one client each, and ``threads`` in one more.

    ``recalls`` and ``updates`` are their shares of what each client does; the rest are stores.
    """
    own = Told()
    context = open_observed(home, own)
    with MemoryHome(context) as memory:
        hot = memory.store(_HOT).memory_id
        sizes = [1] * processes + ([threads] if threads else [])
        tasks = [
            Task(str(home), hot, at, size, seconds, recalls, updates)
            for at, size in enumerate(sizes)
        ]
        told = _run(tasks, notify)
        return WritersResult(
            processes=processes,
            threads=threads,
            seconds=seconds,
            stores_per_second=round(sum(len(one.stores) for one in told) / seconds, 1),
            cpu_seconds=round(sum(one.cpu for one in told), 1),
            outcomes=dict(Counter(action for one in told for _, action, _ in one.acknowledged)),
            stores=spread(at for one in told for at in one.stores),
            recalls=spread(at for one in told for at in one.recalls),
            updates=spread(at for one in told for at in one.updates),
            write_lock=spread(at for one in told for at in one.held.get("write", ())),
            vault_lock=spread(at for one in told for at in one.held.get("vault.lock", ())),
            errors=dict(sum((Counter(one.errors) for one in told), Counter())),
            memories=sum(context.memories.counts().values()),
            wrong=tuple(_wrong(context, memory, hot, told)),
        )


def _run(tasks: Sequence[Task], notify: OnProgress) -> list[Told]:
    """Start all, let them go at once, hear what each did. Raises NacreError when one fails."""
    environ = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path), "HOME": tasks[0].home}
    command = [sys.executable, "-m", "benchmarks.load.writing_client"]
    running: list[subprocess.Popen[str]] = []
    try:
        for task in tasks:
            running.append(
                subprocess.Popen(
                    [*command, json.dumps(dataclasses.asdict(task))],
                    env=environ,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
        for at, process in enumerate(running, start=1):
            _heard(process)
            notify(Progress("opening", at, len(running)))
        for process in running:
            _streams(process)[0].write("go\n")
            _streams(process)[0].flush()
        told = []
        for at, process in enumerate(running, start=1):
            told += [Told(**one) for one in json.loads(_heard(process))]
            process.wait()
            notify(Progress("working", at, len(running)))
        return told
    finally:
        for process in running:
            process.kill()
            process.communicate()


def _heard(process: subprocess.Popen[str]) -> str:
    line = _streams(process)[1].readline()
    if not line:
        raise NacreError(f"a client ended with exit code {process.wait()}")
    return line


def _streams(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin  # noqa: S101 - both are pipes
    assert process.stdout  # noqa: S101
    return process.stdin, process.stdout


def _wrong(context: Home, memory: MemoryHome, hot: str, told: Sequence[Told]) -> Iterable[str]:
    """What is not as it was acknowledged."""
    acknowledged = {stored: text for one in told for stored, _, text in one.acknowledged}
    missing = [text for stored, text in acknowledged.items() if not _is_there(context, stored)]
    if missing:
        yield f"{len(missing)} acknowledged memories are missing, e.g. {missing[0]!r}"
    tags = set(memory.get(hot, update=False).tags)
    lost = {tag for one in told for tag in one.added} - tags
    if lost:
        yield f"{len(lost)} updates of one memory are lost"
    active = memory.list(limit=1_000_000)
    doubled = [text for text, count in Counter(one.content for one in active).items() if count > 1]
    if doubled:
        yield f"{len(doubled)} statements are stored twice, e.g. {doubled[0]!r}"
    said = {one.content for one in active}
    repeated = {text for text in acknowledged.values() if text in REPEATED}
    if repeated - said:
        yield f"{len(repeated - said)} repeated statements are not active"
    keys = Counter(one.canonical_key for one in active if one.canonical_key)
    if any(count > 1 for count in keys.values()) or len(keys) > KEYS:
        yield f"canonical keys are held more than once: {dict(keys)}"
    if context.files.intents():
        yield f"{len(context.files.intents())} writes are pending"
    yield from (
        f"{check.name}: {check.detail}"
        for check in doctor(context)
        if _is_bad(check.name, check.state)
    )


def _is_there(context: Home, memory_id: str) -> bool:
    return context.memories.find(memory_id) is not None


def _is_bad(name: str, state: str) -> bool:
    return name in ("vault", "database") and state != "ok"
