"""Dreams with a writer: what says the same in other words becomes one, and what does not stays apart."""

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
from nacre.review.dream import DreamPlanRequest, DreamRequest, may_end
from nacre.review.pages_by_writer import clusters_to_ask
from nacre.review.run import carry_out, dream, dream_if_due, plan
from nacre.values.memory import Confirmation, Expiry, Kind, Link, Memory, Scope, Source
from nacre.values.models import Prompt
from nacre.values.reports import Progress
from nacre.values.review import Reason
from nacre.values.session import Speaker, Task, Trust
from tests.app.conftest import World
from tests.app.test_dreams import kept, vault
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
"""What a writer is tried with."""


class Writer(ScriptedModel):
    """Merges all of each cluster, into the words it is told or the first member, and finds what it is told to.

    ``sorts`` is what it answers first instead. It knows the probes, unless it is ``gullible`` as it merges, compares or
    looks for what is over.
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
            return {"cases": [self._compared(one) for one in cases]}
        if self._sorts:
            return self._sorts(prompt)
        return {"merges": list(self._merges(prompt)), "over": []}

    def _compared(self, case: dict[str, Any]) -> dict[str, Any]:
        found = {"number": case["number"], "what": "the stacking"}
        if case.get("statement") in PROBES:
            return {**found, "finding": "same" if self._gullible == "comparing" else "differs"}
        if case.get("earlier") in PROBES:
            return {**found, "finding": "over" if self._gullible == "ending" else "holds"}
        return {**found, "finding": self._finding}

    def _merges(self, prompt: Prompt) -> Iterator[dict[str, Any]]:
        for cluster in prompt.text.split("A cluster:")[1:]:
            members = [json.loads(one) for one in re.findall(r"^\{.*\}$", cluster, re.MULTILINE)]
            if members[0]["text"] in PROBES and self._gullible != "merging":
                continue
            numbers = [one["number"] for one in members]
            keep = None if self._words else numbers[0]
            yield {
                "numbers": numbers,
                "keep": keep,
                "words": self._words,
                "why": "both tell the jar",
            }


def same(*texts: str, keep: str) -> Callable[[Prompt], dict[str, Any]]:
    """What sorts memories of these texts as the same, one of which is kept."""
    return lambda prompt: {
        "merges": [
            {
                "numbers": [number(prompt, one) for one in texts],
                "keep": number(prompt, keep),
                "words": None,
                "why": "it says both",
            }
        ],
        "over": [],
    }


def over(earlier: str, later: str) -> Callable[[Prompt], dict[str, Any]]:
    """What sorts a memory as ended by another."""
    return lambda prompt: {
        "merges": [],
        "over": [
            {"number": number(prompt, earlier), "by": number(prompt, later), "why": "smaller jars"}
        ],
    }


def number(prompt: Prompt, text: str) -> int:
    """Under which number a writer was shown a text."""
    shown = (json.loads(line) for line in prompt.text.splitlines() if line.startswith("{"))
    return next(int(one["number"]) for one in shown if one["text"] == text)


@pytest.fixture
def world(world: World) -> World:
    world.environ |= {"NACRE_MODELS_EXTRACTION": "scripted:1"}
    world.model = Writer()
    return world


def planned(world: World, **more: Any) -> DreamPlan:
    return plan(world.context(), DreamPlanRequest(**{"tier": 2, **more}))


def dreamt(world: World) -> DreamReport:
    world.clock.now += timedelta(seconds=1)
    return dream(world.context(), DreamRequest(tier=2, first=True))


def active(world: World) -> dict[str, Memory]:
    with world.open() as memory:
        return {one.id: one for one in memory.list()}


@pytest.mark.parametrize("git", ["true", "false"])
def test_paraphrases_are_merged_and_restored_exactly(world: World, git: str) -> None:
    world.environ["NACRE_GIT_ENABLED"] = git
    first = kept(world, JARS, subject="Jars", days=3, source=Source("codex:1", ("t1",)))
    later = kept(world, AT_YARD, subject="Jars at the yard", importance=7)
    apart = kept(world, "The label of the jars is yellow.", subject="Label")
    before = vault(world)
    words = "Honey is sold at the yard in jars of 500 g, because they stack."
    world.model = Writer(words)
    progress: list[Progress] = []
    world.clock.now += timedelta(seconds=1)
    report = dream(world.context(), DreamRequest(tier=2, first=True), progress.append)
    assert Progress("asking", 0, 1) in progress
    now = active(world)
    assert set(now) == {later.id, apart.id}
    assert (now[later.id].content, now[later.id].created, now[later.id].importance) == (
        words,
        first.created,
        7,
    )
    assert now[later.id].extra["merged"]["of"] == [later.id, first.id]
    assert now[later.id].extra["merged"]["by"] == "scripted:1"
    diary = (world.vault / (report.diary or "")).read_text()
    assert words in diary
    assert AT_YARD in diary
    with world.open() as memory:
        memory.undo(report.operation)
    assert {path: text for path, text in vault(world).items() if "dreams/" not in path} == before


def test_memory_containing_the_whole_statement_is_kept_unchanged(world: World) -> None:
    kept(world, "At the yard honey is sold in jars.", days=3)
    whole = kept(world, "At the yard honey is sold in jars of 500 g.")
    world.model = Writer(
        sorts=same("At the yard honey is sold in jars.", whole.content, keep=whole.content)
    )
    dreamt(world)
    assert {one.content for one in active(world).values()} == {whole.content}


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
    one, other = kept(world, JARS, days=1), kept(world, AT_YARD)
    world.model = Writer(words)
    report = dreamt(world)
    assert report.operation is None
    assert why in report.plan.refused[0][1]
    assert set(active(world)) == {one.id, other.id}
    with world.open() as memory:
        (waiting,) = memory.reviews()
    assert waiting.why == Reason.MERGE
    assert words in (waiting.detail or "")
    assert why in (waiting.detail or "")


def test_merge_rejected_by_the_second_check_changes_nothing(world: World) -> None:
    one, other = kept(world, JARS, days=1), kept(world, AT_YARD)
    world.model = Writer(finding="loses")
    report = dreamt(world)
    assert report.plan.refused[0][1] == "the second check says: loses the stacking"
    assert set(active(world)) == {one.id, other.id}


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
    kept(world, JARS, days=1)
    kept(world, AT_YARD, **more)
    assert planned(world).steps == ()
    assert isinstance(world.model, Writer)
    assert not world.model.prompts


def test_agents_wording_never_replaces_the_owners_statement(world: World) -> None:
    own = kept(world, JARS, days=1)
    agents = kept(world, AT_YARD, speaker=Speaker.AGENT)
    world.model = Writer(sorts=same(JARS, AT_YARD, keep=AT_YARD))
    assert "an agent's statement would replace the owner's" in planned(world).refused[0][1]
    assert set(active(world)) == {own.id, agents.id}


def test_merge_of_memories_not_shown_together_is_refused(world: World) -> None:
    kept(world, JARS, days=1)
    kept(world, AT_YARD)
    kept(world, "The gate is locked with the brass key.", days=1)
    kept(world, "The gate is locked with the brass key at night.")
    gate = "The gate is locked with the brass key at night."
    world.model = Writer(
        sorts=lambda prompt: {
            "merges": [
                {
                    "numbers": [number(prompt, one) for one in (JARS, gate)],
                    "keep": 99,
                    "words": JARS,
                    "why": "x",
                },
                {"numbers": [99, number(prompt, AT_YARD)], "keep": 99, "words": None, "why": "x"},
            ],
            "over": [],
        }
    )
    found = planned(world)
    assert found.steps == ()
    assert len(found.refused) == 1


def to_ask(world: World) -> int:
    """The number of clusters that the writer would be asked about."""
    home = world.context()
    memories = may_end(home, [memory for memory in home.memories.everything() if memory.is_active])
    return len(clusters_to_ask(home, memories, name_for(home, Task.DREAM))[0])


def test_answered_comparisons_are_not_repeated_within_a_week(world: World) -> None:
    kept(world, JARS, days=1)
    kept(world, AT_YARD)
    world.model = Writer(finding="differs")
    dreamt(world)
    asked = len(world.model.prompts)
    assert to_ask(world) == 0
    dreamt(world)
    assert len(world.model.prompts) == asked
    kept(
        world, "At the yard honey is sold in jars of 500 g."
    )  # now there is something new to look at
    world.model = Writer("Honey is sold at the yard in jars of 500 g, because they stack.")
    assert dreamt(world).operation
    assert len(active(world)) == 1
    kept(world, JARS + " Always.")
    assert to_ask(world) == 0
    world.clock.pass_days(8)
    assert to_ask(world) == 1


def test_interrupted_dream_reuses_earlier_answers(world: World) -> None:
    kept(world, JARS, days=1)
    kept(world, AT_YARD)
    world.model = Writer()
    first = planned(world)
    assert first.steps
    asked = len(world.model.prompts)
    assert planned(world).steps == first.steps
    assert len(world.model.prompts) == asked


def test_writer_failure_keeps_the_steps_found_by_rules(world: World) -> None:
    kept(world, JARS, days=1)
    kept(world, AT_YARD)
    kept(world, "The crew is away.", expires_on=world.clock().date())
    world.model = ScriptedModel([ModelUnavailableError("it is asleep", retry=False)], repeats=True)
    found = planned(world)
    assert (len(found.steps), found.note, found.settled) == (1, "it is asleep", ())


@pytest.mark.parametrize("when", ["merging", "comparing", "ending"])
def test_writer_that_merges_known_different_pairs_is_not_trusted(world: World, when: str) -> None:
    one, other = kept(world, JARS, days=1), kept(world, AT_YARD)
    world.model = Writer(gullible=when)
    report = dreamt(world)
    assert (report.operation, report.plan.refused, report.plan.settled) == (None, (), ())
    assert (
        report.plan.note
        == "1 of 1 answers of the writer are not used: it mistook different statements for equal or outdated"
    )
    assert set(active(world)) == {one.id, other.id}


def test_excluded_projects_and_tools_are_not_shown_to_the_writer(world: World) -> None:
    kept(world, JARS, days=1, project="secret", source=Source("codex:1", ("t1",)))
    kept(world, AT_YARD, project="secret")
    world.environ["NACRE_WRITER_EXCLUDE_PROJECTS"] = '["secr*"]'
    assert to_ask(world) == 0
    world.environ["NACRE_WRITER_EXCLUDE_PROJECTS"] = "[]"
    world.environ["NACRE_WRITER_EXCLUDE_TOOLS"] = '["codex"]'
    assert to_ask(world) == 0
    world.environ["NACRE_WRITER_EXCLUDE_TOOLS"] = "[]"
    assert to_ask(world) == 1


def test_memory_edited_after_planning_is_not_merged(world: World) -> None:
    kept(world, JARS, days=1)
    later = kept(world, AT_YARD)
    found = planned(world)
    with world.open() as memory:
        memory.edit(
            later.id, content="At the yard honey is sold in jars of 250 g, because they stack."
        )
    report = carry_out(world.context(), found)
    assert [why for _, why in report.left] == ["they have changed since"]


def test_nightly_writer_needs_background_consent_and_plans_first(
    world: World,
) -> None:
    kept(world, JARS, days=1)
    kept(world, AT_YARD)
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
    old = kept(world, "Honey is sold in jars of 500 g at the yard.", days=90)
    new = kept(world, "At the yard honey is sold in jars of 250 g now.", days=2)
    before = vault(world)
    world.model = Writer(finding="over", sorts=over(old.content, new.content))
    report = dreamt(world)
    assert set(active(world)) == {new.id}
    with world.open() as memory:
        gone = memory.get(old.id)
        assert (gone.superseded_by, gone.valid.until) == (new.id, new.created.date())
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
        ({"days": 200}, "it is the later statement"),
        ({"speaker": Speaker.AGENT}, "an agent's statement would replace the owner's"),
        ({"kind": Kind.EVENT}, "events stay true"),
    ],
)
def test_agents_earlier_and_event_statements_end_nothing(
    world: World, more: dict[str, Any], why: str
) -> None:
    old = kept(
        world,
        "Honey is sold in jars of 500 g at the yard.",
        days=90,
        kind=more.get("kind", Kind.FACT),
    )
    other = kept(world, "At the yard honey is sold in jars of 250 g now.", **more)
    world.model = Writer(sorts=over(old.content, other.content))
    assert why in planned(world).refused[0][1]
    assert set(active(world)) == {old.id, other.id}


def test_memory_still_valid_in_the_second_check_is_kept(world: World) -> None:
    old = kept(world, "Honey is sold in jars of 500 g at the yard.", days=90)
    new = kept(world, "At the yard honey is sold in jars of 250 g to schools.", days=2)
    world.model = Writer(finding="holds", sorts=over(old.content, new.content))
    report = dreamt(world)
    assert report.operation is None
    assert "the second check says: holds" in report.plan.refused[0][1]
    assert len(active(world)) == 2


def test_edit_of_importance_does_not_make_a_memory_newer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nacre.home.spending.ANSWERS_KEPT", timedelta(days=-1))
    old = kept(world, "Honey is sold in jars of 500 g at the yard.", days=90)
    new = kept(world, "At the yard honey is sold in jars of 250 g now.", days=2)
    with world.open() as memory:
        memory.edit(old.id, importance=6)
    world.model = Writer(finding="over", sorts=over(new.content, old.content))
    assert planned(world).refused[0][1] == "it is the later statement"
    world.model = Writer(finding="over", sorts=over(old.content, new.content))
    dreamt(world)
    assert set(active(world)) == {new.id}


def test_merge_takes_no_properties_from_an_agents_memory(world: World) -> None:
    other = kept(world, "The label of the jars is yellow.", subject="Label")
    own = kept(world, AT_YARD, days=9, importance=3)
    kept(
        world,
        JARS,
        speaker=Speaker.AGENT,
        importance=9,
        tags=("agent",),
        links=(Link("contradicts", other.id),),
        confirmed=(Confirmation(world.clock(), "codex:1", ("t1",)),),
    )
    world.model = Writer(sorts=same(JARS, AT_YARD, keep=AT_YARD))
    dreamt(world)
    stays = active(world)[own.id]
    assert (stays.importance, stays.tags, stays.links, stays.confirmed) == (3, (), (), ())


def test_predecessors_of_a_merged_memory_follow_the_kept_memory(
    world: World,
) -> None:
    oldest = kept(world, "Honey is sold in buckets.", days=90)
    middle = kept(world, JARS, days=9, links=(Link("supersedes", oldest.id),))
    kept_so = replace(oldest, superseded_by=middle.id)
    with world.context().change("store") as change, change.transaction():
        change.put([kept_so])
    stays = kept(world, AT_YARD)
    world.model = Writer(sorts=same(JARS, AT_YARD, keep=AT_YARD))
    dreamt(world)
    with world.open() as memory:
        assert memory.get(oldest.id).superseded_by == stays.id
        assert [link.to for link in memory.get(stays.id).links if link.rel == "supersedes"] == [
            oldest.id
        ]
        assert memory.get(middle.id).retired


def test_large_step_does_not_block_other_steps(world: World) -> None:
    for day in range(5):
        kept(world, JARS, days=day)
    kept(world, "The crew is away.", expires_on=world.clock().date())
    report = dream(world.context(), DreamRequest(first=True, most=2))
    assert sum(len(step.ends) for step in report.plan.steps) == 2
    for _ in range(2):
        dream(world.context(), DreamRequest(first=True, most=2))
    assert {one.content for one in active(world).values()} == {JARS}
    assert len(active(world)) == 1


def test_dream_carries_out_only_the_selected_steps(world: World) -> None:
    kept(world, JARS, days=1)
    kept(world, AT_YARD)
    shown = planned(world)
    over = kept(world, "The crew is away.", expires_on=world.clock().date())
    report = dream(
        world.context(),
        DreamRequest(tier=2, first=True, steps=tuple(step.key for step in shown.steps)),
    )
    assert report.operation
    assert over.id in active(world)
    assert len(report.plan.put_off) == 1


def test_unavailable_writer_is_not_called_repeatedly(world: World) -> None:
    for place in range(40):
        kept(
            world,
            f"Hive {place} stands in row {place} of the northern yard, near the old fence.",
            project=f"p{place}",
        )
        kept(
            world,
            f"In row {place} of the northern yard stands hive {place}, near the old fence.",
            project=f"p{place}",
        )
    world.model = ScriptedModel([ModelUnavailableError("it is asleep", retry=False)], repeats=True)
    found = planned(world)
    assert found.note == "it is asleep"
    assert len(world.model.prompts) <= 3


@pytest.mark.parametrize("finding", ["same", "over"])
def test_restored_memory_is_not_shown_to_the_writer_again(world: World, finding: str) -> None:
    ended = kept(world, JARS, days=9)
    kept(world, AT_YARD)
    sorts = same(JARS, AT_YARD, keep=AT_YARD) if finding == "same" else over(JARS, AT_YARD)
    world.model = Writer(finding=finding, sorts=sorts)
    report = dreamt(world)
    assert report.operation
    assert ended.id not in active(world)
    with world.open() as memory:
        world.clock.now += timedelta(seconds=1)
        memory.undo(report.operation)
    assert ended.id in active(world)
    world.model = Writer()
    world.clock.now += timedelta(days=30)
    assert to_ask(world) == 0
    assert dreamt(world).operation is None
    assert world.model.prompts == []
