"""What is kept from a writer is kept from it on every way: as a session, as a known memory, as what was said later."""

from __future__ import annotations

from datetime import timedelta

import pytest

from nacre.base.text import count_tokens
from nacre.values.memory import Memory
from nacre.values.models import Capabilities, Price
from tests.app.conftest import World, says
from tests.app.test_dreams import kept
from tests.app.test_later_by_writer import (
    ASKED,
    BRANCH,
    GONE,
    MOVED,
    PROJECT,
    Writer,
    branch,
    heard,
    world,
    writer,
)

__all__ = ["branch", "world", "writer"]
LOCAL = "From now on the branch of the checkpoints of our hive is called moonshine."


def sent_later(writer: Writer) -> str:
    return "\n".join(one.text for one in writer.later)


def test_sessions_before_writer_consent_are_not_compared(
    world: World, writer: Writer, branch: Memory
) -> None:
    world.environ["NACRE_WRITER_SINCE"] = (
        f"{world.clock() - timedelta(days=1.5):%Y-%m-%dT%H:%M:%SZ}"
    )
    heard(world, "moved", MOVED, days=3)
    heard(world, "new", GONE, days=1)
    assert GONE in sent_later(writer)
    assert MOVED not in sent_later(writer)


def test_writer_start_date_without_a_zone_is_accepted(world: World, writer: Writer) -> None:
    world.environ["NACRE_WRITER_SINCE"] = "2026-01-01"
    heard(world, "moved", MOVED, days=3)
    assert writer.prompts


def test_ongoing_session_is_compared_after_it_ends(
    world: World, writer: Writer, branch: Memory
) -> None:
    heard(world, "moved", MOVED, days=10 / 1440)
    heard(world, "new", GONE, days=1)
    assert GONE in sent_later(writer)
    assert MOVED not in sent_later(writer)
    world.clock.pass_days(2)
    heard(world, "most", "Nothing is new.", days=0.5)
    assert MOVED in sent_later(writer)


def test_sub_agents_and_summaries_are_not_compared(
    world: World, writer: Writer, branch: Memory
) -> None:
    at = f"{world.clock() - timedelta(days=2):%Y-%m-%dT%H:%M:%S.000Z}"
    told = [
        (
            "user",
            "The branch hive/sessions of the checkpoints of a session is summarised.",
            {"isCompactSummary": True},
        ),
        (
            "assistant",
            "A helper says: the checkpoints of a session lie elsewhere.",
            {"isSidechain": True},
        ),
    ]
    extra = [
        says(who, text, uuid=f"s-{at_}", session="s", at=at) | more
        for at_, (who, text, more) in enumerate(told)
    ]
    world.transcript("s", says("user", ASKED, uuid="s-u", session="s", at=at), *extra)
    with world.open() as memory:
        memory.ingest()
    heard(world, "new", GONE, days=1)
    assert "summarised" not in sent_later(writer)
    assert "A helper says" not in sent_later(writer)


def test_memory_from_a_local_model_is_unknown_to_other_models(world: World, writer: Writer) -> None:
    at = f"{world.clock() - timedelta(days=3):%Y-%m-%dT%H:%M:%S.000Z}"
    answer = says("assistant", "Done.", uuid="l-2", session="local", at=at)
    answer["message"]["model"] = "qwen3:8b"
    world.transcript("local", says("user", LOCAL, uuid="l-1", session="local", at=at), answer)
    with world.open() as memory:
        memory.ingest()
        assert [one.content for one in memory.list()] == [LOCAL]
    heard(world, "new", "The branch of the checkpoints is in order.", days=1)
    assert writer.prompts
    sent = "\n".join(one.shared + one.text for one in writer.prompts)
    assert "moonshine" not in sent


@pytest.mark.parametrize(
    ("model", "is_shown"),
    [
        ("qwen2.5-coder:7b-instruct-q4_K_M", False),
        ("phi3:mini", False),
        ("hf.co/bartowski/gemma-3-4b:Q4_K_M", False),
        ("gpt-oss:120b-cloud", True),
        ("anthropic.claude-haiku-4-5-20251001-v1:0", True),
        ("deepseek/deepseek-r1:free", True),
        ("claude-haiku-4-5", True),
        ("anthropic:claude-haiku-4-5", True),
        ("openai/gpt-5:high", True),
        ("ft:gpt-4o:org::id", True),
        ("ollama:qwen3", False),
    ],
)
def test_local_model_is_recognised_by_its_tag(
    world: World, writer: Writer, model: str, is_shown: bool
) -> None:
    heard(world, "any", "Done.", model=model)
    assert bool(writer.prompts) is is_shown


def test_compared_memories_are_limited_by_the_context_window(
    world: World,
) -> None:
    world.model = model = Writer()
    model.capabilities = Capabilities(window=8_000, output=2_000, answers="schema", price=Price())
    for number in range(15):
        kept(
            world,
            f"{BRANCH} Its number is {number}. " + f"{BRANCH} " * 20,
            days=20 + number,
            project=PROJECT,
        )
    for number in range(14):
        heard(
            world,
            f"s{number}",
            f"{MOVED} Part {number}. " + f"The checkpoints of part {number} lie there. " * 12,
        )
    heard(world, "new", GONE, days=1)
    assert model.later
    assert max(count_tokens(one.system + one.text) for one in model.later) + 2_000 <= 8_000


def test_unusable_writer_is_asked_for_comparisons_once_daily(world: World, branch: Memory) -> None:
    world.model = model = Writer()
    model._outdated = lambda _: "no"
    heard(world, "moved", MOVED, days=3)
    heard(world, "one", "Nothing is new.", days=2)
    asked = len(model.later)
    heard(world, "two", "Nothing is new either.", days=2)
    assert len(model.later) == asked > 0
