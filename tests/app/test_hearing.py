"""At session end, the quality of recalled memories changes with their use by the agent."""

from __future__ import annotations

import pytest

from nacre.values.memory import Kind
from nacre.values.recall import Filter
from nacre.values.review import NEUTRAL_QUALITY
from tests.app.conftest import World
from tests.app.test_handing_over import FIRST, REQUEST, end_session, talk

LATER = "2026-11-20T13:00:00.000Z"
DRAIN = "The drain of the invoice queue takes nine minutes at night."
PAPER = "Receipts are printed on yellow paper in the harbour office."
USE = f"I looked it up: {DRAIN[0].lower()}{DRAIN[1:]} So I start it at two, and check it when it is over."


@pytest.fixture
def recalled_world(world: World) -> World:
    """A world with two memories, both recalled in a session."""
    with world.open() as memory:
        for text in (DRAIN, PAPER):
            memory.store(text, kind="lesson")
            memory.recall(text, session=FIRST)
    return world


def qualities(world: World) -> dict[str, float]:
    with world.open() as memory:
        contents = {
            item.id: item.content for item in memory.list(filter=Filter(kinds=(Kind.LESSON,)))
        }
    return {
        contents[key]: usage.quality
        for key, usage in world.context().usage.of(list(contents)).items()
    }


def test_used_memory_gains_quality_and_unused_loses_a_little(recalled_world: World) -> None:
    end_session(recalled_world, talk(recalled_world, REQUEST, USE, at=LATER))
    after = qualities(recalled_world)
    assert after[DRAIN] == pytest.approx(0.6)
    assert after[PAPER] == pytest.approx(0.48)


def test_use_is_judged_once_despite_repeated_session_ends(recalled_world: World) -> None:
    for _ in range(3):
        end_session(recalled_world, talk(recalled_world, REQUEST, USE, at=LATER))
    assert qualities(recalled_world)[DRAIN] == pytest.approx(0.6)


def test_earlier_words_and_owners_words_do_not_count_as_use(recalled_world: World) -> None:
    end_session(
        recalled_world,
        talk(
            recalled_world,
            USE,
            "Understood.",
            USE,
            "I will do that now.",
            at="2026-11-20T10:00:00.000Z",
        ),
    )
    assert qualities(recalled_world)[DRAIN] == NEUTRAL_QUALITY


def test_session_without_lookups_changes_no_quality(recalled_world: World) -> None:
    other = "claude-code:5e55-0002"
    end_session(
        recalled_world, talk(recalled_world, REQUEST, USE, session="5e55-0002", at=LATER), other
    )
    assert set(qualities(recalled_world).values()) == {NEUTRAL_QUALITY}
