"""A session ends or changes a known memory only if the owner's words support it."""

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
from tests.app.test_deeds import tool_call, tool_result
from tests.app.test_extraction_by_model import home
from tests.fakes.model import ScriptedModel

TROUBLE = (
    "The export of a month fails above a thousand rows, because the driver runs out of memory."
)
CHOICE = "Invoices get their numbers from the database."
REQUEST = "Please have another look at why the export of a month fails above a thousand rows."
REPAIR_REPORT = (
    "The export of a month now passes with a million rows: the driver fetches them in pages."
)
DATABASE_DROPPED = (
    "Invoices no longer get their numbers from the database, we number them by hand now."
)


DROPPED_QUOTE = "Invoices no longer get their numbers from the database"
REPAIR_QUOTE = "now passes with a million rows"


def memory_after_session(
    world: World,
    fields: Mapping[str, Any],
    quote: str,
    finding: str = "holds",
    days: int = -9,
    *,
    more: Sequence[Mapping[str, Any]] = (),
    edited_content: str = "",
    runs: list[tuple[ScriptedModel, IngestReport]] | None = None,
    malformed: Sequence[Any] = (),
    proposals: Sequence[Mapping[str, Any]] = (),
) -> Memory:
    """Store a memory some days ago, ingest a session whose quote outdates it, and return it."""
    world.transcript(
        "mending",
        says("user", REQUEST, uuid="m-1"),
        says("assistant", REPAIR_REPORT, uuid="m-2"),
        says("user", DATABASE_DROPPED, uuid="m-3"),
        says("assistant", "Noted: no numbers from the database.", uuid="m-4"),
        *more,
    )

    capabilities = Capabilities(
        window=100_000, output=4_000, answers="text" if malformed else "schema", known=True
    )
    model = ScriptedModel(
        lambda _: {"memories": list(proposals)},
        finding=finding,
        capabilities=capabilities,
        over=lambda prompt: answer(prompt),
    )
    with home(world, model) as memory:
        world.clock.pass_days(days)
        memory_id = memory.store(**fields).memory_id
        world.clock.pass_days(-days)

        def answer(prompt: Prompt) -> Any:
            candidates = [item for item in prompt.shared.splitlines() if item.startswith("[k")]
            (line,) = [item for item in candidates if fields["content"][:24] in item]
            if edited_content:
                memory.edit(memory_id, content=edited_content)
            return list(malformed) or [{"known": int(line[2 : line.index("]")]), "quote": quote}]

        report = memory.ingest()
        if runs is not None:
            runs.append((model, report))
        return memory.get(memory_id)


def test_repaired_problem_ends_with_the_confirming_words(world: World) -> None:
    memory = memory_after_session(world, {"content": TROUBLE, "kind": "lesson"}, REPAIR_QUOTE)
    assert memory.retired is not None
    assert REPAIR_QUOTE in memory.retired.reason


def test_the_owners_words_end_a_decision(world: World) -> None:
    assert memory_after_session(
        world, {"content": CHOICE, "kind": "decision"}, DROPPED_QUOTE
    ).retired


@pytest.mark.parametrize(
    ("quote", "finding"),
    [
        ("Noted: no numbers from the database", "holds"),
        ("the database is gone for good", "holds"),
        ("", "holds"),
        (DROPPED_QUOTE, "unsettled"),
    ],
    ids=["the agent's words", "words of no turn", "no words", "not verified"],
)
def test_a_decision_does_not_end_without_the_owners_words(
    world: World, quote: str, finding: str
) -> None:
    assert not memory_after_session(
        world, {"content": CHOICE, "kind": "decision"}, quote, finding
    ).retired


def test_a_new_memory_supersedes_the_outdated_one(world: World) -> None:
    proposal = {
        "kind": "decision",
        "subject": "Numbers of invoices",
        "content": "Invoices are numbered by hand in the office.",
        "quote": DROPPED_QUOTE,
        "always": False,
    }
    runs: list[tuple[ScriptedModel, IngestReport]] = []
    fields = {"content": CHOICE, "kind": "decision", "project": "acme-billing"}
    old = memory_after_session(world, fields, DROPPED_QUOTE, proposals=[proposal], runs=runs)
    with world.open() as memory:
        (new,) = memory.list()
        assert (new.content, old.superseded_by, old.retired) == (proposal["content"], new.id, None)
        assert runs[0][1].ended == 1
        (operation,) = [item for item in memory.log() if item.operation.action == "ingest"]
        memory.undo(operation.operation.id)
        assert [item.content for item in memory.list()] == [CHOICE]


PUSH = "Never push to main without a review by Ada."


def test_unrelated_words_neither_end_nor_doubt_a_rule(world: World) -> None:
    runs: list[tuple[ScriptedModel, IngestReport]] = []
    fields = {"content": PUSH, "kind": "preference"}
    related = says(
        "user", "Let us talk about the review by Ada before the push to main.", uuid="m-5"
    )
    memory = memory_after_session(
        world, fields, "Please have another look at", more=[related], runs=runs
    )
    ((_, report),) = runs
    assert (memory.content, memory.retired, report.doubted) == (PUSH, None, 0)


