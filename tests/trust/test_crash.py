"""Killed at any point, or with a disk that fails: nothing acknowledged is lost, nothing is doubled, all goes on.

``make trust`` does this at every point; here are those that stand for all of them.
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

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shim knows Linux' system calls")

KILLS, RANDOM_KILLS, ERRORS = 8, 2, 4
"""Of every scenario. Each third run is looked at in full: a second run of the command, and a rebuild."""

SLACK = 1.1
"""Random kills come within the time that the scenario took, and a little more."""


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made there
    folder = Path(tempfile.mkdtemp(prefix="nacre-trust-", dir=memory if os.access(memory, os.W_OK) else None))
    try:
        with serving(folder) as client:
            yield client
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module", params=SCENARIOS)
def scenario(request: pytest.FixtureRequest) -> str:
    """Each in turn, for all tests: a server makes the home of a scenario once."""
    name: str = request.param
    return name


def test_a_kill_at_any_point_loses_nothing_and_doubles_nothing(client: Client, scenario: str) -> None:
    events, _ = client.events(scenario)
    killed = 0
    for number, fault in enumerate(kills(events, KILLS)):
        run = client.run(scenario, fault, deep=number % 3 == 0)
        assert not run["wrong"], (fault, events[fault["at"]], run)
        killed += run["killed"]
    assert killed > KILLS // 2  # ids differ from run to run, and so does the number of pages that are written


def test_a_kill_at_any_time_loses_nothing_and_doubles_nothing(client: Client, scenario: str) -> None:
    _, seconds = client.events(scenario)
    times = random.Random(scenario)  # noqa: S311 - the same times in every run, not secret ones
    for number in range(RANDOM_KILLS):
        delay = times.uniform(0, seconds * SLACK)
        run = client.run(scenario, delay=delay, deep=number % 9 == 0)
        assert not run["wrong"], (delay, run)


def test_a_full_broken_or_read_only_disk_is_told_and_loses_nothing(client: Client, scenario: str) -> None:
    events, _ = client.events(scenario)
    for number, fault in enumerate(errors(events, ERRORS)):
        run = client.run(scenario, fault, deep=number % 3 == 0)
        assert not run["wrong"], (fault, events[fault["at"]], run)
