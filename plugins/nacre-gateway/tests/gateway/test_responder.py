"""Language models as responders: in plain text, within the budgets, never from what was kept, and cut off at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from nacre.care.health import list_traces
from nacre.errors import BudgetSpentError, ModelRefusedError, ModelUnavailableError, NacreError
from nacre.home.home import Home, open_home
from nacre.home.spending import show_costs
from nacre.settings import load_settings
from nacre.values.session import Task
from nacre_gateway.conversation import Question, Responder, responder_for
from tests.fakes.provider import FakeProvider, Reply, Request

ASKED = Question("You know boats.", "What is red on the boat?", seconds=20.0)
SAID = "The hull is red, and so is the sail that hangs to dry beside it since Friday."
PRICED = "[models.capabilities.m]\nprice = {input = 1.0, output = 5.0}\n"

Opens = Callable[..., Home]
Responds = Callable[..., Responder]


@pytest.fixture
def opens(tmp_path: Path) -> Iterator[Opens]:
    """Open a home with a configuration; all are closed in the end."""
    homes: list[Home] = []

    def open_one(config: str) -> Home:
        folder = tmp_path / "home"
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(config, encoding="utf-8")
        environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "NACRE_EMBEDDING_MODEL": "none"}
        homes.append(open_home(load_settings(folder, environ)))
        return homes[-1]

    yield open_one
    for home in homes:
        home.database.close()


@pytest.fixture
def respond() -> Iterator[Responds]:
    """Open the responder of a home; all are closed in the end."""
    opened: list[Responder] = []

    def open_one(home: Home, model: str = "") -> Responder:
        opened.append(responder_for(home, model))
        return opened[-1]

    yield open_one
    for responder in opened:
        responder.close()


def test_chat_model_answers_and_is_counted(opens: Opens, respond: Responds) -> None:
    with FakeProvider([SAID]) as provider:
        home = opens(provider.config(more='chat = "fake:m"\n') + PRICED)
        responder = respond(home)
        answer = responder.answer(ASKED)
    assert (responder.name, answer.text, answer.model) == ("fake:m", SAID, "fake:m")
    assert min(answer.input_tokens, answer.output_tokens, answer.cost) > 0
    report = show_costs(home)
    [spent] = report.tasks
    assert (spent.task, spent.calls, spent.failed) == ("chat", 1, 0)
    assert spent.cost == report.budgets[0].spent == round(answer.cost * 1_000_000)
    [trace] = list_traces(home, task=Task.CHAT)
    assert (trace.model, trace.answer) == ("fake:m", SAID)


def test_channel_can_have_its_own_model(opens: Opens, respond: Responds) -> None:
    with FakeProvider([SAID]) as provider:
        home = opens(provider.config())
        assert respond(home, "fake:other").answer(ASKED).model == "fake:other"
        assert provider.calls[0].body["model"] == "other"


def test_repeated_question_is_answered_again(opens: Opens, respond: Responds) -> None:
    with FakeProvider(["Hello.", "Hello again."]) as provider:
        responder = respond(opens(provider.config()))
        assert [responder.answer(ASKED).text for _ in range(2)] == ["Hello.", "Hello again."]


def test_answer_cut_by_token_limit_is_marked(opens: Opens, respond: Responds) -> None:
    with FakeProvider([Reply(SAID, is_cut=True)]) as provider:
        answer = respond(opens(provider.config())).answer(ASKED)
    assert answer.text == f"{SAID} […]"


def test_missing_model_is_refused_with_the_remedy(opens: Opens, respond: Responds) -> None:
    with pytest.raises(ModelRefusedError) as refused:
        respond(opens(""))
    assert "nacre config set models.chat claude-cli:" in (refused.value.hint or "")


def test_empty_answer_is_an_error(opens: Opens, respond: Responds) -> None:
    with (
        FakeProvider([" \n"]) as provider,
        pytest.raises(ModelUnavailableError, match="empty answer"),
    ):
        respond(opens(provider.config())).answer(ASKED)


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ("daily_budget_usd = 0.01", "a day"),
        ("monthly_budget_usd = 0.01", "a month"),
    ],
)
def test_spent_budget_is_refused_without_calling_a_model(
    opens: Opens, respond: Responds, budget: str, told: str
) -> None:
    with FakeProvider([SAID]) as provider:
        responder = respond(opens(provider.config(more=f"{budget}\n") + PRICED))
        with pytest.raises(BudgetSpentError, match=told):
            responder.answer(ASKED)
        assert provider.calls == []


def test_subscription_tokens_have_a_separate_gateway_limit(
    opens: Opens, respond: Responds, tmp_path: Path
) -> None:
    program = tmp_path / "codex"
    said = {"type": "item.completed", "item": {"type": "agent_message", "text": "Hi"}}
    ended = {"type": "turn.completed", "usage": {"input_tokens": 70_000, "output_tokens": 9}}
    program.write_text(
        f"#!/bin/sh\ncat > /dev/null\necho '{json.dumps(said)}'\necho '{json.dumps(ended)}'\n"
    )
    program.chmod(0o755)
    config = '[models]\nchat = "codex-cli:"\n[gateway]\ntokens_per_day = 100_000\n[writer]\ntokens_per_day = 1\n'
    home = opens(config)
    home.settings.environ["PATH"] = f"{tmp_path}:/usr/bin:/bin"  # type: ignore[index]
    responder = respond(home)
    assert responder.answer(ASKED).text == "Hi"
    assert responder.answer(ASKED).text == "Hi"
    with pytest.raises(BudgetSpentError) as refused:
        responder.answer(ASKED)
    assert "gateway.tokens_per_day" in (refused.value.hint or "")


def test_answer_timeout_has_a_hint(opens: Opens, respond: Responds) -> None:
    with FakeProvider([Reply(fault="hang")]) as provider:
        responder = respond(opens(provider.config()))
        with pytest.raises(ModelUnavailableError, match="within 1 seconds") as late:
            responder.answer(Question("", "Hello?", seconds=1.0))
    assert late.value.hint == "send a shorter message"


def test_closing_cancels_the_running_answer(opens: Opens, respond: Responds) -> None:
    asked, ended = Event(), list[NacreError]()

    def hang(_: Request) -> Reply:
        asked.set()
        return Reply(fault="hang")

    with FakeProvider(hang) as provider:
        responder = respond(opens(provider.config()))

        def ask() -> None:
            try:
                responder.answer(ASKED)
            except NacreError as error:
                ended.append(error)

        asking = Thread(target=ask)
        asking.start()
        assert asked.wait(10)
        responder.close()
        asking.join(5)
    assert ["was cut off" in error.message for error in ended] == [True]


@pytest.mark.parametrize("folder", [None, Path("/nowhere")])
def test_tools_need_an_agent_and_a_folder(
    opens: Opens, respond: Responds, tmp_path: Path, folder: Path | None
) -> None:
    with FakeProvider([SAID]) as provider:
        home = opens(provider.config())
        with pytest.raises(ModelRefusedError, match="cannot use tools"):
            respond(home).answer(Question("", "Hello?", ("Read",), tmp_path))
        assert provider.calls == []
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    home.settings.environ["PATH"] = str(tmp_path)  # type: ignore[index]
    with pytest.raises(ModelRefusedError, match="no folder for them"):
        respond(home, "claude-cli:").answer(Question("", "Hello?", ("Read",), folder))


def test_context_window_is_the_models_with_a_command_minimum(
    opens: Opens, respond: Responds, tmp_path: Path
) -> None:
    (tmp_path / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "claude").chmod(0o755)
    home = opens("[models.capabilities.small]\nwindow = 9_000\n")
    home.settings.environ["PATH"] = str(tmp_path)  # type: ignore[index]
    windows = [
        respond(home, f"claude-cli:{name}").window for name in ("", "small", "claude-opus-5")
    ]
    assert windows == [200_000, 9_000, 1_000_000]
