"""Claude Code, headless."""

from __future__ import annotations

from tests.hosts.driving import Said
from tests.hosts.programs import command
from tests.hosts.stage import Stage


class ClaudeCode:
    """``claude -p``."""

    name = tool = "claude-code"
    program = "claude"
    options = ()
    starts, prompts, compacts, ends = "SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"

    def set_up(self, stage: Stage) -> None:
        """All it needs is in its environment."""

    def say(self, stage: Stage, prompt: str, session: str = "", *, compacts: bool = False) -> Said:
        """One prompt; compaction is asked for as its user does."""
        words = "/compact" if compacts else prompt
        asked = [
            *command(self.name),
            "-p",
            words,
            "--output-format",
            "json",
            "--model",
            "claude-sonnet-4-5",
        ]
        ran = stage.run(
            [*asked, *(["--resume", session] if session else [])],
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
        assert ran.code == 0, f"{ran.out}\n{ran.err}"
        return Said(
            str(ran.record["result"]), str(ran.record["session_id"]), ran.seconds, ran.record
        )
