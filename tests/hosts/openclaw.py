"""OpenClaw, headless: its turns run within the command, without a gateway."""

from __future__ import annotations

import json
from uuid import uuid4

from tests.hosts.driving import Said
from tests.hosts.programs import command, node_folder
from tests.hosts.stage import Stage

_WINDOW = 400_000


class OpenClaw:
    """``openclaw agent --local``. Sessions end only in a gateway, so no end is seen here."""

    name = tool = program = "openclaw"
    options = ()
    starts, prompts, compacts, ends = "session-start", "", "pre-compact", ""

    def set_up(self, stage: Stage) -> None:
        """The provider; every tool is offered to the model at once."""
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

    def say(self, stage: Stage, prompt: str, session: str = "", *, compacts: bool = False) -> Said:
        """One prompt; it compacts once a turn has reported that its window is full."""
        identity = session or str(uuid4())
        for words in ("Fill your window.", prompt) if compacts else (prompt,):
            ran = stage.run(
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
            assert ran.code == 0, f"{ran.out}\n{ran.err}"
        texts = [str(payload.get("text")) for payload in ran.record["payloads"]]
        return Said("\n".join(texts), identity, ran.seconds, ran.record)
