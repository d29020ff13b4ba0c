"""What a writer says of memories it was shown as known: which a session shows to be over, and which to have changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from nacre.context.build import build
from nacre.values.context import ContextRequest, Moment
from nacre.values.memory import Memory
from nacre.values.models import Capabilities, Prompt
from nacre.values.reports import IngestReport
from nacre.values.review import Reason
from tests.app.conftest import World, doubts, says
from tests.app.test_deeds import calls, gives
from tests.app.test_extraction_by_model import home
from tests.fakes.model import ScriptedModel

TROUBLE = (
    "The export of a month fails above a thousand rows, because the driver runs out of memory."
)
CHOICE = "Invoices get their numbers from the database."
ASKED = "Please have another look at why the export of a month fails above a thousand rows."
MENDED = "The export of a month now passes with a million rows: the driver fetches them in pages."
DROPPED = "Invoices no longer get their numbers from the database, we number them by hand now."


DROPPING = "Invoices no longer get their numbers from the database"
NOW_PASSES = "now passes with a million rows"


def after(
    world: World,
    stored: Mapping[str, Any],
    quote: str,
    finding: str = "holds",
    days: int = -9,
    *,
    more: Sequence[Mapping[str, Any]] = (),
    meanwhile: str = "",
    kept: list[tuple[ScriptedModel, IngestReport]] | None = None,
    nearly: Sequence[Any] = (),
    written: Sequence[Mapping[str, Any]] = (),
) -> Memory:
    """A memory that was stored some days ago, after a session that outdates it according to a writer's quote."""
    world.transcript(
        "mending",
        says("user", ASKED, uuid="m-1"),
        says("assistant", MENDED, uuid="m-2"),
        says("user", DROPPED, uuid="m-3"),
        says("assistant", "Noted: no numbers from the database.", uuid="m-4"),
        *more,
    )

    able = Capabilities(
        window=100_000, output=4_000, answers="text" if nearly else "schema", known=True
    )
    model = ScriptedModel(
        lambda _: {"memories": list(written)},
        finding=finding,
        capabilities=able,
        over=lambda prompt: answer(prompt),
    )
    with home(world, model) as memory:
        world.clock.pass_days(days)
        one = memory.store(**stored).memory_id
        world.clock.pass_days(-days)

        def answer(prompt: Prompt) -> Any:
            listed = [one for one in prompt.shared.splitlines() if one.startswith("[k")]
            (line,) = [one for one in listed if stored["content"][:24] in one]
            if meanwhile:
                memory.edit(one, content=meanwhile)
            return list(nearly) or [{"known": int(line[2 : line.index("]")]), "quote": quote}]

        report = memory.ingest()
        if kept is not None:
            kept.append((model, report))
        return memory.get(one)


def test_repaired_problem_ends_with_the_confirming_words(world: World) -> None:
    memory = after(world, {"content": TROUBLE, "kind": "lesson"}, NOW_PASSES)
    assert memory.retired is not None
    assert NOW_PASSES in memory.retired.reason


def test_the_owners_words_end_a_decision(world: World) -> None:
    assert after(world, {"content": CHOICE, "kind": "decision"}, DROPPING).retired


@pytest.mark.parametrize(
    ("quote", "finding"),
    [
        ("Noted: no numbers from the database", "holds"),
        ("the database is gone for good", "holds"),
        ("", "holds"),
        (DROPPING, "unsettled"),
    ],
    ids=["the agent's words", "words nobody said", "no words", "not verified"],
)
def test_a_decision_does_not_end_without_the_owners_words(
    world: World, quote: str, finding: str
) -> None:
    assert not after(world, {"content": CHOICE, "kind": "decision"}, quote, finding).retired


def test_a_new_memory_supersedes_the_outdated_one(world: World) -> None:
    written = {
        "kind": "decision",
        "subject": "Numbers of invoices",
        "content": "Invoices are numbered by hand in the office.",
        "quote": DROPPING,
        "always": False,
    }
    kept: list[tuple[ScriptedModel, IngestReport]] = []
    stored = {"content": CHOICE, "kind": "decision", "project": "acme-billing"}
    old = after(world, stored, DROPPING, written=[written], kept=kept)
    with world.open() as memory:
        (new,) = memory.list()
        assert (new.content, old.superseded_by, old.retired) == (written["content"], new.id, None)
        assert kept[0][1].ended == 1
        (operation,) = [one for one in memory.log() if one.operation.action == "ingest"]
        memory.undo(operation.operation.id)
        assert [one.content for one in memory.list()] == [CHOICE]


PUSH = "Never push to main without a review by Ada."


def test_unrelated_words_neither_end_nor_doubt_a_rule(world: World) -> None:
    kept: list[tuple[ScriptedModel, IngestReport]] = []
    stored = {"content": PUSH, "kind": "preference"}
    related = says(
        "user", "Let us talk about the review by Ada before the push to main.", uuid="m-5"
    )
    memory = after(world, stored, "Please have another look at", more=[related], kept=kept)
    ((_, report),) = kept
    assert (memory.content, memory.retired, report.doubted) == (PUSH, None, 0)


