"""Traces record model calls without secrets, and forgetting erases them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from nacre.care.health import list_traces, show_trace
from nacre.cli.root import cli
from nacre.data.forget import ForgetRequest, forget, prepare
from nacre.data.scrub import ScrubOptions, scrub
from nacre.errors import ModelUnavailableError, NotFoundError
from nacre.home.home import Home
from nacre.home.spending import MOST_TRACES, fold_notes, model_for
from nacre.learn.ingest import ingest
from nacre.recall.recall import recall
from nacre.values.models import Call, Prompt
from nacre.values.recall import RecallQuery
from nacre.values.session import Task
from tests.app.conftest import World, says
from tests.canary import CORE, SECRET, is_kept
from tests.fakes.model import ScriptedModel

CANARY = "zanzibar9431"
SESSION = "5e55-c4ee-0001"


@pytest.fixture
def talk(world: World) -> World:
    world.transcript(
        "cheese",
        says(
            "user",
            f"Remember that the gruyere cellar code is {CANARY}.",
            uuid="c1",
            session=SESSION,
        ),
        says("assistant", "Noted.", uuid="c2", session=SESSION),
        says("user", "Always run the linter before you commit.", uuid="c3", session=SESSION),
    )
    return world


def prompt(text: str, task: Task = Task.EXTRACTION) -> Prompt:
    return Prompt(task, "You look for rules.", text, {"type": "object"}, version="rules/1")


def home(world: World, *answers: Any, **settings: str) -> Home:
    world.environ |= {"NACRE_MODELS_DEFAULT": "scripted:1", **settings}
    return replace(
        world.context(),
        load_model=lambda *_: ScriptedModel(answers[0] if callable(answers[0]) else answers),
    )


def complete(context: Home, *texts: str, task: Task = Task.EXTRACTION) -> None:
    model = model_for(context, task, background=False)
    assert model
    for text in texts:
        model.complete(prompt(text, task))


def find_traces(context: Home, task: Task | None = None, limit: int = 20) -> list[Call]:
    return list_traces(context, task=task, limit=limit)


def questions(context: Home) -> list[str]:
    fold_notes(context)
    rows = context.database.rows("SELECT body FROM questions ORDER BY id")
    return [json.loads(body)["text"] for (body,) in rows]


def test_trace_contains_the_whole_call(world: World) -> None:
    context = home(world, '{"rule": "run the linter"}')
    complete(context, "The owner says: always run the linter.")
    (trace,) = find_traces(context)
    assert (trace.task, trace.prompt) == (
        Task.EXTRACTION,
        "The owner says: always run the linter.",
    )
    assert (trace.answer, trace.model, trace.tokens.output, trace.error) == (
        '{"rule": "run the linter"}',
        "scripted:1",
        6,
        "",
    )
    output = run_cli(world, "writer", "traces", trace.id[-8:])
    for words in (
        "extraction",
        "scripted:1",
        "always run the linter.",
        '{"rule": "run the linter"}',
    ):
        assert words in output


def run_cli(world: World, *arguments: str) -> str:
    result = CliRunner().invoke(
        cli, list(arguments), env={"NACRE_HOME": str(world.home), **world.environ}
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def test_failed_call_is_traced_with_its_error(world: World) -> None:
    context = home(world, ModelUnavailableError("the line is down"))
    with pytest.raises(ModelUnavailableError):
        complete(context, "one?")
    (trace,) = find_traces(context)
    assert (trace.prompt, trace.answer, trace.error) == ("one?", "", "the line is down")


def test_traces_contain_no_secrets(world: World) -> None:
    context = home(world, json.dumps({"key": SECRET}))
    complete(context, f"The key is {SECRET}")
    recall(context, RecallQuery(f"what is {SECRET} for?"))
    assert not is_kept(world.home)
    fold_notes(context)
    assert not is_kept(world.home)
    context.database.close()


def test_question_trace_is_recorded_without_a_database_write(talk: World) -> None:
    context = talk.context()
    ingest(context)
    recall(
        context, RecallQuery("what is the code of the gruyere cellar?", update=False)
    )  # the first recall checks the files
    wal_size = (talk.home / "nacre.db-wal").stat().st_size
    result = recall(
        context, RecallQuery("what is the code of the gruyere cellar?", session="host-1")
    )
    assert result.hits
    assert (talk.home / "nacre.db-wal").stat().st_size == wal_size
    assert (talk.home / "notes.jsonl").exists()
    assert questions(context) == ["what is the code of the gruyere cellar?"]


def test_disabled_traces_record_nothing(talk: World) -> None:
    talk.environ["NACRE_TRACES_KEEP_DAYS"] = "0"
    context = talk.context()
    ingest(context)
    recall(context, RecallQuery("what is the code of the gruyere cellar?"))
    talk.environ["NACRE_TRACES_KEEP_DAYS"] = "30"
    recall(talk.context(), RecallQuery("what is the code of the gruyere cellar?", update=False))
    assert questions(context) == []


def test_old_traces_expire_and_their_number_is_limited(world: World) -> None:
    context = home(world, lambda _: "{}")
    complete(context, "old?")
    assert len(find_traces(context)) == 1
    world.clock.pass_days(31)
    complete(context, "new?")
    assert [trace.prompt for trace in find_traces(context)] == ["new?"]
    complete(context, *(f"{number}?" for number in range(MOST_TRACES + 5)))
    recall(context, RecallQuery("who opens the gate at six?"))
    assert len(find_traces(context, limit=3000)) == MOST_TRACES
    assert len(questions(context)) == 1


def test_interrupted_folding_duplicates_no_trace(world: World) -> None:
    context = home(world, "{}")
    complete(context, "one?")
    noted = (world.home / "notes.jsonl").read_bytes()
    fold_notes(context)
    (world.home / "notes.0.taken").write_bytes(noted + b'\n{"call": {"torn')
    assert len(find_traces(context)) == 1
    assert [path.name for path in world.home.glob("notes.*.taken")] == []


def test_invalid_unicode_is_replaced_in_traces(world: World) -> None:
    context = home(world, '{"rule": "\ud800"}')
    complete(context, "half \udc00 a character")
    recall(context, RecallQuery("half \ud800"))
    assert [trace.prompt for trace in find_traces(context)] == ["half ? a character"]
    assert questions(context) == ["half ?"]


def test_missing_trace_raises_not_found(world: World) -> None:
    with pytest.raises(NotFoundError):
        show_trace(world.context(), "5f0c2a4d")


def requests(world: World, context: Home) -> Iterator[ForgetRequest]:
    yield ForgetRequest(sessions=(f"claude-code:{SESSION}",))
    yield ForgetRequest(memories=(_memory(context),))
    yield ForgetRequest(match=CANARY)
    yield ForgetRequest(before=world.clock.now)


def _memory(context: Home) -> str:
    return next(hit.memory.id for hit in recall(context, RecallQuery("gruyere cellar code")).hits)


@pytest.mark.parametrize("number", range(4), ids=["session", "memory", "match", "before"])
def test_forgotten_words_are_removed_from_traces_and_cached_answers(
    talk: World, number: int
) -> None:
    rule = json.dumps({"rule": f"the code is {CANARY}"})
    context = home(talk, lambda asked: rule if asked.task is Task.EXTRACTION else "{}")
    ingest(context)
    complete(context, f"The gruyere cellar code is {CANARY}.")
    complete(context, "Is the crane green?", task=Task.DEDUP)
    model = model_for(context, Task.DEDUP, background=False)
    assert model
    model.complete(
        replace(
            prompt("Which is newer?", Task.DEDUP),
            shared=f"The gruyere cellar code is {CANARY}.",
        )
    )
    (talk.user_home / ".claude" / "projects" / "-work-acme" / "cheese.jsonl").unlink()
    request = list(requests(talk, context))[number]
    recall(context, RecallQuery("what is the gruyere cellar code for?"))
    report = forget(context, prepare(context, request))
    assert report.is_erased
    context.database.close()
    remaining = [path for path in is_kept(talk.home, CANARY) if "vault/.git" not in path]
    assert remaining == []
    assert find_traces(talk.context()) == [], "any call could quote the forgotten text"


RULE = (
    "The harbour office reads the tide table at six. Nobody but Mirela opens the flood gate! After a storm the pumps "
    "run for two hours, whatever the gauge at the lower quay says, and Osvald notes it in the blue book."
)


@pytest.mark.parametrize(
    ("quote", "is_erased"),
    [
        (
            "asked whether the pumps run for two hours,\n whatever the Gauge at the lower quay shows",
            True,
        ),
        ("quoted: nobody but Mirela opens the flood gate …", True),
        ("…whatever the gauge at the lower quay says, and Osv…", True),
        ("after a storm the pumps were checked at the lower quay", False),
        ("another harbour office reads another table", False),
    ],
    ids=["the middle", "one sentence", "cut on both sides", "single words", "the same topic"],
)
def test_question_quoting_a_forgotten_memory_is_forgotten(
    world: World, quote: str, is_erased: bool
) -> None:
    context = world.context()
    other_question = "which colour has the crane?"
    for text in (quote, other_question):
        recall(context, RecallQuery(text))
    with world.open() as memory:
        outcome = memory.store(RULE, subject="Flood gate and pumps")
        memory.forget(memory.plan_forgetting(memories=[outcome.memory_id]))
    assert len(questions(context)) == (1 if is_erased else 2)
    assert other_question in questions(context)


def test_scrub_redacts_traces_and_cached_answers(world: World) -> None:
    context = home(world, json.dumps({"name": "Project Nightingale"}))
    complete(context, "Who is Project Nightingale?")
    fold_notes(context)
    world.environ["NACRE_REDACTION_PATTERNS"] = '["Nightingale"]'
    later = world.context()
    scrub(later, ScrubOptions())
    assert not is_kept(world.home, "Nightingale")
    assert "[REDACTED" in find_traces(later)[0].prompt


assert CORE


def test_question_repeating_a_line_of_a_forgotten_memory_is_forgotten(world: World) -> None:
    line = "Ask Marta for the cellar key"
    context = world.context()
    recall(context, RecallQuery(line))
    recall(context, RecallQuery("who opens the gate at six?"))
    with world.open() as memory:
        outcome = memory.store(f"The gate opens at six\n{line}\nThe lamp is on the left")
        memory.forget(memory.plan_forgetting(memories=[outcome.memory_id]))
    assert questions(context) == ["who opens the gate at six?"]
