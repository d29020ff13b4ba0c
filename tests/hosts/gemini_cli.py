"""The driver for headless Gemini CLI."""

from __future__ import annotations

import json
from pathlib import Path

from tests.hosts.driving import PromptResult
from tests.hosts.programs import command, node_folder
from tests.hosts.stage import Stage

# If Gemini CLI 0.61 resumes a session in a later minute, it writes a second file without messages and deletes both
# files at its next start, unless it is configured to keep all sessions.
_GENERAL = {
    "enableAutoUpdate": False,
    "enableAutoUpdateNotification": False,
    "sessionRetention": {"enabled": False},
}
_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "general": _GENERAL,
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}


class GeminiCli:
    """``gemini -p``. It announces a compaction at every turn, so the driver does not trigger any."""

    name = tool = "gemini-cli"
    program = "gemini"
    options = ()
    starts, prompts, compacts, ends = "SessionStart", "BeforeAgent", "PreCompress", "SessionEnd"

    def set_up(self, stage: Stage) -> None:
        """Configure the sign-in and turn off features that use the network."""
        path = self._settings(stage)
        path.parent.mkdir()
        path.write_text(json.dumps(_SETTINGS, indent=2), encoding="utf-8")

    def say(
        self, stage: Stage, prompt: str, session: str = "", *, compacts: bool = False
    ) -> PromptResult:
        result = stage.run(
            [
                *command(self.name),
                "-p",
                prompt,
                "-m",
                "gemini-2.5-flash",
                "--approval-mode",
                "yolo",
                "--output-format",
                "json",
                *(["--resume", session] if session else []),
            ],
            {
                "GEMINI_API_KEY": "fake",
                "GOOGLE_GEMINI_BASE_URL": stage.provider.url,
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
                "GEMINI_CLI_NO_RELAUNCH": "true",
                "GEMINI_TELEMETRY_ENABLED": "false",
                "PATH": f"{node_folder(self.name)}:{stage.environ['PATH']}",
            },
        )
        assert result.code == 0, f"{result.out}\n{result.err}"
        return PromptResult(
            str(result.record["response"]),
            str(result.record["session_id"]),
            result.seconds,
            result.record,
        )

    @staticmethod
    def _settings(stage: Stage) -> Path:
        return stage.home / ".gemini" / "settings.json"