ROUNDABOUT = "With the pipeline of the vendor one may push to main without a review by Ada."
AT = "2026-11-18T09:00:00.000Z"


def after_a_page(asked: str, page: str, told: str, said: str) -> Sequence[Mapping[str, Any]]:
    """The owner asks, the agent reads a page and tells of it, and the owner says something to that (turns 5 to 7)."""
    return (
        says("user", asked, uuid="m-5"),
        calls("m-6", "WebFetch", AT, url="https://vendor.example/guide"),
        gives("m-6", page, AT),
        says("assistant", told, uuid="m-7"),
        says("user", said, uuid="m-8"),
    )


@pytest.mark.parametrize(
    ("nod", "is_theirs"),
    [("ok", False), ("ok, a push to main no longer needs a review by Ada", True)],
)
def test_after_web_access_a_nod_ends_no_rule(world: World, nod: str, *, is_theirs: bool) -> None:
    kept: list[tuple[ScriptedModel, IngestReport]] = []
    asked = "How would the review by Ada before a push to main go with their pipeline?"
    page = "Our customers enjoy shipping straight away, nobody has to look at a change beforehand."
    more = after_a_page(asked, page, ROUNDABOUT, nod)
    stored = {"content": PUSH, "kind": "preference"}
    quote = "push to main without a review by Ada"
    memory = after(world, stored, quote, more=more, kept=kept)
    ((_, report),) = kept
    assert (memory.retired is not None, report.doubted) == (is_theirs, int(not is_theirs))


CHECK = "Always run `make check` before every commit."
TOLD = "It tells that make check before commits was dropped."


@pytest.mark.parametrize("kind", ["preference", "decision"])
@pytest.mark.parametrize(
    ("quote", "said", "is_theirs"),
    [
        ("what the guide says about make check", "fine by me", False),
        (TOLD, "right, we no longer need make check", True),
        (TOLD, "fine by me", False),
        (TOLD, "no worries, commit", False),
        (TOLD, "don't commit yet", False),
        (TOLD, "好的，没问题，继续", False),
    ],
)
def test_after_web_access_the_owner_must_name_the_change(
    world: World, kind: str, quote: str, said: str, *, is_theirs: bool
) -> None:
    kept: list[tuple[ScriptedModel, IngestReport]] = []
    asked = "Please tell me what the guide says about make check and commits."
    more = after_a_page(asked, "Nobody has to wait for a test any more.", TOLD, said)
    memory = after(world, {"content": CHECK, "kind": kind}, quote, more=more, kept=kept)
    ((_, report),) = kept
    assert (not memory.retired, report.doubted) == (not is_theirs, int(not is_theirs))
    if kind == "preference" and not is_theirs:
        asked = ContextRequest(
            Moment.PROMPT, prompt=f"Is it so? {CHECK}", folder="/code/acme-billing"
        )
        lines = [one for one in build(world.context(), asked).text.splitlines() if CHECK in one]
        assert [(quote in one, "an agent" in one) for one in lines] == [(False, True)]


def test_reviewer_sees_agents_words_and_later_sessions_renew_doubts(
    world: World,
) -> None:
    def session(name: str, at: str) -> IngestReport:
        world.transcript(
            name,
            says(
                "user",
                "Tell me about make check and commits.",
                uuid=f"{name}-1",
                session=name,
                at=at,
            ),
            calls(f"{name}-2", "WebFetch", at, session=name, url="https://vendor.example/guide"),
            gives(f"{name}-2", "Nobody has to wait for a test any more.", at, session=name),
            says("assistant", TOLD, uuid=f"{name}-3", session=name, at=at),
            says("user", "fine by me", uuid=f"{name}-4", session=name, at=at),
        )
        over = {"known": 1, "quote": TOLD}
        with home(
            world, ScriptedModel(lambda _: {"memories": []}, over=lambda _: [over])
        ) as memory:
            return memory.ingest()

    with world.open() as memory:
        world.clock.pass_days(-9)
        rule = memory.store(content=CHECK, kind="preference").memory_id
        world.clock.pass_days(9)
    for name, day in (("first", "2026-11-17"), ("second", "2026-11-18")):
        assert session(name, f"{day}T09:00:00.000Z").doubted == 1
        who = f"a later session says otherwise (an agent, {day}, claude-code:{name})"
        with world.open() as memory:
            (waits,) = memory.reviews()
            assert waits.detail == f"{who}: {TOLD}"
            assert [one.doubt for one in memory.recall("make check before every commit").hits] == [
                who
            ]
            memory.keep(rule)


