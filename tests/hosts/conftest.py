"""One story a host, played once and looked at by many tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nacre.testing.conversation import conversation
from nacre.testing.fake_provider import FakeProvider
from tests.hosts.driving import Driver
from tests.hosts.programs import missing
from tests.hosts.stage import Stage
from tests.hosts.story import LINES, Story, play


@pytest.fixture(scope="class")
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """What the host of a class did, from its wiring until it was taken out."""
    driver: Driver = request.cls.driver
    if reason := missing(driver.name):
        pytest.skip(reason)
    with FakeProvider(conversation(LINES), models=("fake-model",)) as provider:
        stage = Stage(tmp_path_factory.mktemp(driver.name[:4]), provider)
        try:
            yield play(driver, stage)
        finally:
            stage.close()
