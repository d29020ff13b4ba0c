"""The versions and folders of the host programs are chosen without running a host."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts.programs import PROVEN, ROOT, TABLE, Programs

NPM = """#!/bin/sh
case "$1" in
    view) echo 9.8.7 ;;
    install) echo "$PWD" >> "$NOTES"; mkdir -p "$(dirname "$START")"; touch "$START" ;;
esac
"""


def stamp(folder: Path, packages: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    (folder / "installed.json").write_text(json.dumps(packages))


def test_host_packages_are_unpinned_and_tool_packages_are_pinned() -> None:
    for name, entry in TABLE.items():
        assert all(("@" in package[1:]) is (name not in PROVEN) for package in entry["packages"]), (
            name
        )
    assert PROVEN.keys() < TABLE.keys()


def test_pinned_hosts_run_in_their_exact_version(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    packages = programs.packages("codex")
    assert packages == {"@openai/codex": PROVEN["codex"]["pinned"]}
    assert "scripts/install_hosts.py installs it" in programs.missing("codex")
    stamp(tmp_path / "codex", {"@openai/codex": "0.0.1"})
    assert "scripts/install_hosts.py installs it" in programs.missing("codex")
    (tmp_path / "codex/installed.json").write_text(json.dumps(packages))
    assert programs.missing("codex") == ""


def test_newest_hosts_are_installed_separately_and_share_node(tmp_path: Path) -> None:
    programs = Programs(tmp_path, is_newest=True)
    stamp(tmp_path / "gemini-cli", Programs(tmp_path).packages("gemini-cli"))
    stamp(tmp_path / "node-22", programs.packages("node-22"))
    assert "gemini-cli is not in" in programs.missing("gemini-cli")
    stamp(tmp_path / "newest/gemini-cli", {"@google/gemini-cli": "9.8.7"})
    assert programs.missing("gemini-cli") == ""
    node, start = programs.command("gemini-cli")
    assert Path(node).is_relative_to(tmp_path / "node-22")
    assert Path(start).is_relative_to(tmp_path / "newest/gemini-cli")
    assert programs.version_lines() == [
        f"gemini-cli 9.8.7 (pinned: {PROVEN['gemini-cli']['pinned']})"
    ]


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="hosts are installed only on Linux on x86_64",
)
def test_newest_version_is_queried_and_installed_once(tmp_path: Path) -> None:
    npm = tmp_path / "bin/npm"
    npm.parent.mkdir()
    npm.write_text(NPM)
    npm.chmod(0o755)
    hosts, notes = tmp_path / "hosts", tmp_path / "notes"
    environ = {
        **os.environ,
        "PATH": f"{npm.parent}:/usr/bin:/bin",
        "NOTES": str(notes),
        "START": TABLE["codex"]["start"],
        "HOSTS_DIR": str(hosts),
        "HOSTS": "newest",
    }
    words = [sys.executable, str(ROOT / "scripts/install_hosts.py"), "codex"]
    result = [
        subprocess.run(words, env=environ, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert "9.8.7 installed in" in result[0]
    assert "9.8.7 is installed" in result[1]
    assert notes.read_text().split() == [str(hosts / "newest/codex")]
    assert Programs(hosts, is_newest=True).installed("codex") == {"@openai/codex": "9.8.7"}
    assert not (hosts / "codex").exists()
