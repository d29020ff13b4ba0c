"""What models may cost in the background: never more than the owner said, also side by side and after a crash."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
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


def asked(context: Home, *, background: bool = True, task: Task = Task.EXTRACTION) -> LanguageModel:
    model = model_for(context, task, background=background)
    assert model is not None
    return model


def test_each_call_is_recorded_with_its_cost(world: World) -> None:
    context = home(world, priced())
    asked(context).complete(prompt())
    asked(context, background=False).complete(prompt("Which colour has grass?"))
    spent = entries(context)
    assert [(one.task, one.is_background, one.calls, one.failed) for one in spent] == [
        ("extraction", False, 1, 0),
        ("extraction", True, 1, 0),
    ]
    assert (spent[1].input, spent[1].output) == (10, 4)
    assert spent[1].cost == 10 * 1 + 4 * 5, (
        "micro-dollars: a dollar for a million tokens read, five written"
    )


def test_daily_budget_resets_at_the_owners_midnight(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    import time

    time.tzset()
    try:
        context = home(world, priced())
        asked(context).complete(prompt())
        assert [one.spent > 0 for one in show_costs(context).budgets] == [True, True]
        world.clock.pass_days(2.9 / 24)  # 23:54 in Tokyo
        assert [one.spent > 0 for one in show_costs(context).budgets] == [True, True]
        world.clock.pass_days(0.2 / 24)  # a new day there, 15:06 in London
        assert [one.spent > 0 for one in show_costs(context).budgets] == [False, True]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_call_that_could_exceed_the_budget_is_not_made(world: World) -> None:
    model = priced()
    context = home(
        world, model, models_daily_budget_usd=0.006
    )  # a call takes up to 5 thousandths of a dollar
    asked(context).complete(prompt("one?", output_tokens=1_000))
    with pytest.raises(BudgetSpentError) as refused:
        asked(context).complete(prompt("two?", output_tokens=1_200))
    assert "$0.0060 a day" in refused.value.message
    assert refused.value.hint == "to allow the call: nacre config set models.daily_budget_usd …"
    assert len(model.prompts) == 1
    asked(context, background=False).complete(
        prompt("two?", output_tokens=1_200)
    )  # the owner asks: nothing holds it
    world.clock.pass_days(1)
    asked(context).complete(prompt("three?", output_tokens=1_000))


def test_spent_daily_budget_error_names_the_next_day(world: World) -> None:
    context = home(world, priced(), models_daily_budget_usd=0.006)

    def ask_on() -> None:
        for number in range(99):
            asked(context).complete(prompt(f"{number}?", output_tokens=1_000))

    with pytest.raises(BudgetSpentError) as refused:
        ask_on()
    assert "it continues tomorrow" in (refused.value.hint or "")
    assert "models.daily_budget_usd" in (refused.value.hint or "")


def test_zero_budget_also_stops_free_models(world: World) -> None:
    context = home(world, ScriptedModel([{"colour": "blue"}]), models_daily_budget_usd=0)
    with pytest.raises(BudgetSpentError, match="has no background budget"):
        asked(context).complete(prompt())


def test_concurrent_calls_stay_within_the_budget(world: World) -> None:
    """Each may take 5 thousandths of a dollar, and takes next to nothing: never more than four run at a time."""
    together: list[int] = []
    running: list[int] = []

    def slow(asked_for: Prompt) -> dict[str, str]:
        running.append(1)
        together.append(len(running))
        _wait(lambda: len(running) >= 4 or len(together) > 20)
        running.pop()
        return {"colour": asked_for.text}

    context = home(world, ScriptedModel(slow, capabilities=PRICED), models_daily_budget_usd=0.0208)
    models = [
        asked(context) for _ in range(3)
    ]  # as several processes: each has a connection of its own

    def one(number: int) -> str:
        try:
            return models[number % 3].complete(prompt(f"{number}?", output_tokens=1_000)).text
        except BudgetSpentError:
            return "refused"

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(8)))
    assert max(together) <= 4
    assert answers.count("refused") == 8 - len(together)
    assert show_costs(context).budgets[0].spent <= 20_800


def _wait(until: Callable[[], bool]) -> None:
    from threading import Event

    for _ in range(100):
        if until():
            return
        Event().wait(0.01)


def test_killed_call_counts_its_maximum_cost(world: World) -> None:
    class KilledError(BaseException):
        pass

    def dies(_: Prompt) -> None:
        raise KilledError

    context = home(world, ScriptedModel(dies, capabilities=PRICED))
    with pytest.raises(KilledError):
        asked(context).complete(prompt())
    assert show_costs(context).budgets[0].spent >= 5_000


def test_rebuild_keeps_model_costs_and_todays_budget(
    world: World,
) -> None:
    context = home(world, priced(), models_daily_budget_usd=0.006)
    asked(context).complete(prompt())
    before = show_costs(context)
    assert before.tasks
    context.database.close()

    assert rebuild(world.settings(), world.context, vectors=False).problems == ()

    context = home(world, priced(), models_daily_budget_usd=0.006)
    assert show_costs(context) == before
    assert [trace.prompt for trace in list_traces(context)] == ["Which colour has the sky?"]


def test_rebuild_reports_unreadable_costs(world: World) -> None:
    context = home(world, priced())
    asked(context).complete(prompt())
    ((page,),) = context.database.rows(
        "SELECT rootpage FROM sqlite_master WHERE name = 'model_calls'"
    )
    ((size,),) = context.database.rows("PRAGMA page_size")
    context.database.fold_log()
    context.database.close()
    with context.settings.database.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)

    (problem,) = rebuild(world.settings(), world.context, vectors=False).problems

    assert problem.message == "model costs could not be read"
    context = home(world, priced())
    assert entries(context) == []
    assert [trace.prompt for trace in list_traces(context)] == ["Which colour has the sky?"]


def test_model_without_a_known_price_is_refused_in_background(world: World) -> None:
    model = ScriptedModel([{"colour": "blue"}] * 2)
    model.capabilities = replace(model.capabilities, price=None)
    context = home(world, model)
    with pytest.raises(BudgetSpentError) as refused:
        asked(context).complete(prompt())
    assert "models.capabilities" in (refused.value.hint or "")
    asked(context, background=False).complete(prompt())
    (spent,) = entries(context)
    assert (spent.unpriced, spent.cost, spent.output) == (1, 0, 4)


def test_secret_in_a_provider_error_is_never_stored(
    world: World,
) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    context = home(world, priced(ModelUnavailableError(f"no call with {key}")))
    with pytest.raises(ModelUnavailableError):
        asked(context).complete(prompt())
    told = str(context.database.rows("SELECT told FROM model_health"))
    assert "no call with" in told
    assert key not in told


def test_identical_prompt_is_answered_from_cache(world: World) -> None:
    model = priced({"colour": "blue"}, {"colour": "green"}, {"colour": "grey"})
    context = home(world, model)
    first = asked(context).complete(prompt())
    again = asked(context).complete(prompt())
    assert (again.text, again.is_repeated, first.is_repeated) == (first.text, True, False)
    assert entries(context)[0].calls == 1
    assert asked(context).complete(replace(prompt(), version="colour/2")).text != first.text
    world.clock.pass_days(8)
    assert asked(context).complete(prompt()).text == '{"colour": "grey"}'


def test_repaired_answer_is_not_cached(world: World) -> None:
    model = priced({"color": "blue"}, {"color": "blue"}, {"colour": "blue"})
    context = home(world, model)
    with pytest.raises(UnusableAnswerError):
        ask(asked(context), prompt(), Colour)
    assert ask(asked(context), prompt(), Colour).colour == "blue"
    assert len(model.prompts) == 3


def test_trial_calls_and_secret_answers_are_not_cached(world: World) -> None:
    secret = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    model = priced({"colour": "blue"}, {"colour": "blue"}, {"colour": secret}, {"colour": secret})
    context = home(world, model)
    for _ in range(2):
        asked(context, task=Task.TEST).complete(prompt(task=Task.TEST))
    for _ in range(2):
        asked(context).complete(prompt())
    assert len(model.prompts) == 4


def told(world: World, *arguments: str) -> str:
    result = CliRunner().invoke(
        cli, list(arguments), env={"NACRE_HOME": str(world.home), **world.environ}
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def test_monthly_budget_limits_background_calls(world: World) -> None:
    model = priced()
    context = home(world, model, models_monthly_budget_usd=0.006)
    asked(context).complete(prompt("one?"))
    for number in range(99):
        world.clock.pass_days(0.01)
        with suppress(BudgetSpentError):
            asked(context).complete(prompt(f"{number}?"))
    assert show_costs(context).budgets[1].spent <= 6_000
    world.clock.pass_days(1)
    with pytest.raises(BudgetSpentError, match="a month in the background") as refused:
        asked(context).complete(prompt("tomorrow?"))
    assert "next month" in (refused.value.hint or "")
    asked(context, background=False).complete(prompt("the owner asks?"))
    world.clock.pass_days(12)
    asked(context).complete(prompt("in December?"))


def test_cost_command_shows_a_table(world: World) -> None:
    context = replace(home(world, priced()), clock=utc_now)
    for number in range(3):
        asked(context).complete(prompt(f"{number}?"))
    asked(context, background=False).complete(prompt("4?", task=Task.RECALL))
    shown = told(world, "writer", "cost")
    assert "of $1.00 in the background, $1.00 left" in shown
    assert "of $30.00 in the background, $30.00 left" in shown
    (line,) = (line for line in shown.splitlines() if line.startswith("extraction"))
    assert line.split()[1] == "3"
    answer = json.loads(told(world, "writer", "cost", "--json"))
    assert [(one["task"], one["calls_today"], one["calls"]) for one in answer["tasks"]] == [
        ("extraction", 3, 3),
        ("recall", 1, 1),
    ]


def test_cost_command_reports_zero_spending(world: World) -> None:
    assert "nothing was spent" in told(world, "writer", "cost")


@contextmanager
def by_wire(
    world: World, *replies: object, api: str = "chat", price: str = "input = 1.0, output = 5.0"
) -> Iterator[FakeProvider]:
    """A provider on loopback, which the home's models are asked of, at a price."""
    with FakeProvider(list(replies), repeats=True) as provider:  # type: ignore[arg-type]
        world.home.mkdir(mode=0o700, exist_ok=True)
        able = f'[models.capabilities."fake:m"]\noutput = 32000\nprice = {{{price}}}\n'
        config = provider.config(api, more="background = true\n") + able
        (world.home / "config.toml").write_text(config, encoding="utf-8")
        yield provider


