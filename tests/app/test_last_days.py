"""The digest: what is open, what was decided and learned in the last days, and no more than 8,000 bytes of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from nacre.context.digest import MOST_BYTES, digest
from nacre.context.requests import DigestRequest
from nacre.values.context import Part
from nacre.values.handoff import Handoff
from nacre.values.memory import Kind, Trust
from nacre.views import Digest
from tests.app.conftest import World
from tests.app.test_dreams import kept


def told(world: World, **asked: Any) -> Digest:
    return digest(world.context(), DigestRequest(**asked))


def contents(memories: tuple[Any, ...]) -> list[str]:
    return [one.content for one in memories]


def test_what_is_open_comes_first_what_was_promised_longest_ago_before_all(world: World) -> None:
    kept(world, "Oil the door of the extractor.", days=2, kind=Kind.TODO)
    kept(world, "Mend the gate of the yard.", days=300, kind=Kind.TODO)
    kept(world, "The honey is sold by weight.", days=1, kind=Kind.DECISION)
    kept(world, "The extractor takes nine frames.", days=3)
    kept(world, "Frames are wired by hand.", days=9)
    found = told(world, project="hive")
    assert contents(found.todos) == ["Mend the gate of the yard.", "Oil the door of the extractor."]
    assert contents(found.decisions) == ["The honey is sold by weight."]
    assert contents(found.learned) == ["The extractor takes nine frames."]
    lines = [line.partition(" (")[0] for line in found.text.splitlines() if line]
    assert lines == [
        "## Open, the oldest first", "- Mend the gate of the yard.", "- Oil the door of the extractor.",
        "## Decided in the last 7 days", "- The honey is sold by weight.",
        "## Learned in the last 7 days", "- The extractor takes nine frames.",
    ]  # fmt: skip
    assert contents(told(world, days=30).learned) == ["The extractor takes nine frames.", "Frames are wired by hand."]


def test_what_nobody_answers_for_what_holds_nowhere_and_other_projects_are_left_out(world: World) -> None:
    kept(world, "The page says that honey cures colds.", trust=Trust.UNTRUSTED)
    kept(world, "An agent thinks the frames are too small.", proposed=True)
    kept(world, "Said somewhere, and nobody knows where it holds.", project=None, inbox=True)
    kept(world, "The mill has two wheels.", project="mill")
    kept(world, "We answer in English.", project=None)
    assert contents(told(world, project="hive").learned) == ["We answer in English."]
    assert told(world, project="hive").text.count("\n") == 1


def test_it_stays_short_and_every_section_has_its_say(world: World) -> None:
    for number in range(60):
        kept(world, f"Todo {number}: {'mend the gate ' * 20}", kind=Kind.TODO)
        kept(world, f"Choice {number}: {'sell by weight ' * 20}", kind=Kind.DECISION)
        kept(world, f"Fact {number}: {'nine frames är gut ' * 20}")
    found = told(world)
    assert MOST_BYTES * 0.9 < len(found.text.encode()) <= MOST_BYTES
    assert all(f"- {word} " in found.text for word in ("Todo", "Choice", "Fact"))
    shown = sum(line.startswith("- ") for line in found.text.splitlines())
    assert found.left == 180 - shown
    assert found.text.endswith(f"({found.left} more: nacre list)")


def test_what_the_last_session_left_open_is_told_until_a_session_has_it(world: World) -> None:
    home = world.context()
    written = {"written": home.now(), "said": home.now(), "by": "a model"}
    content = "Working on:\n- the gate\n\nOpen threads:\n- the hinge is still to be ordered\n\nImportant facts:\n- oak"
    handoff = Handoff("h1", "hive", "claude-code:one", content, **written)
    home.handoffs.write(handoff)
    assert told(world, project="hive").threads == ("the hinge is still to be ordered",)
    world.clock.now += timedelta(days=8)
    assert told(world, project="hive").threads == ()


def test_as_a_part_of_a_context_it_is_told_only_by_name_and_nothing_twice(world: World) -> None:
    kept(world, "Mend the gate of the yard.", kind=Kind.TODO, importance=7, project=None)
    kept(world, "The honey is sold by weight.", kind=Kind.DECISION, importance=7, project=None)
    kept(world, "The extractor takes nine frames.", project=None)
    with world.open() as memory:
        plain = memory.context()
        asked = memory.context(parts=(Part.DIGEST, Part.ACTIVE, Part.PREFERENCES))
    assert Part.DIGEST not in {item.part for item in plain.items}
    assert "The extractor" not in plain.text
    assert [item.text.partition(" (")[0] for item in asked.items] == [
        "- Mend the gate of the yard.", "- The honey is sold by weight.", "- The extractor takes nine frames.",
    ]  # fmt: skip
    assert {item.part for item in asked.items} == {Part.DIGEST}
