"""The daemon as a system service: its file, its commands, and a daemon in the background."""

from __future__ import annotations

import json
import os
import plistlib
import stat
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nacre.care.autostart import install, installation
from nacre.errors import UnavailableError
from nacre.settings import load_settings
from tests.cli.conftest import Nacre, write_transcript
from tests.cli.conftest import said as record
from tests.processes import wait

RECORDER = """#!{python}
import json, sys
with open({calls!r}, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
sys.exit({code})
"""


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program named systemctl that records its calls; returns the file with the calls."""
    calls = tmp_path / "calls"
    program(tmp_path / "bin" / "systemctl", calls)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return calls


def program(path: Path, calls: Path, code: int = 0) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(RECORDER.format(python=sys.executable, calls=str(calls), code=code))
    path.chmod(0o755)


def called(calls: Path) -> list[list[str]]:
    return [json.loads(line) for line in calls.read_text().splitlines()]


def test_systemd_unit_has_absolute_program_and_home_paths(user_home: Path) -> None:
    service = installation(replace(load_settings(), platform="linux"))
    assert service.path == user_home / ".config/systemd/user/nacre.service"
    assert f'ExecStart="{sys.executable}" "-P" "-m" "nacre" "serve"\n' in service.text()
    assert f'Environment="NACRE_HOME={user_home}/.nacre"' in service.text()


def test_special_characters_are_quoted_for_systemd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_HOME", '/home/ann/50% "mine"')
    service = installation(replace(load_settings(), platform="linux"))
    assert 'Environment="NACRE_HOME=/home/ann/50%% \\"mine\\""' in service.text()


def test_launchd_agent_is_a_property_list(user_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_HOME", "/Users/ann/R&D <mine>")
    service = installation(replace(load_settings(), platform="darwin"))
    plist = plistlib.loads(service.text().encode())
    assert service.path == user_home / "Library/LaunchAgents/nacre.serve.plist"
    assert plist["ProgramArguments"] == [sys.executable, "-P", "-m", "nacre", "serve"]
    assert plist["EnvironmentVariables"]["NACRE_HOME"] == "/Users/ann/R&D <mine>"
    assert plist["RunAtLoad"] is True
    assert plist["KeepAlive"] == {"SuccessfulExit": False}


def test_windows_task_is_xml() -> None:
    service = installation(replace(load_settings(), platform="win32"))
    root = ElementTree.fromstring(service.text().encode("utf-16"))  # noqa: S314 - it is ours
    arguments = [element.text for element in root.iter() if element.tag.endswith("Arguments")]
    assert arguments == ["-P -m nacre serve"]
    assert service.install[0][:3] == ("schtasks", "/Create", "/F")


def test_secrets_of_the_environment_are_not_written_to_units(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "walnut-token")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/elsewhere/claude")
    for platform in ("linux", "darwin", "win32"):
        assert (
            "walnut-token" not in installation(replace(load_settings(), platform=platform)).text()
        )
    assert "/elsewhere/claude" in installation(replace(load_settings(), platform="linux")).text()


@pytest.mark.parametrize(
    "name", ["AIDER_CHAT_HISTORY_FILE", "CODEX_HOME", "OPENCODE_DB", "VSCODE_PORTABLE"]
)
def test_transcript_folder_variables_are_written_to_the_unit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "/elsewhere/kept")
    assert (
        f'Environment="{name}=/elsewhere/kept"'
        in installation(replace(load_settings(), platform="linux")).text()
    )


@pytest.mark.skipif(sys.platform != "linux", reason="systemd")
def test_installing_writes_the_unit_and_calls_systemd(
    nacre: Nacre, systemctl: Path, user_home: Path
) -> None:
    answer = nacre("serve", "install", "--json").json
    unit = user_home / ".config/systemd/user/nacre.service"
    assert answer["path"] == str(unit)
    assert unit.read_text() == answer["text"]
    assert stat.S_IMODE(unit.stat().st_mode) == 0o600
    assert called(systemctl) == [
        ["--user", "show-environment"],
        ["--user", "daemon-reload"],
        ["--user", "enable", "--now", "nacre.service"],
    ]
    nacre("serve", "uninstall")
    assert not unit.exists()
    assert called(systemctl)[-2:] == [
        ["--user", "disable", "--now", "nacre.service"],
        ["--user", "daemon-reload"],
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="systemd")
def test_install_dry_run_changes_nothing(nacre: Nacre, systemctl: Path, user_home: Path) -> None:
    out = nacre("serve", "install", "--dry-run").out
    assert "[Service]" in out
    assert "systemctl --user enable --now nacre.service" in out
    assert not (user_home / ".config").exists()
    assert not systemctl.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="systemd")
def test_service_of_another_home_is_not_replaced(
    nacre: Nacre, systemctl: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nacre("serve", "install", "--yes")
    monkeypatch.setenv("NACRE_HOME", str(user_home / "other"))
    error = nacre("serve", "install", "--yes", "--json", code=4).error
    assert "another home" in error["message"]
    nacre("serve", "uninstall", code=3)
    assert (user_home / ".config/systemd/user/nacre.service").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="systemd")
def test_daemon_starts_directly_if_systemd_is_not_running(
    process: Nacre, background: None, systemctl: Path, tmp_path: Path
) -> None:
    process("serve", "install", "--yes")
    program(tmp_path / "bin" / "systemctl", tmp_path / "calls", code=1)
    assert process("serve", "start", "--json").json["state"] == "running"


@pytest.mark.skipif(sys.platform != "linux", reason="systemd")
def test_missing_systemd_is_reported_by_install(
    nacre: Nacre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    missing = nacre("serve", "install", "--json", code=5).error
    assert missing["message"] == "systemctl is not available here"
    assert "nacre serve start" in missing["hint"]
    program(tmp_path / "bin" / "systemctl", tmp_path / "calls", code=1)
    assert (
        nacre("serve", "install", "--json", code=5).error["message"]
        == "no systemd user session is available"
    )
    assert (
        nacre("serve", "uninstall", "--json", code=3).error["message"]
        == "the daemon is not installed"
    )


def test_server_address_is_not_written_to_a_unit(
    nacre: Nacre, systemctl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnavailableError, match="NACRE_DB"):
        install(replace(load_settings(), environ={**os.environ, "NACRE_DB": "postgresql://x@y/z"}))
    assert not systemctl.exists()


@pytest.fixture
def background(nacre: Nacre) -> Iterator[None]:
    """Stop any daemon in the background after the test."""
    yield
    nacre("serve", "stop", code=None)


def test_a_daemon_in_the_background_is_started_asked_and_stopped(
    process: Nacre, nacre: Nacre, background: None, user_home: Path
) -> None:
    assert process("serve", "status", "--json", code=1).json["state"] == "none"
    process("serve", "--on-demand")
    started = process("serve", "start", "--json").json
    assert (started["state"], started["on_demand"]) == ("running", False)
    assert process("serve", "start", "--json").json["pid"] == started["pid"]
    folder = user_home / ".claude" / "projects" / "-code-mill"
    write_transcript(folder / "0a.jsonl", [record("user", "The millstone is dressed in March", 1)])
    wait(lambda: "1 turn of" in nacre("serve", "status").out)
    assert process("serve", "stop", "--json").json == {"ended": True}
    lines = process("serve", "logs", "--json").json["lines"]
    assert any("following the sessions in" in line for line in lines)
    assert any("following stopped after 1 turn" in line for line in lines)


@pytest.mark.skipif(sys.platform != "linux", reason="systemd")
def test_installed_daemon_is_started_by_systemd_and_doctor_warns(
    nacre: Nacre, systemctl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nacre("serve", "install", "--yes")
    monkeypatch.setattr("nacre.cli.daemon._START_SECONDS", 0.0)
    error = nacre("serve", "start", "--json", code=5).error
    assert error["message"] == "the daemon did not start"
    assert called(systemctl)[-1] == ["--user", "start", "nacre.service"]
    load_settings().home.joinpath("daemon.lock").touch()
    checks = nacre("admin", "doctor", "--json", code=None).json["checks"]
    (check,) = (check for check in checks if check["name"] == "daemon")
    assert (check["state"], check["hint"]) == ("warning", "nacre serve start")
