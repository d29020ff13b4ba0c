"""Embedding by a provider records its cost and stays within the budget."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from nacre.api import MemoryHome
from nacre.errors import EmbedderHeldError, EmbedderUnavailableError
from nacre.home.home import Home, open_home
from nacre.home.spending import embedder_of, show_costs
from nacre.memories import vectors
from nacre.memories.vectors import embed_pending
from tests.app.conftest import World, says
from tests.fakes.provider import FakeProvider, Reply
from tests.ledger import entries

MODEL = "openai:text-embedding-3-small"
TEXT = "The harbour crane at the northern quay is painted every second spring. "
"""72 bytes, at most 25 tokens. At $0.02 per million tokens, it costs a micro-dollar."""


@pytest.fixture
def provider(world: World) -> Iterator[FakeProvider]:
    """A fake OpenAI provider to which the owner allows texts to be sent."""
    world.home.mkdir(mode=0o700)
    with FakeProvider() as provider:
        host = provider.url.removeprefix("http://")
        world.environ |= {
            "OPENAI_API_KEY": "sk-harbour-0123456789abcdef",
            "NACRE_EMBEDDING_MODEL": MODEL,
        }
        (world.home / "config.toml").write_text(
            f'[embedding]\nsends_to = ["{host}"]\n[models.providers.openai]\nbase_url = "{provider.url}/v1"\n',
            encoding="utf-8",
        )
        yield provider


OpenContext = Callable[[], Home]


@pytest.fixture
def open_context(world: World) -> Iterator[OpenContext]:
    """Return a function that opens the home; each opened home is closed after the test."""
    contexts: list[Home] = []

    def open_new() -> Home:
        contexts.append(open_home(world.settings(), clock=world.clock))
        return contexts[-1]

    yield open_new
    for context in contexts:
        context.close()


def summarise_costs(context: Home) -> list[tuple[bool, int, int, int]]:
    """Return background flag, calls, failed calls and micro-dollars of each cost entry."""
    return [
        (entry.is_background, entry.calls, entry.failed, entry.cost) for entry in entries(context)
    ]


def test_concurrent_calls_stay_within_the_budget(
    world: World, provider: FakeProvider, open_context: OpenContext
) -> None:
    world.environ["NACRE_MODELS_DAILY_BUDGET_USD"] = "0.000005"
    homes = [open_context() for _ in range(4)]
    embedders = [embedder_of(home) for home in homes]

    def embed(number: int) -> str:
        try:
            embedders[number % 4].embed([TEXT])
        except EmbedderHeldError as held:
            return held.reason
        return "done"

    with ThreadPoolExecutor(4) as pool:
        results = Counter(pool.map(embed, range(16)))
    assert results == {"done": 5, "budget": 11}
    assert len(provider.requests) == 5
    assert summarise_costs(homes[0]) == [(True, 5, 0, 5)]


def test_failed_call_counts_as_sent_unless_the_provider_denies(
    provider: FakeProvider, open_context: OpenContext
) -> None:
    context = open_context()
    provider.embedding_faults += [Reply(status=401)]
    with pytest.raises(EmbedderUnavailableError):
        embedder_of(context).embed([TEXT])
    assert summarise_costs(context) == [(True, 1, 1, 0)]
    provider.embedding_faults += [Reply(status=500, headers={"retry-after": "0"})]
    embedder_of(context).embed([TEXT])
    assert summarise_costs(context) == [(True, 3, 2, 2)], "each attempt counts as a call"


def test_embedding_beyond_the_budget_continues_the_next_day(
    world: World, provider: FakeProvider, open_context: OpenContext
) -> None:
    world.environ["NACRE_MODELS_DAILY_BUDGET_USD"] = "0.00005"
    world.transcript("s1", *[says("user", f"{TEXT} Number {n}.", uuid=f"u{n}") for n in range(300)])
    with MemoryHome(open_context()) as memory:
        report = memory.ingest()
    assert 60 < report.vectors_made < 200
    assert report.vectors_left == 300 - report.vectors_made
    assert "a day in the background" in (report.vectors_note or "")
    sent = len(provider.requests)
    second = embed_pending(open_context(), lambda _: None)
    assert (second.made, len(provider.requests)) == (0, sent)
    world.clock.pass_days(1)
    assert embed_pending(open_context(), lambda _: None).made > 60, (
        "the daily budget starts again at midnight"
    )
    assert vectors.resume(open_context(), lambda _: None).left == 0
    assert [is_background for is_background, *_ in summarise_costs(open_context())] == [
        True,
        False,
        True,
    ]


def test_embedding_reserves_part_of_the_budget_for_questions(
    world: World, provider: FakeProvider, open_context: OpenContext
) -> None:
    world.environ["NACRE_MODELS_DAILY_BUDGET_USD"] = "0.0002"
    context = open_context()
    for number in range(198):
        embedder_of(context).embed([f"{TEXT}{number}"[-60:]])
    with pytest.raises(EmbedderHeldError):
        embedder_of(context).embed([TEXT])
    with MemoryHome(context) as memory:
        memory.store("The ferry office closes at noon on Sundays.")
    context = open_context()
    context.vectors.begin(embedder_of(context).name, MODEL)
    sent = len(provider.requests)
    with MemoryHome(context) as memory:
        assert memory.recall("when does the ferry office close?").hits
    assert len(provider.requests) == sent + 1


def test_question_cost_is_noted_without_a_database_write(
    world: World, provider: FakeProvider, open_context: OpenContext
) -> None:
    with MemoryHome(open_context()) as memory:
        memory.store("The ferry office closes at noon on Sundays.")
        memory.ingest()
    context = open_context()
    show_costs(context)  # folds the notes that were written before
    before = context.database.rows("SELECT count(*), sum(cost) FROM model_calls")
    with MemoryHome(context) as memory:
        assert memory.recall("when does the ferry office close?").lanes[1].state == "ran"
        assert context.database.rows("SELECT count(*), sum(cost) FROM model_calls") == before
        notes = (world.home / "notes.jsonl").read_text(encoding="utf-8").splitlines()
        (call,) = (json.loads(line)["call"] for line in notes if '"call"' in line)
    assert (call["task"], call["model"], call["is_background"], call["cost"]) == (
        "embedding",
        MODEL,
        True,
        1,
    )
    calls, cost = before[0]
    assert summarise_costs(open_context()) == [(True, calls + 1, 0, cost + 1)]