def ask_once(context: Home, prompt: Prompt, *, background: bool = True) -> None:
    with closing(asked(context, background=background)) as model:
        model.complete(prompt)


SOON = {"retry-after-ms": "1"}


@pytest.mark.parametrize("background", [True, False])
def test_retried_request_counts_as_one_call(world: World, *, background: bool) -> None:
    with by_wire(
        world, Reply(status=500, headers=SOON), Reply(status=429, headers=SOON), {"colour": "blue"}
    ) as fake:
        context = world.context()
        ask_once(context, prompt(), background=background)
        assert len(fake.calls) == 3
    (spent,) = entries(context)
    assert (spent.calls, spent.failed) == (1, 0)
    assert show_costs(context).budgets[0].spent == (spent.cost if background else 0)
    (listed,) = json.loads(told(world, "writer", "traces", "--json"))["traces"]
    assert listed["cost"] == spent.cost


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
    with by_wire(world, replace(reply, headers=SOON)):
        context = world.context()
        with pytest.raises(NacreError):
            ask_once(context, replace(prompt(), timeout_seconds=1.5))
    (spent,) = entries(context)
    assert spent.failed == spent.calls >= 1
    assert (spent.input > 0) is may_cost
    assert spent.cost == show_costs(context).budgets[0].spent
    assert (spent.cost > 0) is may_cost


def test_reasoning_tokens_count_against_the_budget(world: World) -> None:
    """OpenAI's responses are asked for the answer and 8,192 tokens of thought."""
    with by_wire(world, {"colour": "blue"}, api="openai") as fake:
        world.environ["NACRE_MODELS_DAILY_BUDGET_USD"] = "0.04"
        context = world.context()
        with pytest.raises(BudgetSpentError, match=r"this call could cost \$0\.04"):
            ask_once(context, prompt(output_tokens=1_000))
        world.environ["NACRE_MODELS_DAILY_BUDGET_USD"] = "0.05"
        ask_once(world.context(), prompt(output_tokens=1_000))
        assert fake.calls[0].body["max_output_tokens"] == 9_192


def test_call_interrupted_by_the_owner_counts_as_sent(world: World) -> None:
    def interrupts(_: Prompt) -> None:
        raise KeyboardInterrupt

    context = home(world, ScriptedModel(interrupts, capabilities=PRICED))
    with pytest.raises(KeyboardInterrupt):
        asked(context, background=False).complete(prompt())
    (spent,) = entries(context)
    assert (spent.calls, spent.failed, spent.is_background) == (1, 1, False)
    assert spent.cost > 0
