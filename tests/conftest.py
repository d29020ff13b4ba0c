"""No test reaches the real home: every test gets folders of its own, and an environment without nacre in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

_HOMES = ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
_SET_BY_PEOPLE = ("NACRE_", "XDG_", "CLAUDE_", "CODEX_", "OPENCLAW_", "PI_")
_KEYS = ("_API_KEY", "_AUTH_TOKEN", "_OAUTH_TOKEN")
_AGENTS = ("CLAUDECODE", "CURSOR_", "GEMINI_CLI", "OPENCODE", "CLINE_", "AUGMENT_", "GOOSE_", "AI_AGENT")
_TERMINAL = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "EDITOR", "VISUAL")


settings.register_profile("nacre", deadline=None, database=None)
settings.load_profile("nacre")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "embedding: the test runs with the bundled embedding model")
    config.addinivalue_line("markers", "hosts: the test drives a real host; it runs with make test-hosts only")
    config.addinivalue_line("markers", "live: the test asks a real provider; it runs with make test-live only")


@pytest.fixture(autouse=True)
def user_home(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """An empty home of a user, nacre's home within; the embedding model is off unless the test is marked."""
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
    monkeypatch.setenv("NACRE_GIT_BACKGROUND", "false")
    monkeypatch.setenv("NACRE_CONTRADICTION_AFTER_COMMANDS", "false")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    if not request.node.get_closest_marker("embedding"):
        monkeypatch.setenv("NACRE_EMBEDDING_MODEL", "none")
    return home
