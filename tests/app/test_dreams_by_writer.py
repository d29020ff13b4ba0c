"""A dream with a writer merges paraphrases and keeps different statements apart."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from importlib.resources import files
from typing import Any

import pytest

from nacre.errors import ModelUnavailableError
from nacre.home.spending import name_for
from nacre.review.consolidate import DreamPlan, DreamReport
from nacre.review.dream import (
    DreamPlanRequest,
    DreamRequest,
    carry_out,
    dream,
    dream_if_due,
    may_end,
    plan,
)
from nacre.review.questions import clusters_to_ask
from nacre.values.memory import Confirmation, Expiry, Kind, Link, Memory, Scope, Source
from nacre.values.models import Prompt
from nacre.values.reports import Progress
from nacre.values.review import Reason
from nacre.values.session import Speaker, Task, Trust
from tests.app.conftest import World
from tests.app.test_dreams import store_memory, vault
from tests.fakes.model import ScriptedModel

JARS = "Honey is sold in jars of 500 g at the yard."
AT_YARD = "At the yard honey is sold in jars of 500 g, because they stack."


def texts(prompt: Prompt) -> list[str]:
    return [
        str(json.loads(line)["text"]) for line in prompt.text.splitlines() if line.startswith("{")
    ]


PROBES = {
    text
    for pair in tomllib.loads((files("nacre.review") / "probes.toml").read_text(encoding="utf-8"))[
        "pairs"
    ]
    for text in pair
}
"""Texts that check a writer's reliability."""


