"""A first look: this machine's transcripts, or else the examples; memories to show; questions that are answered."""

from __future__ import annotations

import stat
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nacre.care.database import rebuild
from nacre.errors import NotFoundError
from nacre.home.home import open_home
from nacre.learn.reading import subject_of
from nacre.recall.recall import recall
from nacre.setup import examples
from nacre.setup.setup import QuickstartResult, about, run_quickstart
from nacre.values.memory import Kind
from nacre.values.recall import RecallQuery
from nacre.values.reports import Progress
from tests.app.conftest import World, says


def look(world: World, **more: float) -> QuickstartResult:
    context = world.context()
    try:
        return run_quickstart(context, **more)
    finally:
        context.database.close()


def rules(world: World) -> None:
    """A transcript with things worth keeping."""
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
    result = look(world)
    assert result.source == "examples"
    assert result.tools == {"Claude Code": 2, "Codex CLI": 2, "OpenClaw and pi": 2}
    assert (result.report.files, result.report.sessions, result.report.problems) == (6, 6, ())
    assert (result.report.unknown, result.report.corrupt) == ({}, 0)
    assert len(result.report.memories) >= 12
    assert result.report.candidates > 0
    assert len(list(world.vault.glob("projects/*/project.md"))) == 2


def test_examples_can_be_removed_and_added_again(world: World) -> None:
    look(world)
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
    assert look(world).report.sessions == 6


def test_bundled_model_answers_the_example_questions_with_evidence(
    world: World,
) -> None:
    context = open_home(world.settings(), clock=world.clock)
    result = run_quickstart(context)
    today = recall(context, RecallQuery("which database does hivelog use?"))
    context.database.close()
    assert [hit.memory.subject for hit in today.hits if "SQLite" in hit.memory.content] == [
        "We're moving from SQLite to PostgreSQL, because nine more…"
    ]
    answers = {answer.question: answer.result.hits[0] for answer in result.answers}
    assert len(answers) == 3
    for question, words in {
        "SQLite": "PostgreSQL",
        "search": "Pagefind",
        "字体": "思源宋体",
    }.items():
        hit = next(hit for asked, hit in answers.items() if question in asked)
        assert words in hit.memory.content
        assert hit.evidence[0].session_id == hit.memory.source.session
    assert [answer.result.degraded for answer in result.answers] == [(), (), ()]


def test_word_search_answers_the_examples_without_embedding_model(world: World) -> None:
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"
    result = look(world)
    assert len(result.answers) == 3
    assert "off" in (result.report.vectors_note or "")


def test_copied_examples_are_readable_only_by_the_owner(world: World) -> None:
    result = look(world)
    for memory in result.best:
        assert memory.source.file
        path = Path(memory.source.file)
        assert path.is_relative_to(world.home / "examples")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_second_quickstart_adds_nothing(world: World) -> None:
    first = look(world)
    files = sorted(world.vault.rglob("*"))
    second = look(world)
    assert (second.report.files, second.report.turns, second.report.memories) == (0, 0, ())
    assert replace(second, report=first.report, answers=first.answers) == first
    assert [answer.question for answer in second.answers] == [
        answer.question for answer in first.answers
    ]
    assert sorted(world.vault.rglob("*")) == files


def test_the_examples_survive_a_rebuild(world: World) -> None:
    before = look(world)
    rebuild(world.settings(), world.context)
    after = look(world)
    assert after.best == before.best
    assert after.report.turns == 0
    assert all(hit.evidence for answer in after.answers for hit in answer.result.hits)


def test_quickstart_prefers_transcripts_of_this_machine(world: World) -> None:
    rules(world)
    result = look(world)
    assert result.source == "discovered"
    assert result.tools == {"Claude Code": 1}
    assert {memory.project for memory in result.best} == {"acme-billing"}
    assert not (world.home / "examples").exists()


def test_own_sessions_hide_the_examples(world: World) -> None:
    look(world)
    rules(world)
    result = look(world)
    assert result.source == "discovered"
    assert {memory.project for memory in result.best} == {"acme-billing"}
    assert [answer.question for answer in result.answers] == [
        "What did we decide about PostgreSQL?"
    ]
    assert result.has_examples


def test_empty_transcript_does_not_replace_the_examples(world: World) -> None:
    world.transcript("s1", {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}})
    assert look(world).source == "examples"
    rules(world)
    assert look(world).source == "discovered"


