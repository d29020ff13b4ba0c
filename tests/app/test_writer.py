"""Sessions are sent to the writer once, after their end and within its limits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from nacre.errors import BudgetSpentError, ModelUnavailableError
from nacre.home.home import Home
from nacre.home.spending import model_for
from nacre.learn.extract import BLOCK
from nacre.learn.learn import is_due
from nacre.memories.requests import StoreRequest
from nacre.memories.store import store as remember
from nacre.settings import write_setting
from nacre.setup.chores import Chore, do_waiting, pending_chores, put
from nacre.setup.models import (
    WriterStatus,
    end,
    pause,
    resume,
    set_writer,
    status_writer,
)
from nacre.values.memory import Source
from nacre.values.models import Prompt
from nacre.values.reports import ModelExtraction
from nacre.values.session import Task, Trust
from tests.app.conftest import World, says
from tests.app.shapes import Agent, Owner, codex
from tests.app.test_extraction_by_model import (
    OWNER,
    RULE,
    answer_with,
    home,
    long_turns,
    proposed_memory,
    talk,
)
from tests.fakes.model import ScriptedModel

PLAIN = "The invoices of the harbour are numbered by the year, and each year begins at one again."


def scripted_writer() -> ScriptedModel:
    """Return a writer that gives the same answer for every session."""
    return ScriptedModel([answer_with(proposed_memory())], repeats=True)


def ingest_with(world: World, model: ScriptedModel, **environ: str) -> ModelExtraction:
    """Ingest the transcripts with a writer and return its report."""
    with home(world, model, **environ) as memory:
        return memory.ingest().extraction or ModelExtraction()


def contents(world: World) -> list[str]:
    with world.open() as memory:
        return [item.content for item in memory.list()]


def test_session_is_sent_to_the_writer_once_after_its_end(world: World) -> None:
    talk(world, ("user", OWNER), day=20)
    world.clock.now = world.clock.now.replace(hour=9, minute=10)
    model = scripted_writer()
    assert ingest_with(world, model).calls == 0
    world.clock.now = world.clock.now.replace(hour=9, minute=40)
    assert ingest_with(world, model).calls == 2
    assert contents(world) == [RULE]
    assert ingest_with(world, model).calls == 0


def test_plain_statements_are_learned_during_a_session(world: World) -> None:
    talk(
        world,
        ("user", "Remember that invoices are archived for ten years."),
        ("user", OWNER),
        ("assistant", "Ok."),
        day=20,
    )
    world.clock.now = world.clock.now.replace(hour=9, minute=10)
    ingest_with(world, scripted_writer())
    assert ["ten years" in content for content in contents(world)] == [True]


def test_sessions_before_writer_setup_are_not_sent(world: World) -> None:
    talk(world, ("user", OWNER))
    model = scripted_writer()
    assert ingest_with(world, model, NACRE_WRITER_SINCE="2026-11-19T00:00:00Z").calls == 0
    talk(world, ("user", PLAIN), name="two", day=19)
    assert ingest_with(world, model).sessions == 1
    assert PLAIN in model.prompts[0].text
    assert len(model.prompts) == 1


def read_older(world: World, model: ScriptedModel) -> ModelExtraction:
    with home(world, model) as memory:
        return memory.call("ingest", older=True).extraction or ModelExtraction()


def test_older_sessions_are_sent_on_request_within_the_limit(
    world: World,
) -> None:
    for day in (3, 17, 9):
        talk(
            world,
            ("user", f"{OWNER} It is day {day}."),
            *long_turns(f"d{day}"),
            name=f"d{day}",
            day=day,
            month=10,
        )
    ingest_with(world, ScriptedModel([]), NACRE_WRITER_SINCE="2026-11-19T00:00:00Z")
    model = scripted_writer()
    assert ingest_with(world, model).calls == 0
    model = ScriptedModel(
        [answer_with(proposed_memory()), BudgetSpentError("it took what it may")], repeats=True
    )
    read_older(world, model)
    assert contents(world) == [RULE]
    assert not due(world)
    model = scripted_writer()
    read_older(world, model)
    assert len(model.prompts) == 2
    assert read_older(world, model).calls == 0
    assert len(model.prompts) == 2


def test_rest_of_an_older_session_follows_on_the_next_request(world: World) -> None:
    parts = [
        line
        for part in range(15)
        for line in (
            ("user", f"{OWNER} It is part {part}."),
            ("assistant", "".join(f"Bollard {part}.{number} is deep.\n" for number in range(180))),
        )
    ]
    talk(world, *parts, month=10)
    ingest_with(world, ScriptedModel([]), NACRE_WRITER_SINCE="2026-11-19T00:00:00Z")
    answers = [
        answer_with(proposed_memory()),
        answer_with(proposed_memory()),
        BudgetSpentError("it took what it may"),
    ]
    read_older(world, ScriptedModel(answers, repeats=True))
    assert not due(world)
    model = scripted_writer()
    assert ingest_with(world, model).calls == 0
    with home(world, model) as memory:
        assert memory.call("writer").waiting == 0
    read_older(world, ScriptedModel([BudgetSpentError("it took what it may")], repeats=True))
    read_older(world, model)
    assert model.prompts
    assert not any("It is part 0." in prompt.text for prompt in model.prompts)
    assert read_older(world, model).calls == 0


def test_older_sessions_ingested_in_the_same_run_are_sent(world: World) -> None:
    talk(world, ("user", OWNER), month=10)
    world.environ["NACRE_WRITER_SINCE"] = "2026-11-19T00:00:00Z"
    model = scripted_writer()
    with home(world, model) as memory:
        estimate = memory.call("ingest-estimate", older=True)
    assert estimate.waiting == read_older(world, model).sessions == 1
    assert contents(world) == [RULE]
    assert read_older(world, model).calls == 0


def test_excluded_older_sessions_are_not_sent_on_request(world: World) -> None:
    talk(world, ("user", OWNER), month=10)
    ingest_with(world, ScriptedModel([]), NACRE_WRITER_SINCE="2026-11-19T00:00:00Z")
    world.environ["NACRE_WRITER_EXCLUDE_PROJECTS"] = '["acme-*"]'
    read_older(world, ScriptedModel([]))
    assert contents(world) == []


@pytest.mark.parametrize(
    ("setting", "left_out"), [("PROJECTS", '["acme-*"]'), ("TOOLS", '["codex", "claude-code"]')]
)
def test_excluded_projects_and_tools_are_not_sent(
    world: World, setting: str, left_out: str
) -> None:
    talk(world, ("user", OWNER))
    model = ScriptedModel([])
    assert ingest_with(world, model, **{f"NACRE_WRITER_EXCLUDE_{setting}": left_out}).calls == 0
    assert not model.prompts


@pytest.mark.parametrize(
    ("setting", "left_out"),
    [
        ("_PROJECTS", '["acme-*"]'),
        ("_TOOLS", '["claude-code"]'),
        ("_PATHS", '["*/acme-*"]'),
        ("", '["*.jsonl"]'),
    ],
)
def test_excluded_sessions_are_not_sent_if_already_read(
    world: World, setting: str, left_out: str
) -> None:
    talk(world, ("user", OWNER))
    ingest_with(world, ScriptedModel([]), NACRE_WRITER_PAUSED="true")
    world.environ["NACRE_WRITER_PAUSED"] = "false"
    world.environ[f"NACRE_INGEST_EXCLUDE{setting}"] = left_out
    model = ScriptedModel([])
    with home(world, model) as memory:
        assert memory.call("writer").waiting == 0
        if setting:
            assert memory.call("ingest-estimate", older=True).waiting == 0
    read_older(world, model)
    assert not model.prompts


def test_sessions_ended_during_a_pause_are_sent_afterwards(world: World) -> None:
    talk(world, ("user", OWNER))
    model = scripted_writer()
    assert ingest_with(world, model, NACRE_WRITER_PAUSED="true").calls == 0
    talk(world, ("user", PLAIN), name="two", day=19)
    assert ingest_with(world, model, NACRE_WRITER_PAUSED="true").calls == 0
    assert ingest_with(world, model, NACRE_WRITER_PAUSED="false").sessions == 2


@pytest.mark.parametrize(
    "trouble",
    [
        BudgetSpentError("it took what it may"),
        ModelUnavailableError("nobody answers", hint="is it running?"),
    ],
    ids=["budget spent", "unreachable"],
)
def test_session_waits_for_an_unavailable_writer(world: World, trouble: Exception) -> None:
    talk(world, ("user", OWNER), ("user", "Remember that invoices are archived for ten years."))
    ingest_with(world, ScriptedModel([trouble], repeats=True))
    assert ["ten years" in content for content in contents(world)] == [True]
    world.clock.pass_days(1)
    assert ingest_with(world, scripted_writer()).sessions == 1
    assert RULE in contents(world)


def test_writer_is_retried_after_an_hour(world: World) -> None:
    talk(world, ("user", OWNER))
    ingest_with(world, ScriptedModel([BudgetSpentError("it took what it may")], repeats=True))
    assert not due(world)
    world.clock.pass_days(1 / 24)
    assert due(world)
    world.environ["NACRE_WRITER_PAUSED"] = "true"
    assert not due(world)


def test_rebuild_keeps_the_writers_retry_time(world: World) -> None:
    talk(world, ("user", OWNER))
    ingest_with(world, ScriptedModel([BudgetSpentError("it took what it may")], repeats=True))
    world.rebuild()
    assert not due(world)
    world.clock.pass_days(1 / 24)
    assert due(world)


def test_session_waits_at_most_thirty_days_for_the_writer(world: World) -> None:
    talk(world, ("user", OWNER))
    ingest_with(world, scripted_writer(), NACRE_WRITER_PAUSED="true")
    world.clock.pass_days(31)
    ingest_with(world, scripted_writer(), NACRE_WRITER_PAUSED="true")
    world.environ["NACRE_WRITER_PAUSED"] = "false"
    model = scripted_writer()
    ingest_with(world, model)
    assert not model.prompts


def test_unusable_writer_is_retried_after_a_day(world: World) -> None:
    for number in range(3):
        talk(
            world,
            ("user", f"{OWNER} Berth {number} has two cranes."),
            name=f"one{number}",
            month=10 + number % 2,
        )
    ingest_with(world, ScriptedModel(["I would rather not."], repeats=True))
    world.clock.pass_days(2 / 24)
    assert not due(world)
    talk(world, ("user", f"{OWNER} Berth 9 has one crane."), name="another")
    unusable = ScriptedModel(["I would rather not."], repeats=True)
    ingest_with(world, unusable)
    assert not unusable.prompts
    world.clock.pass_days(23 / 24)
    assert due(world)


def due(world: World) -> bool:
    with closing(world.context()) as context:
        return is_due(context)


def test_resumed_session_is_sent_again_from_the_resumption(world: World) -> None:
    talk(world, ("user", OWNER), ("assistant", "Done."))
    model = scripted_writer()
    ingest_with(world, model)
    world.transcript(
        "one", says("user", PLAIN, uuid="one-9", session="5e55-one", at="2026-11-19T09:00:00.000Z")
    )
    assert ingest_with(world, model).sessions == 1
    assert len(model.prompts) == 2


@pytest.mark.parametrize(
    ("local", "writer", "is_shown"),
    [
        ("qwen3:8b", "anthropic:claude-haiku-4-5", False),
        ("ollama_chat/llama3", "claude-cli:haiku", False),
        ("llama3.2", "claude-cli:haiku", False),
        ("gpt-oss", "claude-cli:haiku", False),
        ("openai/gpt-oss-20b", "claude-cli:haiku", False),
        ("Gemma-3-27b-it", "claude-cli:haiku", False),
        ("qwen3-coder-30b-a3b-instruct-mlx", "claude-cli:haiku", False),
        ("deepcoder", "claude-cli:haiku", False),
        ("ollama/acme-tuned", "claude-cli:haiku", False),
        ("llama.cpp/acme-tuned", "claude-cli:haiku", False),
        ("ollama/acme-tuned", "ollama:qwen3:8b", True),
        ("gemini-2.5-pro", "claude-cli:haiku", True),
        ("deepseek/deepseek-chat", "claude-cli:haiku", True),
        ("groq/llama-3.3-70b", "claude-cli:haiku", True),
        ("groq:llama-3.3-70b", "claude-cli:haiku", True),
        ("openrouter/moonshotai/kimi-k2", "claude-cli:haiku", True),
        ("zai/glm-4.6", "claude-cli:haiku", True),
        ("mistral-large-latest", "claude-cli:haiku", True),
        ("mistral:latest", "claude-cli:haiku", False),
        ("deepseek/deepseek-r1-0528-qwen3-8b", "claude-cli:haiku", False),
        ("openai/gpt-5", "claude-cli:haiku", True),
        ("qwen3:8b", "ollama:qwen3:8b", True),
        ("claude-sonnet-4-5", "anthropic:claude-haiku-4-5", True),
        ("anthropic.claude-sonnet-4-5-v1:0", "anthropic:claude-haiku-4-5", True),
    ],
)
def test_prompts_of_local_models_are_not_sent_to_other_models(
    world: World, local: str, writer: str, is_shown: bool
) -> None:
    answer = says("assistant", "Done.", uuid="l-2", session="5e55-local")
    answer["message"]["model"] = local
    world.transcript("local", says("user", OWNER, uuid="l-1", session="5e55-local"), answer)
    model = scripted_writer()
    ingest_with(world, model, NACRE_MODELS_EXTRACTION=writer)
    assert bool(model.prompts) is is_shown


ELSEWHERE = '[models.providers.homelab]\nbase_url = "https://models.example/v1"\n'


@pytest.mark.parametrize(
    ("provider", "config", "is_shown"),
    [
        ("homelab", "", False),
        ("LM Studio", "", False),
        ("openai-compatible", "", False),
        ("openai", "", True),
        ("xai", "", True),
        ("homelab", ELSEWHERE, True),
        ("homelab", ELSEWHERE.replace("https://models.example", "http://127.0.0.1:8080"), False),
    ],
)
def test_unknown_provider_is_local_unless_known_to_be_remote(
    world: World, provider: str, config: str, is_shown: bool
) -> None:
    world.home.mkdir(exist_ok=True)
    world.home.joinpath("config.toml").write_text(config, encoding="utf-8")
    records = codex([Owner(OWNER), Agent("Done.")])
    records[0]["payload"]["model_provider"] = provider
    records.insert(
        1,
        {
            "timestamp": says("user", "", uuid="")["timestamp"],
            "type": "turn_context",
            "payload": {"model": "acme-tuned"},
        },
    )
    path = (
        world.user_home
        / ".codex"
        / "sessions"
        / "2026"
        / "11"
        / "18"
        / "rollout-2026-11-18T09-00-00-x.jsonl"
    )
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    model = scripted_writer()
    ingest_with(world, model, NACRE_MODELS_EXTRACTION="claude-cli:haiku")
    assert bool(model.prompts) is is_shown


@pytest.mark.parametrize("is_read_between", [False, True])
@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_partly_local_session_is_not_sent_to_other_models(
    world: World, is_read_between: bool, is_elsewhere: bool
) -> None:
    def answer(number: int, model: str) -> dict[str, Any]:
        reply = says("assistant", f"Done {number}.", uuid=f"m-{number}", session="5e55-mixed")
        reply["message"]["model"] = model
        return reply

    model = scripted_writer()
    world.transcript(
        "mixed", says("user", OWNER, uuid="m-0", session="5e55-mixed"), answer(1, "qwen3:8b")
    )
    if is_read_between:
        ingest_with(world, model)
    message = says("user", f"{OWNER} So does the quay.", uuid="m-2", session="5e55-mixed")
    world.transcript(
        "further" if is_elsewhere else "mixed", message, answer(3, "claude-sonnet-4-5")
    )
    ingest_with(world, model)
    assert not model.prompts


def test_sessions_are_sent_chronologically_with_the_latest_block_first(
    world: World,
) -> None:
    days = list(range(1, BLOCK + 3))
    for day in reversed(days):
        talk(
            world, ("user", f"{PLAIN} Berth {day} does so, too."), name=f"d{day}", day=day, month=10
        )
    model = scripted_writer()
    ingest_with(world, model)
    berths = [
        int(day)
        for prompt in model.prompts
        for day in re.findall(r"\[owner\] .*Berth (\d+)", prompt.text)
    ]
    assert list(dict.fromkeys(berths)) == days[2:] + days[:2]


def store(world: World, content: str, **environ: str) -> str:
    """Store a memory as an agent would, and return its id."""
    world.environ |= {"CLAUDECODE": "1", **environ}
    with world.open() as memory:
        memory_id = memory.store(content, project="acme-billing").memory_id
    for name in ("CLAUDECODE", *environ):
        del world.environ[name]
    return memory_id


def known_section(model: ScriptedModel) -> str:
    """Return the section of known memories in the writer's first prompt."""
    return model.prompts[0].shared.partition("<memories>")[2]


