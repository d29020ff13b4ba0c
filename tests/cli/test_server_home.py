"""With a memory on a server, output names the server, and an unreachable server is reported soon."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nacre.errors import UnusableStoreError
from nacre.home.home import open_to_read
from nacre.settings import load_settings
from tests.cli.conftest import Nacre, environment

PASSWORD = "sesame"
PROMPT = json.dumps({"session_id": "a", "prompt": "where does the mill stand?", "cwd": "/code"})


@pytest.fixture
def on_server(
    monkeypatch: pytest.MonkeyPatch, user_home: Path, server_url: str, tenant: str
) -> str:
    """A home whose memory moved from files to a server; returns the tenant."""
    monkeypatch.setenv("NACRE_STORAGE_TENANT", tenant)
    subprocess.run(
        [sys.executable, "-m", "nacre", "store", "The mill of old stands."],
        env=environment({}),
        check=True,
        capture_output=True,
    )
    monkeypatch.setenv("NACRE_DB", server_url.replace("postgres:@", f"postgres:{PASSWORD}@"))
    return tenant


@pytest.fixture(params=["closed", "silent"])
def away(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The server is unreachable: the port is closed, or the listener is silent."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        if request.param == "closed":
            listener.close()
        monkeypatch.setenv(
            "NACRE_DB", f"postgresql://ada:{PASSWORD}@127.0.0.1:{port}/db?connect_timeout=2"
        )
        yield


@pytest.mark.parametrize(
    "command",
    [
        ("config", "show"),
        ("admin", "db", "stats"),
        (
            "admin",
            "doctor",
        ),
    ],
)
def test_output_names_the_server_without_a_password(
    nacre: Nacre, on_server: str, command: tuple[str, ...]
) -> None:
    output = nacre(*command).out
    assert f"(tenant {on_server})" in output
    for printed in (output, nacre(*command, "--json").out):
        assert PASSWORD not in printed
        assert "nacre.db" not in printed


def test_server_memories_take_precedence_over_old_files(nacre: Nacre, on_server: str) -> None:
    nacre("store", "The mill stands on the left bank.")
    assert "left bank" in nacre("status").out
    assert "of old" not in nacre("status").out
    (memory,) = nacre("list", "--json").json["memories"]
    assert (
        nacre("show", memory["id"], "--json").json["path"]
        == "global/fact/the-mill-stands-on-the-left-bank.md"
    )


def test_reader_does_not_mistake_an_old_file_for_the_server(
    on_server: str,
) -> None:
    assert load_settings().database.exists()
    with pytest.raises(UnusableStoreError, match="on a server"):
        open_to_read(load_settings(), patience_ms=5)


def test_file_backup_does_not_replace_a_server(
    nacre: Nacre, on_server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as files:
        files.delenv("NACRE_DB")
        nacre("data", "backup", "create", str(tmp_path / "old.zip"))
    error = nacre(
        "data", "backup", "restore", str(tmp_path / "old.zip"), "--force", "--json", code=5
    ).error
    assert "on a server" in error["message"]
    nacre("data", "backup", "restore", str(tmp_path / "old.zip"), "--to", str(tmp_path / "files"))
    assert (tmp_path / "files" / "nacre.db").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("recall", "mill"),
        ("store", "The mill is red."),
        (
            "admin",
            "doctor",
        ),
        ("status",),
    ],
)
@pytest.mark.usefixtures("away")
def test_unreachable_server_is_an_error_without_hanging(
    process: Nacre, command: tuple[str, ...]
) -> None:
    error = process(*command, "--json", code=1, timeout=30).error
    assert error["code"] == "store_away"
    assert error["hint"]
    assert PASSWORD not in json.dumps(error)


@pytest.mark.usefixtures("away")
def test_hook_is_silent_if_the_server_is_unreachable() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "nacre.serve.hook_process", "claude-code", "UserPromptSubmit"],
        input=PROMPT,
        env=environment({}),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
