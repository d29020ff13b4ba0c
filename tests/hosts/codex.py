"""The driver for headless Codex CLI."""

from __future__ import annotations

from pathlib import Path

from tests.hosts.driving import PromptResult
from tests.hosts.programs import command
from tests.hosts.stage import Stage

_CONFIG = """\
model = "gpt-5-codex"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
env_key = "FAKE_API_KEY"
wire_api = "responses"
supports_websockets = false
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

[feedback]
enabled = false

[otel]
exporter = "none"

[features]
apps = false
remote_plugin = false

[projects."{project}"]
trust_level = "trusted"
"""


class Codex:
    """``codex exec``, which runs only hooks that it has been configured to trust."""

    name = tool = program = "codex"
    options = ("--trust-hooks",)
    starts, prompts, compacts, ends = "SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"

    def set_up(self, stage: Stage) -> None:
        """Configure the provider and turn off features that use the network."""
        config = self._folder(stage) / "config.toml"
        config.parent.mkdir()
        config.write_text(
            _CONFIG.format(url=stage.provider.url, project=stage.project), encoding="utf-8"
        )

    def say(
        self, stage: Stage, prompt: str, session: str = "", *, compacts: bool = False
    ) -> PromptResult:
        """Run one prompt. Codex compacts once a turn has reported a full context window."""
        words = "Fill your window." if compacts else prompt
        for message in (words, prompt) if compacts else (words,):
            options = ["--skip-git-repo-check", "--json"]
            resume = ["resume", *options, session] if session else options
            result = stage.run(
                [*command(self.name), "exec", *resume, message], {"FAKE_API_KEY": "x"}
            )
            assert result.code == 0, f"{result.out}\n{result.err}"
        thread = next(
            event["thread_id"] for event in result.records if event["type"] == "thread.started"
        )
        items = [event["item"] for event in result.records if event["type"] == "item.completed"]
        text = "\n".join(str(item.get("text")) for item in items if item["type"] == "agent_message")
        return PromptResult(text, str(thread), result.seconds, {"items": items})

    @staticmethod
    def _folder(stage: Stage) -> Path:
        return stage.home / ".codex"
