"""Candidates in review can be merged, reworded, dropped and restored."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest

from nacre.base.ids import to_ms
from nacre.errors import (
    ConflictError,
    DepartedError,
    EditConflictError,
    InvalidInputError,
    NotFoundError,
)
from nacre.values.memory import HeldCandidate, Kind, Memory, Source, Why
from nacre.values.session import Speaker, Trust
from tests.app.conftest import NOON, World, says
from tests.app.test_history import git

EXPORTS = "The exports should be compressed before the upload, since the line is slow."
UPLOADS = "Uploads go to the bank at night."


@pytest.fixture
def candidate(world: World) -> str:
    """Return the id of a candidate that waits in a home with one memory, :data:`UPLOADS`."""
    with world.open() as memory:
        memory.store(UPLOADS, project="acme")
    home = world.context()
    new_candidate = Memory(
        id=home.ids(),
        kind=Kind.PREFERENCE,
        subject=EXPORTS[:40],
        content=EXPORTS,
        created=NOON,
        updated=NOON,
        project="acme",
        tags=("exports",),
        speaker=Speaker.OWNER,
        source=Source(),
    )
    with home.database.transaction():
        home.candidates.add([HeldCandidate(new_candidate, Why.FOUND, None, 0.5, NOON)])
    home.close()
    world.clock.now += timedelta(minutes=1)  # gives the next operation a later time
    return new_candidate.id


def contents(world: World) -> set[str]:
    with world.open() as memory:
        return {item.content for item in memory.list()}


def pending_candidates(world: World) -> list[str]:
    with world.open() as memory:
        return [item.memory.id for item in memory.call("review", only="candidate", limit=0).items]


def test_candidate_merged_into_a_memory_adds_words_and_tags(world: World, candidate: str) -> None:
    with world.open() as memory:
        (target,) = memory.list()
        assert [
            item.id for item in memory.call("review-keep", references=(candidate,), into=target.id)
        ] == [target.id]
        merged_memory = memory.get(target.id)
    assert merged_memory.content == f"{UPLOADS} {EXPORTS}"
    assert (merged_memory.subject, merged_memory.tags, merged_memory.trust) == (
        target.subject,
        ("exports",),
        Trust.TRUSTED,
    )
    assert pending_candidates(world) == []


def test_merge_of_an_already_contained_candidate_adds_no_words(
    world: World, candidate: str
) -> None:
    with world.open() as memory:
        (target,) = memory.list()
        memory.edit(target.id, content=f"{UPLOADS} {EXPORTS}")
        memory.call("review-keep", references=(candidate,), into=target.id)
    assert contents(world) == {f"{UPLOADS} {EXPORTS}"}


def test_merge_into_a_retired_memory_or_empty_text_fails(world: World, candidate: str) -> None:
    with world.open() as memory:
        (target,) = memory.list()
        with pytest.raises(InvalidInputError):
            memory.call("review-keep", references=(candidate,), into=target.id, content=" ")
        memory.retire(target.id)
        with pytest.raises(ConflictError):
            memory.call("review-keep", references=(candidate,), into=target.id)
    assert pending_candidates(world) == [candidate]


@pytest.mark.parametrize("decision", ["keep", "reword", "merge", "drop", "repeat"])
def test_review_undo_restores_a_candidate(world: World, candidate: str, decision: str) -> None:
    with world.open() as memory:
        (target,) = memory.list()
        if decision == "drop":
            memory.call("review-drop", references=(candidate,))
        else:
            words = {"reword": "Exports are compressed.", "repeat": UPLOADS}.get(decision)
            into = target.id if decision == "merge" else None
            memory.call("review-keep", references=(candidate,), content=words, into=into)
        assert memory.call("review", only="candidate").total == 0
        assert memory.call("review-undo", reference=candidate).content == EXPORTS
    assert contents(world) == {UPLOADS}
    assert pending_candidates(world) == [candidate]
    with world.open() as memory, pytest.raises(NotFoundError):
        memory.call("review-undo", reference=candidate)


def test_review_undo_is_refused_after_a_later_edit(world: World, candidate: str) -> None:
    with world.open() as memory:
        (target,) = memory.list()
        memory.call("review-keep", references=(candidate,), into=target.id)
        memory.edit(target.id, content="Uploads go at noon.")
        with pytest.raises(ConflictError):
            memory.call("review-undo", reference=candidate)
    assert contents(world) == {"Uploads go at noon."}
    assert pending_candidates(world) == []


def test_dropped_candidate_text_is_erased_after_a_day(world: World, candidate: str) -> None:
    with world.open() as memory:
        memory.call("review-drop", references=(candidate,))
    world.clock.now += timedelta(days=1, minutes=1)
    world.transcript(
        "one", says("user", "Hello there.", uuid="t0"), says("assistant", "Hello.", uuid="t1")
    )
    with world.open() as memory:
        memory.ingest()
        with pytest.raises(NotFoundError):
            memory.call("review-undo", reference=candidate)
    with closing(sqlite3.connect(world.home / "nacre.db")) as database:
        assert database.execute("SELECT memory, detail FROM candidates").fetchall() == [
            (None, None)
        ]


def test_journal_and_history_contain_no_text_of_dropped_candidates(
    world: World, candidate: str
) -> None:
    with world.open() as memory:
        memory.call("review-drop", references=(candidate,))
        (drop_entry, *_) = memory.log()
        assert (drop_entry.operation.action, drop_entry.operation.subject) == (
            "drop",
            "1 candidate",
        )
        memory.undo()
        memory.call("commit")
    titles = git(world, "log", "--format=%B")
    assert "drop" in titles
    assert "exports" not in titles.lower()


def test_kept_candidate_stays_kept_after_a_later_undo(world: World, candidate: str) -> None:
    with world.open() as memory:
        (kept_id,) = [item.id for item in memory.call("review-keep", references=(candidate,))]
        assert kept_id == candidate
        world.clock.now += timedelta(minutes=1)
        world.context().reviews.doubt(
            kept_id, "nobody knows", to_ms(world.clock()) or 0, ("claude-code:one",)
        )
        memory.keep(kept_id)
        assert memory.undo().waiting
        assert [review.memory.id for review in memory.reviews()] == [kept_id]
        memory.retire(kept_id)
    assert pending_candidates(world) == []
    world.clock.now += timedelta(days=2)
    world.transcript(
        "one", says("user", "Hello there.", uuid="t0"), says("assistant", "Hello.", uuid="t1")
    )
    with world.open() as memory:
        memory.ingest()
    assert pending_candidates(world) == []


def test_forgotten_candidate_cannot_be_restored(world: World, candidate: str) -> None:
    with world.open() as memory:
        memory.call("review-drop", references=(candidate,))
        memory.forget(memory.plan_forgetting(match="exports should be compressed"))
        with pytest.raises(NotFoundError):
            memory.call("review-undo", reference=candidate)


@pytest.mark.parametrize("decision", ["keep", "reword", "merge", "retire"])
def test_review_undo_restores_a_proposed_memory(
    world: World, candidate: str, decision: str
) -> None:
    world.environ["CLAUDECODE"] = "1"
    with world.open() as memory:
        proposed = memory.store("The bank opens at nine.", project="acme").memory_id
    del world.environ["CLAUDECODE"]
    with world.open() as memory:
        (target,) = (item for item in memory.list() if item.content == UPLOADS)
        assert {review.memory.id for review in memory.reviews()} == {proposed, candidate}
        if decision == "retire":
            memory.call("review-drop", references=(proposed,))
        else:
            words = "The bank opens at ten." if decision == "reword" else None
            into = target.id if decision == "merge" else None
            memory.call("review-keep", references=(proposed,), content=words, into=into)
        assert [review.memory.id for review in memory.reviews()] == [candidate]
        after = {item.content for item in memory.list()}
        assert (
            after
            == {
                "keep": {UPLOADS, "The bank opens at nine."},
                "reword": {UPLOADS, "The bank opens at ten."},
                "merge": {f"{UPLOADS} The bank opens at nine."},
                "retire": {UPLOADS},
            }[decision]
        )
        back = memory.call("review-undo", reference=proposed)
        assert (back.content, back.proposed, back.is_active) == (
            "The bank opens at nine.",
            True,
            True,
        )
        assert {review.memory.id for review in memory.reviews()} == {proposed, candidate}
    assert candidate in pending_candidates(world)
    assert contents(world) == {UPLOADS, "The bank opens at nine."}


def test_new_text_is_accepted_only_for_a_single_memory(world: World) -> None:
    with world.open() as memory:
        ids = [
            memory.store(text).memory_id
            for text in ("Gulls are white.", "Ropes are bought in spring.")
        ]
        memory.judge(*ids, good=False)
        with pytest.raises(InvalidInputError):
            memory.call("review-keep", references=tuple(ids), content="Both.")


def test_review_keep_conflicts_with_a_newer_manual_edit(world: World) -> None:
    with world.open() as memory:
        memory_id = memory.call("store", content=UPLOADS, speaker="agent").memory_id
        shown = memory.call("look", reference=memory_id)
        file = world.memory_file(memory_id)
        file.write_text(file.read_text("utf-8").replace("at night", "at noon"), "utf-8")
        with pytest.raises(EditConflictError):
            memory.call("review-keep", references=[memory_id], content=EXPORTS, expected=shown.etag)
        edited = memory.call("look", reference=memory_id)
        assert "at noon" in edited.memory.content
        assert edited.memory.proposed
        memory.call("review-keep", references=[memory_id], content=EXPORTS, expected=edited.etag)
        reworded = memory.get(memory_id)
    assert (reworded.content, reworded.proposed) == (EXPORTS, False)


def test_contradiction_is_settled_by_its_pair_of_ids(world: World) -> None:
    with world.open() as memory:
        for content in ("Uploads may be 10 MB", "Uploads have changed to 25 MB"):
            memory.store(content, project="acme")
        (reference,) = [item.id for item in memory.reviews()]
        assert memory.call(
            "review-resolve", reference=reference, choice="keep-new"
        ).older.superseded_by
        with pytest.raises(NotFoundError):
            memory.call("review-resolve", reference=reference, choice="keep-new")


def _add_candidate(world: World, content: str) -> Memory:
    """Add a candidate from six days ago to the project acme-billing."""
    home = world.context()
    created = NOON - timedelta(days=6)
    memory = Memory(
        id=home.ids(),
        kind=Kind.DECISION,
        subject=content[:40],
        content=content,
        created=created,
        updated=created,
        project="acme-billing",
        speaker=Speaker.OWNER,
    )
    with home.database.transaction():
        home.candidates.add([HeldCandidate(memory, Why.FOUND, None, 0.5, NOON)])
    home.close()
    return memory


@pytest.mark.parametrize(
    ("content", "agent", "later"),
    [
        ("We take Sapling for the schema.", "The build is green.", "We no longer use Sapling."),
        (
            "We take Sapling for the schema.",
            "The build is green.",
            "We moved from Sapling to Walnut for the schema.",
        ),
        ("我们用Sapling做队列", "Sapling 的队列又堵了。", "队列从Sapling换成了Walnut。"),
    ],
)
def test_keeping_a_candidate_shows_a_later_contradicting_statement(
    world: World, content: str, agent: str, later: str
) -> None:
    candidate = _add_candidate(world, content)
    world.transcript("s1", says("assistant", agent, uuid="a1"), says("user", later, uuid="u1"))
    with world.open() as memory:
        memory.ingest(extract=False)
        (item,) = memory.call("review").items
        assert item.later == later
        with pytest.raises(DepartedError, match=later[:12]):
            memory.call("review-keep", references=(candidate.id,))
        assert [
            result.id
            for result in memory.call("review-keep", references=(candidate.id,), anyway=True)
        ] == [candidate.id]


@pytest.mark.parametrize(
    "later", ["Fix it, the test is red.", "Sapling needs a test for the nested list.", "Thanks."]
)
def test_kept_candidate_has_the_date_of_its_statement(world: World, later: str) -> None:
    candidate = _add_candidate(world, "We take Sapling for the schema.")
    world.transcript(
        "s1",
        says("assistant", "Sapling cannot store a nested list.", uuid="a1"),
        says("user", later, uuid="u1"),
    )
    with world.open() as memory:
        memory.ingest(extract=False)
        (kept_memory,) = memory.call("review-keep", references=(candidate.id,))
        assert (kept_memory.created, kept_memory.updated) == (candidate.created, candidate.created)


@pytest.mark.parametrize("content", ["Rip it out, we use Walnut.", "它是默认的。"])
def test_candidate_with_a_pronoun_must_be_edited_before_keeping(world: World, content: str) -> None:
    candidate = _add_candidate(world, content)
    with world.open() as memory:
        with pytest.raises(InvalidInputError):
            memory.call("review-keep", references=(candidate.id,))
        memory.call("review-keep", references=(candidate.id,), content="Walnut replaces Sapling.")
        assert [item.content for item in memory.list()] == ["Walnut replaces Sapling."]


def test_undone_memory_is_restored_only_by_the_owner(world: World) -> None:
    rule = "Always run the linter before you commit."

    def say(name: str) -> None:
        time = f"{world.clock() - timedelta(hours=1):%Y-%m-%dT%H:%M:%S.000Z}"
        world.transcript(name, says("user", rule, uuid=name, session=f"5e55-{name}", at=time))
        with world.open() as memory:
            memory.ingest()

    say("once")
    assert contents(world) == {rule}
    with world.open() as memory:
        memory.undo(
            next(item.operation.id for item in memory.log() if item.operation.action == "ingest")
        )
    world.environ["CLAUDECODE"] = "1"
    with world.open() as memory:
        memory.store(rule, project="acme-billing", quote=rule)
    del world.environ["CLAUDECODE"]
    assert contents(world) == set()
    world.clock.pass_days(1)
    say("again")
    assert contents(world) == {rule}
