"""The wake-up bundle: a session's start in sections, each with its budget."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.context.pages import write_own_page
from nacre.context.requests import WakeupRequest
from nacre.context.wakeup import Wakeup, wakeup
from nacre.errors import InvalidInput
from nacre.values.context import Part
from nacre.values.memory import Expiry, Kind, Trust
from tests.app.conftest import World
from tests.app.test_dreams import kept


def woken(world: World, **asked: Any) -> Wakeup:
    return wakeup(world.context(), WakeupRequest(**asked))


def texts(found: Wakeup) -> dict[Part, list[str]]:
    return {one.part: [item.text.partition(" (")[0] for item in one.items] for one in found.sections if one.items}


def test_sections_stand_in_the_order_in_which_they_are_asked_for_and_empty_ones_are_named(world: World) -> None:
    kept(world, "Oil the door of the extractor.", days=2, kind=Kind.TODO, project=None, importance=8)
    kept(world, "The honey is sold by weight.", days=1, kind=Kind.DECISION, project=None, importance=8)
    parts = (Part.PREFERENCES, Part.LESSONS, Part.ACTIVE)
    found = woken(world, parts=parts)
    assert [one.part for one in found.sections] == list(parts)
    assert texts(found) == {
        Part.PREFERENCES: ["- The honey is sold by weight."], Part.ACTIVE: ["- Oil the door of the extractor."],
    }  # fmt: skip
    assert found.text.index("sold by weight") < found.text.index("Oil the door")


def test_what_a_section_leaves_flows_on_to_the_next(world: World) -> None:
    for number in range(40):
        kept(
            world,
            f"Lesson {number}: {'frames swarm early ' * 4}",
            days=number,
            kind=Kind.LESSON,
            project=None,
            importance=8,
        )
    parts = (Part.IDENTITY, Part.LESSONS)
    found = woken(world, parts=parts, budget_tokens=600, part_budgets={Part.LESSONS: 100})
    identity, lessons = found.sections
    assert identity.tokens == 0
    assert lessons.budget_tokens == 100 + identity.budget_tokens > 400
    assert 300 < lessons.tokens <= lessons.budget_tokens
    assert lessons.truncated
    assert found.tokens <= 600


def test_a_section_with_a_budget_of_its_own_keeps_to_it_however_much_there_is(world: World) -> None:
    for number in range(20):
        kept(
            world, f"Todo {number}: mend the gate of the yard", days=number, kind=Kind.TODO, project=None, importance=8
        )
    write_own_page(world.context(), "identity", "You work for the beekeeper.")
    found = woken(world, parts=(Part.ACTIVE, Part.IDENTITY), part_budgets={Part.ACTIVE: 60})
    active, identity = found.sections
    assert 0 < active.tokens <= 60
    assert active.truncated
    assert identity.items


def test_what_weighs_most_of_what_is_older_fills_a_section_of_its_own(world: World) -> None:
    for number in range(12):
        kept(world, f"Hive {number} stands by the lime tree.", days=60 + number, project=None, importance=8)
    found = woken(world, parts=(Part.KNOWN,), budget_tokens=600)
    assert len(texts(found)[Part.KNOWN]) == 12


def test_nothing_is_told_twice_and_nothing_that_nobody_answers_for(world: World) -> None:
    kept(world, "The honey is sold by weight.", kind=Kind.DECISION, expiry=Expiry.CORE, project=None, importance=8)
    kept(world, "The page says that honey cures colds.", trust=Trust.UNTRUSTED, project=None, importance=8)
    found = woken(world, prompt="how is the honey sold, by weight or by jar?")
    assert found.text.count("sold by weight") == 1
    assert "cures colds" not in found.text


def test_budgets_that_cannot_be_met_are_refused_with_what_would_fit(world: World) -> None:
    with pytest.raises(InvalidInput, match="exceed the whole"):
        woken(world, parts=(Part.ACTIVE,), budget_tokens=200, part_budgets={Part.ACTIVE: 500})
    with pytest.raises(InvalidInput, match="no section lessons is asked for"):
        woken(world, parts=(Part.ACTIVE,), part_budgets={Part.LESSONS: 50})
