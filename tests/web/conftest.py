"""A browser for all tests, and for each one a home of its own with a daemon."""

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
"""Below those that systems give out by themselves."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, without a window."""
    if not find():
        pytest.skip(MISSING)
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of the story, made once."""
    home = tmp_path_factory.mktemp("story") / "home"
    environ = {**os.environ, "NACRE_EMBEDDING_MODEL": "none", "NACRE_GIT_BACKGROUND": "false"}
    subprocess.run(
        [sys.executable, "-m", "tests.web.story", str(home)], check=True, cwd=PROJECT, env=environ
    )
    return home


@pytest.fixture
def home(
    told: Path, user_home: Path, worker_id: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A copy of it, which the test may change. Its port is the worker's own: while its daemon is away, none of another
    home may be served there."""
    monkeypatch.setenv("NACRE_WEB_PORT", str(_FIRST_PORT + int(re.sub(r"\D", "", worker_id) or 0)))
    place = Path(os.environ["NACRE_HOME"])
    shutil.copytree(told, place)
    yield place
    CliRunner().invoke(cli, ["serve", "stop"], catch_exceptions=False)


@pytest.fixture
def boards(browser: Browser, home: Path) -> Iterator[Callable[..., Dashboard]]:
    """``boards(color_scheme="dark")`` is the dashboard in a browser of its own."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(dashboard(browser, home, **options))


@pytest.fixture
def board(boards: Callable[..., Any]) -> Iterator[Dashboard]:
    """The dashboard, in the light; nothing may go wrong in its pages meanwhile."""
    opened = boards()
    yield opened
    assert opened.problems == []
