"""A plain change of one value, person or tool is recognised without a model; a look-alike is not."""

from __future__ import annotations

import pytest

from tests.app.conftest import World


def named(world: World, earlier: str, later: str) -> str | None:
    """Store two statements and return the effect of the later one on the earlier."""
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"
    with world.open() as memory:
        old = memory.store(earlier).memory_id
        world.clock.pass_days(1)
        new = memory.store(later).memory_id
        if memory.get(old).superseded_by == new:
            return "superseded"
        is_doubted = any(link.to == old for link in memory.get(new).links)
        return "may be out of date" if is_doubted else None


@pytest.mark.parametrize(
    ("earlier", "later", "effect"),
    [
        (
            "We deploy on Fridays only",
            "We now deploy on Mondays instead of Fridays",
            "superseded",
        ),
        ("The standup is at 9:15", "The standup is now at 10:45", "superseded"),
        ("Wir deployen nur freitags", "Wir deployen jetzt montags statt freitags", "superseded"),
        (
            "The retro is Tuesday 12:00",
            "The retro has moved to Monday 18:00",
            "may be out of date",
        ),
        ("We use Jira for tickets", "We switched to Linear for tickets", "may be out of date"),
        ("Marta leads the harbour team", "Jonas leads the harbour team now", "may be out of date"),
        ("We have 12 pilots", "We now have 15 pilots", "may be out of date"),
        ("张伟负责支付模块", "现在由李娜负责支付模块", "may be out of date"),
        ("周会在周二", "周会改到周四了", "may be out of date"),
    ],
)
def test_plain_change_names_the_earlier_memory(
    world: World, earlier: str, later: str, effect: str
) -> None:
    assert named(world, earlier, later) == effect


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Stripe handles the ferry tickets", "We switched from Stripe to Paddle in Europe"),
        ("We use Redis for caching", "We dropped Redis for sessions"),
        ("Use DAS", "We dropped DAS"),
        ("We deploy the API on Fridays", "We now deploy the site on Mondays instead of Fridays"),
        ("The retro is Tuesday 12:00", "This week the retro has moved to Monday 18:00"),
        ("The retro is Tuesday 12:00", "The retro of the night crew has moved to Monday 18:00"),
        ("Marta leads the harbour team", "Jonas leads the ferry team now"),
        ("Marta maintains the winch", "Marta now has a dog"),
        ("We use Jira for tickets", "We use Linear for planning now"),
        ("Die Retro ist dienstags um 12:00", "Die Planung wurde auf montags um 18:00 verlegt"),
        ("日志保留30天", "备份现在保留90天"),
    ],
)
def test_similar_statement_about_another_thing_changes_nothing(
    world: World, earlier: str, later: str
) -> None:
    assert named(world, earlier, later) is None


def test_recall_list_and_review_mark_the_older_memory(world: World) -> None:
    assert named(world, "The retro is Tuesday 12:00", "The retro has moved to Monday 18:00")
    with world.open() as memory:
        new, old = (hit.memory.id for hit in memory.recall("when is the retro").hits)
        assert memory.recall("when is the retro").hits[1].outdated_by == (new,)
        listing = memory.call("list")
        assert ([item.id for item in listing.memories], listing.outdated_by) == (
            [new, old],
            {old: (new,)},
        )
        assert [review.memory.id for review in memory.reviews()] == [old]
