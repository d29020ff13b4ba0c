"""Quickstart reads this machine's transcripts or else the examples, and suggests questions."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from nacre.care.database import rebuild
from nacre.care.story import about
from nacre.errors import NotFoundError
from nacre.home.home import open_home
from nacre.learn.reading import subject_of
from nacre.recall.recall import recall
from nacre.setup import examples
from nacre.setup.setup import QuickstartResult, run_quickstart
from nacre.values.memory import Kind
from nacre.values.recall import HitConfidence, RecallQuery
from nacre.values.reports import Progress
from nacre.values.session import Ending
from tests.app.conftest import World, says


def quickstart(world: World, **more: float) -> QuickstartResult:
    context = world.context()
    try:
        return run_quickstart(context, **more)
    finally:
        context.database.close()


def write_rules(world: World) -> None:
    """Write a transcript with statements that are learned as memories."""
    world.transcript(
        "s1",
        says(
            "user",
            "Let's go with PostgreSQL instead of MongoDB: billing needs transactions.",
            uuid="u1",
        ),
        says("assistant", "Then I set up PostgreSQL.", uuid="a1"),
        says("user", "Never log card numbers, not even masked ones.", uuid="u2"),
        says("assistant", "Understood.", uuid="a2"),
        says("user", "From now on every amount is an integer in cents.", uuid="u3"),
    )


def test_quickstart_uses_the_examples_in_an_empty_home(world: World) -> None:
    result = quickstart(world)
    assert result.source == "examples"
    assert result.status.sources == {"claude-code": 2, "codex": 2, "openclaw": 2}
    assert (result.report.files, result.report.sessions, result.report.problems) == (6, 6, ())
    assert (result.report.unknown, result.report.corrupt) == ({}, 0)
    assert len(result.report.memories) >= 12
    assert result.report.candidates > 0
    assert len(list(world.vault.glob("projects/*/project.md"))) == 2


def test_examples_can_be_removed_and_added_again(world: World) -> None:
    quickstart(world)
    context = world.context()
    report = examples.forget(context, examples.plan_to_forget(context))
    assert (len(report.plan.sessions), context.sessions.newest(), context.memories.all_ids()) == (
        6,
        [],
        set(),
    )
    with pytest.raises(NotFoundError):
        examples.plan_to_forget(context)
    assert context.files.projects() == []
    assert not [path for path in (world.vault / "projects").rglob("*") if path.is_file()]
    context.database.close()
    assert not (world.settings().home / "examples").exists()
    assert quickstart(world).report.sessions == 6


@pytest.mark.embedding
def test_bundled_model_answers_the_questions_about_the_examples(world: World) -> None:
    context = open_home(world.settings(), clock=world.clock)
    result = run_quickstart(context)
    today = recall(context, RecallQuery("which database does hivelog use?"))
    context.database.close()
    assert [hit.memory.subject for hit in today.hits if "SQLite" in hit.memory.content] == [
        "We're moving from SQLite to PostgreSQL, because nine more…"
    ]
    assert len(result.status.story.questions) == 3
    for question, confidence in result.status.story.questions.items():
        context = open_home(world.settings(), clock=world.clock)
        answer = recall(context, RecallQuery(question)).ranked[0]
        context.database.close()
        assert answer.confidence is confidence
        assert answer.confidence is not HitConfidence.WEAK


def test_word_search_answers_the_examples_without_embedding_model(world: World) -> None:
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"
    result = quickstart(world)
    assert len(result.status.story.questions) == 3
    assert "off" in (result.report.vectors_note or "")


def test_copied_examples_are_readable_only_by_the_owner(world: World) -> None:
    result = quickstart(world)
    for memory in result.status.story.decisions:
        assert memory.source.file
        path = Path(memory.source.file)
        assert path.is_relative_to(world.home / "examples")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_second_quickstart_adds_nothing(world: World) -> None:
    first = quickstart(world)
    files = sorted(world.vault.rglob("*"))
    second = quickstart(world)
    assert (second.report.files, second.report.turns, second.report.memories) == (0, 0, ())
    assert replace(second, report=first.report, status=first.status) == first
    assert second.status.story == first.status.story
    assert sorted(world.vault.rglob("*")) == files


def test_the_examples_survive_a_rebuild(world: World) -> None:
    before = quickstart(world)
    rebuild(world.settings(), open_home=world.context)
    after = quickstart(world)
    assert (after.status.story.decisions, after.status.story.questions) == (
        before.status.story.decisions,
        before.status.story.questions,
    )
    assert after.report.turns == 0


def test_quickstart_prefers_transcripts_of_this_machine(world: World) -> None:
    write_rules(world)
    result = quickstart(world)
    assert result.source == "discovered"
    assert result.status.sources == {"claude-code": 1}
    assert {memory.project for memory in result.status.story.decisions} == {"acme-billing"}
    assert not (world.home / "examples").exists()


def test_own_sessions_hide_the_examples(world: World) -> None:
    quickstart(world)
    write_rules(world)
    result = quickstart(world)
    assert result.source == "discovered"
    assert {memory.project for memory in result.status.story.decisions} == {"acme-billing"}
    assert list(result.status.story.questions) == ["What did we decide about PostgreSQL?"]
    assert len(result.status.story.sessions) == 1
    assert result.has_examples


def test_empty_transcript_does_not_replace_the_examples(world: World) -> None:
    world.transcript("s1", {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}})
    assert quickstart(world).source == "examples"
    write_rules(world)
    assert quickstart(world).source == "discovered"


def test_story_has_sessions_with_outcome_decisions_and_answered_questions(world: World) -> None:
    write_rules(world)
    story = quickstart(world).status.story
    (line,) = story.sessions
    assert line.ending is Ending.STOPPED
    assert (
        line.opening == "Let's go with PostgreSQL instead of MongoDB: billing needs transactions."
    )
    assert [memory.kind for memory in story.decisions] == [Kind.DECISION]
    ((question, confidence),) = story.questions.items()
    assert question == "What did we decide about PostgreSQL?"
    assert confidence is not HitConfidence.WEAK


@pytest.mark.parametrize(
    ("kind", "subject", "content", "question"),
    [
        (
            Kind.DECISION,
            "Numbers of invoices",
            "Invoices are numbered by year.",
            "decide about numbers of invoices?",
        ),
        (
            Kind.DECISION,
            "MongoDB",
            "We left MongoDB for PostgreSQL.",
            "What did we decide about MongoDB?",
        ),
        (
            Kind.PREFERENCE,
            "Paper size",
            "Letters go out on A4.",
            "What is my rule about paper size?",
        ),
        (
            Kind.PREFERENCE,
            None,
            "There is only one way to find the harbour master.",
            "my rule about the harbour master?",
        ),
        (
            Kind.FACT,
            None,
            "From now on letters go through Heron only.",
            "What do we know about Heron?",
        ),
        (
            Kind.TODO,
            None,
            "Rotate the upload key before March.",
            "What is left to do about the upload key?",
        ),
        (Kind.TODO, None, "Before March we call Heron again.", "What is left to do about Heron?"),
        (Kind.FACT, "港口费用", "港口费用按年计算。", "关于港口费用，我们知道什么？"),
    ],
)
def test_suggested_question_matches_kind_and_subject(
    world: World, kind: Kind, subject: str | None, content: str, question: str
) -> None:
    world.transcript("s1", says("user", "Why is the sky blue?", uuid="u1"))
    with world.open() as memory:
        memory.ingest()
        memory.store(content, kind=kind, subject=subject or subject_of(content))
        (decision,) = memory.list()
    assert question in (about(decision) or "")


@pytest.mark.parametrize(
    "content",
    [
        "Never log card numbers, not even masked ones.",
        "We need something sturdier, to be sure it is always there.",
        "Look at the following page and keep it short.",
        "Boats pay the harbour per night, and leave by noon.",
        "Pay what is left before Friday, or in March.",
        "以后所有的港口费用都按照年份来计算，并且要附上说明",
    ],
)
def test_text_without_a_name_makes_no_question(world: World, content: str) -> None:
    world.transcript("s1", says("user", f"Remember: {content}", uuid="u1"))
    assert quickstart(world).status.story.questions == {}


def test_topic_of_several_sessions_makes_an_answered_question(world: World) -> None:
    for name in ("s1", "s2", "s3"):
        world.transcript(
            name,
            says("user", f"Why does the mooring ledger fail in {name}?", uuid=name, session=name),
        )
    world.transcript("s4", says("user", "Why does the crane log fail?", uuid="s4", session="s4"))
    (question,) = quickstart(world).status.story.questions
    assert question == "What did we say about the mooring ledger?"


def test_quickstart_reports_exact_counts(world: World) -> None:
    write_rules(world)
    world.transcript(
        "s2", says("user", "Maybe the crane log belongs into the ledger.", uuid="s2", session="s2")
    )
    status = quickstart(world).status
    with world.open() as memory:
        assert status.memories == len(memory.list())
    context = world.context()
    assert len(status.story.candidates) == context.reviews.counts()[0]
    context.database.close()
    assert (status.sessions, status.writer.writer) == (2, "none")


LONG = "The crane at the east quay stood still today, and nobody could tell why it did so. " * 40


def test_story_names_the_files_with_most_edits_and_their_tools(world: World) -> None:
    for name in ("s1", "s2"):
        edit = {
            "type": "tool_use",
            "id": f"t{name}",
            "name": "Edit",
            "input": {"file_path": f"/code/{name}/src/crane.py"},
        }
        record = says("assistant", "", uuid=f"a{name}", session=name)
        record["message"]["content"] = [edit]
        world.transcript(
            name,
            says("user", f"Change crane.py in {name}, please.", uuid=name, session=name),
            record,
        )
    story = quickstart(world).status.story
    (change,) = story.changes
    assert change.path.endswith("/src/crane.py")
    assert (change.tool, change.edits, change.sessions) == ("claude-code", 2, 2)
    assert list(story.questions) == ["Why did we change crane.py?"]


def test_questions_change_neither_usage_nor_ranking(world: World) -> None:
    write_rules(world)
    quickstart(world)
    assert not (world.home / "usage.jsonl").exists()


def test_quickstart_without_memories_asks_no_questions(world: World) -> None:
    world.transcript("s1", says("user", "Why is the sky blue?", uuid="u1"))
    result = quickstart(world)
    assert (result.source, result.status.story.decisions, result.status.story.questions) == (
        "discovered",
        (),
        {},
    )


def test_embedding_stops_after_its_time_limit_with_the_rest_reported(world: World) -> None:
    write_rules(world)
    result = quickstart(world, seconds_for_vectors=0.0)
    assert result.report.vectors_made == 0
    assert result.report.vectors_left > 0
    assert result.report.vectors_note is None
    assert result.status.story.questions
    with world.open() as memory:
        assert memory.ingest().vectors_left == 0


def test_memories_are_embedded_before_turns(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rules(world)
    times = iter([0.0, 0.0, 1.0, 2.0, 99.0, 99.0])
    monkeypatch.setattr("nacre.memories.vectors.time.monotonic", lambda: next(times, 99.0))
    result = quickstart(world)
    assert result.report.vectors_made >= len(result.report.memories)
    assert any("PostgreSQL" in text for text in world.embedder.embedded)


def test_every_stage_reports_its_progress(world: World) -> None:
    reports: list[Progress] = []
    context = world.context()
    run_quickstart(context, reports.append)
    context.database.close()
    assert {progress.stage for progress in reports} == {
        "reading",
        "learning",
        "archiving",
        "vectors",
    }
