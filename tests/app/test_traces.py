"""Traces and cases: what runs and answers went through, without secrets, and without what was forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from click.testing import CliRunner

from nacre.care.health import list_traces, show_trace
from nacre.cli.root import cli
from nacre.data.forget import ForgetRequest, ScrubOptions, forget, prepare
from nacre.data.scrub import scrub
from nacre.errors import ModelUnavailableError, NotFoundError
from nacre.home.home import Home
from nacre.home.spending import MOST_TRACES, fold_notes, model_for, tracing
from nacre.learn.ingest import IngestOptions, ingest
from nacre.recall.recall import feedback, recall
from nacre.values.models import Prompt, Step, TraceKind
from nacre.values.recall import RecallQuery
from nacre.values.session import Task
from tests.app.conftest import World, says
from tests.app.test_dreams import dreamt, kept
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


def asks(context: Home, subject: str, *texts: str, kind: TraceKind = TraceKind.EXTRACTION) -> None:
    with tracing(context, kind, subject) as run:
        model = model_for(context, Task.EXTRACTION, background=False)
        assert model
        for text in texts:
            model.complete(prompt(text))
        run.add(Step("looks at the answers", output="1 taken", refs=("c1",)))
        run.outcome = "1 memory"


def test_a_run_is_told_as_a_story(world: World) -> None:
    context = home(world, '{"rule": "run the linter"}')
    asks(context, "claude-code:5e55", "The owner says: always run the linter.")
    (trace,) = list_traces(context)
    assert (trace.kind, trace.subject, trace.outcome) == (
        TraceKind.EXTRACTION,
        "claude-code:5e55",
        "1 memory",
    )
    call, looked = trace.steps
    assert call.input == "rules/1: The owner says: always run the linter."
    assert (call.output, call.model, call.tokens.output) == (
        '{"rule": "run the linter"}',
        "scripted:1",
        6,
    )
    shown = told(world, "writer", "traces", "show", trace.id[-8:])
    for words in (
        "asks the model",
        "scripted:1",
        "run the linter",
        "looks at the answers",
        "1 memory",
    ):
        assert words in shown
    assert looked.refs == ("c1",)


def told(world: World, *arguments: str) -> str:
    result = CliRunner().invoke(
        cli, list(arguments), env={"NACRE_HOME": str(world.home), **world.environ}
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def test_what_failed_is_a_step_too(world: World) -> None:
    context = home(world, ModelUnavailableError("the line is down"))
    with pytest.raises(ModelUnavailableError):
        asks(context, "claude-code:5e55", "one?")
    (trace,) = list_traces(context)
    assert [(step.status, step.output) for step in trace.steps] == [("failed", "the line is down")]
    assert trace.outcome == "failed: the line is down"


def test_a_secret_stays_in_no_trace(world: World) -> None:
    context = home(world, json.dumps({"key": SECRET}))
    asks(context, f"about {SECRET}", f"The key is {SECRET}")
    recall(context, RecallQuery(f"what is {SECRET} for?"))
    assert not is_kept(world.home)
    fold_notes(context)
    assert not is_kept(world.home)
    context.database.close()


def test_an_answered_question_leaves_a_case_and_writes_nothing_in_the_database(talk: World) -> None:
    context = talk.context()
    ingest(context)
    recall(
        context, RecallQuery("what is the code of the gruyere cellar?", update=False)
    )  # files are looked at once
    written = (talk.home / "nacre.db-wal").stat().st_size
    result = recall(
        context, RecallQuery("what is the code of the gruyere cellar?", session="host-1")
    )
    assert result.hits
    assert (talk.home / "nacre.db-wal").stat().st_size == written
    assert (talk.home / "notes.jsonl").exists()
    case = next(trace for trace in list_traces(context) if trace.kind is TraceKind.CASE)
    assert case.subject == "what is the code of the gruyere cellar?"
    answer = case.steps[-1]
    assert answer.refs[0] == result.hits[0].memory.id
    assert answer.more[answer.refs[0]] == result.hits[0].score
    assert CANARY not in json.dumps([step.output for step in case.steps]), (
        "what was shown is named, not repeated"
    )


def test_a_case_hears_what_became_of_the_answer(talk: World) -> None:
    context = talk.context()
    ingest(context)
    result = recall(
        context, RecallQuery("what is the code of the gruyere cellar?", session=SESSION)
    )
    talk.transcript(
        "cheese",
        {
            **says("assistant", "", uuid="c5", session=SESSION, at="2026-11-20T12:00:05.000Z"),
            "message": {
                "role": "assistant",
                "id": "m5",
                "model": "model-1",
                "content": [
                    {
                        "type": "tool_use",
                        "id": "t1",
                        "name": "Bash",
                        "input": {"command": "cellar open"},
                    }
                ],
            },
        },
        says("user", "Thanks.", uuid="c6", session=SESSION, at="2026-11-20T12:00:09.000Z"),
    )
    ingest(context)
    feedback(
        context, f"The gruyere cellar code is {CANARY}, as you told me before.", session=SESSION
    )
    case = next(trace for trace in list_traces(context) if trace.kind is TraceKind.CASE)
    assert case.steps[-1].title == "hears back"
    assert case.steps[-1].more == {result.hits[0].memory.id: "used"}


def test_nobody_is_traced_where_the_owner_wants_none(talk: World) -> None:
    talk.environ["NACRE_TRACES_KEEP_DAYS"] = "0"
    context = talk.context()
    ingest(context)
    recall(context, RecallQuery("what is the code of the gruyere cellar?"))
    talk.environ["NACRE_TRACES_KEEP_DAYS"] = "30"
    recall(talk.context(), RecallQuery("what is the code of the gruyere cellar?", update=False))
    assert list_traces(context, TraceKind.CASE) == []


def test_reading_and_learning_leave_traces_but_empty_runs_none(
    talk: World,
) -> None:
    context = talk.context()
    report = ingest(context)
    ingest(context)
    (trace,) = list_traces(context, TraceKind.INDEX)
    (step,) = trace.steps
    assert step.output == "files: 1, sessions: 1, turns: 3, memories: 2"
    assert step.refs == report.memories
    assert (trace.subject, trace.outcome) == ("what discovery finds", "sessions: 1, memories: 2")
    assert CANARY not in json.dumps([step.output for step in trace.steps]), (
        "what was learned is named, not repeated"
    )
    assert CANARY in told(talk, "writer", "traces", "show", trace.id), (
        "who looks sees it as it is then"
    )


def test_secret_in_a_name_is_in_no_index_trace(talk: World) -> None:
    path = talk.transcript(
        "cheese", says("user", "Always lint before a commit.", uuid="c9", session=SESSION)
    )
    named = path.with_name(f"key-{SECRET}.jsonl")
    path.rename(named)
    context = talk.context()
    ingest(context, IngestOptions(paths=(named,)))
    (trace,) = list_traces(context, TraceKind.INDEX)
    assert CORE not in trace.subject
    assert "REDACTED" in trace.subject


def test_a_dream_leaves_a_trace_of_what_it_saw_planned_and_did(world: World) -> None:
    first = kept(world, "Honey is sold in jars of 500 g.", subject="Jars", days=30)
    second = kept(world, "Honey is sold in jars of 500 g!", subject="jars")
    report = dreamt(world, first=False)
    assert report.is_first
    world.clock.now += timedelta(hours=1)
    report = dreamt(world)
    done, planned = list_traces(world.context(), TraceKind.DREAM)
    assert planned.outcome == "planned only: merge: 1"
    (applied,) = done.steps
    assert (applied.output, applied.refs) == ("merge: 1", (first.id, second.id))
    assert applied.more == {"operation": report.operation}
    assert done.subject == "tier 1"


def test_old_traces_go_and_there_are_never_too_many(world: World) -> None:
    context = home(world, *["{}"] * 3)
    asks(context, "claude-code:old", "one?")
    assert len(list_traces(context)) == 1
    world.clock.pass_days(31)
    asks(context, "claude-code:new", "two?")
    assert [trace.subject for trace in list_traces(context)] == ["claude-code:new"]
    for number in range(MOST_TRACES + 5):
        with tracing(context, TraceKind.TEST, f"{number}") as run:
            run.add(Step("nothing"))
    assert len(list_traces(context, limit=3000)) == MOST_TRACES


def test_a_fold_that_was_cut_short_doubles_nothing(world: World) -> None:
    context = home(world, "{}")
    asks(context, "claude-code:5e55", "one?")
    noted = (world.home / "notes.jsonl").read_bytes()
    fold_notes(context)
    (world.home / "notes.0.taken").write_bytes(noted + b'\n{"trace": {"torn')
    assert len(list_traces(context)) == 1
    assert [path.name for path in world.home.glob("notes.*.taken")] == []


def test_half_a_character_breaks_nothing(world: World) -> None:
    context = home(world, '{"rule": "\ud800"}')
    asks(context, "claude-code:\ud800", "half \udc00 a character")
    recall(context, RecallQuery("half \ud800"))
    assert {trace.subject for trace in list_traces(context)} == {"claude-code:?", "half ?"}


def test_a_trace_that_is_not_there_is_said_to_be_so(world: World) -> None:
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
def test_forgotten_words_are_in_no_trace_case_or_answer(talk: World, number: int) -> None:
    rule = json.dumps({"rule": f"the code is {CANARY}"})
    context = home(talk, lambda asked: rule if asked.task is Task.EXTRACTION else "{}")
    ingest(context)
    asks(context, f"claude-code:{SESSION}", f"The gruyere cellar code is {CANARY}.")
    with tracing(context, TraceKind.DEDUP, "another thing"):
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
    left = [path for path in is_kept(talk.home, CANARY) if "vault/.git" not in path]
    assert left == []
    assert [trace.subject for trace in list_traces(talk.context())] != [], (
        "what says nothing of it stays"
    )


RULE = (
    "The harbour office reads the tide table at six. Nobody but Mirela opens the flood gate! After a storm the pumps "
    "run for two hours, whatever the gauge at the lower quay says, and Osvald notes it in the blue book."
)


@pytest.mark.parametrize(
    ("quote", "is_told"),
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
def test_a_quote_from_anywhere_in_a_forgotten_memory_takes_its_trace_along(
    world: World, quote: str, is_told: bool
) -> None:
    with world.open() as memory:
        stored = memory.store(RULE, subject="Flood gate and pumps")
        context = memory._home
        with tracing(context, TraceKind.DEDUP, "something else") as run:
            run.add(Step("compared", input=quote))
        with tracing(context, TraceKind.DEDUP, "that stays") as run:
            run.add(Step("compared", input="the crane is painted green"))
        memory.forget(memory.plan_forgetting(memories=[stored.memory_id]))
        left = {trace.subject for trace in list_traces(context) if trace.kind is TraceKind.DEDUP}
    assert left == ({"that stays"} if is_told else {"that stays", "something else"})


def test_a_scrub_reaches_traces_and_kept_answers(world: World) -> None:
    context = home(world, json.dumps({"name": "Project Nightingale"}))
    asks(context, "claude-code:5e55", "Who is Project Nightingale?")
    fold_notes(context)
    world.environ["NACRE_REDACTION_PATTERNS"] = '["Nightingale"]'
    later = world.context()
    scrub(later, ScrubOptions())
    assert not is_kept(world.home, "Nightingale")
    assert "[REDACTED" in list_traces(later)[0].steps[0].input


assert CORE


def test_question_that_repeats_a_line_of_a_forgotten_memory_loses_its_trace(world: World) -> None:
    line = "Ask Marta for the cellar key"
    context = world.context()
    recall(context, RecallQuery(line))
    recall(context, RecallQuery("who opens the gate at six?"))
    with world.open() as memory:
        stored = memory.store(f"The gate opens at six\n{line}\nThe lamp is on the left")
        memory.forget(memory.plan_forgetting(memories=[stored.memory_id]))
    assert [trace.subject for trace in list_traces(context, TraceKind.CASE)] == [
        "who opens the gate at six?"
    ]
