"""Language models as responders: plain text, budgets, no cached answers and immediate
cancellation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

from nacre.care.health import list_traces
from nacre.errors import BudgetSpentError, ModelRefusedError, ModelUnavailableError, NacreError
from nacre.home.home import Home, open_home
from nacre.home.spending import show_costs
from nacre.settings import load_settings
from nacre.values.models import Prompt
from nacre.values.session import Task
from nacre_gateway.conversation import Responder, responder_for
from tests.fakes.provider import FakeProvider, Reply, Request

QUESTION = Prompt(
    Task.CHAT, "You know boats.", "What is red on the boat?", {}, timeout_seconds=20.0
)
ANSWER = "The hull is red, and so is the sail that hangs to dry beside it since Friday."
PRICED = "[models.capabilities.m]\nprice = {input = 1.0, output = 5.0}\n"

Opens = Callable[..., Home]
Responds = Callable[..., Responder]


@pytest.fixture
def opens(tmp_path: Path) -> Iterator[Opens]:
    """Open a home with a configuration and close it at the end of the test."""
    homes: list[Home] = []

    def open_configured(config: str) -> Home:
        folder = tmp_path / "home"
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(config, encoding="utf-8")
        environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "NACRE_EMBEDDING_MODEL": "none"}
        homes.append(open_home(load_settings(folder, environ)))
        return homes[-1]

    yield open_configured
    for home in homes:
        home.database.close()


@pytest.fixture
def respond() -> Iterator[Responds]:
    """Open the responder of a home and close it at the end of the test."""
    open_responder: list[Responder] = []

    def open_configured(home: Home, model: str = "") -> Responder:
        open_responder.append(responder_for(home, model))
        return open_responder[-1]

    yield open_configured
    for responder in open_responder:
        responder.close()


def test_chat_model_answers_and_is_counted(opens: Opens, respond: Responds) -> None:
    with FakeProvider([ANSWER]) as provider:
        home = opens(provider.config(more='chat = "fake:m"\n') + PRICED)
        responder = respond(home)
        answer = responder.answer(QUESTION)
    assert (responder.name, answer.text, answer.model) == ("fake:m", ANSWER, "fake:m")
    assert min(answer.input_tokens, answer.output_tokens, answer.cost) > 0
    report = show_costs(home)
    [task] = report.tasks
    assert (task.task, task.calls, task.failed) == ("chat", 1, 0)
    assert task.cost == report.budget.spent == round(answer.cost * 1_000_000)
    [trace] = list_traces(home, task=Task.CHAT)
    assert (trace.model, trace.answer) == ("fake:m", ANSWER)


def test_channel_can_have_its_own_model(opens: Opens, respond: Responds) -> None:
    with FakeProvider([ANSWER]) as provider:
        home = opens(provider.config())
        assert respond(home, "fake:other").answer(QUESTION).model == "fake:other"
        assert provider.calls[0].body["model"] == "other"


def test_repeated_question_is_answered_again(opens: Opens, respond: Responds) -> None:
    with FakeProvider(["Hello.", "Hello again."]) as provider:
        responder = respond(opens(provider.config()))
        assert [responder.answer(QUESTION).text for _ in range(2)] == ["Hello.", "Hello again."]


def test_answer_cut_by_token_limit_is_marked(opens: Opens, respond: Responds) -> None:
    with FakeProvider([Reply(ANSWER, is_cut=True)]) as provider:
        answer = respond(opens(provider.config())).answer(QUESTION)
    assert answer.text == f"{ANSWER} […]"


def test_missing_model_is_refused_with_the_remedy(opens: Opens, respond: Responds) -> None:
    with pytest.raises(ModelRefusedError) as error:
        respond(opens(""))
    assert error.value.hint == "nacre writer set"


def test_empty_answer_is_an_error(opens: Opens, respond: Responds) -> None:
    with (
        FakeProvider([" \n"]) as provider,
        pytest.raises(ModelUnavailableError, match="empty answer"),
    ):
        respond(opens(provider.config())).answer(QUESTION)


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ("daily_budget_usd = 0.01", "a day"),
    ],
)
def test_spent_budget_is_refused_without_calling_a_model(
    opens: Opens, respond: Responds, budget: str, message: str
) -> None:
    with FakeProvider([ANSWER]) as provider:
        responder = respond(opens(provider.config(more=f"{budget}\n") + PRICED))
        with pytest.raises(BudgetSpentError, match=message):
            responder.answer(QUESTION)
        assert provider.calls == []


def test_subscription_tokens_have_a_separate_gateway_limit(
    opens: Opens, respond: Responds, tmp_path: Path
) -> None:
    program = tmp_path / "codex"
    event = {"type": "item.completed", "item": {"type": "agent_message", "text": "Hi"}}
    ended = {"type": "turn.completed", "usage": {"input_tokens": 70_000, "output_tokens": 9}}
    program.write_text(
        f"#!/bin/sh\ncat > /dev/null\necho '{json.dumps(event)}'\necho '{json.dumps(ended)}'\n"
    )
    program.chmod(0o755)
    config = '[models]\nchat = "codex-cli:"\n[gateway]\ntokens_per_day = 100_000\n[writer]\ntokens_per_day = 1\n'
    home = opens(config)
    home.settings.environ["PATH"] = f"{tmp_path}:/usr/bin:/bin"  # type: ignore[index]
    responder = respond(home)
    assert responder.answer(QUESTION).text == "Hi"
    assert responder.answer(QUESTION).text == "Hi"
    with pytest.raises(BudgetSpentError) as error:
        responder.answer(QUESTION)
    assert "gateway.tokens_per_day" in (error.value.hint or "")


def test_answer_timeout_has_a_hint(opens: Opens, respond: Responds) -> None:
    with FakeProvider([Reply(fault="hang")]) as provider:
        responder = respond(opens(provider.config()))
        with pytest.raises(ModelUnavailableError, match="within 1 seconds") as late:
            responder.answer(replace(QUESTION, timeout_seconds=1.0))
    assert late.value.hint == "send a shorter message"


def test_closing_cancels_the_running_answer(opens: Opens, respond: Responds) -> None:
    started, ended = Event(), list[NacreError]()

    def hang(_: Request) -> Reply:
        started.set()
        return Reply(fault="hang")

    with FakeProvider(hang) as provider:
        responder = respond(opens(provider.config()))

        def ask() -> None:
            try:
                responder.answer(QUESTION)
            except NacreError as error:
                ended.append(error)

        asking = Thread(target=ask)
        asking.start()
        assert started.wait(10)
        responder.close()
        asking.join(5)
    assert ["was cut off" in error.message for error in ended] == [True]


def test_tools_need_an_agent(opens: Opens, respond: Responds, tmp_path: Path) -> None:
    with FakeProvider([ANSWER]) as provider:
        home = opens(provider.config())
        with pytest.raises(ModelRefusedError, match="cannot use tools"):
            respond(home).answer(replace(QUESTION, tools=("Read",), folder=tmp_path))
        assert provider.calls == []