PIPELINE_REPORT = "With the pipeline of the vendor one may push to main without a review by Ada."
AT = "2026-11-18T09:00:00.000Z"


def page_turns(question: str, page: str, report: str, reply: str) -> Sequence[Mapping[str, Any]]:
    """Return the turns of a question, a fetched page, the agent's report and the owner's reply."""
    return (
        says("user", question, uuid="m-5"),
        tool_call("m-6", "WebFetch", AT, url="https://vendor.example/guide"),
        tool_result("m-6", page, AT),
        says("assistant", report, uuid="m-7"),
        says("user", reply, uuid="m-8"),
    )


@pytest.mark.parametrize(
    ("nod", "is_theirs"),
    [("ok", False), ("ok, a push to main no longer needs a review by Ada", True)],
)
def test_after_web_access_a_nod_ends_no_rule(world: World, nod: str, *, is_theirs: bool) -> None:
    runs: list[tuple[ScriptedModel, IngestReport]] = []
    question = "How would the review by Ada before a push to main go with their pipeline?"
    page = "Our customers enjoy shipping straight away, nobody has to look at a change beforehand."
    more = page_turns(question, page, PIPELINE_REPORT, nod)
    fields = {"content": PUSH, "kind": "preference"}
    quote = "push to main without a review by Ada"
    memory = memory_after_session(world, fields, quote, more=more, runs=runs)
    ((_, report),) = runs
    assert (memory.retired is not None, report.doubted) == (is_theirs, int(not is_theirs))


CHECK = "Always run `make check` before every commit."
PAGE_REPORT = "It tells that make check before commits was dropped."


@pytest.mark.parametrize("kind", ["preference", "decision"])
@pytest.mark.parametrize(
    ("quote", "reply", "is_theirs"),
    [
        ("what the guide says about make check", "fine by me", False),
        (PAGE_REPORT, "right, we no longer need make check", True),
        (PAGE_REPORT, "fine by me", False),
        (PAGE_REPORT, "no worries, commit", False),
        (PAGE_REPORT, "don't commit yet", False),
        (PAGE_REPORT, "好的，没问题，继续", False),
    ],
)
def test_after_web_access_the_owner_must_name_the_change(
    world: World, kind: str, quote: str, reply: str, *, is_theirs: bool
) -> None:
    runs: list[tuple[ScriptedModel, IngestReport]] = []
    question = "Please tell me what the guide says about make check and commits."
    more = page_turns(question, "Nobody has to wait for a test any more.", PAGE_REPORT, reply)
    memory = memory_after_session(
        world, {"content": CHECK, "kind": kind}, quote, more=more, runs=runs
    )
    ((_, report),) = runs
    assert (not memory.retired, report.doubted) == (not is_theirs, int(not is_theirs))
    if kind == "preference" and not is_theirs:
        request = ContextRequest(
            Moment.PROMPT, prompt=f"Is it so? {CHECK}", folder="/code/acme-billing"
        )
        lines = [
            line for line in build(world.context(), request).text.splitlines() if CHECK in line
        ]
        assert [(quote in line, "an agent" in line) for line in lines] == [(False, True)]


def test_reviewer_sees_agents_words_and_later_sessions_renew_doubts(
    world: World,
) -> None:
    def session(name: str, time: str) -> IngestReport:
        world.transcript(
            name,
            says(
                "user",
                "Tell me about make check and commits.",
                uuid=f"{name}-1",
                session=name,
                at=time,
            ),
            tool_call(
                f"{name}-2", "WebFetch", time, session=name, url="https://vendor.example/guide"
            ),
            tool_result(f"{name}-2", "Nobody has to wait for a test any more.", time, session=name),
            says("assistant", PAGE_REPORT, uuid=f"{name}-3", session=name, at=time),
            says("user", "fine by me", uuid=f"{name}-4", session=name, at=time),
        )
        over = {"known": 1, "quote": PAGE_REPORT}
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
        doubt = f"a later session says otherwise (an agent, {day}, claude-code:{name})"
        with world.open() as memory:
            (review,) = memory.reviews()
            assert review.detail == f"{doubt}: {PAGE_REPORT}"
            assert [hit.doubt for hit in memory.recall("make check before every commit").hits] == [
                doubt
            ]
            memory.keep(rule)


@pytest.mark.parametrize("kind", ["fact", "lesson", "todo"])
@pytest.mark.parametrize("is_page_read", [True, False], ids=["page read", "no page"])
def test_after_web_access_a_nod_doubts_the_owners_statement(
    world: World, kind: str, *, is_page_read: bool
) -> None:
    runs: list[tuple[ScriptedModel, IngestReport]] = []
    page = (
        tool_call("m-5", "WebFetch", AT, url="https://vendor.example"),
        tool_result("m-5", "Fetch rows in pages.", AT),
    )
    more = (
        *(page if is_page_read else ()),
        says("assistant", REPAIR_REPORT, uuid="m-6"),
        says("user", "fine by me", uuid="m-7"),
    )
    fields = {"content": TROUBLE, "kind": kind, "project": "acme-billing"}
    memory = memory_after_session(world, fields, REPAIR_REPORT, more=more, runs=runs)
    ((_, report),) = runs
    is_left = memory.content == TROUBLE and not memory.retired
    assert (is_left, report.doubted) == (is_page_read, int(is_page_read))


