"""One story a host, played once and looked at by many tests; all of a host's stay in one process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nacre.testing.conversation import conversation
from nacre.testing.fake_provider import FakeProvider
from tests.hosts.claude_code import ClaudeCode
from tests.hosts.codex import Codex
from tests.hosts.driving import Driver
from tests.hosts.gemini_cli import GeminiCli
from tests.hosts.openclaw import OpenClaw
from tests.hosts.opencode import OpenCode
from tests.hosts.programs import missing
from tests.hosts.stage import Stage
from tests.hosts.story import LINES, Story, play

DRIVERS: tuple[Driver, ...] = (OpenClaw(), OpenCode(), GeminiCli(), ClaudeCode(), Codex())


@pytest.fixture(
    scope="session",
    params=[pytest.param(driver, marks=pytest.mark.xdist_group(driver.name), id=driver.name) for driver in DRIVERS],
)
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """What a host did, up to the end of its wiring."""
    driver: Driver = request.param
    if reason := missing(driver.name):
        pytest.skip(reason)
    with FakeProvider(conversation(LINES), models=("fake-model",)) as provider:
        stage = Stage(tmp_path_factory.mktemp(driver.name[:4]), provider)
        try:
            yield play(driver, stage)
        finally:
            stage.close()
