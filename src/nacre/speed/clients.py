"""Many clients that ask ``nacre cluster api`` at once, each with its tenant's key, and how long they wait."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from nacre.errors import NacreError, Unavailable
from nacre.speed.measurement import percentile

RECALL, STORE, LIST = "recall", "store", "list"
MIXED = (RECALL,) * 8 + (STORE, LIST)
"""What a client asks, drawn from these."""

_PATIENCE_SECONDS = 60.0
_ADDRESS = re.compile(rb"at (http://([\d.]+):(\d+)),")


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant's key, and what it is asked."""

    name: str
    secret: str
    questions: Sequence[str]


@dataclass(frozen=True, slots=True)
class Wait:
    """How long clients waited for one kind of request, in milliseconds."""

    name: str
    requests: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Load:
    """What some clients did in so many seconds. ``refused`` counts answers but 200, by their status; 0 is none."""

    clients: int
    seconds: float
    waits: tuple[Wait, ...]
    refused: Mapping[int, int]

    def wait(self, name: str) -> Wait:
        """Of one kind; zeros where none was answered."""
        return next((wait for wait in self.waits if wait.name == name), Wait(name, 0, 0.0, 0.0, 0.0))


@dataclass(slots=True)
class _Seen:
    milliseconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: Counter[int] = field(default_factory=Counter)


@contextmanager
def answering(url: str) -> Iterator[tuple[str, int]]:
    """``nacre cluster api`` as a process of its own: where it listens. Raises Unavailable where it does not begin."""
    with tempfile.TemporaryDirectory(prefix="nacre-scale-") as home:
        environ = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path), "HOME": home, "NACRE_DB": url}
        process = subprocess.Popen(
            [sys.executable, "-m", "nacre", "cluster", "api", "--http", "0", "--linger", "0"],
            env={**environ, "NACRE_HOME": str(Path(home) / "none")}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            said = process.stdout.readline() if process.stdout else b""
            found = _ADDRESS.search(said)
            if not found:
                raise Unavailable("nacre cluster api did not begin", hint=said.decode(errors="replace").strip())
            yield found[2].decode(), int(found[3])
        finally:
            process.terminate()
            process.communicate(timeout=_PATIENCE_SECONDS)


def load(
    place: tuple[str, int], tenants: Sequence[Tenant], *, clients: int, seconds: float,
    kinds: Sequence[str] = MIXED, pause: float = 0.0,
) -> Load:  # fmt: skip
    """Have clients ask for so long, each a tenant drawn anew, a pause after each answer. Raises NacreError where
    nothing is answered."""
    seen = [_Seen() for _ in range(clients)]
    stop = threading.Event()
    threads = [
        threading.Thread(target=_ask, args=(place, tenants, random.Random(at), seen[at], stop, kinds, pause))  # noqa: S311
        for at in range(clients)
    ]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    try:
        stop.wait(seconds)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return _told(seen, clients, time.perf_counter() - began)


@contextmanager
def under_load(place: tuple[str, int], tenant: Tenant, *, clients: int, seconds: float) -> Iterator[list[Load]]:
    """While clients ask one tenant without a pause; what they saw is in the list after the block."""
    found: list[Load] = []
    asking = threading.Thread(
        target=lambda: found.append(load(place, [tenant], clients=clients, seconds=seconds, kinds=(RECALL,)))
    )
    asking.start()
    try:
        yield found
    finally:
        asking.join()


def _ask(
    place: tuple[str, int], tenants: Sequence[Tenant], draw: random.Random, seen: _Seen, stop: threading.Event,
    kinds: Sequence[str], pause: float,
) -> None:  # fmt: skip
    connection = http.client.HTTPConnection(*place, timeout=_PATIENCE_SECONDS)
    while not stop.is_set():
        tenant, kind = draw.choice(tenants), draw.choice(kinds)
        began = time.perf_counter()
        status = _status(connection, tenant, kind, _asked(kind, tenant, draw))
        if status == http.HTTPStatus.OK:
            seen.milliseconds[kind].append(1000 * (time.perf_counter() - began))
        else:
            seen.refused[status] += 1
        stop.wait(pause)
    connection.close()


def _status(connection: http.client.HTTPConnection, tenant: Tenant, kind: str, asked: Mapping[str, object]) -> int:
    """What the answer's status is; 0 where none came."""
    headers = {"Authorization": f"Bearer {tenant.secret}", "Content-Type": "application/json"}
    try:
        connection.request("POST", f"/api/v1/{kind}", json.dumps(asked), headers)
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        return 0
    return answer.status


def _asked(kind: str, tenant: Tenant, draw: random.Random) -> Mapping[str, object]:
    if kind == RECALL:
        return {"text": draw.choice(tenant.questions), "turns": 3}
    if kind == STORE:
        number = draw.randrange(10**9)
        return {"content": f"The lock {number} of the canal is opened by code {number % 9973}.", "scope": "personal"}
    return {"limit": 20}


def _told(seen: Sequence[_Seen], clients: int, seconds: float) -> Load:
    together: dict[str, list[float]] = defaultdict(list)
    refused: Counter[int] = Counter()
    for one in seen:
        refused.update(one.refused)
        for name, found in one.milliseconds.items():
            together[name] += found
    if not together:
        raise NacreError(f"nothing was answered: {dict(refused)}", hint="nacre cluster api says why")
    waits = tuple(
        Wait(name, len(found), *(round(percentile(found, share), 1) for share in (0.5, 0.95, 0.99)))
        for name, found in sorted(together.items())
    )
    return Load(clients, seconds, waits, dict(refused))
