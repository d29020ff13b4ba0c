"""Request runs from a server, and choose the points at which nacre is interrupted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.trust.shim import ERRORS

ROOT = Path(__file__).parents[2]
_HALVES = ("write", "start")
_IDLE = ("sync", "open")

Event = tuple[str, str]
Fault = dict[str, Any]


class Client:
    """A client of one server, which runs one scenario at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def events(self, scenario: str) -> tuple[list[Event], float]:
        """Return a scenario's file events in order, and its duration in seconds."""
        answer = self._ask(do="events", scenario=scenario)
        return [(kind, target) for kind, target in answer["events"]], answer["seconds"]

    def time(self, scenario: str) -> float:
        """Return a scenario's duration in seconds if each command runs as its own process."""
        return float(self._ask(do="time", scenario=scenario)["seconds"])

    def run(self, scenario: str, fault: Fault | None = None, **more: Any) -> dict[str, Any]:
        """Play a scenario with a fault. ``wrong`` in the answer lists the problems found."""
        return self._ask(do="run", scenario=scenario, fault=fault, **more)

    def _ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"broken": "the server ended"}
        if "broken" in answer:
            raise AssertionError(f"{request}: {answer['broken']}")
        return answer


@contextmanager
def serving(sandbox: Path) -> Iterator[Client]:
    """Start a server with its own sandbox. A sandbox in memory is fastest."""
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "NACRE_EMBEDDING_MODEL": "none",
        "NACRE_GIT_BACKGROUND": "false",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "tests.trust.server", str(sandbox)],
        env=environ,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Client(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()


def sample(
    events: Sequence[Event], count: int, kinds: frozenset[str] | set[str] | None = None
) -> list[int]:
    """Return ``count`` events, spread over all sorts and evenly within each. The choice is deterministic."""
    sorts: dict[Event, list[int]] = defaultdict(list)
    for at, event in enumerate(events):
        if kinds is None or event[0] in kinds:
            sorts[event].append(at)
    shares = dict.fromkeys(list(sorts)[:count], 1)
    while shares and sum(shares.values()) < min(count, sum(map(len, sorts.values()))):
        neediest = max(
            sorts,
            key=lambda sort: (
                len(sorts[sort]) / shares[sort] if shares[sort] < len(sorts[sort]) else 0
            ),
        )
        shares[neediest] += 1
    chosen = (
        sorts[sort][(2 * part + 1) * len(sorts[sort]) // (2 * share)]
        for sort, share in shares.items()
        for part in range(share)
    )
    return sorted(chosen)


def kills(events: Sequence[Event], count: int | None = None) -> list[Fault]:
    """Return kills before, during and after events: all of them, or ``count`` representative ones.

    A kill after a call that changed nothing on disk equals the kill before it, and counts once.
    """
    if count is None:
        return [
            {"at": at, "what": what}
            for at, (kind, _) in enumerate(events)
            for what in ("before", "half")
            if (kind in _HALVES if what == "half" else at == 0 or events[at - 1][0] not in _IDLE)
        ] + [{"at": len(events) - 1, "what": "after"}]
    chosen = sample(events, count)
    turns = ("half", "before", "after")
    points = []
    for number, at in enumerate(chosen):
        what = turns[number % 3]
        points.append(
            {"at": at, "what": what if what != "half" or events[at][0] in _HALVES else "before"}
        )
    return points


def errors(events: Sequence[Event], count: int | None = None) -> list[Fault]:
    """Return system errors, once or lasting, at every event that can fail in that way, or ``count`` in all."""
    ways = [(what, lasting) for what in ERRORS for lasting in (False, True)]
    faults = []
    for number, (what, lasting) in enumerate(ways):
        share = len(events) if count is None else (count + number) // len(ways)
        faults += [
            {"at": at, "what": what, "lasting": lasting}
            for at in sample(events, share, ERRORS[what])
        ]
    return faults