def test_agents_stores_of_the_session_are_shown_as_known(world: World) -> None:
    talk(world, ("user", OWNER), ("assistant", "Done."))
    store(world, "The crane is repaired by Heron.", CLAUDE_CODE_SESSION_ID="5e55-one")
    store(world, "The quay is swept on Mondays.", CLAUDE_CODE_SESSION_ID="5e55-two")
    model = scripted_writer()
    ingest_with(world, model)
    assert "The crane is repaired by Heron." in known_section(model)
    assert "The quay" not in known_section(model)


def test_agents_store_is_recognised_by_its_answer_without_session_name(
    world: World,
) -> None:
    talk(world, ("user", OWNER), ("assistant", "I store that."))
    memory_id, _ = (
        store(world, "The crane is repaired by Heron."),
        store(world, "The quay is swept on Mondays."),
    )
    call = says("assistant", "", uuid="one-8", session="5e55-one")
    call["message"]["content"] = [
        {"type": "tool_use", "id": "t1", "name": "mcp__nacre__memory_store", "input": {}}
    ]
    answer = says("user", "", uuid="one-9", session="5e55-one")
    result = f"- [{memory_id[-8:]}] Stored; as your proposal: found when searched for."
    answer["message"]["content"] = [{"type": "tool_result", "tool_use_id": "t1", "content": result}]
    world.transcript("one", call, answer)
    model = scripted_writer()
    ingest_with(world, model)
    assert "The crane is repaired by Heron." in known_section(model)
    assert "The quay" not in known_section(model)


