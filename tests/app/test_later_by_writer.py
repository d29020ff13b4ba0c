"""Dreams of tier 3 with a writer: it holds memories against what was said later, and what it doubts waits in review."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from nacre.context.build import build
from nacre.dream.dream import dream, dream_estimate, dream_unasked
from nacre.dream.requests import DreamPlanRequest, DreamRequest
from nacre.dream.values import DreamReport
from nacre.review.answers import waiting
from nacre.values.context import ContextRequest, Moment
from nacre.values.memory import Kind, Memory, Trust
from nacre.values.model_calls import Prompt
from nacre.values.review import Reason
from tests.app.conftest import World, says
from tests.app.test_dreams import kept
from tests.fakes.model import ScriptedModel

BRANCH = "The checkpoints of a session lie on the branch hive/sessions, and the owner never pushes it."
MOVED = "Done: the branch hive/sessions of the checkpoints is called hive/checkpoints/v1 now."
CLAUSE = "The checkpoints of a session lie on the branch hive/sessions"
NOW = "The checkpoints lie on hive/checkpoints/v1."
PROJECT = "acme-billing"


class Writer(ScriptedModel):
    """Doubts the memory it is told to, with the excerpts that hold some words; whatever else it is asked is settled."""

    def __init__(self, *, clause: str = CLAUSE, now: str = NOW, shown: str = "called hive/checkpoints/v1") -> None:
        super().__init__(self._answer)
        self._clause, self._now, self._shown = clause, now, shown

    def _answer(self, prompt: Prompt) -> dict[str, Any]:
        if prompt.name != "later":
            return {"merges": [], "over": []}
        lines = [json.loads(line) for line in prompt.text.splitlines() if line]
        memories = [one["memory"] for one in lines if one.get("text") == BRANCH]
        evidence = [one["number"] for one in lines if self._shown in one.get("said", "")] or [99]
        told = {"clause": self._clause, "now": self._now, "evidence": evidence}
        return {"memories": [{**told, "number": number} for number in memories]}

    @property
    def later(self) -> list[Prompt]:
        """Where it was asked about what was said later."""
        return [one for one in self.prompts if one.name == "later"]


@pytest.fixture
def world(world: World) -> World:
    world.environ |= {"NACRE_MODELS_EXTRACTION": "scripted:1", "NACRE_MODELS_CACHE_DAYS": "0"}
    return world


@pytest.fixture
def writer(world: World) -> Writer:
    world.model = writer = Writer()
    return writer


@pytest.fixture
def branch(world: World, writer: Writer) -> Memory:
    """A memory, and a session that says otherwise later."""
    memory = kept(world, BRANCH, days=20, kind=Kind.DECISION, importance=8, project=PROJECT)
    heard(world, "moved", MOVED)
    return memory


def heard(world: World, name: str, *said: str, days: float = 2) -> None:
    """A session of that many days ago in which the agent says something."""
    at = f"{world.clock() - timedelta(days=days):%Y-%m-%dT%H:%M:%S.000Z}"
    told = [says("assistant", one, uuid=f"{name}-a{number}", session=name, at=at) for number, one in enumerate(said)]
    world.transcript(name, says("user", "Go on with the branch.", uuid=f"{name}-u", session=name, at=at), *told)
    world.environ["NACRE_MODELS_EXTRACTION"] = "none"
    with world.open() as memory:
        memory.ingest()
    world.environ["NACRE_MODELS_EXTRACTION"] = "scripted:1"


def dreamt(world: World) -> DreamReport:
    world.clock.now += timedelta(seconds=1)
    return dream(world.context(), DreamRequest(tier=3, first=True))


def test_what_no_longer_holds_by_what_was_said_later_waits_in_review_and_is_told_with_it(
    world: World, writer: Writer, branch: Memory
) -> None:
    report = dreamt(world)
    (doubt,) = report.plan.doubts
    assert (doubt.memory, doubt.by) == (branch.id, "scripted:1")
    (found,) = waiting(world.context()).reviews
    assert (found.memory.content, found.entry.reason) == (BRANCH, Reason.STALE)
    assert found.entry.detail == doubt.why
    assert doubt.why.startswith(NOW)
    asked = ContextRequest(
        Moment.PROMPT, prompt="On which branch do checkpoints of a session lie?", folder="/code/acme-billing"
    )
    (line,) = [one for one in build(world.context(), asked).text.splitlines() if BRANCH in one]
    assert f"may be out of date: {NOW}" in line


def test_a_memory_is_held_against_what_was_said_later_once_until_more_is_said(
    world: World, writer: Writer, branch: Memory
) -> None:
    writer._clause = ""
    dreamt(world)
    dreamt(world)
    assert len(writer.later) == 1
    heard(world, "more", "The branch hive/sessions of the checkpoints is gone.", days=-1)
    world.clock.pass_days(2)
    dreamt(world)
    assert len(writer.later) == 2


@pytest.mark.parametrize(("background", "times"), [("true", 1), ("false", 0)])
def test_without_dreams_at_night_it_is_done_all_the_same_once_a_day_where_the_writer_may_work(
    world: World, writer: Writer, branch: Memory, background: str, times: int
) -> None:
    world.environ |= {"NACRE_MODELS_BACKGROUND": background, "NACRE_DREAM_AT_NIGHT": "false"}
    for _ in range(2):
        assert dream_unasked(world.context()) is None
    assert len(writer.later) == times
    assert [one.memory.id for one in waiting(world.context()).reviews] == [branch.id] * times
    assert [one.content for one in world.context().memories.everything()] == [BRANCH]


@pytest.mark.parametrize(
    ("clause", "shown"),
    [("Honey is sold in jars at the yard", "called"), (CLAUSE, "nobody said this"), ("", "called")],
    ids=["no clause of it", "no excerpt", "nothing"],
)
def test_what_code_does_not_bear_out_is_no_doubt(world: World, branch: Memory, clause: str, shown: str) -> None:
    world.model = Writer(clause=clause, shown=shown)
    assert dreamt(world).plan.doubts == ()
    assert waiting(world.context()).reviews == ()


def test_neither_what_came_from_outside_nor_what_happened_once_is_held_against_anything(
    world: World, writer: Writer
) -> None:
    kept(world, BRANCH, days=20, trust=Trust.UNTRUSTED, project=PROJECT)
    kept(world, f"{BRANCH} So it was on 3 March.", days=20, kind=Kind.EVENT, project=PROJECT)
    heard(world, "moved", MOVED)
    dreamt(world)
    assert not writer.later


@pytest.mark.parametrize(
    ("setting", "value"),
    [("EXCLUDE_TOOLS", '["claude-code"]'), ("EXCLUDE_PROJECTS", '["acme-*"]')], ids=["a tool", "a project"],
)  # fmt: skip
def test_the_writer_is_shown_nothing_that_was_said_in_sessions_that_are_kept_from_it(
    world: World, writer: Writer, branch: Memory, setting: str, value: str
) -> None:
    world.environ[f"NACRE_WRITER_{setting}"] = value
    dreamt(world)
    assert not writer.later
    world.environ[f"NACRE_WRITER_{setting}"] = "[]"
    heard(world, "more", "The branch hive/sessions of the checkpoints is gone.", days=1)
    dreamt(world)
    assert len(writer.later) == 1


def test_what_was_said_with_a_model_of_this_machine_goes_to_no_other_one(world: World, writer: Writer) -> None:
    kept(world, BRANCH, days=20, kind=Kind.DECISION, project=PROJECT)
    at = f"{world.clock() - timedelta(days=2):%Y-%m-%dT%H:%M:%S.000Z}"
    answer = says("assistant", MOVED, uuid="l-2", session="local", at=at)
    answer["message"]["model"] = "qwen3:8b"
    world.transcript("local", says("user", "Go on.", uuid="l-1", session="local", at=at), answer)
    world.environ["NACRE_MODELS_EXTRACTION"] = "none"
    with world.open() as memory:
        memory.ingest()
    world.environ["NACRE_MODELS_EXTRACTION"] = "scripted:1"
    dreamt(world)
    assert not writer.later


def test_the_estimate_counts_what_holding_memories_against_later_talk_takes(world: World, branch: Memory) -> None:
    with_later = dream_estimate(world.context(), DreamPlanRequest(tier=3))
    dreamt(world)
    without = dream_estimate(world.context(), DreamPlanRequest(tier=3))
    assert with_later.calls == without.calls + 1
    assert with_later.tokens > without.tokens
