"""Dreams of tier 3 with a writer: it says how memories stand to each other that nothing connects."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from nacre.review.consolidate import DreamAction, DreamPlan, DreamReport, Step
from nacre.review.contradictions import list_pending
from nacre.review.dream import DreamPlanRequest, DreamRequest
from nacre.review.queue import answer, reflect
from nacre.review.run import carry_out, dream, dream_estimate, plan
from nacre.values.memory import Link, Memory
from nacre.values.models import Prompt
from nacre.values.review import Relates
from nacre.values.session import Speaker, Trust
from tests.app.conftest import World
from tests.app.test_dreams import kept, vault
from tests.app.test_dreams_by_writer import PROBES
from tests.fakes.model import ScriptedModel

READ = "The scale is read by tools/read_scale.py every ten minutes."
SERIAL = "Since the move tools/read_scale.py wants the serial port as an argument."

Said = tuple[str, str] | None
"""A relation, and the text from which it leads."""


class Writer(ScriptedModel):
    """Says of each pair what it is told, in the first question and in the second; of probes nothing, unless it is
    ``gullible``."""

    def __init__(
        self, said: Said, again: Said = None, *, gullible: bool = False, **more: Any
    ) -> None:
        super().__init__(self._answer, **more)
        self._said, self._again, self._gullible, self._times = said, again or said, gullible, 0

    def _answer(self, prompt: Prompt) -> dict[str, Any]:
        if prompt.name != "relate":
            return {"merges": [], "over": []}
        self._times += 1
        cases = [json.loads(line) for line in prompt.text.splitlines()]
        return {
            "cases": [
                self._of(one, self._said if self._times % 2 else self._again) for one in cases
            ]
        }

    def _of(self, case: dict[str, Any], said: Said) -> dict[str, Any]:
        if case["a"]["text"] in PROBES:
            relation, side = "related_to" if self._gullible else "none", "a"
        else:
            relation, text = said or ("none", "")
            side = "a" if case["a"]["text"] == text else "b"
        return {
            "number": case["number"],
            "relation": relation,
            "from": side,
            "why": f"as [[{relation}]] <b>",
        }


@pytest.fixture
def world(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr("nacre.home.spending.ANSWERS_KEPT", timedelta(days=-1))
    world.environ |= {"NACRE_MODELS_EXTRACTION": "scripted:1"}
    return world


@pytest.fixture
def scale(world: World) -> tuple[Memory, Memory]:
    """Two memories that name the same file, the later one first."""
    read = kept(world, READ, days=9)
    return kept(world, SERIAL, days=1), read


def planned(world: World) -> DreamPlan:
    return plan(world.context(), DreamPlanRequest(tier=3))


def dreamt(world: World) -> DreamReport:
    world.clock.now += timedelta(seconds=1)
    return dream(world.context(), DreamRequest(tier=3, first=True))


def links(found: DreamPlan) -> list[Step]:
    return [step for step in found.steps if step.action is DreamAction.LINK]


def of(world: World, memory: Memory) -> tuple[Link, ...]:
    with world.open() as home:
        return home.get(memory.id).links


@pytest.mark.parametrize(("leads_from", "at"), [(SERIAL, 0), (READ, 1)])
def test_answer_becomes_an_attributed_link_and_is_undone_exactly(
    world: World, scale: tuple[Memory, Memory], leads_from: str, at: int
) -> None:
    before = vault(world)
    world.model = Writer(("depends_on", leads_from))
    report = dreamt(world)
    source, target = scale[at], scale[1 - at]
    assert of(world, source) == (
        Link("depends_on", target.id, "as ((depends_on)) (b) (scripted:1)", "reflect"),
    )
    assert of(world, target) == ()
    assert "depends_on: " in (world.vault / (report.diary or "")).read_text()
    assert reflect(world.context()).questions == ()
    with world.open() as memory:
        assert {one.id for one in memory.list()} == {one.id for one in scale}
        memory.undo(report.operation)
    assert {path: text for path, text in vault(world).items() if "dreams/" not in path} == before


def test_undone_link_is_not_redrawn_but_still_offered(
    world: World, scale: tuple[Memory, Memory]
) -> None:
    world.model = Writer(("depends_on", SERIAL))
    report = dreamt(world)
    with world.open() as memory:
        memory.undo(report.operation)
    assert dream_estimate(world.context(), DreamPlanRequest(tier=3)).pairs == 0
    assert links(dreamt(world).plan) == []
    assert len(reflect(world.context()).questions) == 1
    with world.open() as memory:
        memory.edit(scale[0].id, content=f"{SERIAL} And the baud rate.")
    assert dream_estimate(world.context(), DreamPlanRequest(tier=3)).pairs == 1


@pytest.mark.parametrize(
    ("said", "again"),
    [
        (None, None),
        (("depends_on", SERIAL), ("part_of", SERIAL)),
        (("depends_on", SERIAL), ("depends_on", READ)),
        (("part_of", SERIAL), ("none", "")),
    ],
    ids=["none", "another relation", "the other way round", "not again"],
)
def test_inconsistent_answers_draw_no_link_and_are_not_repeated(
    world: World, scale: tuple[Memory, Memory], said: Said, again: Said
) -> None:
    world.model = Writer(said, again)
    report = dreamt(world)
    assert report.operation is None
    assert dream_estimate(world.context(), DreamPlanRequest(tier=3)).pairs == 0
    assert of(world, scale[0]) == ()


def test_writer_that_connects_unrelated_memories_is_not_used(
    world: World, scale: tuple[Memory, Memory]
) -> None:
    world.model = Writer(("depends_on", SERIAL), gullible=True)
    report = dreamt(world)
    assert report.operation is None
    assert report.plan.note == (
        "1 of 1 answers of the writer are not used: it connected unrelated memories"
    )
    assert dream_estimate(world.context(), DreamPlanRequest(tier=3)).pairs == 1


def test_contradiction_found_by_the_writer_waits_for_review(
    world: World, scale: tuple[Memory, Memory]
) -> None:
    world.model = Writer(("contradicts", READ))
    dreamt(world)
    (pair,) = list_pending(world.context())
    assert (pair.newer.id, pair.older.id) == (scale[0].id, scale[1].id)
    with world.open() as memory:
        assert {one.id for one in memory.list()} == {one.id for one in scale}
    assert dream_estimate(world.context(), DreamPlanRequest(tier=3)).pairs == 0


def test_agents_statement_does_not_contradict_the_owners_statement(world: World) -> None:
    kept(world, READ, days=9)
    kept(world, SERIAL, days=1, speaker=Speaker.AGENT)
    world.model = Writer(("contradicts", READ))
    assert links(planned(world)) == []


@pytest.mark.parametrize(
    "more",
    [{"project": "mill"}, {"trust": Trust.UNTRUSTED}, {"proposed": True, "speaker": Speaker.AGENT}],
)
def test_other_projects_and_untrusted_memories_are_not_sent(
    world: World, more: dict[str, Any]
) -> None:
    kept(world, READ, days=9)
    kept(world, SERIAL, **more)
    world.model = Writer(("depends_on", SERIAL))
    assert links(planned(world)) == []
    assert world.model.prompts == []


def test_dismissed_and_excluded_pairs_are_not_sent_to_the_writer(
    world: World, scale: tuple[Memory, Memory]
) -> None:
    world.environ["NACRE_WRITER_EXCLUDE_PROJECTS"] = '["hive"]'
    assert dream_estimate(world.context(), DreamPlanRequest(tier=3)).pairs == 0
    world.environ["NACRE_WRITER_EXCLUDE_PROJECTS"] = "[]"
    assert dream_estimate(world.context(), DreamPlanRequest(tier=3)).pairs == 1
    assert dream_estimate(world.context(), DreamPlanRequest(tier=2)).pairs == 0
    answer(
        world.context(),
        reference="+".join(one.id for one in scale),
        skip=True,
    )
    assert dream_estimate(world.context(), DreamPlanRequest(tier=3)).pairs == 0


def _linked(world: World, scale: tuple[Memory, Memory]) -> None:
    answer(
        world.context(),
        reference="+".join(one.id for one in scale),
        link=Relates.PART_OF,
    )


def _edited(world: World, scale: tuple[Memory, Memory]) -> None:
    with world.open() as memory:
        memory.edit(scale[1].id, content=f"{READ} At night every hour.")


def _retired(world: World, scale: tuple[Memory, Memory]) -> None:
    with world.open() as memory:
        memory.retire(scale[1].id)


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (_linked, "they are linked already"),
        (_edited, "they have changed since"),
        (_retired, "they no longer exist"),
    ],
)
def test_memories_changed_after_planning_are_not_linked(
    world: World,
    scale: tuple[Memory, Memory],
    happens: Callable[[World, tuple[Memory, Memory]], None],
    why: str,
) -> None:
    world.model = Writer(("depends_on", SERIAL))
    found = planned(world)
    happens(world, scale)
    assert [one for _, one in carry_out(world.context(), found).left] == [why]


@pytest.mark.parametrize("relation", ["supersedes", "distinct_from", "none", ""])
def test_plan_with_an_unsupported_relation_is_not_carried_out(
    world: World, scale: tuple[Memory, Memory], relation: str
) -> None:
    world.model = Writer(("depends_on", SERIAL))
    found = planned(world)
    steps = tuple(replace(step, words=relation) for step in links(found))
    report = carry_out(world.context(), replace(found, steps=steps))
    assert [one for _, one in report.left] == ["it does not link two memories of one place"]


def test_dream_adds_at_most_three_links_per_memory(world: World) -> None:
    names = ("alpha_one", "beta_two", "gamma_three", "delta_four", "epsilon_five")
    kept(world, f"The middle knows {' and '.join(names)}.", days=9)
    for day, name in enumerate(names):
        kept(world, f"Only here stands {name}, number {day}.", days=day)
    world.model = Writer(("related_to", ""))
    assert dream_estimate(world.context(), DreamPlanRequest(tier=3)).pairs <= 3 + 2
    found = links(planned(world))
    often = [one for step in found for one in (step.into, *step.links)]
    assert found
    assert max(map(often.count, often)) <= 3