def test_quickstart_questions_come_from_learned_memories(world: World) -> None:
    rules(world)
    result = look(world)
    assert [answer.question for answer in result.answers] == [
        "What did we decide about PostgreSQL?"
    ]
    known = {memory.id for memory in result.best}
    for answer in result.answers:
        assert answer.result.is_answered
        assert answer.question.endswith("?")
        assert any(hit.memory.id in known and hit.evidence for hit in answer.result.hits)
    assert [answer.question for answer in look(world).answers] == [
        answer.question for answer in result.answers
    ]


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
    context = world.context()
    (stored,) = run_quickstart(context).best
    context.database.close()
    assert question in (about(stored) or "")


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
    assert look(world).answers == ()


def test_topic_of_several_sessions_makes_an_answered_question(world: World) -> None:
    for name in ("s1", "s2", "s3"):
        world.transcript(
            name,
            says("user", f"Why does the mooring ledger fail in {name}?", uuid=name, session=name),
        )
    world.transcript("s4", says("user", "Why does the crane log fail?", uuid="s4", session="s4"))
    (answer,) = look(world).answers
    assert answer.question == "What did we say about the mooring ledger?"
    assert "mooring ledger" in answer.result.turns[0].turn.text


def test_quickstart_reports_exact_counts(world: World) -> None:
    rules(world)
    world.transcript(
        "s2", says("user", "Maybe the crane log belongs into the ledger.", uuid="s2", session="s2")
    )
    found = look(world).reach
    with world.open() as memory:
        assert found.memories == len(memory.list())
    context = world.context()
    assert found.candidates == context.candidates.count()
    context.database.close()
    assert (found.sessions, found.turns, found.writer.writer) == (2, 6, "none")


LONG = "The crane at the east quay stood still today, and nobody could tell why it did so. " * 40


def test_most_frequently_changed_file_is_reported(world: World) -> None:
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
            name, says("user", f"Mend the crane in {name}.", uuid=name, session=name), record
        )
    assert look(world).changed == ("crane.py", 2)


def test_questions_change_neither_usage_nor_ranking(world: World) -> None:
    rules(world)
    look(world)
    assert not (world.home / "usage.jsonl").exists()


def test_quickstart_without_memories_asks_no_questions(world: World) -> None:
    world.transcript("s1", says("user", "Why is the sky blue?", uuid="u1"))
    result = look(world)
    assert (result.source, result.best, result.answers) == ("discovered", (), ())


def test_quickstart_shows_twelve_important_memories_of_several_kinds(world: World) -> None:
    with world.open() as memory:
        for number in range(20):
            world.clock.now = datetime(2026, 11, 1, number, tzinfo=UTC)
            memory.store(
                f"Rule {number}: never do thing number {number}.",
                kind=Kind.PREFERENCE,
                importance=8,
            )
        for number in range(3):
            memory.store(f"Bridge {number} is made of stone.", kind=Kind.FACT, importance=6)
        memory.store("We settled on oak.", kind=Kind.DECISION, importance=7)
    world.transcript("s1", says("user", "Why is the sky blue?", uuid="u1"))
    best = look(world).best
    assert len(best) == 12
    assert best[0].content.startswith("Rule 19")
    assert best[1].content.startswith("Rule 18")
    kinds = {memory.kind for memory in best}
    assert {Kind.PREFERENCE, Kind.DECISION, Kind.FACT} <= kinds
    assert best[2].kind is Kind.DECISION


def test_embedding_stops_after_its_time_limit_with_the_rest_reported(world: World) -> None:
    rules(world)
    result = look(world, seconds_for_vectors=0.0)
    assert result.report.vectors_made == 0
    assert result.report.vectors_left > 0
    assert result.report.vectors_note is None
    assert result.answers
    with world.open() as memory:
        assert memory.ingest().vectors_left == 0


def test_memories_are_embedded_before_turns(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rules(world)
    times = iter([0.0, 0.0, 1.0, 2.0, 99.0, 99.0])
    monkeypatch.setattr("nacre.memories.vectors.time.monotonic", lambda: next(times, 99.0))
    result = look(world)
    assert result.report.vectors_made >= len(result.report.memories)
    assert any("PostgreSQL" in text for text in world.embedder.embedded)


def test_every_stage_reports_its_progress(world: World) -> None:
    seen: list[Progress] = []
    context = world.context()
    run_quickstart(context, seen.append)
    context.database.close()
    assert {progress.stage for progress in seen} == {"reading", "learning", "archiving", "vectors"}
