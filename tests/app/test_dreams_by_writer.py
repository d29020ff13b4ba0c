"""Dreams with a writer: what says the same in other words becomes one, and what does not stays apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from nacre.dream.dream import carry_out, dream, dream_estimate, dream_unasked, plan
from nacre.dream.requests import DreamPlanRequest, DreamRequest
from nacre.dream.values import DreamPlan, DreamReport
from nacre.errors import ModelUnavailable
from nacre.values.memory import Kind, Memory, Source, Trust
from nacre.values.model_calls import Prompt
from nacre.values.review import Reason
from nacre.values.session import Speaker
from tests.app.conftest import World
from tests.app.test_dreams import kept, vault
from tests.fakes.model import ScriptedModel

JARS = "Honey is sold in jars of 500 g at the yard."
AT_YARD = "At the yard honey is sold in jars of 500 g, because they stack."


def texts(prompt: Prompt) -> list[str]:
    return [str(json.loads(line)["text"]) for line in prompt.text.splitlines() if line.startswith("{")]


def compared(*findings: str) -> dict[str, Any]:
    """What a second look finds of each case, and then rightly of the probe."""
    found = [*findings, "differs", "holds"]
    return {"cases": [{"number": number, "finding": one, "what": ""} for number, one in enumerate(found, 1)]}


class Writer(ScriptedModel):
    """Merges all of each cluster, into the words it is told or the first member, and finds what it is told to.

    It knows the probes, which are the last that it is shown, unless it is ``gullible`` as it merges or compares.
    """

    def __init__(self, words: str | None = None, *, finding: str = "same", gullible: str = "", **more: Any) -> None:
        super().__init__(self._answer, **more)
        self._words, self._finding, self._gullible = words, finding, gullible

    def _answer(self, prompt: Prompt) -> dict[str, Any]:
        if prompt.name == "compare":
            cases = re.findall(r'"number": (\d+)', prompt.text)
            what = "" if self._finding == "same" else "the stacking"
            found = [{"number": int(one), "finding": self._finding, "what": what} for one in cases]
            found[-2] |= {} if self._gullible == "comparing" else {"finding": "differs"}
            found[-1] |= {"finding": "over" if self._gullible == "ending" else "holds"}
            return {"cases": found}
        return {"merges": list(self._merges(prompt)), "over": []}

    def _merges(self, prompt: Prompt) -> Iterator[dict[str, Any]]:
        clusters = prompt.text.split("A cluster:")[1:]
        for cluster in clusters if self._gullible == "merging" else clusters[:-3]:
            numbers = [int(one) for one in re.findall(r'"number": (\d+)', cluster)]
            keep = None if self._words else numbers[0]
            yield {"numbers": numbers, "keep": keep, "words": self._words, "why": "both tell the jar"}


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
def test_what_says_the_same_in_other_words_becomes_one_and_is_taken_back_to_the_byte(world: World, git: str) -> None:
    world.environ["NACRE_GIT_ENABLED"] = git
    first = kept(world, JARS, subject="Jars", days=3, source=Source("codex:1", ("t1",)))
    later = kept(world, AT_YARD, subject="Jars at the yard", importance=7)
    apart = kept(world, "The label of the jars is yellow.", subject="Label")
    before = vault(world)
    words = "Honey is sold at the yard in jars of 500 g, because they stack."
    world.model = Writer(words)
    report = dreamt(world)
    now = active(world)
    assert set(now) == {later.id, apart.id}
    assert (now[later.id].content, now[later.id].created, now[later.id].importance) == (words, first.created, 7)
    assert now[later.id].extra["merged"]["of"] == [later.id, first.id]
    assert now[later.id].extra["merged"]["by"] == "scripted:1"
    diary = (world.vault / (report.diary or "")).read_text()
    assert words in diary
    assert AT_YARD in diary
    with world.open() as memory:
        memory.undo(report.operation)
    assert {path: text for path, text in vault(world).items() if "dreams/" not in path} == before


def test_a_memory_that_says_all_of_it_stays_as_it_is(world: World) -> None:
    kept(world, "At the yard honey is sold in jars.", days=3)
    whole = kept(world, "At the yard honey is sold in jars of 500 g.")
    world.model = Writer()
    world.model._answers = [  # the second of the two
        {"merges": [{"numbers": [1, 2], "keep": 2, "words": None, "why": "it says both"}], "over": []},
        compared("same"),
    ]
    dreamt(world)
    assert {one.content for one in active(world).values()} == {whole.content}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("Honey is sold in jars at the yard, because they stack.", "leave out 500"),
        ("Honey is sold in jars of 500 g at the yard by Meier, because they stack.", "add Meier"),
        ("Honey is sold in jars of 500 g and 250 g at the yard, because they stack.", "add 250"),
    ],
)
def test_words_that_lose_or_add_something_change_nothing_and_wait_for_a_person(
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
    assert waiting.entry.reason is Reason.MERGE
    assert why in (waiting.entry.detail or "")


def test_what_does_not_bear_a_second_look_changes_nothing(world: World) -> None:
    one, other = kept(world, JARS, days=1), kept(world, AT_YARD)
    world.model = Writer(finding="loses")
    report = dreamt(world)
    assert report.plan.refused[0][1] == "a second look says: loses the stacking"
    assert set(active(world)) == {one.id, other.id}


@pytest.mark.parametrize(
    "more",
    [
        {"project": "press"}, {"trust": Trust.UNTRUSTED}, {"proposed": True, "speaker": Speaker.AGENT},
        {"kind": Kind.TODO}, {"kind": Kind.EVENT},
    ],
)  # fmt: skip
def test_memories_of_another_place_trust_or_sort_are_not_even_shown_together(
    world: World, more: dict[str, Any]
) -> None:
    kept(world, JARS, days=1)
    kept(world, AT_YARD, **more)
    assert planned(world).steps == ()
    assert isinstance(world.model, Writer)
    assert not world.model.prompts


def test_the_owners_word_never_becomes_an_agents(world: World) -> None:
    own = kept(world, JARS, days=1)
    agents = kept(world, AT_YARD, speaker=Speaker.AGENT)
    world.model = Writer()
    world.model._answers = [
        {"merges": [{"numbers": [1, 2], "keep": 2, "words": None, "why": "it says both"}], "over": []}
    ]
    assert "an agent's words would stand for the owner's" in planned(world).refused[0][1]
    assert set(active(world)) == {own.id, agents.id}


def test_a_writer_that_names_what_it_was_not_shown_together_merges_nothing(world: World) -> None:
    kept(world, JARS, days=1)
    kept(world, AT_YARD)
    kept(world, "The gate is locked with the brass key.", days=1)
    kept(world, "The gate is locked with the brass key at night.")
    world.model = Writer()
    apart = [{"numbers": [1, 3], "keep": 1, "words": None, "why": "x"}]
    unknown = [{"numbers": [99, 2], "keep": 99, "words": None, "why": "x"}]
    world.model._answers = [{"merges": apart + unknown, "over": []}]
    found = planned(world)
    assert found.steps == ()
    assert len(found.refused) == 1


def test_nobody_is_asked_twice_about_the_same_and_what_was_merged_rests(world: World) -> None:
    kept(world, JARS, days=1)
    kept(world, AT_YARD)
    world.model = Writer(finding="differs")
    dreamt(world)
    asked = len(world.model.prompts)
    assert dream_estimate(world.context(), DreamPlanRequest()).clusters == 0
    dreamt(world)
    assert len(world.model.prompts) == asked
    kept(world, "At the yard honey is sold in jars of 500 g.")  # now there is something new to look at
    world.model = Writer("Honey is sold at the yard in jars of 500 g, because they stack.")
    assert dreamt(world).operation
    assert len(active(world)) == 1
    kept(world, JARS + " Always.")
    assert dream_estimate(world.context(), DreamPlanRequest()).clusters == 0
    world.clock.pass_days(8)
    assert dream_estimate(world.context(), DreamPlanRequest()).clusters == 1


def test_an_interrupted_dream_asks_only_for_what_it_has_no_answer_to(world: World) -> None:
    kept(world, JARS, days=1)
    kept(world, AT_YARD)
    world.model = Writer()
    first = planned(world)
    assert first.steps
    asked = len(world.model.prompts)
    assert planned(world).steps == first.steps
    assert len(world.model.prompts) == asked


def test_a_writer_that_fails_leaves_what_rules_found(world: World) -> None:
    kept(world, JARS, days=1)
    kept(world, AT_YARD)
    kept(world, "The crew is away.", expires_on=world.clock().date())
    world.model = ScriptedModel([ModelUnavailable("it is asleep", retry=False)], repeats=True)
    found = planned(world)
    assert (len(found.steps), found.note, found.settled) == (1, "it is asleep", ())


@pytest.mark.parametrize("when", ["merging", "comparing", "ending"])
def test_a_writer_that_takes_what_surely_differs_for_the_same_is_not_believed(world: World, when: str) -> None:
    one, other = kept(world, JARS, days=1), kept(world, AT_YARD)
    world.model = Writer(gullible=when)
    report = dreamt(world)
    assert (report.operation, report.plan.refused, report.plan.settled) == (None, (), ())
    assert (
        report.plan.note
        == "1 of 1 answers of the writer are not used: it took for the same, or for over, what surely is not"
    )
    assert set(active(world)) == {one.id, other.id}


def test_projects_and_tools_that_are_left_out_are_not_shown_to_it(world: World) -> None:
    kept(world, JARS, days=1, project="secret", source=Source("codex:1", ("t1",)))
    kept(world, AT_YARD, project="secret")
    world.environ["NACRE_WRITER_EXCLUDE_PROJECTS"] = '["secr*"]'
    assert dream_estimate(world.context(), DreamPlanRequest()).clusters == 0
    world.environ["NACRE_WRITER_EXCLUDE_PROJECTS"] = "[]"
    world.environ["NACRE_WRITER_EXCLUDE_TOOLS"] = '["codex"]'
    assert dream_estimate(world.context(), DreamPlanRequest()).clusters == 0
    world.environ["NACRE_WRITER_EXCLUDE_TOOLS"] = "[]"
    found = dream_estimate(world.context(), DreamPlanRequest())
    assert (found.clusters, found.memories, found.calls) == (1, 2, 2)


def test_what_was_edited_since_it_was_planned_is_not_merged(world: World) -> None:
    kept(world, JARS, days=1)
    later = kept(world, AT_YARD)
    found = planned(world)
    with world.open() as memory:
        memory.edit(later.id, content="At the yard honey is sold in jars of 250 g, because they stack.")
    report = carry_out(world.context(), found)
    assert [why for _, why in report.left] == ["they have changed since"]


def test_at_night_the_writer_is_asked_only_where_models_may_work_in_the_background(world: World) -> None:
    kept(world, JARS, days=1)
    kept(world, AT_YARD)
    world.environ["NACRE_DREAM_AT_NIGHT"] = "true"
    dream_unasked(world.context())
    world.clock.pass_days(1)
    assert isinstance(world.model, Writer)
    assert not world.model.prompts
    world.environ["NACRE_MODELS_BACKGROUND"] = "true"
    report = dream_unasked(world.context())
    assert report is not None
    assert report.operation
    assert len(active(world)) == 1


def test_what_a_later_memory_has_ended_is_history_and_is_taken_back_to_the_byte(world: World) -> None:
    old = kept(world, "Honey is sold in jars of 500 g at the yard.", days=90)
    new = kept(world, "At the yard honey is sold in jars of 250 g now.", days=2)
    before = vault(world)
    world.model = Writer()
    world.model._answers = [
        {"merges": [], "over": [{"number": 1, "by": 2, "why": "smaller jars since"}]}, compared("over"),
    ]  # fmt: skip
    report = dreamt(world)
    assert set(active(world)) == {new.id}
    with world.open() as memory:
        gone = memory.get(old.id)
        assert (gone.superseded_by, gone.valid.until) == (new.id, new.created.date())
        (link,) = memory.get(new.id).links
        assert (link.rel, link.to, link.reason) == ("supersedes", old.id, "smaller jars since (scripted:1)")
        assert "over: Honey is sold in jars of 500 g" in (world.vault / (report.diary or "")).read_text()
        memory.undo(report.operation)
    assert {path: text for path, text in vault(world).items() if "dreams/" not in path} == before


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"days": 200}, "it was said later"),
        ({"speaker": Speaker.AGENT}, "an agent's words would stand for the owner's"),
        ({"kind": Kind.EVENT}, "what happened stays true"),
    ],
)
def test_what_is_said_earlier_by_an_agent_or_of_a_day_ends_nothing(
    world: World, more: dict[str, Any], why: str
) -> None:
    old = kept(world, "Honey is sold in jars of 500 g at the yard.", days=90, kind=more.get("kind", Kind.FACT))
    other = kept(world, "At the yard honey is sold in jars of 250 g now.", **more)
    world.model = Writer()
    world.model._answers = [{"merges": [], "over": [{"number": 1, "by": 2, "why": "smaller jars"}]}]
    assert why in planned(world).refused[0][1]
    assert set(active(world)) == {old.id, other.id}


def test_what_still_holds_on_a_second_look_is_not_ended(world: World) -> None:
    kept(world, "Honey is sold in jars of 500 g at the yard.", days=90)
    kept(world, "At the yard honey is sold in jars of 250 g to schools.", days=2)
    world.model = Writer()
    world.model._answers = [
        {"merges": [], "over": [{"number": 1, "by": 2, "why": "smaller jars"}]}, compared("holds"),
    ]  # fmt: skip
    report = dreamt(world)
    assert report.operation is None
    assert "a second look says: holds" in report.plan.refused[0][1]
    assert len(active(world)) == 2


@pytest.mark.parametrize("finding", ["same", "over"])
def test_what_the_writer_ended_and_was_brought_back_is_not_shown_to_it_again(world: World, finding: str) -> None:
    ended = kept(world, JARS, days=9)
    kept(world, AT_YARD)
    merges = [{"numbers": [1, 2], "keep": None, "words": AT_YARD, "why": "both tell the jar"}]
    over = [{"number": 1, "by": 2, "why": "they stack since"}]
    world.model = Writer()
    world.model._answers = [
        {"merges": merges, "over": []} if finding == "same" else {"merges": [], "over": over}, compared(finding),
    ]  # fmt: skip
    report = dreamt(world)
    assert report.operation
    assert ended.id not in active(world)
    with world.open() as memory:
        world.clock.now += timedelta(seconds=1)
        memory.undo(report.operation)
    assert ended.id in active(world)
    world.model = Writer()
    world.clock.now += timedelta(days=30)
    assert dream_estimate(world.context(), DreamPlanRequest(tier=2)).clusters == 0
    assert dreamt(world).operation is None
    assert world.model.prompts == []