def test_memories_kept_during_a_session_are_shown_as_known(
    world: World,
) -> None:
    plain = "Remember that invoices are archived for ten years."
    talk(world, ("user", plain), ("user", OWNER), ("assistant", "Ok."), day=20)
    world.clock.now = world.clock.now.replace(hour=9, minute=10)
    model = ScriptedModel([answer_with(proposed_memory())], repeats=True)
    ingest_with(world, model)
    assert not model.prompts
    world.clock.now = world.clock.now.replace(hour=9, minute=40)
    ingest_with(world, model)
    assert "archived for ten years" in known_section(model)
    assert sorted(contents(world)) == sorted([RULE, "Invoices are archived for ten years."])


def test_retracted_or_outside_based_memories_are_not_known(
    world: World,
) -> None:
    talk(world, ("user", OWNER), ("assistant", "Done."))
    retracted = store(world, "The crane is repaired by Heron.", CLAUDE_CODE_SESSION_ID="5e55-one")
    with closing(world.context()) as context:
        source = Source(session="claude-code:5e55-one")
        foreign = StoreRequest(
            content="The quay is closed, says a page.", trust=Trust.UNTRUSTED, source=source
        )
        remember(context, foreign)
    with world.open() as memory:
        memory.retire(retracted)
    model = scripted_writer()
    ingest_with(world, model)
    assert known_section(model) == ""


