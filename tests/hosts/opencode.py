"""The driver for headless OpenCode."""

from __future__ import annotations

import json

from tests.hosts.driving import PromptResult
from tests.hosts.programs import command
from tests.hosts.stage import Stage

_WINDOW = 393_000
_QUIET = {
    f"OPENCODE_DISABLE_{name}": "1"
    for name in (
        "AUTOUPDATE",
        "MODELS_FETCH",
        "LSP_DOWNLOAD",
        "DEFAULT_PLUGINS",
        "SHARE",
        "CLAUDE_CODE",
    )
}


class OpenCode:
    """``opencode run``. It has no session end, and its plugin may be disposed of too late to
    report one."""

    name = tool = program = "opencode"
    options = ()
    starts, prompts, compacts, ends = "session-start", "", "pre-compact", ""

    def set_up(self, stage: Stage) -> None:
        """Configure the provider in the project's own file."""
        model = {"name": "Fake", "tool_call": True, "limit": {"context": _WINDOW, "output": 8000}}
        config = {
            "$schema": "https://opencode.ai/config.json",  # OpenCode would add this itself
            "autoupdate": False,
            "share": "disabled",
            "model": "fake/fake-model",
            "small_model": "fake/fake-model",
            "enabled_providers": ["fake"],
            "permission": {"*": "allow"},
            "provider": {
                "fake": {
                    "npm": "@ai-sdk/openai-compatible",
                    "name": "Fake",
                    "models": {"fake-model": model},
                    "options": {"baseURL": f"{stage.provider.url}/v1", "apiKey": "{env:FAKE_KEY}"},
                }
            },
        }
        (stage.project / "opencode.json").write_text(json.dumps(config, indent=2), encoding="utf-8")

    def say(
        self, stage: Stage, prompt: str, session: str = "", *, compacts: bool = False
    ) -> PromptResult:
        """Run one prompt. OpenCode compacts once a turn has reported a full context window."""
        for words in ("Fill your window.", prompt) if compacts else (prompt,):
            result = stage.run(
                [
                    *command(self.name),
                    "run",
                    "--format",
                    "json",
                    *(["-s", session] if session else []),
                    words,
                ],
                {**_QUIET, "npm_config_fetch_retries": "0", "FAKE_KEY": "x"},
            )
            assert result.code == 0, f"{result.out}\n{result.err}"
        texts = [event["part"]["text"] for event in result.records if event["type"] == "text"]
        return PromptResult("\n".join(texts), str(result.records[0]["sessionID"]), result.seconds)
