"""If a worker that learns with a language model is killed, another worker finishes its job."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from servers.cluster.test_worker import FACT, PATIENCE_SECONDS, Worker, worker  # noqa: F401 - the fixture
from servers.spaces.conftest import Server
from tests.cli.conftest import said, write_transcript
from tests.fakes.provider import FakeProvider, Request

_SESSIONS = 20
"""Three groups of at most eight. A model proposes memories of each group, then returns verdicts."""
_BERTH = re.compile(
    r"\[m\d+\]\[owner[^\]]*\] ?(We decided that (berth \w+) is kept for the boat \w+\.)"
)


def _decision(number: int) -> str:
    return f"We decided that berth b{number} is kept for the boat k{number}."


class _Model:
    """A model that accepts each session's statements and waits for ``goes_on`` at the second
    group."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.thinks = Event()
        self.goes_on = Event()

    def __call__(self, request: Request) -> dict[str, Any]:
        form = json.dumps(request.body).replace('\\"', '"')
        field = next(text for text in ("verdicts", "memories") if f'"{text}": {{' in form)
        self.calls.append(field)
        if len(self.calls) == 4:
            self.thinks.set()
            self.goes_on.wait(PATIENCE_SECONDS)
        if field == "verdicts":
            return {
                "verdicts": [
                    {"number": number, "finding": "holds", "wrong": []} for number in range(1, 9)
                ]
            }
        prompt = "\n".join(str(message["content"]) for message in request.body["messages"])
        return {
            "memories": [
                {
                    "kind": "decision",
                    "subject": berth,
                    "content": quote,
                    "quote": quote,
                    "always": False,
                }
                for quote, berth in _BERTH.findall(prompt)
            ],
            "over": [],
        }


def test_batch_interrupted_by_killed_worker_is_written_once(
    worker: Callable[..., Worker],  # noqa: F811
    team: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(_SESSIONS):
        session = f"{number:08x}-0000-4000-8000-000000000000"
        talk = (
            ("user", "How is the harbour?"),
            ("assistant", "Full."),
            ("user", _decision(number)),
        )
        records = [said(role, text, at, session=session) for at, (role, text) in enumerate(talk)]
        write_transcript(tmp_path / "sessions" / f"{session}.jsonl", records)
    team.open_space("anna", "ferry-team").call(
        "ingest", paths=(tmp_path / "sessions",), extract=False
    )
    model = _Model()
    with FakeProvider(model) as provider:
        (tmp_path / "config.toml").write_text(provider.config(), encoding="utf-8")
        monkeypatch.setenv("NACRE_CONFIG", str(tmp_path / "config.toml"))
        monkeypatch.setenv("NACRE_MODELS_BACKGROUND", "true")
        first = worker()
        assert model.thinks.wait(PATIENCE_SECONDS)
        assert first.end(signal.SIGKILL) == -signal.SIGKILL
        model.goes_on.set()
        second = worker()
        second.until("ferry-team: done")
        assert second.end() == 0
    contents = Counter(
        memory.content
        for memory in team.open_space("anna", "ferry-team").call("list", limit=1000).memories
    )
    assert contents == dict.fromkeys([FACT, *map(_decision, range(_SESSIONS))], 1)
    first_group = third = ["memories", "verdicts"]
    killed, remaining = ["memories", "verdicts"], ["verdicts"]
    assert model.calls == [*first_group, *killed, *remaining, *third], (
        "answered prompts are not repeated"
    )
