"""What is shipped for hosts that take plugins: it is whole, in step with nacre, and speaks its daemon's protocol."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import nacre
from nacre.base import link
from nacre.serve.hook_shapes import SHAPES

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "src" / "nacre" / "hosts" / "plugins"
CLAW = SHIPPED / "openclaw"
SEEDS_KEYS = (
    "agenrPath dbPath budget enabled project sessionsDir handoff signalMinImportance signalMaxPerSignal "
    "signalCooldownMs "
    "signalMaxPerSession signalMaxAgeSec signalsEnabled dataDir memoryDir captureStrategy includeAssistant "
    "maxMessageChars heartbeatBatchSize autoIndexIntervalMinutes autoDreamIntervalMinutes reasoningMode recallBudgetMs "
    "indexIdleDebounceMs fastRecallFallbackEnabled recallEnabled addEnabled uiEnabled uiHost uiPort uiPathPrefix"
).split()


def node() -> str:
    """A Node that runs tests; the test is left out where there is none."""
    found = os.environ.get("NODE") or shutil.which("node")
    if not found:
        pytest.skip("there is no node: plugins are JavaScript")
    version = subprocess.run(
        [found, "--version"], capture_output=True, text=True, check=True
    ).stdout
    if tuple(map(int, version.strip().lstrip("v").split(".")[:2])) < (20, 14):
        pytest.skip(f"node {version.strip()} is too old: 20.14 runs these tests")
    return found


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("host", ["openclaw", "opencode"])
def test_plugin_passes_its_host_tests(host: str, tmp_path: Path) -> None:
    bounds = ["--test-force-exit", "--test-timeout=120000"]
    command = [node(), "--test", "--test-reporter=tap", *bounds, f"tests/plugins/{host}.test.mjs"]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "NACRE_PLUGINS": str(SHIPPED)}
    ran = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, "\n".join(
        line for line in ran.stdout.splitlines() if "duration_ms" not in line
    )


@pytest.mark.parametrize(
    "path",
    ["openclaw/package.json", "openclaw/openclaw.plugin.json", "gemini-cli/gemini-extension.json"],
)
def test_plugin_version_matches_nacre(path: str) -> None:
    assert read(SHIPPED / path)["version"] == nacre.__version__


@pytest.mark.parametrize("key", SEEDS_KEYS)
def test_keys_of_other_memories_are_accepted_and_explained(key: str) -> None:
    assert key in read(CLAW / "openclaw.plugin.json")["configSchema"]["properties"]
    assert f"`{key}" in (CLAW / "README.md").read_text(encoding="utf-8")


def test_every_config_key_is_in_the_readme() -> None:
    told = (CLAW / "README.md").read_text(encoding="utf-8")
    keys = read(CLAW / "openclaw.plugin.json")["configSchema"]["properties"]
    assert [key for key in keys if f"`{key}" not in told] == []


def test_ineffective_key_is_described_by_its_replacement() -> None:
    described = _described(read(CLAW / "openclaw.plugin.json")["configSchema"]["properties"])
    readme = (CLAW / "README.md").read_text(encoding="utf-8").replace("`", "")
    for item in _idle():
        assert f"| {', '.join(item['keys'])} | {item['instead']} |" in readme
        assert {described[key] for key in item["keys"]} == {f"Has no effect: {item['instead']}."}


def test_every_effective_key_is_read() -> None:
    code = (CLAW / "lib" / "config.js").read_text(encoding="utf-8")
    idle = {key.partition(".")[0] for item in _idle() for key in item["keys"]}
    keys = read(CLAW / "openclaw.plugin.json")["configSchema"]["properties"].keys() - idle
    assert [key for key in keys if not re.search(rf"\bset\.{key}\b", code)] == []


def _idle() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(_in_node("JSON.stringify(module.IDLE)", "idle"))
    return found


def _described(properties: dict[str, Any], before: str = "") -> dict[str, str]:
    found = {f"{before}{key}": item.get("description", "") for key, item in properties.items()}
    for key, one in properties.items():
        found |= _described(one.get("properties", {}), f"{before}{key}.")
    return found


def test_openclaw_manifest_lists_every_offered_tool() -> None:
    names = [tool["name"] for tool in json.loads((CLAW / "tools.json").read_text(encoding="utf-8"))]
    contract = read(CLAW / "openclaw.plugin.json")["contracts"]["tools"]
    assert sorted(contract) == sorted([*names, *(f"nacre_{name}" for name in names)])


def test_files_named_by_the_package_exist() -> None:
    package = read(CLAW / "package.json")
    named = [*package["files"], *package["openclaw"]["extensions"], package["main"]]
    assert [name for name in named if not (CLAW / name).exists()] == []


def test_plugin_tool_descriptions_match_nacre_mcp() -> None:
    offers = pytest.importorskip("nacre.serve.mcp", reason="this nacre has no tools yet")
    described = offers.describe_tools(offers.offered_tools(everything=True))
    assert json.loads((CLAW / "tools.json").read_text(encoding="utf-8")) == described, (
        "run scripts/write_plugin_tools.py"
    )


def test_extension_hooks_are_known_events() -> None:
    hooks = read(SHIPPED / "gemini-cli" / "hooks" / "hooks.json")["hooks"]
    assert set(hooks) <= set(SHAPES["gemini-cli"].events)
    commands = {event: group["hooks"][0]["command"] for event, (group,) in hooks.items()}
    assert commands == {event: f"nacre-hook gemini-cli {event}" for event in hooks}


def test_extension_context_file_exists() -> None:
    extension = read(SHIPPED / "gemini-cli" / "gemini-extension.json")
    assert (SHIPPED / "gemini-cli" / extension["contextFileName"]).exists()


@pytest.mark.parametrize("home", ["short", "a" * 60 + "/" + "b" * 60, "missing"])
def test_plugins_compute_the_daemon_socket_path_correctly(home: str, tmp_path: Path) -> None:
    folder = tmp_path / home
    if home != "missing":
        folder.mkdir(parents=True)
    assert _in_node(f"module.socketPath({json.dumps(str(folder))})") == link.socket_path(
        str(folder)
    )


def test_shipped_plugin_files_match_their_sources(tmp_path: Path) -> None:
    tsc = ROOT / "host-plugins" / "node_modules" / ".bin" / "tsc"
    if not tsc.exists():
        pytest.skip("there is no TypeScript: npm install in host-plugins/ brings it")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    made = tmp_path / "made"
    subprocess.run(
        [node(), "build.mjs", str(made)],
        cwd=ROOT / "host-plugins",
        env=environ,
        check=True,
        timeout=120,
    )
    for path in sorted(made.rglob("*.js")):
        assert path.read_text() == (SHIPPED / path.relative_to(made)).read_text(), (
            "run npm run build in host-plugins/"
        )


def _in_node(expression: str, module: str = "link") -> str:
    path = json.dumps((CLAW / "lib" / f"{module}.js").as_uri())
    script = f"import * as module from {path}; process.stdout.write({expression});"
    ran = subprocess.run(
        [node(), "--input-type=module", "-e", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return ran.stdout
