"""The hosts' own memories are loaded by default, and are absent from prompts once disabled."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.hosts.claude_code import ClaudeCode
from tests.hosts.codex import Codex
from tests.hosts.conftest import staged
from tests.hosts.driving import Driver
from tests.hosts.openclaw import OpenClaw
from tests.hosts.programs import command, missing
from tests.hosts.stage import Stage, eventually
from tests.hosts.story import COMES_BACK, Story

pytestmark = pytest.mark.hosts

ADDED = "The harbour master counts the mooring rings at every new moon."
MEMORIES = (
    "The lamp at the end of the pier is changed every October.",
    "Prefer reports that name the tide of the hour.",
)


def _claude_code(stage: Stage) -> Path:
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(stage.project))
    folder = stage.home / ".claude/projects" / slug / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("".join(f"- {item}\n" for item in MEMORIES))
    (stage.home / ".claude/settings.json").write_text(json.dumps({"autoMemoryEnabled": True}))
    return folder / "MEMORY.md"


def _codex(stage: Stage) -> Path:
    folder = stage.home / ".codex/memories"
    folder.mkdir()
    lines = "".join(f"- {item}\n" for item in MEMORIES)
    (folder / "memory_summary.md").write_text(f"## User preferences\n\n{lines}")
    (folder / "MEMORY.md").write_text(f"# Task Group: harbour\n\n## User preferences\n\n{lines}")
    config = stage.home / ".codex/config.toml"
    config.write_text(config.read_text().replace("[features]\n", "[features]\nmemories = true\n"))
    return folder / "MEMORY.md"


def _openclaw(stage: Stage) -> Path:
    (stage.project / "MEMORY.md").write_text(f"- {MEMORIES[0]}\n")
    (stage.project / "USER.md").write_text(
        f"<!-- observed: 2026-02-14 | status: active -->\n\n- {MEMORIES[1]}\n"
    )
    (stage.project / "AGENTS.md").write_text(
        "Rules of the harbour: whistle before you leave the quay.\n"
    )
    return stage.project / "MEMORY.md"


REMEMBERS: Mapping[str, tuple[Driver, Callable[[Stage], Path], str]] = {
    "claude-code": (ClaudeCode(), _claude_code, "-code-harbour/memory"),
    "codex": (Codex(), _codex, ".codex/memories"),
    "openclaw": (OpenClaw(), _openclaw, '"memory_search"'),
}
"""By host: its driver, the function that writes its memory, and the text that refers its agent to it."""


@pytest.mark.parametrize("host", REMEMBERS)
def test_own_memory_is_disabled_and_restored(
    host: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    driver, remember, points_there = REMEMBERS[host]
    if reason := missing(driver.name):
        pytest.skip(reason)
    with staged(driver.name, tmp_path_factory) as stage:
        stage.install(driver.program, command(driver.name))
        driver.set_up(stage)
        page = remember(stage)
        story = Story(driver, stage)
        assert _own_memory(story, "own") == list(MEMORIES)
        assert points_there in story.scenes["own"].bodies
        before = _files(stage)
        result = stage.nacre(
            "init", "--host", host, *driver.options, "--own-memory", "isolate", "--yes", "--json"
        ).record
        assert [memory["state"] for memory in result["own_memories"]] == ["isolated"]
        assert sum(item["added"] for item in result["captured"]) == len(MEMORIES)
        assert _own_memory(story, "isolated") == []
        assert points_there not in story.scenes["isolated"].bodies
        if host == "openclaw":
            assert "whistle before you leave the quay" in story.scenes["isolated"].bodies
        text = page.read_text()
        page.write_text(f"{text}- {ADDED}\n")
        assert ADDED not in story.scene("written", COMES_BACK).bodies
        assert eventually(lambda: ADDED in stage.nacre("list", "--json").out), (
            "the host's memory was not imported"
        )
        page.write_text(text)
        checks = {item["name"]: item["state"] for item in _doctor(stage)}
        assert checks[f"{host} own memory"] == "ok"
        stage.nacre("init", "--uninstall", "--yes")
        assert _files(stage) == before
        assert _own_memory(story, "restored") == list(MEMORIES)


def _own_memory(story: Story, name: str) -> list[str]:
    """Return the part of its own memory that a host sends to the model with a prompt."""
    bodies = story.scene(name, COMES_BACK).bodies
    return [item for item in MEMORIES if item in bodies]


def _files(stage: Stage) -> dict[str, bytes]:
    """Return the host's settings and its own memories."""
    suffixes = (
        "/settings.json",
        "/config.toml",
        "/openclaw.json",
        "/MEMORY.md",
        "/USER.md",
        "/memory_summary.md",
    )
    return {path: text for path, text in stage.settings().items() if path.endswith(suffixes)}


def _doctor(stage: Stage) -> list[dict[str, str]]:
    result = stage.run([str(stage.programs / "nacre"), "admin", "doctor", "hosts", "--json"])
    checks: list[dict[str, str]] = result.record["checks"]
    return checks
