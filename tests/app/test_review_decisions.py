"""Decisions in review: into another memory, in other words, and back."""

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
    """The id of the one candidate that waits in a home with one memory, :data:`UPLOADS`."""
    with world.open() as memory:
        memory.store(UPLOADS, project="acme")
    home = world.context()
    one = Memory(
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
        home.candidates.add([HeldCandidate(one, Why.FOUND, None, 0.5, NOON)])
    home.close()
    world.clock.now += timedelta(
        minutes=1
    )  # of two operations at the same moment either is the last
    return one.id


def contents(world: World) -> set[str]:
    with world.open() as memory:
        return {one.content for one in memory.list()}


def waiting(world: World) -> list[str]:
    with world.open() as memory:
        return [one.memory.id for one in memory.call("review", only="candidate", limit=0).items]


def test_candidate_merged_into_a_memory_adds_words_and_tags(world: World, candidate: str) -> None:
    with world.open() as memory:
        (target,) = memory.list()
        assert [
            one.id for one in memory.call("review-keep", references=(candidate,), into=target.id)
        ] == [target.id]
        merged = memory.get(target.id)
    assert merged.content == f"{UPLOADS} {EXPORTS}"
    assert (merged.subject, merged.tags, merged.trust) == (
        target.subject,
        ("exports",),
        Trust.TRUSTED,
    )
    assert waiting(world) == []


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
    assert waiting(world) == [candidate]


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
    assert waiting(world) == [candidate]
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
    assert waiting(world) == []


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
        (dropped, *_) = memory.log()
        assert (dropped.operation.action, dropped.operation.subject) == ("drop", "1 candidate")
        memory.undo()
        memory.call("commit")
    titles = git(world, "log", "--format=%B")
    assert "drop" in titles
    assert "exports" not in titles.lower()


def test_kept_candidate_stays_kept_after_a_later_undo(world: World, candidate: str) -> None:
    with world.open() as memory:
        (kept,) = [one.id for one in memory.call("review-keep", references=(candidate,))]
        assert kept == candidate
        world.clock.now += timedelta(minutes=1)
        world.context().reviews.doubt(
            kept, "nobody knows", to_ms(world.clock()) or 0, ("claude-code:one",)
        )
        memory.keep(kept)
        assert memory.undo().waiting
        assert [one.memory.id for one in memory.reviews()] == [kept]
        memory.retire(kept)
    assert waiting(world) == []
    world.clock.now += timedelta(days=2)
    world.transcript(
        "one", says("user", "Hello there.", uuid="t0"), says("assistant", "Hello.", uuid="t1")
    )
    with world.open() as memory:
        memory.ingest()
    assert waiting(world) == []


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
        (target,) = (one for one in memory.list() if one.content == UPLOADS)
        assert {one.memory.id for one in memory.reviews()} == {proposed, candidate}
        if decision == "retire":
            memory.call("review-drop", references=(proposed,))
        else:
            words = "The bank opens at ten." if decision == "reword" else None
            into = target.id if decision == "merge" else None
            memory.call("review-keep", references=(proposed,), content=words, into=into)
        assert [one.memory.id for one in memory.reviews()] == [candidate]
        now = {one.content for one in memory.list()}
        assert (
            now
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
        assert {one.memory.id for one in memory.reviews()} == {proposed, candidate}
    assert candidate in waiting(world)
    assert contents(world) == {UPLOADS, "The bank opens at nine."}


def test_new_text_is_accepted_only_for_a_single_memory(world: World) -> None:
    with world.open() as memory:
        found = [
            memory.store(text).memory_id
            for text in ("Gulls are white.", "Ropes are bought in spring.")
        ]
        memory.judge(*found, good=False)
        with pytest.raises(InvalidInputError):
            memory.call("review-keep", references=tuple(found), content="Both.")


def test_review_keep_conflicts_with_a_newer_manual_edit(world: World) -> None:
    with world.open() as memory:
        one = memory.call("store", content=UPLOADS, speaker="agent").memory_id
        read = memory.call("look", reference=one)
        file = world.memory_file(one)
        file.write_text(file.read_text("utf-8").replace("at night", "at noon"), "utf-8")
        with pytest.raises(EditConflictError):
            memory.call("review-keep", references=[one], content=EXPORTS, expected=read.etag)
        again = memory.call("look", reference=one)
        assert "at noon" in again.memory.content
        assert again.memory.proposed
        memory.call("review-keep", references=[one], content=EXPORTS, expected=again.etag)
        kept = memory.get(one)
    assert (kept.content, kept.proposed) == (EXPORTS, False)


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


def _held(world: World, content: str) -> Memory:
    """A candidate of six days ago that waits in the project acme-billing."""
    home = world.context()
    at = NOON - timedelta(days=6)
    one = Memory(
        id=home.ids(),
        kind=Kind.DECISION,
        subject=content[:40],
        content=content,
        created=at,
        updated=at,
        project="acme-billing",
        speaker=Speaker.OWNER,
    )
    with home.database.transaction():
        home.candidates.add([HeldCandidate(one, Why.FOUND, None, 0.5, NOON)])
    home.close()
    return one


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
    one = _held(world, content)
    world.transcript("s1", says("assistant", agent, uuid="a1"), says("user", later, uuid="u1"))
    with world.open() as memory:
        memory.ingest(extract=False)
        (item,) = memory.call("review").items
        assert item.detail == f"later you said: “{later}”"
        with pytest.raises(DepartedError, match=later[:12]):
            memory.call("review-keep", references=(one.id,))
        assert [
            kept.id for kept in memory.call("review-keep", references=(one.id,), anyway=True)
        ] == [one.id]


@pytest.mark.parametrize(
    "later", ["Fix it, the test is red.", "Sapling needs a test for the nested list.", "Thanks."]
)
def test_kept_candidate_has_the_date_of_its_statement(world: World, later: str) -> None:
    one = _held(world, "We take Sapling for the schema.")
    world.transcript(
        "s1",
        says("assistant", "Sapling cannot store a nested list.", uuid="a1"),
        says("user", later, uuid="u1"),
    )
    with world.open() as memory:
        memory.ingest(extract=False)
        (kept,) = memory.call("review-keep", references=(one.id,))
        assert (kept.created, kept.updated) == (one.created, one.created)


@pytest.mark.parametrize("content", ["Rip it out, we use Walnut.", "它是默认的。"])
def test_candidate_with_a_pronoun_must_be_edited_before_keeping(world: World, content: str) -> None:
    one = _held(world, content)
    with world.open() as memory:
        with pytest.raises(InvalidInputError):
            memory.call("review-keep", references=(one.id,))
        memory.call("review-keep", references=(one.id,), content="Walnut replaces Sapling.")
        assert [found.content for found in memory.list()] == ["Walnut replaces Sapling."]


def _contents(world: World) -> set[str]:
    with world.open() as memory:
        return {one.content for one in memory.list()}


def test_undone_memory_is_restored_only_by_the_owner(
    world: World,
) -> None:
    often = "Always run the linter before you commit."

    def say(name: str) -> None:
        at = f"{world.clock() - timedelta(hours=1):%Y-%m-%dT%H:%M:%S.000Z}"
        world.transcript(name, says("user", often, uuid=name, session=f"5e55-{name}", at=at))
        with world.open() as memory:
            memory.ingest()

    say("once")
    assert _contents(world) == {often}
    with world.open() as memory:
        memory.undo(
            next(one.operation.id for one in memory.log() if one.operation.action == "ingest")
        )
    world.environ["CLAUDECODE"] = "1"
    with world.open() as memory:
        memory.store(often, project="acme-billing", quote=often)
    del world.environ["CLAUDECODE"]
    assert _contents(world) == set()
    world.clock.pass_days(1)
    say("again")
    assert _contents(world) == {often}
