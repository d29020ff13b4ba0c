"""``nacre recall --deep`` with a fake provider."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cli.conftest import Nacre
from tests.fakes.provider import FakeProvider, Reply

GATE, PROJECT, SELECT = {"route": "project"}, {"number": 1}, {"numbers": [1]}


@pytest.fixture
def shop(nacre: Nacre, user_home: Path) -> Path:
    """A home with one project; returns the path of its config."""
    nacre("store", "The web shop is rolled back with make rollback.", "--project", "web-shop")
    return user_home / ".nacre" / "config.toml"


@pytest.mark.parametrize("api", ["chat", "anthropic"])
def test_remote_model_decides(api: str, shop: Path, nacre: Nacre) -> None:
    with FakeProvider([GATE, PROJECT, SELECT]) as provider:
        shop.write_text(provider.config(api), encoding="utf-8")
        answer = nacre("recall", "--deep", "how is the shop rolled back?", "--json").json
    assert [(step["name"], step["by"]) for step in answer["steps"]] == [
        ("gate", "model"),
        ("owner", "rules"),
        ("project", "model"),
        ("select", "model"),
    ]
    assert (answer["project"], answer["model"]) == ("web-shop", "fake:m")
    assert len(provider.calls) == 3


@pytest.mark.parametrize(
    "reply",
    [
        Reply(fault="hang"),
        Reply(fault="html"),
        Reply(fault="garbage"),
        Reply(status=401),
        Reply(status=529),
    ],
)
def test_failing_provider_adds_no_delay_and_loses_no_memories(
    reply: Reply, shop: Path, nacre: Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nacre.recall.deep._MODEL_SECONDS", 2)
    with FakeProvider([reply], repeats=True) as provider:
        shop.write_text(provider.config(), encoding="utf-8")
        began = time.monotonic()
        output = nacre("recall", "--deep", "how is the shop rolled back?").out
        took = time.monotonic() - began
    assert took < 10
    assert "make rollback" in output
    assert output.count("the model failed") == 1


def test_question_without_memory_need_is_reported(shop: Path, nacre: Nacre) -> None:
    assert "This question needs no memory." in nacre("recall", "--deep", "thanks, go on").out
    answer = nacre("recall", "--deep", "thanks, go on", "--json").json
    assert (answer["route"], answer["context"]) == ("none", "")
