"""No test reaches the real home: every test gets folders of its own, and an environment without nacre in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.processes import Processes, signals_of_a_terminal

pytest_plugins = ("tests.cpu_time", "tests.database_server")

_HOMES = ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
_SET_BY_PEOPLE = ("NACRE_", "XDG_", "CLAUDE_", "CODEX_", "OPENCLAW_", "PI_")
_KEYS = ("_API_KEY", "_AUTH_TOKEN", "_OAUTH_TOKEN")
_AGENTS = (
    "CLAUDECODE",
    "CURSOR_",
    "GEMINI_CLI",
    "OPENCODE",
    "CLINE_",
    "AUGMENT_",
    "GOOSE_",
    "AI_AGENT",
)
_TERMINAL = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "EDITOR", "VISUAL")
_MEMORY, _ROOM_BYTES = Path("/dev/shm"), 3 << 30  # noqa: S108 - pytest makes a folder of its own there


settings.register_profile("nacre", deadline=None, database=None)
settings.load_profile("nacre")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "embedding: the test runs with the bundled embedding model")
    config.addinivalue_line(
        "markers", "hosts: the test drives a real host; it runs with make test-hosts only"
    )
    config.addinivalue_line(
        "markers", "live: the test asks a real provider; it runs with make test-live only"
    )
    config.addinivalue_line(
        "markers", "slow: the test is on the list of slow cases; it runs with make test-slow only"
    )
    config.addinivalue_line(
        "markers", "web: the test drives the dashboard in Chromium, with make test-web only"
    )
    if _has_room(
        _MEMORY
    ):  # nacre waits for a disk at every write: most of what a test would wait for
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


def _has_room(folder: Path) -> bool:
    """Whether homes and programs of tests can lie in a folder."""
    if not os.access(folder, os.W_OK) or os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return False
    return shutil.disk_usage(folder).free > _ROOM_BYTES


@pytest.fixture(scope="session", autouse=True)
def signals() -> Iterator[None]:
    """Programs that tests start heed signals, however the run itself was started."""
    with signals_of_a_terminal():
        yield


@pytest.fixture
def processes() -> Iterator[Processes]:
    """``processes.start(command)`` is a program that goes on beside the test, and ends with it."""
    started = Processes()
    yield started
    started.end()


@pytest.fixture(autouse=True)
def user_home(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    """An empty home of a user, nacre's home within; the embedding model is off unless the test is marked.

    It is kept for a look where the test failed.
    """
    failed = request.session.testsfailed
    home = tmp_path_factory.mktemp("home")
    is_live = request.node.get_closest_marker("live")
    for name in list(os.environ):
        is_key = name.endswith(_KEYS) and not is_live
        if name.startswith((*_SET_BY_PEOPLE, *_AGENTS)) or is_key or name in _TERMINAL:
            monkeypatch.delenv(name)
    for name in _HOMES:
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("NACRE_HOME", str(home / ".nacre"))
    monkeypatch.setenv("TZ", "UTC")
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NACRE_GIT_BACKGROUND", "false")
    if not request.node.get_closest_marker("embedding"):
        monkeypatch.setenv("NACRE_EMBEDDING_MODEL", "none")
    yield home
    if request.session.testsfailed == failed:
        shutil.rmtree(home, ignore_errors=True)