class Writer(ScriptedModel):
    """A model that merges each cluster into ``words`` or its first member.

    ``finding`` is its result in comparisons and ``sorts`` its first answer. It recognises the probes unless it is
    ``gullible`` in merging, comparing or ending.
    """

    def __init__(
        self,
        words: str | None = None,
        *,
        finding: str = "same",
        gullible: str = "",
        sorts: Callable[[Prompt], dict[str, Any]] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(self._answer, **more)
        self._words, self._finding, self._gullible = words, finding, gullible
        self._sorts = sorts

    def _answer(self, prompt: Prompt) -> dict[str, Any]:
        if prompt.name == "compare":
            cases = [json.loads(line) for line in prompt.text.splitlines()]
            return {"cases": [self._compared(case) for case in cases]}
        if self._sorts:
            return self._sorts(prompt)
        return {"merges": list(self._merges(prompt)), "over": []}

    def _compared(self, case: dict[str, Any]) -> dict[str, Any]:
        case_result = {"number": case["number"], "what": "the stacking"}
        if case.get("statement") in PROBES:
            return {
                **case_result,
                "finding": "same" if self._gullible == "comparing" else "differs",
            }
        if case.get("earlier") in PROBES:
            return {**case_result, "finding": "over" if self._gullible == "ending" else "holds"}
        return {**case_result, "finding": self._finding}

    def _merges(self, prompt: Prompt) -> Iterator[dict[str, Any]]:
        for cluster in prompt.text.split("A cluster:")[1:]:
            members = [json.loads(item) for item in re.findall(r"^\{.*\}$", cluster, re.MULTILINE)]
            if members[0]["text"] in PROBES and self._gullible != "merging":
                continue
            numbers = [member["number"] for member in members]
            keep = None if self._words else numbers[0]
            yield {
                "numbers": numbers,
                "keep": keep,
                "words": self._words,
                "why": "both tell the jar",
            }


def answer_same(*texts: str, keep: str) -> Callable[[Prompt], dict[str, Any]]:
    """Return an answer that merges memories of these texts into ``keep``."""
    return lambda prompt: {
        "merges": [
            {
                "numbers": [number(prompt, item) for item in texts],
                "keep": number(prompt, keep),
                "words": None,
                "why": "it says both",
            }
        ],
        "over": [],
    }


def answer_over(earlier: str, later: str) -> Callable[[Prompt], dict[str, Any]]:
    """Return an answer that ends the earlier memory."""
    return lambda prompt: {
        "merges": [],
        "over": [
            {"number": number(prompt, earlier), "by": number(prompt, later), "why": "smaller jars"}
        ],
    }


def number(prompt: Prompt, text: str) -> int:
    """Return the number of a text in the prompt."""
    members = (json.loads(line) for line in prompt.text.splitlines() if line.startswith("{"))
    return next(int(item["number"]) for item in members if item["text"] == text)


@pytest.fixture
def world(world: World) -> World:
    world.environ |= {"NACRE_MODELS_EXTRACTION": "scripted:1"}
    world.model = Writer()
    return world


def make_plan(world: World, **more: Any) -> DreamPlan:
    return plan(world.context(), DreamPlanRequest(**{"tier": 2, **more}))


def run_dream(world: World) -> DreamReport:
    world.clock.now += timedelta(seconds=1)
    return dream(world.context(), DreamRequest(tier=2, first=True))


def active(world: World) -> dict[str, Memory]:
    with world.open() as memory:
        return {item.id: item for item in memory.list()}


@pytest.mark.parametrize("git", ["true", "false"])
def test_paraphrases_are_merged_and_restored_exactly(world: World, git: str) -> None:
    world.environ["NACRE_GIT_ENABLED"] = git
    first = store_memory(world, JARS, subject="Jars", days=3, source=Source("codex:1", ("t1",)))
    later = store_memory(world, AT_YARD, subject="Jars at the yard", importance=7)
    apart = store_memory(world, "The label of the jars is yellow.", subject="Label")
    before = vault(world)
    words = "Honey is sold at the yard in jars of 500 g, because they stack."
    world.model = Writer(words)
    progress: list[Progress] = []
    world.clock.now += timedelta(seconds=1)
    report = dream(world.context(), DreamRequest(tier=2, first=True), progress.append)
    assert Progress("asking", 0, 1) in progress
    memories = active(world)
    assert set(memories) == {later.id, apart.id}
    assert (
        memories[later.id].content,
        memories[later.id].created,
        memories[later.id].importance,
    ) == (
        words,
        first.created,
        7,
    )
    assert memories[later.id].extra["merged"]["of"] == [later.id, first.id]
    assert memories[later.id].extra["merged"]["by"] == "scripted:1"
    diary = (world.vault / (report.diary or "")).read_text()
    assert words in diary
    assert AT_YARD in diary
    with world.open() as memory:
        memory.undo(report.operation)
    assert {path: text for path, text in vault(world).items() if "dreams/" not in path} == before


def test_memory_containing_the_whole_statement_is_kept_unchanged(world: World) -> None:
    store_memory(world, "At the yard honey is sold in jars.", days=3)
    whole = store_memory(world, "At the yard honey is sold in jars of 500 g.")
    world.model = Writer(
        sorts=answer_same("At the yard honey is sold in jars.", whole.content, keep=whole.content)
    )
    run_dream(world)
    assert {item.content for item in active(world).values()} == {whole.content}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("Honey is sold in jars at the yard, because they stack.", "leaves out 500"),
        ("Honey is sold in jars of 500 g at the yard by Meier, because they stack.", "adds Meier"),
        ("Honey is sold in jars of 500 g and 250 g at the yard, because they stack.", "adds 250"),
        ("Honey is sold in jars of -500 g at the yard, because they stack.", "adds -500"),
        ("Honey is never sold in jars of 500 g at the yard, because they stack.", "negation"),
    ],
)
def test_merge_that_loses_or_adds_meaning_waits_for_review(
    world: World, words: str, why: str
) -> None:
    jars, at_yard = store_memory(world, JARS, days=1), store_memory(world, AT_YARD)
    world.model = Writer(words)
    report = run_dream(world)
    assert report.operation is None
    assert why in report.plan.refused[0][1]
    assert set(active(world)) == {jars.id, at_yard.id}
    with world.open() as memory:
        (review,) = memory.reviews()
    assert review.why == Reason.MERGE
    assert words in (review.detail or "")
    assert why in (review.detail or "")


def test_merge_rejected_by_the_second_check_changes_nothing(world: World) -> None:
    jars, at_yard = store_memory(world, JARS, days=1), store_memory(world, AT_YARD)
    world.model = Writer(finding="loses")
    report = run_dream(world)
    assert report.plan.refused[0][1] == "the second check says: loses the stacking"
    assert set(active(world)) == {jars.id, at_yard.id}


@pytest.mark.parametrize(
    "more",
    [
        {"importance": 10},
        {"evergreen": True},
        {"expiry": Expiry.CORE},
        {"expiry": Expiry.TEMPORARY},
        {"expires_on": date(2099, 1, 1)},
        {"scope": Scope.PUBLIC},
        {"triggers": ("jar",)},
        {"subject": "Client Meier"},
        {"project": "press"},
        {"trust": Trust.UNTRUSTED},
        {"proposed": True, "speaker": Speaker.AGENT},
        {"kind": Kind.TODO},
        {"kind": Kind.EVENT},
    ],
)
def test_memories_with_different_properties_are_never_compared(
    world: World, more: dict[str, Any]
) -> None:
    world.environ["NACRE_FORGETTING_PROTECT"] = '["client *"]'
    store_memory(world, JARS, days=1)
    store_memory(world, AT_YARD, **more)
    assert make_plan(world).steps == ()
    assert isinstance(world.model, Writer)
    assert not world.model.prompts