def test_older_session_does_not_end_a_later_memory(world: World) -> None:
    assert not memory_after_session(
        world, {"content": CHOICE, "kind": "decision"}, DROPPED_QUOTE, days=0
    ).retired


def test_undo_restores_an_ended_memory(world: World) -> None:
    memory_after_session(world, {"content": TROUBLE, "kind": "lesson"}, REPAIR_QUOTE)
    with world.open() as memory:
        (operation,) = [item for item in memory.log() if item.operation.action == "ingest"]
        (ended,) = [
            json.loads(line)
            for line in (world.vault / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
            if '"action": "retire"' in line
        ]
        assert ended["reason"] == f"a session shows it: {REPAIR_QUOTE}"
        memory.undo(operation.operation.id)
        assert [item.content for item in memory.list()] == [TROUBLE]


def test_manual_edit_during_a_model_call_is_kept(world: World) -> None:
    edited_content = "Invoices get their numbers from the database of the office."
    fields = {"content": CHOICE, "kind": "decision"}
    memory = memory_after_session(world, fields, DROPPED_QUOTE, edited_content=edited_content)
    assert (memory.content, memory.retired) == (edited_content, None)


@pytest.mark.parametrize(
    "malformed",
    [
        [{"known": "[k1]", "quote": DROPPED_QUOTE}],
        [{"id": "k1", "quote": DROPPED_QUOTE, "why": "said"}],
        [{"known": "none"}, "none", {"known": 1, "quote": DROPPED_QUOTE}],
    ],
    ids=["with marks", "with more fields", "with invalid items"],
)
def test_slightly_malformed_change_answers_are_accepted(world: World, malformed: list[Any]) -> None:
    fields = {"content": CHOICE, "kind": "decision"}
    assert memory_after_session(world, fields, "", malformed=malformed).retired


def test_one_call_asks_for_memories_and_changes(world: World) -> None:
    runs: list[tuple[ScriptedModel, IngestReport]] = []
    memory_after_session(world, {"content": CHOICE, "kind": "decision"}, DROPPED_QUOTE, runs=runs)
    ((model, _),) = runs
    (prompt,) = model.prompts
    assert CHOICE in prompt.shared


@pytest.mark.parametrize("paste", ["> {}", "```\n{}\n```"])
def test_pasted_text_ends_nothing(world: World, paste: str) -> None:
    words = "Invoices get no numbers from the database any more."
    page = says(
        "user", f"Have a look at this page, what does it want?\n\n{paste.format(words)}", uuid="m-5"
    )
    fields = {"content": CHOICE, "kind": "decision"}
    assert not memory_after_session(world, fields, words, more=[page]).retired


@pytest.mark.parametrize("project", ["elsewhere", None])
def test_session_without_a_project_sees_only_global_memories(
    world: World, project: str | None
) -> None:
    def answer(prompt: Prompt) -> Any:
        lines = [line for line in prompt.shared.splitlines() if CHOICE in line]
        assert bool(lines) is (project is None)
        return {"memories": []}

    world.transcript(
        "lost",
        says("user", DATABASE_DROPPED, uuid="l-1", cwd="/"),
        says("assistant", "Noted.", uuid="l-2", cwd="/"),
    )
    with home(world, ScriptedModel(answer, repeats=True)) as memory:
        memory.store(CHOICE, kind="decision", project=project)
        memory.ingest()


def test_change_without_evidence_is_shown_with_doubt_for_review(
    world: World,
) -> None:
    fields = {"content": TROUBLE, "kind": "lesson", "project": "acme-billing", "importance": 8}
    memory = memory_after_session(world, fields, REPAIR_QUOTE, finding="differs")
    assert memory.is_active
    request = ContextRequest(
        Moment.PROMPT,
        prompt="Why does the export of a month fail above a thousand rows?",
        folder="/code/acme-billing",
    )
    (line,) = [
        item for item in build(world.context(), request).text.splitlines() if TROUBLE in item
    ]
    assert line.endswith(
        "; may be out of date: a later session says: now passes with a million rows)"
    )
    (pending_doubt,) = doubts(world.context())
    assert (pending_doubt.memory.id, pending_doubt.why) == (memory.id, Reason.STALE)
    world.rebuild()
    assert [doubt.memory.id for doubt in doubts(world.context())] == [memory.id]


def test_ending_based_on_outside_text_raises_no_review(world: World) -> None:
    memory_after_session(
        world, {"content": TROUBLE, "kind": "lesson"}, REPAIR_QUOTE, finding="outside"
    )
    assert doubts(world.context()) == ()
