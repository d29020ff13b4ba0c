"""Excluded sessions, sub-agents and a local model's memories are not sent to the writer."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.app.conftest import World, says
from tests.fakes.model import ScriptedModel

BRANCH_MOVED = (
    "Done: the branch hive/sessions of the checkpoints is called hive/checkpoints/v1 now."
)
REQUEST = (
    "Please go on with the branch of the checkpoints, and tell me afterwards what became of it."
)
BRANCH_GONE = "The branch hive/sessions of the checkpoints is gone."
LOCAL = "From now on the branch of the checkpoints of our hive is called moonshine."


@pytest.fixture
def world(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr("nacre.home.spending.REUSE_PERIOD", timedelta(days=-1))
    world.environ |= {
        "NACRE_MODELS_EXTRACTION": "scripted:1",
        "NACRE_MODELS_BACKGROUND": "true",
    }
    return world


@pytest.fixture
def writer(world: World) -> ScriptedModel:
    world.model = writer = ScriptedModel(lambda _: {"memories": []})
    return writer


def ingest_session(
    world: World, name: str, *texts: str, days: float = 2, model: str | None = None
) -> None:
    """Ingest a session with the given replies of the agent."""
    time = f"{world.clock() - timedelta(days=days):%Y-%m-%dT%H:%M:%S.000Z}"
    replies = [
        says("assistant", text, uuid=f"{name}-a{number}", session=name, at=time)
        for number, text in enumerate(texts)
    ]
    for line in replies if model else ():
        line["message"]["model"] = model
    world.transcript(name, says("user", REQUEST, uuid=f"{name}-u", session=name, at=time), *replies)
    with world.open() as memory:
        memory.ingest()


def sent_text(writer: ScriptedModel) -> str:
    return "\n".join(prompt.shared + prompt.text for prompt in writer.prompts)


def test_sessions_before_writer_consent_are_not_shown(world: World, writer: ScriptedModel) -> None:
    world.environ["NACRE_WRITER_SINCE"] = (
        f"{world.clock() - timedelta(days=1.5):%Y-%m-%dT%H:%M:%SZ}"
    )
    ingest_session(world, "moved", BRANCH_MOVED, days=3)
    ingest_session(world, "new", BRANCH_GONE, days=1)
    assert BRANCH_GONE in sent_text(writer)
    assert BRANCH_MOVED not in sent_text(writer)


def test_writer_start_date_without_a_zone_is_accepted(world: World, writer: ScriptedModel) -> None:
    world.environ["NACRE_WRITER_SINCE"] = "2026-01-01"
    ingest_session(world, "moved", BRANCH_MOVED, days=3)
    assert writer.prompts


def test_ongoing_session_is_shown_after_it_ends(world: World, writer: ScriptedModel) -> None:
    ingest_session(world, "moved", BRANCH_MOVED, days=10 / 1440)
    ingest_session(world, "new", BRANCH_GONE, days=1)
    assert BRANCH_GONE in sent_text(writer)
    assert BRANCH_MOVED not in sent_text(writer)
    world.clock.pass_days(2)
    ingest_session(world, "most", "Nothing is new.", days=0.5)
    assert BRANCH_MOVED in sent_text(writer)


def test_sub_agents_and_summaries_are_not_shown(world: World, writer: ScriptedModel) -> None:
    time = f"{world.clock() - timedelta(days=2):%Y-%m-%dT%H:%M:%S.000Z}"
    turns = [
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
        says(role, text, uuid=f"s-{index}", session="s", at=time) | more
        for index, (role, text, more) in enumerate(turns)
    ]
    world.transcript("s", says("user", REQUEST, uuid="s-u", session="s", at=time), *extra)
    with world.open() as memory:
        memory.ingest()
    ingest_session(world, "new", BRANCH_GONE, days=1)
    assert "summarised" not in sent_text(writer)
    assert "A helper says" not in sent_text(writer)


def test_memory_from_a_local_model_is_unknown_to_other_models(
    world: World, writer: ScriptedModel
) -> None:
    time = f"{world.clock() - timedelta(days=3):%Y-%m-%dT%H:%M:%S.000Z}"
    answer = says("assistant", "Done.", uuid="l-2", session="local", at=time)
    answer["message"]["model"] = "qwen3:8b"
    world.transcript("local", says("user", LOCAL, uuid="l-1", session="local", at=time), answer)
    with world.open() as memory:
        memory.ingest()
        assert [item.content for item in memory.list()] == [LOCAL]
    ingest_session(world, "new", "The branch of the checkpoints is in order.", days=1)
    assert writer.prompts
    assert "moonshine" not in sent_text(writer)


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
    world: World, writer: ScriptedModel, model: str, is_shown: bool
) -> None:
    ingest_session(world, "any", "Done.", model=model)
    assert bool(writer.prompts) is is_shown


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("WRITER_EXCLUDE_TOOLS", '["claude-code"]'),
        ("WRITER_EXCLUDE_PROJECTS", '["acme-*"]'),
        ("MODELS_BACKGROUND", "false"),
        ("WRITER_PAUSED", "true"),
    ],
)
def test_excluded_sessions_are_not_sent_to_the_writer(
    world: World, writer: ScriptedModel, setting: str, value: str
) -> None:
    world.environ[f"NACRE_{setting}"] = value
    ingest_session(world, "moved", BRANCH_MOVED)
    assert not writer.prompts