def test_agents_wording_never_replaces_the_owners_statement(world: World) -> None:
    own = store_memory(world, JARS, days=1)
    agents = store_memory(world, AT_YARD, speaker=Speaker.AGENT)
    world.model = Writer(sorts=answer_same(JARS, AT_YARD, keep=AT_YARD))
    assert "an agent's statement would replace the owner's" in make_plan(world).refused[0][1]
    assert set(active(world)) == {own.id, agents.id}


def test_merge_of_memories_not_shown_together_is_refused(world: World) -> None:
    store_memory(world, JARS, days=1)
    store_memory(world, AT_YARD)
    store_memory(world, "The gate is locked with the brass key.", days=1)
    store_memory(world, "The gate is locked with the brass key at night.")
    gate = "The gate is locked with the brass key at night."
    world.model = Writer(
        sorts=lambda prompt: {
            "merges": [
                {
                    "numbers": [number(prompt, item) for item in (JARS, gate)],
                    "keep": 99,
                    "words": JARS,
                    "why": "x",
                },
                {"numbers": [99, number(prompt, AT_YARD)], "keep": 99, "words": None, "why": "x"},
            ],
            "over": [],
        }
    )
    dream_plan = make_plan(world)
    assert dream_plan.steps == ()
    assert len(dream_plan.refused) == 1


def pending_clusters(world: World) -> int:
    """Return the number of clusters that the writer would compare."""
    home = world.context()
    memories = may_end(home, [memory for memory in home.memories.everything() if memory.is_active])
    return len(clusters_to_ask(home, memories, name_for(home, Task.DREAM))[0])


def test_answered_comparisons_are_not_repeated_within_a_week(world: World) -> None:
    store_memory(world, JARS, days=1)
    store_memory(world, AT_YARD)
    world.model = Writer(finding="differs")
    run_dream(world)
    prompt_count = len(world.model.prompts)
    assert pending_clusters(world) == 0
    run_dream(world)
    assert len(world.model.prompts) == prompt_count
    store_memory(world, "At the yard honey is sold in jars of 500 g.")  # a new statement to compare
    world.model = Writer("Honey is sold at the yard in jars of 500 g, because they stack.")
    assert run_dream(world).operation
    assert len(active(world)) == 1
    store_memory(world, JARS + " Always.")
    assert pending_clusters(world) == 0
    world.clock.pass_days(8)
    assert pending_clusters(world) == 1


def test_interrupted_dream_reuses_earlier_answers(world: World) -> None:
    store_memory(world, JARS, days=1)
    store_memory(world, AT_YARD)
    world.model = Writer()
    first_plan = make_plan(world)
    assert first_plan.steps
    prompt_count = len(world.model.prompts)
    assert make_plan(world).steps == first_plan.steps
    assert len(world.model.prompts) == prompt_count


def test_writer_failure_keeps_the_steps_found_by_rules(world: World) -> None:
    store_memory(world, JARS, days=1)
    store_memory(world, AT_YARD)
    store_memory(world, "The crew is away.", expires_on=world.clock().date())
    world.model = ScriptedModel([ModelUnavailableError("it is asleep", retry=False)], repeats=True)
    dream_plan = make_plan(world)
    assert (len(dream_plan.steps), dream_plan.note, dream_plan.settled) == (1, "it is asleep", ())


@pytest.mark.parametrize("when", ["merging", "comparing", "ending"])
def test_writer_that_merges_known_different_pairs_is_not_trusted(world: World, when: str) -> None:
    jars, at_yard = store_memory(world, JARS, days=1), store_memory(world, AT_YARD)
    world.model = Writer(gullible=when)
    report = run_dream(world)
    assert (report.operation, report.plan.refused, report.plan.settled) == (None, (), ())
    assert (
        report.plan.note
        == "1 of 1 answers of the writer are not used: it mistook different statements for equal or outdated"
    )
    assert set(active(world)) == {jars.id, at_yard.id}


