"""Every way to connect nacre to Claude Code works and is removed without a trace."""

from __future__ import annotations

import pytest

from tests.hosts.claude_code import ClaudeCode
from tests.hosts.conftest import staged
from tests.hosts.driving import PromptResult
from tests.hosts.programs import command, missing
from tests.hosts.stage import Stage
from tests.hosts.story import ASKS, KNOWN, Scene, Story

pytestmark = pytest.mark.hosts

SETTINGS = '{"model": "sonnet",   "permissions": {"allow": ["Bash(ls)"],\n\t"deny": []},"env": {"HARBOUR": "1"} }'
"""The owner's settings, in an unusual format."""

WAYS = {
    "user": ("home/.claude/settings.json",),
    "project": ("code/harbour/.claude/settings.local.json", "--project", "."),
}


@pytest.mark.parametrize("way", WAYS)
def test_setup_works_and_is_undone(way: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    driver = ClaudeCode()
    if reason := missing(driver.name):
        pytest.skip(reason)
    place, *options = WAYS[way]
    with staged(driver.name, tmp_path_factory) as stage:
        stage.install(driver.program, command(driver.name))
        settings = stage.folder / place
        settings.parent.mkdir(parents=True)
        settings.write_text(SETTINGS, encoding="utf-8")
        files = _files(stage)
        stage.nacre("store", KNOWN, "--kind", "fact", "--subject", "Retries of the mailer")
        story = Story(driver, stage)
        stage.nacre("init", "--host", driver.name, *options, "--yes")
        assert settings.read_text(encoding="utf-8") != SETTINGS
        _works(story.scene("with", ASKS))
        stage.nacre("init", "--uninstall", "--yes")
        _is_gone(story.scene("without", ASKS))
        assert settings.read_text(encoding="utf-8") == SETTINGS
        assert _files(stage) == files


def _works(scene: Scene) -> None:
    result: PromptResult = scene.result
    assert result.text == "It retries five times."
    assert "nacre-context" in scene.bodies
    assert {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"} <= {
        run["event"] for run in scene.hooks
    }
    assert len(scene.requests) == 2, "the tool was not offered with the first request"
    assert "five times" in str(scene.requests[1].body["messages"][-1]), result.more


def _is_gone(scene: Scene) -> None:
    assert scene.hooks == []
    assert "nacre" not in scene.bodies
    assert len(scene.requests) == 1


def _files(stage: Stage) -> set[str]:
    """Return the files of the project."""
    return {str(path) for path in stage.project.rglob("*") if ".git" not in path.parts}
