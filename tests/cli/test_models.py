"""``nacre writer models`` shows the models, their capabilities and their answers."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Nacre, command, environment
from tests.fakes.provider import FakeProvider, Reply
from tests.processes import Processes

METAL = {"metal": "Mercury"}
KEY = "sk-boat-0123456789abcdefghij"


def configure(user_home: Path, text: str) -> None:
    folder = user_home / ".nacre"
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "config.toml").write_text(text, encoding="utf-8")


def test_missing_model_names_the_setup_command(nacre: Nacre) -> None:
    assert "nacre writer set" in nacre("writer", "models").out
    assert nacre("writer", "models", "--json").json["models"] == []
    assert (
        nacre("writer", "models", "--test", "--json", code=2).error["message"] == "no model is set"
    )


def test_models_are_listed_with_tasks_price_and_key_source(
    nacre: Nacre, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    configure(
        user_home,
        '[models]\ndefault = "anthropic:claude-haiku-4-5"\nrecall = "openai:gpt-5-mini"\n',
    )
    outcome = nacre("writer", "models")
    assert "$1.00 in, $5.00 out" in outcome.out
    assert "$ANTHROPIC_API_KEY" in outcome.out
    assert "needs a key for OpenAI" in outcome.out
    assert KEY not in outcome.out
    record = nacre("writer", "models", "--json").json
    assert record["tasks"]["recall"] == "openai:gpt-5-mini"
    assert record["tasks"]["extraction"] == "anthropic:claude-haiku-4-5"
    able, unable = sorted(record["models"], key=lambda model: model["name"])
    assert able["problem"] is None
    assert unable["problem"]["hint"]


def test_alias_is_shown_with_its_model_and_counted_there(
    nacre: Nacre, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FakeProvider([METAL], repeats=True) as provider:
        elsewhere = f'[models.providers.openai]\nbase_url = "{provider.url}/v1"\n'
        configure(
            user_home,
            f'[models]\ndefault = "openai:mini"\nrecall = "openai:gpt-5-mini"\n{elsewhere}',
        )
        [model] = nacre("writer", "models", "--json").json["models"]
        assert model["name"] == "openai:gpt-5-mini"
        assert nacre("writer", "models", "--test", "--json").json["name"] == "openai:gpt-5-mini"
        assert [request.body["model"] for request in provider.calls] == ["gpt-5-mini"]
        assert "openai:gpt-5-mini" in nacre("writer", "traces").out


def test_model_without_price_does_not_run_in_the_background(nacre: Nacre, user_home: Path) -> None:
    with FakeProvider([METAL], repeats=True) as provider:
        configure(user_home, provider.config(more="background = true\n") + 'free = "no"\n')
        assert "price  unknown" in nacre("writer", "models").out
        nacre("writer", "models", "--test")
        assert "price unknown" in nacre("writer", "traces").out
        assert "1 of unknown price" in nacre("writer", "cost").out
        nacre("config", "set", "models.capabilities", '{"fake:m" = {price = {input = 0}}}')
        assert "but not" not in nacre("writer", "models").out


def test_answering_model_is_shown_with_time_tokens_and_cost(nacre: Nacre, user_home: Path) -> None:
    with FakeProvider([METAL], repeats=True) as provider:
        price = '[models.capabilities."fake:m"]\nprice = {input = 1000000, output = 2000000}\n'
        configure(user_home, provider.config() + price)
        assert "Mercury" in nacre("writer", "models", "--test").out
        record = nacre("writer", "models", "--test", "fake:m", "--json").json
    tokens = record["tokens"]
    assert record["answer"] == "Mercury"
    assert record["cost"] / 1e6 == tokens["input"] + tokens["cached"] + 2 * tokens["output"]


@pytest.mark.parametrize(
    ("reply", "code", "message"),
    [
        (Reply(status=401), 1, "does not accept"),
        (Reply(fault="html"), 5, "web page"),
        (Reply("It is mercury."), 1, "not have the requested form"),
    ],
)
def test_failing_model_is_a_single_line_and_an_exit_code(
    nacre: Nacre, user_home: Path, reply: Reply, code: int, message: str
) -> None:
    with FakeProvider([reply], repeats=True) as provider:
        configure(user_home, provider.config())
        error = nacre("writer", "models", "--test", "--json", code=code).error
    assert message in error["message"]
    assert "fake:m" in error["message"]
    assert error["hint"]


def test_unknown_model_error_omits_provider_codes(nacre: Nacre, user_home: Path) -> None:
    reply = Reply(status=404, message="The model m does not exist", code="model_not_found")
    with FakeProvider([reply], repeats=True) as provider:
        configure(user_home, provider.config())
        error = nacre("writer", "models", "--test", "--json", code=1).error
    assert error["message"] == "fake has no model m (fake:m)"
    assert "nacre config set models.default" in error["hint"]


def test_wrong_key_error_names_the_command_to_replace_it(
    nacre: Nacre, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeProvider([Reply(status=401)], repeats=True) as provider:
        configure(user_home, f'[models.providers.openai]\nbase_url = "{provider.url}/v1"\n')
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert (
            nacre("writer", "models", "--test", "openai:m", "--json", code=1).error["hint"]
            == "export OPENAI_API_KEY=NEW_KEY"
        )
        monkeypatch.delenv("OPENAI_API_KEY")
        nacre("writer", "keys", "openai", stdin=KEY)
        assert (
            nacre("writer", "models", "--test", "openai:m", "--json", code=1).error["hint"]
            == "nacre writer keys openai"
        )


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a signal")
def test_ctrl_c_cancels_a_hanging_call_promptly(user_home: Path, processes: Processes) -> None:
    with FakeProvider([Reply(fault="hang")]) as provider:
        configure(user_home, provider.config())
        started = processes.start(
            command("writer", "models", "--test"),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not provider.calls:
            time.sleep(0.02)
        began = time.monotonic()
        started.send_signal(signal.SIGINT)
        _, err = started.communicate(timeout=30)
        took = time.monotonic() - began
    assert started.returncode == 130
    assert "interrupted" in err
    assert took < 5
