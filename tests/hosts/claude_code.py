"""The driver for headless Claude Code."""

from __future__ import annotations

from tests.hosts.driving import PromptResult
from tests.hosts.programs import command
from tests.hosts.stage import Stage


class ClaudeCode:
    """``claude -p``."""

    name = tool = "claude-code"
    program = "claude"
    options = ()
    starts, prompts, compacts, ends = "SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"

    def set_up(self, stage: Stage) -> None:
        """Do nothing: the environment contains all the settings."""

    def say(
        self, stage: Stage, prompt: str, session: str = "", *, compacts: bool = False
    ) -> PromptResult:
        """Run one prompt. Compaction is requested with the command that users type."""
        words = "/compact" if compacts else prompt
        arguments = [
            *command(self.name),
            "-p",
            words,
            "--output-format",
            "json",
            "--model",
            "claude-sonnet-4-5",
        ]
        result = stage.run(
            [*arguments, *(["--resume", session] if session else [])],
            {
                "ANTHROPIC_BASE_URL": stage.provider.url,
                "ANTHROPIC_API_KEY": "sk-fake",
                "DISABLE_AUTOUPDATER": "1",
                "DISABLE_TELEMETRY": "1",
                "DISABLE_ERROR_REPORTING": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
            },
        )
        assert result.code == 0, f"{result.out}\n{result.err}"
        return PromptResult(
            str(result.record["result"]),
            str(result.record["session_id"]),
            result.seconds,
            result.record,
        )