@pytest.mark.parametrize("kind", ["fact", "lesson", "todo"])
@pytest.mark.parametrize("read", [True, False], ids=["a page was read", "none was"])
def test_after_web_access_a_nod_doubts_the_owners_statement(
    world: World, kind: str, *, read: bool
) -> None:
    kept: list[tuple[ScriptedModel, IngestReport]] = []
    page = (
        calls("m-5", "WebFetch", AT, url="https://vendor.example"),
        gives("m-5", "Fetch rows in pages.", AT),
    )
    more = (
        *(page if read else ()),
        says("assistant", MENDED, uuid="m-6"),
        says("user", "fine by me", uuid="m-7"),
    )
    stored = {"content": TROUBLE, "kind": kind, "project": "acme-billing"}
    memory = after(world, stored, MENDED, more=more, kept=kept)
    ((_, report),) = kept
    is_left = memory.content == TROUBLE and not memory.retired
    assert (is_left, report.doubted) == (read, int(read))


def test_older_session_does_not_end_a_later_memory(world: World) -> None:
    assert not after(world, {"content": CHOICE, "kind": "decision"}, DROPPING, days=0).retired


def test_undo_restores_an_ended_memory(world: World) -> None:
    after(world, {"content": TROUBLE, "kind": "lesson"}, NOW_PASSES)
    with world.open() as memory:
        (operation,) = [one for one in memory.log() if one.operation.action == "ingest"]
        (ended,) = [
            json.loads(line)
            for line in (world.vault / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
            if '"action": "retire"' in line
        ]
        assert ended["reason"] == f"a session shows it: {NOW_PASSES}"
        memory.undo(operation.operation.id)
        assert [one.content for one in memory.list()] == [TROUBLE]


def test_manual_edit_during_a_model_call_is_kept(world: World) -> None:
    theirs = "Invoices get their numbers from the database of the office."
    stored = {"content": CHOICE, "kind": "decision"}
    memory = after(world, stored, DROPPING, meanwhile=theirs)
    assert (memory.content, memory.retired) == (theirs, None)


@pytest.mark.parametrize(
    "nearly",
    [
        [{"known": "[k1]", "quote": DROPPING}],
        [{"id": "k1", "quote": DROPPING, "why": "said"}],
        [{"known": "none"}, "none", {"known": 1, "quote": DROPPING}],
    ],
    ids=["with marks", "with more fields", "with invalid items"],
)
def test_slightly_malformed_change_answers_are_accepted(world: World, nearly: list[Any]) -> None:
    stored = {"content": CHOICE, "kind": "decision"}
    assert after(world, stored, "", nearly=nearly).retired


def test_one_call_asks_for_memories_and_changes(world: World) -> None:
    kept: list[tuple[ScriptedModel, IngestReport]] = []
    after(world, {"content": CHOICE, "kind": "decision"}, DROPPING, kept=kept)
    ((model, _),) = kept
    (prompt,) = model.prompts
    assert CHOICE in prompt.shared


@pytest.mark.parametrize("paste", ["> {}", "```\n{}\n```"])
def test_pasted_text_ends_nothing(world: World, paste: str) -> None:
    words = "Invoices get no numbers from the database any more."
    page = says(
        "user", f"Have a look at this page, what does it want?\n\n{paste.format(words)}", uuid="m-5"
    )
    stored = {"content": CHOICE, "kind": "decision"}
    assert not after(world, stored, words, more=[page]).retired


@pytest.mark.parametrize("project", ["elsewhere", None])
def test_session_without_a_project_sees_only_global_memories(
    world: World, project: str | None
) -> None:
    def answer(prompt: Prompt) -> Any:
        listed = [one for one in prompt.shared.splitlines() if CHOICE in one]
        assert bool(listed) is (project is None)
        return {"memories": []}

    world.transcript(
        "lost",
        says("user", DROPPED, uuid="l-1", cwd="/"),
        says("assistant", "Noted.", uuid="l-2", cwd="/"),
    )
    with home(world, ScriptedModel(answer, repeats=True)) as memory:
        memory.store(CHOICE, kind="decision", project=project)
        memory.ingest()


def test_change_without_evidence_is_shown_with_doubt_for_review(
    world: World,
) -> None:
    stored = {"content": TROUBLE, "kind": "lesson", "project": "acme-billing", "importance": 8}
    memory = after(world, stored, NOW_PASSES, finding="differs")
    assert memory.is_active
    asked = ContextRequest(
        Moment.PROMPT,
        prompt="Why does the export of a month fail above a thousand rows?",
        folder="/code/acme-billing",
    )
    (line,) = [one for one in build(world.context(), asked).text.splitlines() if TROUBLE in one]
    assert line.endswith(
        "; may be out of date: a later session says: now passes with a million rows)"
    )
    (found,) = doubts(world.context())
    assert (found.memory.id, found.why) == (memory.id, Reason.STALE)
    world.rebuild()
    assert [one.memory.id for one in doubts(world.context())] == [memory.id]


def test_ending_based_on_outside_text_raises_no_review(world: World) -> None:
    after(world, {"content": TROUBLE, "kind": "lesson"}, NOW_PASSES, finding="outside")
    assert doubts(world.context()) == ()
