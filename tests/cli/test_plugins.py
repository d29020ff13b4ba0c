"""Plugins register commands and operations through entry points; nacre works without any."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from nacre import __version__
from tests.cli.conftest import SOURCE, Nacre

PAGE = SOURCE.parent / "docs" / "extending.md"
WITHOUT_PLUGINS = """
import importlib.metadata, sys
importlib.metadata.entry_points = lambda **_: importlib.metadata.EntryPoints(())
sys.modules.update(dict.fromkeys(["nacre_code", "nacre_extras", "nacre_gateway", "nacre_server"]))
sys.argv[0] = "nacre"
from nacre.__main__ import main
main()
"""


def run_without_plugins(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_PLUGINS, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def test_core_works_without_plugins(nacre: Nacre) -> None:
    assert "gateway" not in run_without_plugins("--help").stdout
    nacre("store", "The ferry leaves from pier seven.")
    process = run_without_plugins("recall", "where does the ferry leave?", "--json")
    assert "pier seven" in str(json.loads(process.stdout)["hits"])


def test_command_of_a_missing_plugin_names_its_extra() -> None:
    for name, *command in (
        ("gateway", "gateway", "run"),
        ("code", "graph", "callers", "pay"),
        ("server", "server", "spaces"),
        ("server", "data", "move"),
    ):
        refused = run_without_plugins(*command)
        assert refused.returncode == 2
        hint = f"nacre {name} is not installed: pip install 'nacre-memory[{name}]'"
        assert hint in refused.stderr


def test_tool_of_a_missing_plugin_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")
    about = {"protocolVersion": "2025-06-18", "capabilities": {}}
    client = {"clientInfo": {"name": "test", "version": "1"}}
    calls = [("initialize", about | client)]
    calls += [
        ("tools/call", {"name": name, "arguments": arguments})
        for name, arguments in (
            ("memory_graph", {"action": "callers", "name": "pay"}),
            ("memory_analyze", {"about": "stale"}),
        )
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(calls)
    ]
    answered = run_without_plugins("mcp", "--tools", "all", stdin="\n".join([*lines, ""])).stdout
    assert answered.count("pip install 'nacre-memory[code]'") == 2


def test_ingest_names_the_extra_for_unread_transcripts(user_home: Path) -> None:
    history = user_home / ".aider.chat.history.md"
    history.write_text("# aider chat started at 2026-11-18 09:00:00\n\n#### Hi  \n\nHello.\n")
    thread = user_home / ".local" / "share" / "amp" / "threads" / "T-1.json"
    packed = user_home / ".codeium" / "windsurf" / "cascade" / "a.pb"
    for path in (thread, packed):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"\x93\x01")
    process = run_without_plugins("ingest")
    assert process.returncode == 0
    assert "1 aider transcripts are not read: pip install 'nacre-memory[extras]'" in process.stdout
    assert "1 amp transcripts are not read: pip install 'nacre-memory[extras]'" in process.stdout
    assert "1 Windsurf transcripts are not read: only Windsurf can read them" in process.stdout
    result = run_without_plugins("ingest", str(history), "--json")
    assert json.loads(result.stdout)["files"] == 0
    chats = user_home / ".qwen/projects/mill/chats"
    chats.mkdir(parents=True)
    part = {"text": "Hi"}
    record = {"sessionId": "s", "uuid": "u", "type": "user", "message": {"parts": [part]}}
    (chats / "s.jsonl").write_text(json.dumps(record), encoding="utf-8")
    assert "1 qwen-code transcripts are not read" in run_without_plugins("ingest").stdout
    result = run_without_plugins("ingest", str(chats), "--json")
    assert "s.jsonl" in result.stdout
    assert "is a transcript of qwen-code" in result.stdout


def test_importer_of_a_missing_plugin_names_its_extra(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A note\n", encoding="utf-8")
    refused = run_without_plugins("data", "import", str(tmp_path), "--from", "mem0")
    assert refused.returncode != 0
    assert "mem0 needs a plugin" in refused.stderr
    assert "pip install 'nacre-memory[extras]'" in refused.stderr
    unknown = run_without_plugins("data", "import", str(tmp_path))
    assert "no known memory format" in unknown.stderr


def test_doctor_reports_channels_without_the_plugin(user_home: Path) -> None:
    (user_home / ".nacre").mkdir(mode=0o700)
    (user_home / ".nacre" / "config.toml").write_text(
        '[gateway.channels.telegram]\ntoken = "env:TOKEN"\n', encoding="utf-8"
    )
    answer = json.loads(run_without_plugins("admin", "doctor", "--json").stdout)
    (check,) = (check for check in answer["checks"] if check["name"] == "gateway")
    assert check["hint"] == "pip install 'nacre-memory[gateway]'"


def test_memory_on_a_server_needs_its_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_DB", "postgresql://ada@127.0.0.1:1/nacre")
    refused = run_without_plugins("list")
    assert "a memory at postgresql:// needs nacre-server" in refused.stderr
    assert "pip install 'nacre-memory[server]'" in refused.stderr


def test_documented_plugin_example_works(nacre: Nacre, process: Nacre, tmp_path: Path) -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Plugin\n")[2]
    code, registration = re.findall(r"```(?:python|toml)\n(.*?)```", section, re.DOTALL)[:2]
    facts = tmp_path / "nacre_tides-1.0.dist-info"
    facts.mkdir()
    (tmp_path / "nacre_tides.py").write_text(code, encoding="utf-8")
    (facts / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: nacre-tides\nVersion: 1.0\n", encoding="utf-8"
    )
    points = registration.replace('[project.entry-points."', "[").replace('"]', "]")
    (facts / "entry_points.txt").write_text(points.replace('"', ""), encoding="utf-8")
    environ = {"PYTHONPATH": os.pathsep.join((str(SOURCE), str(tmp_path)))}
    nacre("store", "The tide turns at noon.")
    assert process("tides", environ=environ).out == "1 memory about the tide\n"
    assert process("tides", "--json", environ=environ).json == {"count": 1}
    assert "nacre tides" in process("help", "--all", environ=environ).out


BROKEN = """
import importlib.metadata, sys
broken = [
    importlib.metadata.EntryPoint("tides", "nowhere:tides", f"nacre.{group}")
    for group in ("commands", "operations", "resources", "services", "daemon", "checks", "tools", "stale", "engines")
]
importlib.metadata.entry_points = lambda group: [p for p in broken if p.group == group]
sys.argv[0] = "nacre"
from nacre.__main__ import main
main()
"""


def test_broken_plugin_stops_only_its_own_command() -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", BROKEN, *arguments], capture_output=True, text=True, check=False
        )

    assert "nacre admin doctor" in run("help", "--all").stdout
    refused = run("tides")
    assert "the plugin 'tides' (nowhere:tides) cannot be loaded" in refused.stderr
    assert "did you mean admin doctor?" in run("doctor").stderr
    answer = json.loads(run("admin", "doctor", "--json").stdout)
    (check,) = (check for check in answer["checks"] if check["name"] == "plugins")
    assert "tides" in check["detail"]


def test_python_api_loads_no_plugin() -> None:
    program = "import sys, nacre.api; print('nacre_gateway' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout == "False\n"


@pytest.mark.parametrize("name", ["code", "extras", "gateway", "server"])
def test_plugin_version_matches_and_requires_nacre(name: str) -> None:
    facts = tomllib.loads(
        (SOURCE.parent / f"plugins/nacre-{name}/pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    assert facts["version"] == __version__
    assert facts["dependencies"][0].replace("[web]", "") == f"nacre-memory=={__version__}"
