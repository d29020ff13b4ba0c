"""Fixtures: a browser for all tests, and for each test a home with a daemon."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser

from nacre.cli.root import cli
from scripts.install_chromium import MISSING, find
from tests.web.driving import PROJECT, Dashboard, chromium, dashboard

_FIRST_PORT = 7100
"""Below the ephemeral ports."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not find():
        pytest.skip(MISSING)
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def story_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of the story, created once per session."""
    home = tmp_path_factory.mktemp("story") / "home"
    environ = {**os.environ, "NACRE_EMBEDDING_MODEL": "none", "NACRE_GIT_BACKGROUND": "false"}
    subprocess.run(
        [sys.executable, "-m", "tests.web.story", str(home)], check=True, cwd=PROJECT, env=environ
    )
    return home


@pytest.fixture
def home(
    story_home: Path, user_home: Path, worker_id: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A copy of the story's home, which the test may change.

    Each test worker has its own port, so a stopped daemon's port never serves another home.
    """
    monkeypatch.setenv("NACRE_WEB_PORT", str(_FIRST_PORT + int(re.sub(r"\D", "", worker_id) or 0)))
    place = Path(os.environ["NACRE_HOME"])
    shutil.copytree(story_home, place)
    yield place
    CliRunner().invoke(cli, ["serve", "stop"], catch_exceptions=False)


@pytest.fixture
def boards(browser: Browser, home: Path) -> Iterator[Callable[..., Dashboard]]:
    """``boards(color_scheme="dark")`` opens the dashboard in a separate browser context."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(dashboard(browser, home, **options))


@pytest.fixture
def board(boards: Callable[..., Any]) -> Iterator[Dashboard]:
    """The dashboard in the light theme. The test fails if its pages report problems."""
    dashboard = boards()
    yield dashboard
    assert dashboard.problems == []
