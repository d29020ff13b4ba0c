"""The part of a context that tells what is open, and what was decided and learned in the last days."""

from __future__ import annotations

from nacre.values.context import Part
from nacre.values.memory import Kind
from nacre.values.session import Trust
from tests.app.conftest import World
from tests.app.test_dreams import kept


def told(world: World, *parts: Part) -> list[str]:
    with world.open() as memory:
        block = memory.context(parts=(Part.DIGEST, *parts))
    assert {item.part for item in block.items} <= {Part.DIGEST}
    return [item.text.partition(" (")[0] for item in block.items]


def test_digest_lists_oldest_todos_first_then_decisions_and_facts(world: World) -> None:
    kept(world, "Oil the door of the extractor.", days=2, kind=Kind.TODO, project=None)
    kept(world, "Mend the gate of the yard.", days=300, kind=Kind.TODO, project=None)
    kept(world, "The honey is sold by weight.", days=1, kind=Kind.DECISION, project=None)
    kept(world, "The extractor takes nine frames.", days=3, project=None)
    kept(world, "Frames are wired by hand.", days=9, project=None)
    assert told(world) == [
        "- Mend the gate of the yard.",
        "- Oil the door of the extractor.",
        "- The honey is sold by weight.",
        "- The extractor takes nine frames.",
    ]


def test_digest_omits_untrusted_proposed_inbox_and_other_projects_memories(
    world: World,
) -> None:
    kept(world, "The page says that honey cures colds.", trust=Trust.UNTRUSTED, project=None)
    kept(world, "An agent thinks the frames are too small.", proposed=True, project=None)
    kept(world, "Said somewhere, and nobody knows where it holds.", project=None, inbox=True)
    kept(world, "The mill has two wheels.", project="mill")
    kept(world, "We answer in English.", project=None)
    assert told(world) == ["- We answer in English."]


def test_digest_joins_a_context_only_by_name_without_repetition(world: World) -> None:
    kept(world, "Mend the gate of the yard.", kind=Kind.TODO, importance=7, project=None)
    kept(world, "The honey is sold by weight.", kind=Kind.DECISION, importance=7, project=None)
    kept(world, "The extractor takes nine frames.", project=None)
    with world.open() as memory:
        plain = memory.context()
    assert Part.DIGEST not in {item.part for item in plain.items}
    assert "The extractor" not in plain.text
    assert told(world, Part.ACTIVE, Part.PREFERENCES) == [
        "- Mend the gate of the yard.",
        "- The honey is sold by weight.",
        "- The extractor takes nine frames.",
    ]
