"""Kills and disk errors at any point lose or duplicate nothing acknowledged, and later commands work.

``make trust`` tests every point; this module tests representative ones.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trust.client import Client, errors, kills, serving
from tests.trust.scenarios import SCENARIOS

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the shim knows Linux' system calls"
)

KILLS, RANDOM_KILLS, ERRORS = 8, 2, 4
"""Runs of each scenario. Every third run is checked in full: the command runs again, and the index is rebuilt."""

SLACK = 1.1
"""Random kills happen within this multiple of the scenario's duration."""


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    memory = Path("/dev/shm")  # noqa: S108 - a new folder is created there
    folder = Path(
        tempfile.mkdtemp(prefix="nacre-trust-", dir=memory if os.access(memory, os.W_OK) else None)
    )
    try:
        with serving(folder) as client:
            yield client
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_kill_and_disk_error_each_lose_nothing(client: Client, scenario: str) -> None:
    events, _ = client.events(scenario)
    for fault in (kills(events, 2)[1], errors(events, 1)[0]):
        run = client.run(scenario, fault, deep=True)
        assert not run["wrong"], (fault, events[fault["at"]], run)


@pytest.mark.parametrize("part", range(3))
def test_kills_and_disk_errors_at_many_points_lose_nothing(client: Client, part: int) -> None:
    wrong = [fault for scenario in list(SCENARIOS)[part::3] for fault in _wrong(client, scenario)]
    assert not wrong


def _wrong(client: Client, scenario: str) -> Iterator[tuple[object, ...]]:
    """Yield the runs of a scenario that lost or duplicated something."""
    events, seconds = client.events(scenario)
    times = random.Random(scenario)  # noqa: S311 - the same times in every run, not secret ones
    killed = 0
    for faults in (kills(events, KILLS), errors(events, ERRORS)):
        for number, fault in enumerate(faults):
            run = client.run(scenario, fault, deep=number % 3 == 0)
            killed += run["killed"]
            if run["wrong"]:
                yield scenario, fault, events[fault["at"]], run
    if killed <= KILLS // 2:  # ids and the number of written pages differ between runs
        yield scenario, "only so many were killed", killed
    for number in range(RANDOM_KILLS):
        delay = times.uniform(0, seconds * SLACK)
        run = client.run(scenario, delay=delay, deep=number == 0)
        if run["wrong"]:
            yield scenario, delay, run
