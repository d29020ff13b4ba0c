"""Background model calls stay within the owner's budget, even in parallel and after a crash."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from decimal import Decimal

import msgspec
import pytest
from click.testing import CliRunner

from nacre.base.ids import utc_now
from nacre.care.database import rebuild
from nacre.care.health import list_traces
from nacre.cli.root import cli
from nacre.errors import BudgetSpentError, ModelUnavailableError, NacreError, UnusableAnswerError
from nacre.home.home import Home
from nacre.home.spending import model_for, show_costs
from nacre.llm.failures import ask, schema_of
from nacre.protocols import LanguageModel
from nacre.values.models import Capabilities, Price, Prompt
from nacre.values.session import Task
from tests.app.conftest import World
from tests.fakes.model import ScriptedModel
from tests.fakes.provider import FakeProvider, Reply
from tests.ledger import entries

PRICE = Price(input=Decimal(1), output=Decimal(5), cached=Decimal("0.1"), written=Decimal("1.25"))
PRICED = Capabilities(window=200_000, output=16_000, answers="schema", known=True, price=PRICE)


class Colour(msgspec.Struct, forbid_unknown_fields=True):
    colour: str


def prompt(
    text: str = "Which colour has the sky?",
    task: Task = Task.EXTRACTION,
    output_tokens: int = 1_000,
) -> Prompt:
    return Prompt(
        task,
        "You name colours.",
        text,
        schema_of(Colour),
        version="colour/1",
        output_tokens=output_tokens,
    )


def home(world: World, model: ScriptedModel, **settings: object) -> Home:
    world.environ |= {"NACRE_MODELS_DEFAULT": model.name, "NACRE_MODELS_BACKGROUND": "true"}
    world.environ |= {f"NACRE_{name.upper()}": str(value) for name, value in settings.items()}
    return replace(world.context(), load_model=lambda *_: model)


def priced(*answers: object) -> ScriptedModel:
    return ScriptedModel(
        list(answers) or [{"colour": "blue"}], capabilities=PRICED, repeats=not answers
    )  # type: ignore[arg-type]


def get_model(
    context: Home, *, background: bool = True, task: Task = Task.EXTRACTION
) -> LanguageModel:
    model = model_for(context, task, background=background)
    assert model is not None
    return model


def test_each_call_is_recorded_with_its_cost(world: World) -> None:
    context = home(world, priced())
    get_model(context).complete(prompt())
    get_model(context, background=False).complete(prompt("Which colour has grass?"))
    rows = entries(context)
    assert [(item.task, item.is_background, item.calls, item.failed) for item in rows] == [
        ("extraction", False, 1, 0),
        ("extraction", True, 1, 0),
    ]
    assert (rows[1].input, rows[1].output) == (10, 4)
    assert rows[1].cost == 10 * 1 + 4 * 5, (
        "micro-dollars: $1 per million input tokens, $5 per million output tokens"
    )


def test_daily_budget_resets_at_the_owners_midnight(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    import time

    time.tzset()
    try:
        context = home(world, priced())
        get_model(context).complete(prompt())
        assert show_costs(context).budget.spent > 0
        world.clock.pass_days(2.9 / 24)  # 23:54 in Tokyo
        assert show_costs(context).budget.spent > 0
        world.clock.pass_days(0.2 / 24)  # a new day there, 15:06 in London
        assert show_costs(context).budget.spent == 0
    finally:
        monkeypatch.undo()
        time.tzset()


def test_call_that_could_exceed_the_budget_is_not_made(world: World) -> None:
    model = priced()
    context = home(world, model, models_daily_budget_usd=0.006)  # a call can cost up to $0.005
    get_model(context).complete(prompt("one?", output_tokens=1_000))
    with pytest.raises(BudgetSpentError) as error:
        get_model(context).complete(prompt("two?", output_tokens=1_200))
    assert "$0.0060 a day" in error.value.message
    assert error.value.hint == "to allow the call: nacre config set models.daily_budget_usd …"
    assert len(model.prompts) == 1
    get_model(context, background=False).complete(
        prompt("two?", output_tokens=1_200)
    )  # the budget does not limit the owner's own calls
    world.clock.pass_days(1)
    get_model(context).complete(prompt("three?", output_tokens=1_000))


def test_spent_daily_budget_error_names_the_next_day(world: World) -> None:
    context = home(world, priced(), models_daily_budget_usd=0.006)

    def ask_on() -> None:
        for number in range(99):
            get_model(context).complete(prompt(f"{number}?", output_tokens=1_000))

    with pytest.raises(BudgetSpentError) as error:
        ask_on()
    assert "it continues tomorrow" in (error.value.hint or "")
    assert "models.daily_budget_usd" in (error.value.hint or "")


def test_zero_budget_also_stops_free_models(world: World) -> None:
    context = home(world, ScriptedModel([{"colour": "blue"}]), models_daily_budget_usd=0)
    with pytest.raises(BudgetSpentError, match="has no background budget"):
        get_model(context).complete(prompt())


def test_concurrent_calls_stay_within_the_budget(world: World) -> None:
    """Each call reserves $0.005 of the $0.0208 budget, so at most four run at a time."""
    together: list[int] = []
    running: list[int] = []

    def slow(request: Prompt) -> dict[str, str]:
        running.append(1)
        together.append(len(running))
        _wait(lambda: len(running) >= 4 or len(together) > 20)
        running.pop()
        return {"colour": request.text}

    context = home(world, ScriptedModel(slow, capabilities=PRICED), models_daily_budget_usd=0.0208)
    models = [get_model(context) for _ in range(3)]  # separate connections, as of several processes

    def call(number: int) -> str:
        try:
            return models[number % 3].complete(prompt(f"{number}?", output_tokens=1_000)).text
        except BudgetSpentError:
            return "refused"

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(call, range(8)))
    assert max(together) <= 4
    assert answers.count("refused") == 8 - len(together)
    assert show_costs(context).budget.spent <= 20_800


def _wait(until: Callable[[], bool]) -> None:
    from threading import Event

    for _ in range(100):
        if until():
            return
        Event().wait(0.01)


def test_killed_call_counts_its_maximum_cost(world: World) -> None:
    class KilledError(BaseException):
        pass

    def kill(_: Prompt) -> None:
        raise KilledError

    context = home(world, ScriptedModel(kill, capabilities=PRICED))
    with pytest.raises(KilledError):
        get_model(context).complete(prompt())
    assert show_costs(context).budget.spent >= 5_000


def test_rebuild_keeps_model_costs_and_todays_budget(
    world: World,
) -> None:
    context = home(world, priced(), models_daily_budget_usd=0.006)
    get_model(context).complete(prompt())
    before = show_costs(context)
    assert before.tasks
    context.database.close()

    assert rebuild(world.settings(), vectors=False, open_home=world.context).problems == ()

    context = home(world, priced(), models_daily_budget_usd=0.006)
    assert show_costs(context) == before
    assert [trace.prompt for trace in list_traces(context)] == ["Which colour has the sky?"]


def test_rebuild_reports_unreadable_costs(world: World) -> None:
    context = home(world, priced())
    get_model(context).complete(prompt())
    ((page,),) = context.database.rows(
        "SELECT rootpage FROM sqlite_master WHERE name = 'model_calls'"
    )
    ((size,),) = context.database.rows("PRAGMA page_size")
    context.database.fold_log()
    context.database.close()
    with context.settings.database.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)

    (problem,) = rebuild(world.settings(), vectors=False, open_home=world.context).problems

    assert problem.message == "model costs could not be read"
    context = home(world, priced())
    assert entries(context) == []


def test_model_without_a_known_price_is_refused_in_background(world: World) -> None:
    model = ScriptedModel([{"colour": "blue"}] * 2)
    model.capabilities = replace(model.capabilities, price=None)
    context = home(world, model)
    with pytest.raises(BudgetSpentError) as error:
        get_model(context).complete(prompt())
    assert "models.capabilities" in (error.value.hint or "")
    get_model(context, background=False).complete(prompt())
    (entry,) = entries(context)
    assert (entry.unpriced, entry.cost, entry.output) == (1, 0, 4)


def test_secret_in_a_provider_error_is_never_stored(
    world: World,
) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    context = home(world, priced(ModelUnavailableError(f"no call with {key}")))
    with pytest.raises(ModelUnavailableError):
        get_model(context).complete(prompt())
    note = str(context.database.rows("SELECT told FROM model_health"))
    assert "no call with" in note
    assert key not in note


def test_identical_prompt_is_answered_from_cache(world: World) -> None:
    model = priced({"colour": "blue"}, {"colour": "green"}, {"colour": "grey"})
    context = home(world, model)
    first = get_model(context).complete(prompt())
    second = get_model(context).complete(prompt())
    assert (second.text, second.is_repeated, first.is_repeated) == (first.text, True, False)
    assert entries(context)[0].calls == 1
    assert get_model(context).complete(replace(prompt(), version="colour/2")).text != first.text
    world.clock.pass_days(8)
    assert get_model(context).complete(prompt()).text == '{"colour": "grey"}'


def test_repaired_answer_is_not_cached(world: World) -> None:
    model = priced({"color": "blue"}, {"color": "blue"}, {"colour": "blue"})
    context = home(world, model)
    with pytest.raises(UnusableAnswerError):
        ask(get_model(context), prompt(), Colour)
    assert ask(get_model(context), prompt(), Colour).colour == "blue"
    assert len(model.prompts) == 3


def test_trial_calls_and_secret_answers_are_not_cached(world: World) -> None:
    secret = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    model = priced({"colour": "blue"}, {"colour": "blue"}, {"colour": secret}, {"colour": secret})
    context = home(world, model)
    for _ in range(2):
        get_model(context, task=Task.TEST).complete(prompt(task=Task.TEST))
    for _ in range(2):
        get_model(context).complete(prompt())
    assert len(model.prompts) == 4


def run_cli(world: World, *arguments: str) -> str:
    result = CliRunner().invoke(
        cli, list(arguments), env={"NACRE_HOME": str(world.home), **world.environ}
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def test_cost_command_shows_a_table(world: World) -> None:
    context = replace(home(world, priced()), clock=utc_now)
    for number in range(3):
        get_model(context).complete(prompt(f"{number}?"))
    get_model(context, background=False).complete(prompt("4?", task=Task.RECALL))
    output = run_cli(world, "writer", "cost")
    assert "of $1.00 in the background, $1.00 left" in output
    (line,) = (line for line in output.splitlines() if line.startswith("extraction"))
    assert line.split()[1] == "3"
    answer = json.loads(run_cli(world, "writer", "cost", "--json"))
    assert [(task["task"], task["calls_today"], task["calls"]) for task in answer["tasks"]] == [
        ("extraction", 3, 3),
        ("recall", 1, 1),
    ]


def test_cost_command_reports_zero_spending(world: World) -> None:
    assert "nothing was spent" in run_cli(world, "writer", "cost")


@contextmanager
def fake_provider(
    world: World, *replies: object, api: str = "chat", price: str = "input = 1.0, output = 5.0"
) -> Iterator[FakeProvider]:
    """Configure a fake provider with a price as the home's model provider."""
    with FakeProvider(list(replies), repeats=True) as provider:  # type: ignore[arg-type]
        world.home.mkdir(mode=0o700, exist_ok=True)
        capabilities = f'[models.capabilities."fake:m"]\noutput = 32000\nprice = {{{price}}}\n'
        config = provider.config(api, more="background = true\n") + capabilities
        (world.home / "config.toml").write_text(config, encoding="utf-8")
        yield provider


