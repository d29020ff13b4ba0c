"""Measure many clients that use one home: stores a second, latency of recall, and lost memories."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

from benchmarks.figures import Spread, spread
from benchmarks.load.writing_client import KEYS, REPEATED, ClientLog, Task, open_observed
from nacre.api import MemoryHome
from nacre.base.frozen import frozen
from nacre.care.health import doctor
from nacre.errors import NacreError
from nacre.home.home import Home
from nacre.values.reports import OnProgress, Progress

_HOT = "The harbour log names every ship that came in."


@frozen
class WritersResult:
    """The result of a run.

    ``cpu_seconds`` is the total for all clients. ``wrong`` describes differences from the
    acknowledged writes.
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
    """Run clients on ``home``, which should be new.

    There are ``processes`` with one client, and one process with ``threads`` clients.

    ``recalls`` and ``updates`` are shares of each client's operations; all others are stores.
    """
    own = ClientLog()
    context = open_observed(home, own)
    with MemoryHome(context) as memory:
        hot = memory.store(_HOT).memory_id
        sizes = [1] * processes + ([threads] if threads else [])
        tasks = [
            Task(str(home), hot, at, size, seconds, recalls, updates)
            for at, size in enumerate(sizes)
        ]
        logs = _run(tasks, notify)
        return WritersResult(
            processes=processes,
            threads=threads,
            seconds=seconds,
            stores_per_second=round(sum(len(log.stores) for log in logs) / seconds, 1),
            cpu_seconds=round(sum(log.cpu for log in logs), 1),
            outcomes=dict(Counter(action for log in logs for _, action, _ in log.acknowledged)),
            stores=spread(at for log in logs for at in log.stores),
            recalls=spread(at for log in logs for at in log.recalls),
            updates=spread(at for log in logs for at in log.updates),
            write_lock=spread(at for log in logs for at in log.held.get("write", ())),
            vault_lock=spread(at for log in logs for at in log.held.get("vault.lock", ())),
            errors=dict(sum((Counter(log.errors) for log in logs), Counter())),
            memories=sum(context.memories.counts().values()),
            wrong=tuple(_wrong(context, memory, hot, logs)),
        )


def _run(tasks: Sequence[Task], notify: OnProgress) -> list[ClientLog]:
    """Start all clients together and return their logs. Raises NacreError if a client fails."""
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
            _read_line(process)
            notify(Progress("opening", at, len(running)))
        for process in running:
            _streams(process)[0].write("go\n")
            _streams(process)[0].flush()
        logs = []
        for at, process in enumerate(running, start=1):
            logs += [ClientLog(**record) for record in json.loads(_read_line(process))]
            process.wait()
            notify(Progress("working", at, len(running)))
        return logs
    finally:
        for process in running:
            process.kill()
            process.communicate()


def _read_line(process: subprocess.Popen[str]) -> str:
    line = _streams(process)[1].readline()
    if not line:
        raise NacreError(f"a client ended with exit code {process.wait()}")
    return line


def _streams(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin  # noqa: S101 - both are pipes
    assert process.stdout  # noqa: S101
    return process.stdin, process.stdout


def _wrong(context: Home, memory: MemoryHome, hot: str, logs: Sequence[ClientLog]) -> Iterable[str]:
    acknowledged = {stored: text for log in logs for stored, _, text in log.acknowledged}
    missing = [text for stored, text in acknowledged.items() if not context.memories.find(stored)]
    if missing:
        yield f"{len(missing)} acknowledged memories are missing, e.g. {missing[0]!r}"
    tags = set(memory.get(hot, update=False).tags)
    lost = {tag for log in logs for tag in log.added} - tags
    if lost:
        yield f"{len(lost)} updates of one memory are lost"
    active = memory.list(limit=1_000_000)
    doubled = [
        text for text, count in Counter(memory.content for memory in active).items() if count > 1
    ]
    if doubled:
        yield f"{len(doubled)} statements are stored twice, e.g. {doubled[0]!r}"
    contents = {memory.content for memory in active}
    repeated = {text for text in acknowledged.values() if text in REPEATED}
    if repeated - contents:
        yield f"{len(repeated - contents)} repeated statements are not active"
    keys = Counter(memory.canonical_key for memory in active if memory.canonical_key)
    if any(count > 1 for count in keys.values()) or len(keys) > KEYS:
        yield f"canonical keys are used more than once: {dict(keys)}"
    if context.files.intents():
        yield f"{len(context.files.intents())} writes are pending"
    yield from (
        f"{check.name}: {check.detail}"
        for check in doctor(context)
        if _is_bad(check.name, check.state)
    )


def _is_bad(name: str, state: str) -> bool:
    return name in ("vault", "database") and state != "ok"
