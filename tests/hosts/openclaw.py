"""The driver for headless OpenClaw, whose turns run within the command and without a gateway."""

from __future__ import annotations

import json
from uuid import uuid4

from tests.hosts.driving import PromptResult
from tests.hosts.programs import command, node_folder
from tests.hosts.stage import Stage

_WINDOW = 400_000


class OpenClaw:
    """``openclaw agent --local``. Sessions end only in a gateway, so the driver sees no session
    end."""

    name = tool = program = "openclaw"
    options = ()
    starts, prompts, compacts, ends = "session-start", "", "pre-compact", ""

    def set_up(self, stage: Stage) -> None:
        """Configure the provider and offer every tool to the model from the start."""
        model = {
            "id": "fake-model",
            "name": "Fake",
            "input": ["text"],
            "contextWindow": _WINDOW,
            "maxTokens": 4000,
        }
        provider = {
            "baseUrl": f"{stage.provider.url}/v1",
            "apiKey": "sk-fake",
            "api": "openai-completions",
            "models": [model],
        }
        defaults = {
            "model": {"primary": "fake/fake-model"},
            "workspace": str(stage.project),
            "skipBootstrap": True,
        }
        config = {
            "gateway": {
                "mode": "local",
                "bind": "loopback",
                "auth": {"mode": "token", "token": "faketoken"},
            },
            "update": {"checkOnStart": False},
            "tools": {"toolSearch": False},
            "agents": {"defaults": defaults},
            "models": {"mode": "replace", "providers": {"fake": provider}},
        }
        path = stage.home / ".openclaw" / "openclaw.json"
        path.parent.mkdir()
        path.write_text(json.dumps(config, indent=2), encoding="utf-8")

    def say(
        self, stage: Stage, prompt: str, session: str = "", *, compacts: bool = False
    ) -> PromptResult:
        """Run one prompt. OpenClaw compacts once a turn has reported a full context window."""
        identity = session or str(uuid4())
        for words in ("Fill your window.", prompt) if compacts else (prompt,):
            result = stage.run(
                [
                    *command(self.name),
                    "agent",
                    "--local",
                    "--session-id",
                    identity,
                    "--message",
                    words,
                    "--json",
                ],
                {"PATH": f"{node_folder(self.name)}:{stage.environ['PATH']}"},
            )
            assert result.code == 0, f"{result.out}\n{result.err}"
        texts = [str(payload.get("text")) for payload in result.record["payloads"]]
        return PromptResult("\n".join(texts), identity, result.seconds, result.record)
