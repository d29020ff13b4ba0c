"""Links that people draw: they live in front matter, hold for a time, and survive whatever else does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from nacre.api import MemoryHome
from nacre.errors import ConflictError, InvalidInputError, NotFoundError, OwnerOnlyError
from nacre.memories.decision import StoreRequest
from nacre.memories.graph import LinkChange, Traversal
from nacre.memories.store import get, store
from nacre.values.memory import Actor, Face, Link, Validity, acting
from nacre.values.recall import Filter
from nacre.values.session import Speaker
from tests.app.conftest import World
from tests.app.test_syncing import Machine, converge, machine, remote

__all__ = ["remote"]

WORDS = (
    "The kiln is fired with beech wood.",
    "The glaze needs eleven hundred degrees.",
    "Bowls dry for nine days.",
    "The shop opens on Saturdays.",
    "Clay comes from the pit at Ried.",
    "The wheel runs on a treadle.",
)


@pytest.fixture
def ids(world: World) -> list[str]:
    """Six memories that nothing connects."""
    with world.open() as memory:
        return [memory.store(one, project="pottery").memory_id for one in WORDS]


def linked(world: World, source: str, relation: str, target: str, **more: Any) -> LinkChange:
    world.clock.pass_days(1 / 24)
    with world.open() as memory:
        done: LinkChange = memory.call(
            "graph-link", links=[{"source": source, "relation": relation, "target": target, **more}]
        )
        return done


def asked(world: World, operation: str, **fields: Any) -> Any:
    world.clock.pass_days(1 / 24)
    with world.open() as memory:
        return memory.call(operation, **fields)


def links_of(world: World, memory_id: str) -> tuple[Link, ...]:
    return get(world.context(), memory_id).links


def file_of(world: World, words: str) -> Path:
    return next(
        path for path in world.vault.rglob("*.md") if words in path.read_text(encoding="utf-8")
    )


@contextmanager
def by_agent(world: World) -> Iterator[MemoryHome]:
    with world.open() as memory, acting(Actor(Face.MCP, "claude-code")):
        yield memory


# Drawing


def test_link_with_strength_validity_and_reason_survives_a_rebuild(
    world: World, ids: list[str]
) -> None:
    done = linked(
        world,
        ids[0],
        "depends_on",
        ids[1],
        strength=0.8,
        since="2026-01-01",
        until="2027-01-01",
        reason="the heat",
        origin="import",
    )
    assert (done.made, done.changed) == (1, 0)
    link = Link(
        "depends_on",
        ids[1],
        "the heat",
        "import",
        0.8,
        Validity(date(2026, 1, 1), date(2027, 1, 1)),
    )
    assert links_of(world, ids[0]) == (link,)
    text = file_of(world, "beech").read_text(encoding="utf-8")
    assert "strength: 0.8, valid: {from: 2026-01-01, to: 2027-01-01}}]" in text
    world.rebuild()
    assert links_of(world, ids[0]) == (link,)


def test_link_without_options_is_stored_in_short_form(world: World, ids: list[str]) -> None:
    linked(world, ids[0], "builds_on", ids[1])
    assert f"links: [{{rel: builds_on, to: {ids[1]}}}]\n" in file_of(world, "beech").read_text(
        encoding="utf-8"
    )
    (line,) = asked(world, "graph-list").links
    assert (line.strength, line.origin, line.holds) == (0.5, "manual", True)


def test_repeating_a_link_updates_the_link_or_writes_nothing(world: World, ids: list[str]) -> None:
    linked(world, ids[0], "builds_on", ids[1])
    assert linked(world, ids[0], "builds_on", ids[1], strength=0.9).changed == 1
    before = len(asked(world, "log", limit=100))
    same = linked(world, ids[0], "builds_on", ids[1], strength=0.9)
    assert (same.made, same.changed) == (0, 0)
    assert len(asked(world, "log", limit=100)) == before


def test_linking_keeps_content_time_and_vector_of_a_memory(world: World, ids: list[str]) -> None:
    with world.open() as memory:
        memory.ingest()
    before = get(world.context(), ids[0])
    missing = world.context().vectors.missing()
    linked(world, ids[0], "builds_on", ids[1])
    after = get(world.context(), ids[0])
    assert (after.content, after.updated) == (before.content, before.updated)
    assert world.context().vectors.missing() == missing


def test_undo_of_a_link_restores_the_exact_file(world: World, ids: list[str]) -> None:
    file = file_of(world, "beech")
    file.write_text(
        file.read_text(encoding="utf-8").replace("kind: fact", "kind:   fact  # sure"),
        encoding="utf-8",
    )
    asked(world, "list")
    before = file.read_bytes()
    linked(world, ids[0], "builds_on", ids[1], strength=0.7)
    assert file.read_bytes() != before
    with world.open() as memory:
        memory.undo(memory.log()[0].operation.id)
    assert file.read_bytes() == before
    assert links_of(world, ids[0]) == ()


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"strength": 1.5}, InvalidInputError),
        ({"since": "2026-02-02", "until": "2026-02-02"}, InvalidInputError),
        ({"origin": "auto"}, InvalidInputError),
        ({"relation": "calls"}, InvalidInputError),
        ({"relation": "likes"}, InvalidInputError),
        ({"target": "nobody"}, NotFoundError),
        ({"relation": "supersedes", "strength": 0.2}, InvalidInputError),
    ],
)
def test_invalid_link_is_refused(
    world: World, ids: list[str], more: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        linked(world, **{"source": ids[0], "relation": "builds_on", "target": ids[1], **more})
    assert links_of(world, ids[0]) == ()


def test_memory_cannot_be_linked_with_itself(world: World, ids: list[str]) -> None:
    with pytest.raises(ConflictError, match="itself"):
        linked(world, ids[0], "builds_on", ids[0])


def test_batch_of_links_is_created_completely_or_not_at_all(world: World, ids: list[str]) -> None:
    good = [{"source": one, "relation": "part_of", "target": ids[0]} for one in ids[1:]]
    with pytest.raises(NotFoundError, match=r"link 6 of 6: .*; no links were created"):
        asked(
            world,
            "graph-link",
            links=[*good, {"source": ids[1], "relation": "part_of", "target": "nobody"}],
        )
    assert asked(world, "graph-list").total == 0
    assert asked(world, "graph-link", links=good).made == 5
    assert asked(world, "graph-list").total == 5
    with world.open() as memory:
        memory.undo(memory.log()[0].operation.id)
    assert asked(world, "graph-list").total == 0


def test_more_than_a_thousand_links_are_refused(world: World, ids: list[str]) -> None:
    one = {"source": ids[0], "relation": "part_of", "target": ids[1]}
    with pytest.raises(InvalidInputError, match="1000"):
        asked(world, "graph-link", links=[one] * 1001)


def test_code_symbol_is_a_valid_link_target(world: World, ids: list[str]) -> None:
    linked(world, ids[0], "related_to", "code:src/kiln.py::fire")
    assert links_of(world, ids[0])[0].to == "code:src/kiln.py::fire"
    assert "code:src/kiln.py::fire" in [
        one.id for one in asked(world, "graph-show", reference=ids[0]).nodes
    ]
    assert next(one for one in asked(world, "doctor-deep") if one.name == "links").state == "ok"


# What holds


def test_superseding_link_ends_its_target_until_its_removal(world: World, ids: list[str]) -> None:
    linked(world, ids[1], "supersedes", ids[0])
    assert get(world.context(), ids[0]).superseded_by == ids[1]
    with pytest.raises(ConflictError, match="cannot have an end"):
        asked(world, "graph-invalidate", source=ids[1], relation="supersedes", target=ids[0])
    with pytest.raises(ConflictError, match="two active memories"):
        linked(world, ids[2], "supersedes", ids[0])
    asked(world, "graph-unlink", source=ids[1], relation="supersedes", target=ids[0])
    assert get(world.context(), ids[0]).superseded_by is None


def test_contradicts_link_waits_for_review(world: World, ids: list[str]) -> None:
    linked(world, ids[0], "contradicts", ids[1])
    (pair,) = asked(world, "review", only="conflict").items
    assert set(pair.id.split("+")) == {ids[0], ids[1]}
    assert links_of(world, ids[1])[0].rel == "contradicts"  # the later one has it


# Ending


def test_ended_link_is_kept_but_is_not_in_effect(world: World, ids: list[str]) -> None:
    linked(world, ids[0], "depends_on", ids[1])
    today = world.clock.now.date()
    done = asked(world, "graph-invalidate", source=ids[0], relation="depends_on", target=ids[1])
    assert (done.changed, done.links[0].valid.until, done.links[0].holds) == (1, today, False)
    assert asked(world, "graph-list").total == 0
    assert asked(world, "graph-list", ended=True).total == 1
    assert asked(world, "graph-list", as_of="2020-01-01").total == 1
    assert len(asked(world, "graph-show", reference=ids[0]).hops) == 0
    assert len(asked(world, "graph-show", reference=ids[0], as_of="2020-01-01").hops) == 1
    linked(world, ids[0], "depends_on", ids[1])
    assert asked(world, "graph-list").total == 1


def test_link_end_before_its_start_is_refused(world: World, ids: list[str]) -> None:
    linked(world, ids[0], "depends_on", ids[1], since="2026-05-01")
    with pytest.raises(InvalidInputError, match="cannot end"):
        asked(
            world,
            "graph-invalidate",
            source=ids[0],
            relation="depends_on",
            target=ids[1],
            at="2026-04-01",
        )


def test_recall_follows_a_link_during_its_validity(world: World, ids: list[str]) -> None:
    def found(**wanted: Any) -> set[str]:
        with world.open() as memory:
            asked = "which wood is the kiln fired with?"
            hits = memory.recall(asked, mode="lexical", filter=Filter(**wanted)).hits
        return {hit.memory.id for hit in hits}

    assert ids[3] not in found()
    linked(world, ids[3], "related_to", ids[0], until="2027-01-01")
    assert {ids[0], ids[3]} <= found()
    world.clock.pass_days(1000)
    assert ids[0] in found()
    assert ids[3] not in found()
    assert ids[3] in found(as_of=date(2026, 12, 1))


def test_stronger_link_adds_more_to_the_score(world: World, ids: list[str]) -> None:
    linked(world, ids[3], "related_to", ids[0], strength=0.3)
    linked(world, ids[4], "related_to", ids[0], strength=0.9)
    with world.open() as memory:
        hits = {
            one.memory.id: one
            for one in memory.recall("which wood is the kiln fired with?", mode="lexical").hits
        }
    assert (
        0
        < hits[ids[3]].components["link"]
        < hits[ids[4]].components["link"]
        < hits[ids[0]].components["relevance"]
    )


def test_link_can_only_be_removed_in_its_direction(world: World, ids: list[str]) -> None:
    linked(world, ids[0], "depends_on", ids[1])
    with pytest.raises(ConflictError, match="opposite direction"):
        asked(world, "graph-unlink", source=ids[1], relation="depends_on", target=ids[0])
    with pytest.raises(NotFoundError, match="does not have this link"):
        asked(world, "graph-unlink", source=ids[0], relation="part_of", target=ids[1])
    assert (
        asked(world, "graph-unlink", source=ids[0], relation="depends_on", target=ids[1]).removed
        == 1
    )
    assert "links:" not in file_of(world, "beech").read_text(encoding="utf-8")


def test_mention_in_text_is_not_a_removable_link(world: World, ids: list[str]) -> None:
    with world.open() as memory:
        memory.edit(ids[0], subject="Kiln")
        naming = memory.store("The door of the [[Kiln]] sticks.", project="pottery").memory_id
    assert [one.origin for one in asked(world, "graph-list").links] == ["body"]
    with pytest.raises(ConflictError, match="text contains that link"):
        asked(world, "graph-unlink", source=naming, relation="related_to", target=ids[0])


def test_links_of_an_origin_are_removed_together_except_lifecycle_links(
    world: World, ids: list[str]
) -> None:
    for one in ids[1:4]:
        linked(world, one, "part_of", ids[0], origin="import")
    linked(world, ids[4], "part_of", ids[0])
    linked(world, ids[5], "supersedes", ids[3])
    assert asked(world, "graph-unlink-origin", origin="import").removed == 3
    assert [one.rel for one in asked(world, "graph-list").links] == ["part_of"]
    assert asked(world, "graph-unlink-origin", origin="manual").removed == 1
    assert get(world.context(), ids[3]).superseded_by == ids[5]
    with pytest.raises(InvalidInputError, match="computed"):
        asked(world, "graph-unlink-origin", origin="auto")


# Following


def test_traversal_shows_links_once_and_memories_at_nearest_distance(
    world: World, ids: list[str]
) -> None:
    for source, target in ((0, 1), (1, 2), (2, 3), (3, 0), (3, 4)):
        linked(world, ids[source], "builds_on", ids[target])
    found: Traversal = asked(world, "graph-show", reference=ids[0], depth=10)
    assert [one.id for one in found.nodes] == [ids[0], ids[1], ids[3], ids[2], ids[4]]
    assert len(found.hops) == 5
    assert [found.nodes[hop.child].id for hop in found.hops if hop.is_again] == [ids[2]]
    out: Traversal = asked(world, "graph-show", reference=ids[0], depth=2, direction="outbound")
    assert [one.id for one in out.nodes] == [ids[0], ids[1], ids[2]]
    into: Traversal = asked(world, "graph-show", reference=ids[0], depth=1, direction="inbound")
    assert [one.id for one in into.nodes] == [ids[0], ids[3]]


def test_traversal_respects_its_limit_and_reports_more(world: World, ids: list[str]) -> None:
    for one in ids[1:]:
        linked(world, one, "part_of", ids[0])
    found: Traversal = asked(world, "graph-show", reference=ids[0], limit=2)
    assert (len(found.nodes), found.more) == (3, True)
    assert asked(world, "graph-show", reference=ids[0], relations=["builds_on"]).hops == ()
    with pytest.raises(InvalidInputError):
        asked(world, "graph-show", reference=ids[0], depth=11)


def test_traversal_shows_the_state_of_each_memory(world: World, ids: list[str]) -> None:
    linked(world, ids[0], "builds_on", ids[1])
    linked(world, ids[0], "builds_on", ids[2])
    linked(world, ids[3], "supersedes", ids[1])
    with world.open() as memory:
        memory.retire(ids[2])
    states = {
        one.id: one.state for one in asked(world, "graph-show", reference=ids[0], depth=1).nodes
    }
    assert states == {ids[0]: "active", ids[1]: "superseded", ids[2]: "retired"}


def test_traversal_shows_memories_used_together(world: World, ids: list[str]) -> None:
    with world.open() as memory:
        for one in ids[:2]:
            memory.get(one, session="afternoon")
    asked(world, "feedback-judge", references=[ids[3]], good=True)
    (companion,) = asked(world, "graph-show", reference=ids[0]).together
    assert (companion.node.id, companion.sessions) == (ids[1], 1)


# Elsewhere


def test_links_sync_and_concurrent_changes_merge_by_field(tmp_path: Path, remote: Path) -> None:
    one, other = machine(tmp_path, remote, "one"), machine(tmp_path, remote, "other")
    first, second = (
        one.store(words, project="harbour")
        for words in ("The crane lifts ten tons.", "The quay is wet.")
    )
    one.sync(remote=str(remote))
    other.sync(remote=str(remote))
    _link(one, first, second)
    converge(one, other)
    assert other.do(get, first).links == (Link("part_of", second),)
    _link(one, first, second, strength=0.9)
    _link(other, first, second, until=date(2027, 1, 1))
    converge(one, other)
    merged = (Link("part_of", second, None, None, 0.9, Validity(until=date(2027, 1, 1))),)
    assert (one.do(get, first).links, other.do(get, first).links) == (merged, merged)


def _link(where: Machine, source: str, target: str, **more: Any) -> None:
    linked(where.world, source, "part_of", target, **more)


def test_export_preserves_strength_and_validity_of_links(
    world: World, ids: list[str], tmp_path: Path
) -> None:
    linked(world, ids[0], "builds_on", ids[1], strength=0.25, until="2027-03-01")
    asked(world, "export", target=str(tmp_path / "all.jsonl"))
    (tmp_path / "there").mkdir()
    there = World(tmp_path / "there", environ={"PATH": os.environ["PATH"]})
    asked(there, "import", path=str(tmp_path / "all.jsonl"), trust=True)
    assert links_of(there, ids[0]) == (
        Link("builds_on", ids[1], None, None, 0.25, Validity(until=date(2027, 3, 1))),
    )


def test_unknown_relations_are_preserved_and_can_be_ended(world: World, ids: list[str]) -> None:
    file = file_of(world, "beech")
    text = file.read_text(encoding="utf-8")
    links = f"links: [{{rel: inspired_by, to: {ids[1]}, strength: 0.4, valid: {{to: 2030-01-01}}}}]"
    file.write_text(text.replace("kind:", f"{links}\nkind:", 1), encoding="utf-8")
    (line,) = asked(world, "graph-list", relations=["inspired_by"]).links
    assert (line.rel, line.strength, line.valid.until) == ("inspired_by", 0.4, date(2030, 1, 1))
    asked(world, "graph-invalidate", source=ids[0], relation="inspired_by", target=ids[1])
    assert asked(world, "graph-list").total == 0


# Agents


def test_agent_links_its_memories_and_requests_links_of_the_owners(
    world: World, ids: list[str]
) -> None:
    own = store(
        world.context(),
        StoreRequest(content="The kiln door sticks.", project="pottery", speaker=Speaker.AGENT),
    )
    with by_agent(world) as memory:
        done = memory.call(
            "graph-link",
            links=[
                {"source": own.memory_id, "relation": "part_of", "target": ids[0]},
                {"source": ids[1], "relation": "part_of", "target": ids[0]},
            ],
        )
    assert (done.made, done.waiting) == (1, (ids[1],))
    assert links_of(world, own.memory_id) == (Link("part_of", ids[0], origin="agent"),)
    assert links_of(world, ids[1]) == ()
    (review,) = [
        one for one in asked(world, "review", only="doubt").items if one.memory.id == ids[1]
    ]
    assert "claude-code asked for this memory to be linked: part_of The kiln" in (
        review.detail or ""
    )


def test_agent_can_neither_end_nor_remove_the_owners_link(world: World, ids: list[str]) -> None:
    own = store(
        world.context(),
        StoreRequest(content="The kiln door sticks.", project="pottery", speaker=Speaker.AGENT),
    )
    ends = {"source": own.memory_id, "relation": "part_of", "target": ids[0]}
    linked(world, **ends)
    with by_agent(world) as memory:
        assert memory.call("graph-unlink", **ends).waiting == (own.memory_id,)
        assert memory.call("graph-invalidate", **ends).waiting == (own.memory_id,)
        with pytest.raises(OwnerOnlyError):
            memory.call("graph-unlink-origin", origin="manual")
    assert links_of(world, own.memory_id) == (Link("part_of", ids[0]),)


def test_agent_cannot_change_the_owners_link_or_its_origin(world: World, ids: list[str]) -> None:
    own = store(
        world.context(),
        StoreRequest(content="The kiln door sticks.", project="pottery", speaker=Speaker.AGENT),
    )
    ends = {"source": own.memory_id, "relation": "part_of", "target": ids[0]}
    linked(world, **ends, reason="it hangs there")
    with by_agent(world) as memory:
        again = memory.call("graph-link", links=[{**ends, "until": "2020-01-01", "strength": 0.1}])
        memory.call("graph-link", links=[{**ends, "relation": "builds_on", "origin": "manual"}])
    assert (again.changed, again.waiting) == (0, (own.memory_id,))
    assert set(links_of(world, own.memory_id)) == {
        Link("part_of", ids[0], "it hangs there"),
        Link("builds_on", ids[0], origin="agent"),
    }


@pytest.mark.parametrize("relation", ["supersedes", "contradicts"])
def test_agent_cannot_supersede_or_contradict_the_owners_memory(
    world: World, ids: list[str], relation: str
) -> None:
    own = store(
        world.context(),
        StoreRequest(content="The kiln door sticks.", project="pottery", speaker=Speaker.AGENT),
    )
    with by_agent(world) as memory:
        done = memory.call(
            "graph-link", links=[{"source": own.memory_id, "relation": relation, "target": ids[0]}]
        )
    assert (done.made, len(done.waiting)) == (0, 1)
    assert get(world.context(), ids[0]).superseded_by is None
    assert asked(world, "review").conflicts == 0
