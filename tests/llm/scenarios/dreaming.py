"""What says the same and what is over among memories of a year, as a model tells it."""

from __future__ import annotations

from datetime import timedelta

from nacre.dream.dream import plan
from nacre.dream.requests import DreamPlanRequest
from nacre.dream.values import DreamAction
from nacre.home.home import Home
from nacre.values.memory import Kind, Memory
from nacre.values.model_calls import Task
from tests.llm.stage import Stage, scenario

_SAME = (
    "Deployments of the billing service happen on Tuesdays only.",
    "The billing service: deployments only on Tuesdays, since support is complete then.",
)
_ENDED = (
    "The ledger of billing is kept in SQLite.",
    "The ledger of billing is kept in PostgreSQL now, no longer in SQLite.",
)
_APART = (
    "The staging database of billing listens on port 5433.",
    "The production database of billing listens on port 5433.",
    "Uploads of invoices are limited to 20 MB.",
    "Uploads of invoices are limited to 20 MB, for partners to 50 MB.",
)


def _kept(context: Home, text: str, days: int) -> str:
    at = context.now() - timedelta(days=days)
    memory = Memory(context.ids(), Kind.FACT, text[:30], text, at, at, project="acme")
    with context.change("store") as change, change.transaction():
        change.put([memory])
    return memory.id


@scenario()
def a_dream_makes_one_of_what_says_the_same_and_ends_what_is_over(stage: Stage) -> None:
    with stage.open(Task.DREAM, embedding=True) as context:
        texts = (*_SAME, *_ENDED, *_APART)
        ids = {text: _kept(context, text, 90 - 10 * at) for at, text in enumerate(texts)}
        found = plan(context, DreamPlanRequest(tier=2))
    assert found.note is None
    merged = [{step.into, *step.ends} for step in found.steps if step.action is DreamAction.MERGE]
    assert {ids[text] for text in _SAME} in merged
    ended = {(step.ends[0], step.into) for step in found.steps if step.action is DreamAction.SUPERSEDE}
    assert ended == {(ids[_ENDED[0]], ids[_ENDED[1]])}
    staging, production, general, special = (ids[text] for text in _APART)
    assert not any({staging, production} <= one or {general, special} <= one for one in merged)
