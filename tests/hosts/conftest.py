"""One story a host, played once and looked at by many tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.fakes.conversation import conversation
from tests.fakes.provider import FakeProvider
from tests.hosts.driving import Driver
from tests.hosts.programs import missing
from tests.hosts.slack import GIVEN, hook_ms
from tests.hosts.stage import Stage
from tests.hosts.story import LINES, Story, play

_SLACK: list[str] = []


@pytest.fixture(scope="class")
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """What the host of a class did, from its wiring until it was taken out."""
    driver: Driver = request.cls.driver
    if reason := missing(driver.name):
        pytest.skip(reason)
    with staged(driver.name, tmp_path_factory) as stage:
        yield play(driver, stage)


@contextmanager
def staged(name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stage for a host, whose model speaks its part."""
    slack = hook_ms()
    if slack and GIVEN is None:
        _SLACK.append(f"{name}: others kept this machine busy, so its hooks had {slack} ms (HOSTS_HOOK_MS)")
    with FakeProvider(conversation(LINES), models=("fake-model",)) as provider:
        stage = Stage(tmp_path_factory.mktemp(name[:4]), provider, slack)
        try:
            yield stage
        finally:
            stage.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell where less was proved than on a quiet machine."""
    for line in _SLACK:
        terminalreporter.write_line(line)
