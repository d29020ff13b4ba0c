"""What an agent made of the memories that it looked up is heard as its session ends, without anybody asking."""

from __future__ import annotations

import pytest

from nacre.values.memory import Kind
from nacre.values.recall import Filter
from nacre.values.review import NEUTRAL_QUALITY
from tests.app.conftest import World
from tests.app.test_handing_over import ASKED, FIRST, ended, talk

LATER = "2026-11-20T13:00:00.000Z"
DRAIN = "The drain of the invoice queue takes nine minutes at night."
PAPER = "Receipts are printed on yellow paper in the harbour office."
USED = f"I looked it up: {DRAIN[0].lower()}{DRAIN[1:]} So I start it at two, and check it when it is over."


@pytest.fixture
def known(world: World) -> World:
    """A world that knows two things, both looked up in a session."""
    with world.open() as memory:
        for text in (DRAIN, PAPER):
            memory.store(text, kind="lesson")
            memory.recall(text, session=FIRST)
    return world


def qualities(world: World) -> dict[str, float]:
    with world.open() as memory:
        found = {one.id: one.content for one in memory.list(filter=Filter(kinds=(Kind.LESSON,)))}
    return {
        found[key]: usage.quality for key, usage in world.context().usage.of(list(found)).items()
    }


def test_used_memory_gains_quality_and_unused_loses_a_little(known: World) -> None:
    ended(known, talk(known, ASKED, USED, at=LATER))
    after = qualities(known)
    assert after[DRAIN] == pytest.approx(0.6)
    assert after[PAPER] == pytest.approx(0.48)


def test_use_is_judged_once_despite_repeated_session_ends(known: World) -> None:
    for _ in range(3):
        ended(known, talk(known, ASKED, USED, at=LATER))
    assert qualities(known)[DRAIN] == pytest.approx(0.6)


def test_earlier_words_and_owners_words_do_not_count_as_use(known: World) -> None:
    ended(
        known,
        talk(
            known, USED, "Understood.", USED, "I will do that now.", at="2026-11-20T10:00:00.000Z"
        ),
    )
    assert qualities(known)[DRAIN] == NEUTRAL_QUALITY


def test_session_without_lookups_changes_no_quality(known: World) -> None:
    other = "claude-code:5e55-0002"
    ended(known, talk(known, ASKED, USED, session="5e55-0002", at=LATER), other)
    assert set(qualities(known).values()) == {NEUTRAL_QUALITY}