def test_memories_stored_in_the_session_precede_similar_memories(world: World) -> None:
    with world.open() as memory:
        for number in range(20):
            memory.store(
                f"Berth {number} is {number} metres deep.", project="acme-billing", force=True
            )
        memory.store("Two servers gave out the same number of invoices.", project="acme-billing")
    talk(world, ("user", OWNER), ("assistant", "Done."))
    store(world, "The crane is repaired by Heron.", CLAUDE_CODE_SESSION_ID="5e55-one")
    model = scripted_writer()
    ingest_with(world, model)
    lines = [line for line in known_section(model).splitlines() if line.startswith("[k")]
    assert ["Heron" in lines[0], "Two servers" in lines[1]] == [True, True]
    assert sum("Heron" in line for line in lines) == 1


def test_subscription_writer_reports_its_status_and_token_limit(
    world: World, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    world.environ |= {"PATH": str(program.parent)}

    def do(change: Callable[[Home], WriterStatus]) -> WriterStatus:
        with closing(world.context()) as context:
            return change(context)

    status = do(lambda context: set_writer(context, "claude-cli:haiku", tokens_per_day=20_000))
    assert (status.writer, status.state, status.limit, status.tokens_today) == (
        "claude-cli:haiku",
        "ready",
        20_000,
        0,
    )
    assert status.since == "2026-11-20T11:30:00Z"
    assert do(pause).state == "paused"
    assert do(status_writer).state == "paused"
    assert do(resume).state == "ready"
    assert do(end).state == "off"


def test_plainly_stated_facts_omitted_by_the_writer_are_kept(world: World) -> None:
    talk(
        world,
        ("user", OWNER),
        ("user", "Remember that invoices are archived for ten years."),
        ("assistant", "Ok."),
    )
    ingest_with(world, scripted_writer())
    assert sorted(contents(world)) == sorted([RULE, "Invoices are archived for ten years."])


def test_plain_statement_rephrased_by_the_writer_is_kept_once(world: World) -> None:
    plain = "Remember that invoices get their numbers from the database, as two servers gave out the same one."
    talk(world, ("user", plain), ("assistant", "Ok."))
    ingest_with(
        world, ScriptedModel([answer_with(proposed_memory(quote=plain[14:60]))], repeats=True)
    )
    assert contents(world) == [RULE]


def test_session_ended_during_another_run_is_sent_soon_after(
    world: World,
) -> None:
    talk(world, ("user", OWNER), ("assistant", "Done."), day=20)
    transcript = world.transcript("one")
    world.clock.now = world.clock.now.replace(hour=9, minute=10)
    ingest_with(world, scripted_writer())
    world.model = scripted_writer()
    time = world.clock.now.timestamp()
    put(
        world.home,
        Chore("session-end", "claude-code:5e55-one", str(transcript), "/code/acme", "", time),
    )
    with closing(world.context()) as other, other.writer_lock:
        do_waiting(world.context())
    assert contents(world) == []
    world.clock.now += timedelta(seconds=10)
    do_waiting(world.context())
    assert contents(world) == [RULE]
    assert [item.kind for item in pending_chores(world.home)] == []


def test_session_ended_during_a_pause_is_sent_after_the_pause(
    world: World,
) -> None:
    talk(world, ("user", OWNER), ("assistant", "Done."), day=20)
    transcript = world.transcript("one")
    world.clock.now = world.clock.now.replace(hour=9, minute=10)
    ingest_with(world, scripted_writer(), NACRE_WRITER_PAUSED="true")
    time = world.clock.now.timestamp()
    put(
        world.home,
        Chore("session-end", "claude-code:5e55-one", str(transcript), "/code/acme", "", time),
    )
    do_waiting(world.context())
    assert not due(world)
    world.environ["NACRE_WRITER_PAUSED"] = "false"
    assert due(world)
    model = scripted_writer()
    assert ingest_with(world, model).sessions == 1
    call_count = len(model.prompts)
    later = says("user", PLAIN, uuid="one-9", session="5e55-one", at="2026-11-20T09:09:00.000Z")
    world.transcript("one", later)
    ingest_with(world, model)
    assert len(model.prompts) == call_count


def test_recovered_writer_receives_the_waiting_sessions(world: World) -> None:
    talk(world, ("user", OWNER))
    ingest_with(
        world,
        ScriptedModel(
            [ModelUnavailableError("nobody answers", hint="is it running?")], repeats=True
        ),
    )
    assert not due(world)
    with home(world, ScriptedModel(['{"metal": "mercury"}'], repeats=True)) as memory:
        memory.call("models-test", name="scripted:1")
    assert due(world)


@pytest.mark.parametrize(
    "setting",
    [
        "writer.paused",
        "models.background",
        "models.extraction",
        "writer.exclude_projects",
        "nonsense",
    ],
)
def test_running_writer_stops_after_a_settings_change(world: World, setting: str) -> None:
    for number in range(3):
        name = f"one{number}"
        talk(world, ("user", OWNER), *long_turns(name), name=name)
    config = world.settings().config
    values = {
        "writer.paused": True,
        "models.background": False,
        "models.extraction": "ollama:qwen3",
        "writer.exclude_projects": ["acme-*"],
    }
    write_setting(config, "models.extraction", "scripted:1")
    write_setting(config, "models.background", value=True)
    write_setting(config, "writer.since", "2026-01-01T00:00:00Z")
    world.environ |= {"NACRE_MODELS_EXTRACTION": "", "NACRE_MODELS_BACKGROUND": ""}

    def answered(_: Prompt) -> dict[str, Any]:
        if setting in values:
            write_setting(config, setting, values[setting])
        else:
            config.write_text(setting)
        return answer_with(proposed_memory())

    model = ScriptedModel([answered, answer_with(proposed_memory())], repeats=True)
    world.model, world.environ["NACRE_EMBEDDING_MODEL"] = model, "none"
    with world.open() as memory:
        memory.ingest()
    assert len(model.prompts) == 1
    assert len(model.compared) == (
        setting == "writer.exclude_projects"
    )  # an already started session is finished
    if setting == "writer.paused":
        write_setting(config, "writer.paused", value=False)
        with world.open() as memory:
            memory.ingest()
        assert contents(world) == [RULE]
        assert len(model.prompts) == 3  # the first session's answer is reused


def test_paused_writer_stops_a_running_dream(world: World) -> None:
    write_setting(world.settings().config, "models.default", "scripted:1")
    world.environ["NACRE_MODELS_BACKGROUND"] = "true"
    world.model = scripted_writer()
    with closing(world.context()) as context:
        model = model_for(context, Task.DREAM, background=True)
        assert model is not None
        prompt = Prompt(
            Task.DREAM,
            "",
            "Which berth is it?",
            {},
            name="berth",
            version="berth/1",
            output_tokens=9,
        )
        assert model.complete(prompt).text
        write_setting(context.settings.config, "writer.paused", value=True)
        with pytest.raises(BudgetSpentError, match="paused"):
            model.complete(replace(prompt, text="And which one is that?"))
