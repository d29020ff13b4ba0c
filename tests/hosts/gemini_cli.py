"""Gemini CLI, headless."""

from __future__ import annotations

import json
from pathlib import Path

from tests.hosts.driving import Said
from tests.hosts.programs import command, node_folder
from tests.hosts.stage import Stage

# Resumed in another minute than it began in, Gemini CLI 0.61 writes a second file of the session, finds nothing to go
# on with in that one as it starts next, and deletes both, unless it is to keep all sessions.
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
    """``gemini -p``. It announces a compaction at every turn, so none has to be brought about."""

    name = tool = "gemini-cli"
    program = "gemini"
    options = ()
    starts, prompts, compacts, ends = "SessionStart", "BeforeAgent", "PreCompress", "SessionEnd"

    def set_up(self, stage: Stage) -> None:
        """Its way to sign in, and what would reach for the network."""
        path = self._settings(stage)
        path.parent.mkdir()
        path.write_text(json.dumps(_SETTINGS, indent=2), encoding="utf-8")

    def say(self, stage: Stage, prompt: str, session: str = "", *, compacts: bool = False) -> Said:
        """One prompt."""
        ran = stage.run(
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
        assert ran.code == 0, f"{ran.out}\n{ran.err}"
        return Said(
            str(ran.record["response"]), str(ran.record["session_id"]), ran.seconds, ran.record
        )

    @staticmethod
    def _settings(stage: Stage) -> Path:
        return stage.home / ".gemini" / "settings.json"