def test_excluded_projects_and_tools_are_not_shown_to_the_writer(world: World) -> None:
    store_memory(world, JARS, days=1, project="secret", source=Source("codex:1", ("t1",)))
    store_memory(world, AT_YARD, project="secret")
    world.environ["NACRE_WRITER_EXCLUDE_PROJECTS"] = '["secr*"]'
    assert pending_clusters(world) == 0
    world.environ["NACRE_WRITER_EXCLUDE_PROJECTS"] = "[]"
    world.environ["NACRE_WRITER_EXCLUDE_TOOLS"] = '["codex"]'
    assert pending_clusters(world) == 0
    world.environ["NACRE_WRITER_EXCLUDE_TOOLS"] = "[]"
    assert pending_clusters(world) == 1


def test_memory_edited_after_planning_is_not_merged(world: World) -> None:
    store_memory(world, JARS, days=1)
    later = store_memory(world, AT_YARD)
    dream_plan = make_plan(world)
    with world.open() as memory:
        memory.edit(
            later.id, content="At the yard honey is sold in jars of 250 g, because they stack."
        )
    report = carry_out(world.context(), dream_plan)
    assert [why for _, why in report.left] == ["the memories have changed since"]


def test_nightly_writer_needs_background_consent_and_plans_first(
    world: World,
) -> None:
    store_memory(world, JARS, days=1)
    store_memory(world, AT_YARD)
    world.environ["NACRE_DREAM_AT_NIGHT"] = "true"
    dream_if_due(world.context())
    world.clock.pass_days(1)
    assert isinstance(world.model, Writer)
    assert not world.model.prompts
    world.environ |= {"NACRE_MODELS_BACKGROUND": "true", "NACRE_WRITER_PAUSED": "true"}
    dream_if_due(world.context())
    assert not world.model.prompts
    world.environ |= {"NACRE_WRITER_PAUSED": "false"}
    world.clock.pass_days(1)
    report = dream_if_due(world.context())
    assert report is not None
    assert (report.operation, len(report.plan.put_off)) == (None, 1)
    world.clock.pass_days(1)
    report = dream_if_due(world.context())
    assert report is not None
    assert report.operation
    assert len(active(world)) == 1


def test_ended_memory_becomes_history_and_is_restored_exactly(
    world: World,
) -> None:
    old = store_memory(world, "Honey is sold in jars of 500 g at the yard.", days=90)
    new = store_memory(world, "At the yard honey is sold in jars of 250 g now.", days=2)
    before = vault(world)
    world.model = Writer(finding="over", sorts=answer_over(old.content, new.content))
    report = run_dream(world)
    assert set(active(world)) == {new.id}
    with world.open() as memory:
        ended = memory.get(old.id)
        assert (ended.superseded_by, ended.valid.until) == (new.id, new.created.date())
        (link,) = memory.get(new.id).links
        assert (link.rel, link.to, link.reason) == (
            "supersedes",
            old.id,
            "smaller jars (scripted:1)",
        )
        assert (
            "ended: Honey is sold in jars of 500 g"
            in (world.vault / (report.diary or "")).read_text()
        )
        memory.undo(report.operation)
    assert {path: text for path, text in vault(world).items() if "dreams/" not in path} == before


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"days": 200}, "the memory to end is the later statement"),
        ({"speaker": Speaker.AGENT}, "an agent's statement would replace the owner's"),
        ({"kind": Kind.EVENT}, "events stay true"),
    ],
)
def test_agents_earlier_and_event_statements_end_nothing(
    world: World, more: dict[str, Any], why: str
) -> None:
    old = store_memory(
        world,
        "Honey is sold in jars of 500 g at the yard.",
        days=90,
        kind=more.get("kind", Kind.FACT),
    )
    other = store_memory(world, "At the yard honey is sold in jars of 250 g now.", **more)
    world.model = Writer(sorts=answer_over(old.content, other.content))
    assert why in make_plan(world).refused[0][1]
    assert set(active(world)) == {old.id, other.id}


def test_memory_still_valid_in_the_second_check_is_kept(world: World) -> None:
    old = store_memory(world, "Honey is sold in jars of 500 g at the yard.", days=90)
    new = store_memory(world, "At the yard honey is sold in jars of 250 g to schools.", days=2)
    world.model = Writer(finding="holds", sorts=answer_over(old.content, new.content))
    report = run_dream(world)
    assert report.operation is None
    assert "the second check says: holds" in report.plan.refused[0][1]
    assert len(active(world)) == 2


def test_edit_of_importance_does_not_make_a_memory_newer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nacre.home.spending.REUSE_PERIOD", timedelta(days=-1))
    old = store_memory(world, "Honey is sold in jars of 500 g at the yard.", days=90)
    new = store_memory(world, "At the yard honey is sold in jars of 250 g now.", days=2)
    with world.open() as memory:
        memory.edit(old.id, importance=6)
    world.model = Writer(finding="over", sorts=answer_over(new.content, old.content))
    assert make_plan(world).refused[0][1] == "the memory to end is the later statement"
    world.model = Writer(finding="over", sorts=answer_over(old.content, new.content))
    run_dream(world)
    assert set(active(world)) == {new.id}