def ask_once(context: Home, prompt: Prompt, *, background: bool = True) -> None:
    with closing(get_model(context, background=background)) as model:
        model.complete(prompt)


SOON = {"retry-after-ms": "1"}


@pytest.mark.parametrize("background", [True, False])
def test_retried_request_counts_as_one_call(world: World, *, background: bool) -> None:
    with fake_provider(
        world, Reply(status=500, headers=SOON), Reply(status=429, headers=SOON), {"colour": "blue"}
    ) as fake:
        context = world.context()
        ask_once(context, prompt(), background=background)
        assert len(fake.calls) == 3
    (entry,) = entries(context)
    assert (entry.calls, entry.failed) == (1, 0)
    assert show_costs(context).budget.spent == (entry.cost if background else 0)
    (trace,) = json.loads(run_cli(world, "writer", "traces", "--json"))["traces"]
    assert trace["cost"] == entry.cost


@pytest.mark.parametrize(
    ("reply", "may_cost"),
    [
        (Reply(fault="hang"), True),
        (Reply(fault="truncated"), True),
        (Reply(status=502), True),
        (Reply(status=401), False),
        (Reply(status=404), False),
        (Reply(status=529), False),
        (Reply(fault="html"), False),
    ],
)
def test_failed_call_counts_as_sent_unless_the_provider_refused(
    world: World, reply: Reply, *, may_cost: bool
) -> None:
    with fake_provider(world, replace(reply, headers=SOON)):
        context = world.context()
        with pytest.raises(NacreError):
            ask_once(context, replace(prompt(), timeout_seconds=1.5))
    (entry,) = entries(context)
    assert entry.failed == entry.calls >= 1
    assert (entry.input > 0) is may_cost
    assert entry.cost == show_costs(context).budget.spent
    assert (entry.cost > 0) is may_cost


def test_reasoning_tokens_count_against_the_budget(world: World) -> None:
    """The OpenAI request allows 8,192 reasoning tokens in addition to the answer."""
    with fake_provider(world, {"colour": "blue"}, api="openai") as fake:
        world.environ["NACRE_MODELS_DAILY_BUDGET_USD"] = "0.04"
        context = world.context()
        with pytest.raises(BudgetSpentError, match=r"this call could cost \$0\.04"):
            ask_once(context, prompt(output_tokens=1_000))
        world.environ["NACRE_MODELS_DAILY_BUDGET_USD"] = "0.05"
        ask_once(world.context(), prompt(output_tokens=1_000))
        assert fake.calls[0].body["max_completion_tokens"] == 9_192


def test_call_interrupted_by_the_owner_counts_as_sent(world: World) -> None:
    def interrupt(_: Prompt) -> None:
        raise KeyboardInterrupt

    context = home(world, ScriptedModel(interrupt, capabilities=PRICED))
    with pytest.raises(KeyboardInterrupt):
        get_model(context, background=False).complete(prompt())
    (entry,) = entries(context)
    assert (entry.calls, entry.failed, entry.is_background) == (1, 1, False)
    assert entry.cost > 0
