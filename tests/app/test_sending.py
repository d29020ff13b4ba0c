"""Texts that go to a provider for their vectors: what they cost is noted, and never more than the budget."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from nacre.api import MemoryHome
from nacre.errors import EmbedderHeldError, EmbedderUnavailableError
from nacre.home.consent import configured_embedder
from nacre.home.home import Home, open_home
from nacre.home.spending import show_costs
from nacre.memories import vectors
from nacre.memories.vectors import embed_pending
from tests.app.conftest import World, says
from tests.fakes.provider import FakeProvider, Reply
from tests.ledger import entries

MODEL = "openai:text-embedding-3-small"
TEXT = "The harbour crane at the northern quay is painted every second spring. "
"""72 bytes: at most 25 tokens, of which a million cost two cents, so that one costs a millionth of a dollar."""


@pytest.fixture
def provider(world: World) -> Iterator[FakeProvider]:
    """OpenAI on loopback, to which the owner lets texts go."""
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


Opened = Callable[[], Home]


@pytest.fixture
def opened(world: World) -> Iterator[Opened]:
    """Opens the home; all are closed at the end."""
    found: list[Home] = []

    def open_one() -> Home:
        found.append(open_home(world.settings(), clock=world.clock))
        return found[-1]

    yield open_one
    for context in found:
        context.close()


def spent(context: Home) -> list[tuple[bool, int, int, int]]:
    """By who wanted it: whether in the background, calls, failed ones, millionths of a dollar."""
    return [(one.is_background, one.calls, one.failed, one.cost) for one in entries(context)]


def test_concurrent_calls_stay_within_the_budget(
    world: World, provider: FakeProvider, opened: Opened
) -> None:
    world.environ["NACRE_MODELS_DAILY_BUDGET_USD"] = "0.000005"
    homes = [opened() for _ in range(4)]
    embedders = [configured_embedder(home) for home in homes]

    def embed(number: int) -> str:
        try:
            embedders[number % 4].embed([TEXT])
        except EmbedderHeldError as held:
            return held.reason
        return "done"

    with ThreadPoolExecutor(4) as pool:
        done = Counter(pool.map(embed, range(16)))
    assert done == {"done": 5, "budget": 11}
    assert len(provider.requests) == 5
    assert spent(homes[0]) == [(True, 5, 0, 5)]


def test_failed_call_counts_as_sent_unless_the_provider_denies(
    provider: FakeProvider, opened: Opened
) -> None:
    context = opened()
    provider.embedding_faults += [Reply(status=401)]
    with pytest.raises(EmbedderUnavailableError):
        configured_embedder(context).embed([TEXT])
    assert spent(context) == [(True, 1, 1, 0)]
    provider.embedding_faults += [Reply(status=500, headers={"retry-after": "0"})]
    configured_embedder(context).embed([TEXT])
    assert spent(context) == [(True, 3, 2, 2)], "each try is a call"


def test_embedding_beyond_the_budget_continues_the_next_day(
    world: World, provider: FakeProvider, opened: Opened
) -> None:
    world.environ["NACRE_MODELS_DAILY_BUDGET_USD"] = "0.00005"
    world.transcript("s1", *[says("user", f"{TEXT} Number {n}.", uuid=f"u{n}") for n in range(300)])
    with MemoryHome(opened()) as memory:
        report = memory.ingest()
    assert 60 < report.vectors_made < 200
    assert report.vectors_left == 300 - report.vectors_made
    assert "a day in the background" in (report.vectors_note or "")
    sent = len(provider.requests)
    again = embed_pending(opened(), lambda _: None)
    assert (again.made, len(provider.requests)) == (0, sent)
    world.clock.pass_days(1)
    assert embed_pending(opened(), lambda _: None).made > 60, "midnight is over"
    assert vectors.resume(opened(), lambda _: None).left == 0
    assert [asked for asked, *_ in spent(opened())] == [True, False, True]


def test_embedding_reserves_part_of_the_budget_for_questions(
    world: World, provider: FakeProvider, opened: Opened
) -> None:
    world.environ["NACRE_MODELS_DAILY_BUDGET_USD"] = "0.0002"
    context = opened()
    for number in range(198):
        configured_embedder(context).embed([f"{TEXT}{number}"[-60:]])
    with pytest.raises(EmbedderHeldError):
        configured_embedder(context).embed([TEXT])
    with MemoryHome(context) as memory:
        memory.store("The ferry office closes at noon on Sundays.")
    context = opened()
    context.vectors.begin(configured_embedder(context).name, MODEL)
    sent = len(provider.requests)
    with MemoryHome(context) as memory:
        assert memory.recall("when does the ferry office close?").hits
    assert len(provider.requests) == sent + 1


def test_question_cost_is_noted_without_a_database_write(
    world: World, provider: FakeProvider, opened: Opened
) -> None:
    with MemoryHome(opened()) as memory:
        memory.store("The ferry office closes at noon on Sundays.")
        memory.ingest()
    context = opened()
    show_costs(context)  # which counts what was noted before
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
    assert spent(opened()) == [(True, calls + 1, 0, cost + 1)]
