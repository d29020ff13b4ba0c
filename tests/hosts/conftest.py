"""Fixtures that run one story per host and share it between the tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from tests.fakes.conversation import conversation
from tests.fakes.provider import FakeProvider
from tests.hosts.driving import Driver
from tests.hosts.programs import CHOSEN, missing
from tests.hosts.stage import Stage
from tests.hosts.story import LINES, Story, play

_BUSY: list[str] = []


@pytest.fixture(scope="class")
def story(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    """Run the story of the class's host, from its connection until its removal."""
    driver: Driver = request.cls.driver
    if reason := missing(driver.name):
        pytest.skip(reason)
    with staged(driver.name, tmp_path_factory) as stage:
        yield play(driver, stage)


@contextmanager
def staged(name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stage for a host with a scripted model."""
    with FakeProvider(conversation(LINES), models=("fake-model",)) as provider:
        stage = Stage(tmp_path_factory.mktemp(name[:4]), provider)
        if stage.is_busy:
            _BUSY.append(f"{name}: others kept this machine busy")
        try:
            yield stage
        finally:
            stage.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report tests that ran on a busy machine, and the results of the newest versions."""
    stats = terminalreporter.stats
    names = {
        kind: [report.nodeid for report in stats.get(kind, [])]
        for kind in ("failed", "error", "skipped")
    }
    for line in (*_BUSY, *(newest(names) if CHOSEN.is_newest else [])):
        terminalreporter.write_line(line)


def newest(names: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the versions that ran, and the tests whose results differ from the pinned versions'."""
    differs = [
        f"not as with the pinned versions: {name}"
        for kind in ("failed", "error")
        for name in names[kind]
    ]
    skipped = [f"not proved, it was skipped: {name}" for name in names["skipped"]]
    return [*CHOSEN.version_lines(), *(differs + skipped or ["all as with the pinned versions"])]