def test_merge_takes_no_properties_from_an_agents_memory(world: World) -> None:
    other = store_memory(world, "The label of the jars is yellow.", subject="Label")
    own = store_memory(world, AT_YARD, days=9, importance=3)
    store_memory(
        world,
        JARS,
        speaker=Speaker.AGENT,
        importance=9,
        tags=("agent",),
        links=(Link("contradicts", other.id),),
        confirmed=(Confirmation(world.clock(), "codex:1", ("t1",)),),
    )
    world.model = Writer(sorts=answer_same(JARS, AT_YARD, keep=AT_YARD))
    run_dream(world)
    memory_after = active(world)[own.id]
    assert (
        memory_after.importance,
        memory_after.tags,
        memory_after.links,
        memory_after.confirmed,
    ) == (3, (), (), ())


def test_predecessors_of_a_merged_memory_follow_the_kept_memory(
    world: World,
) -> None:
    oldest = store_memory(world, "Honey is sold in buckets.", days=90)
    middle = store_memory(world, JARS, days=9, links=(Link("supersedes", oldest.id),))
    superseded = replace(oldest, superseded_by=middle.id)
    with world.context().change("store") as change, change.transaction():
        change.put([superseded])
    kept = store_memory(world, AT_YARD)
    world.model = Writer(sorts=answer_same(JARS, AT_YARD, keep=AT_YARD))
    run_dream(world)
    with world.open() as memory:
        assert memory.get(oldest.id).superseded_by == kept.id
        assert [link.to for link in memory.get(kept.id).links if link.rel == "supersedes"] == [
            oldest.id
        ]
        assert memory.get(middle.id).retired


def test_large_step_does_not_block_other_steps(world: World) -> None:
    for day in range(5):
        store_memory(world, JARS, days=day)
    store_memory(world, "The crew is away.", expires_on=world.clock().date())
    report = dream(world.context(), DreamRequest(first=True, most=2))
    assert sum(len(step.ends) for step in report.plan.steps) == 2
    for _ in range(2):
        dream(world.context(), DreamRequest(first=True, most=2))
    assert {item.content for item in active(world).values()} == {JARS}
    assert len(active(world)) == 1


def test_dream_carries_out_only_the_selected_steps(world: World) -> None:
    store_memory(world, JARS, days=1)
    store_memory(world, AT_YARD)
    dream_plan = make_plan(world)
    expired = store_memory(world, "The crew is away.", expires_on=world.clock().date())
    report = dream(
        world.context(),
        DreamRequest(tier=2, first=True, steps=tuple(step.key for step in dream_plan.steps)),
    )
    assert report.operation
    assert expired.id in active(world)
    assert len(report.plan.put_off) == 1


def test_unavailable_writer_is_not_called_repeatedly(world: World) -> None:
    for place in range(40):
        store_memory(
            world,
            f"Hive {place} stands in row {place} of the northern yard, near the old fence.",
            project=f"p{place}",
        )
        store_memory(
            world,
            f"In row {place} of the northern yard stands hive {place}, near the old fence.",
            project=f"p{place}",
        )
    world.model = ScriptedModel([ModelUnavailableError("it is asleep", retry=False)], repeats=True)
    dream_plan = make_plan(world)
    assert dream_plan.note == "it is asleep"
    assert len(world.model.prompts) <= 3


@pytest.mark.parametrize("finding", ["same", "over"])
def test_restored_memory_is_not_shown_to_the_writer_again(world: World, finding: str) -> None:
    retired = store_memory(world, JARS, days=9)
    store_memory(world, AT_YARD)
    sorts = (
        answer_same(JARS, AT_YARD, keep=AT_YARD)
        if finding == "same"
        else answer_over(JARS, AT_YARD)
    )
    world.model = Writer(finding=finding, sorts=sorts)
    report = run_dream(world)
    assert report.operation
    assert retired.id not in active(world)
    with world.open() as memory:
        world.clock.now += timedelta(seconds=1)
        memory.undo(report.operation)
    assert retired.id in active(world)
    world.model = Writer()
    world.clock.now += timedelta(days=30)
    assert pending_clusters(world) == 0
    assert run_dream(world).operation is None
    assert world.model.prompts == []
