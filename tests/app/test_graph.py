"""Manual links are stored in front matter, have a validity and survive rebuilds and syncs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from nacre.api import MemoryHome
from nacre.errors import ConflictError, InvalidInputError, NotFoundError
from nacre.memories.graph import LinkChange, Traversal
from nacre.memories.requests import StoreRequest
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
    """Six memories without links."""
    with world.open() as memory:
        return [memory.store(word, project="pottery").memory_id for word in WORDS]


def add_link(world: World, source: str, relation: str, target: str, **more: Any) -> LinkChange:
    world.clock.pass_days(1 / 24)
    with world.open() as memory:
        change: LinkChange = memory.call(
            "graph-link", links=[{"source": source, "relation": relation, "target": target, **more}]
        )
        return change


def call_operation(world: World, operation: str, **fields: Any) -> Any:
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


# Creating links


def test_link_with_strength_validity_and_reason_survives_a_rebuild(
    world: World, ids: list[str]
) -> None:
    change = add_link(
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
    assert (change.made, change.changed) == (1, 0)
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
    add_link(world, ids[0], "builds_on", ids[1])
    assert f"links: [{{rel: builds_on, to: {ids[1]}}}]\n" in file_of(world, "beech").read_text(
        encoding="utf-8"
    )
    (line,) = call_operation(world, "graph-list").links
    assert (line.strength, line.origin, line.holds) == (0.5, "manual", True)


def test_repeating_a_link_updates_the_link_or_writes_nothing(world: World, ids: list[str]) -> None:
    add_link(world, ids[0], "builds_on", ids[1])
    assert add_link(world, ids[0], "builds_on", ids[1], strength=0.9).changed == 1
    before = len(call_operation(world, "log", limit=100))
    change = add_link(world, ids[0], "builds_on", ids[1], strength=0.9)
    assert (change.made, change.changed) == (0, 0)
    assert len(call_operation(world, "log", limit=100)) == before


def test_linking_keeps_content_time_and_vector_of_a_memory(world: World, ids: list[str]) -> None:
    with world.open() as memory:
        memory.ingest()
    before = get(world.context(), ids[0])
    missing = world.context().vectors.missing()
    add_link(world, ids[0], "builds_on", ids[1])
    after = get(world.context(), ids[0])
    assert (after.content, after.updated) == (before.content, before.updated)
    assert world.context().vectors.missing() == missing


def test_undo_of_a_link_restores_the_exact_file(world: World, ids: list[str]) -> None:
    file = file_of(world, "beech")
    file.write_text(
        file.read_text(encoding="utf-8").replace("kind: fact", "kind:   fact  # sure"),
        encoding="utf-8",
    )
    call_operation(world, "list")
    before = file.read_bytes()
    add_link(world, ids[0], "builds_on", ids[1], strength=0.7)
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
        add_link(world, **{"source": ids[0], "relation": "builds_on", "target": ids[1], **more})
    assert links_of(world, ids[0]) == ()


def test_memory_cannot_be_linked_with_itself(world: World, ids: list[str]) -> None:
    with pytest.raises(ConflictError, match="itself"):
        add_link(world, ids[0], "builds_on", ids[0])


def test_batch_of_links_is_created_completely_or_not_at_all(world: World, ids: list[str]) -> None:
    good = [{"source": item, "relation": "part_of", "target": ids[0]} for item in ids[1:]]
    with pytest.raises(NotFoundError, match=r"link 6 of 6: .*; no links were created"):
        call_operation(
            world,
            "graph-link",
            links=[*good, {"source": ids[1], "relation": "part_of", "target": "nobody"}],
        )
    assert call_operation(world, "graph-list").total == 0
    assert call_operation(world, "graph-link", links=good).made == 5
    assert call_operation(world, "graph-list").total == 5
    with world.open() as memory:
        memory.undo(memory.log()[0].operation.id)
    assert call_operation(world, "graph-list").total == 0


def test_more_than_a_thousand_links_are_refused(world: World, ids: list[str]) -> None:
    link = {"source": ids[0], "relation": "part_of", "target": ids[1]}
    with pytest.raises(InvalidInputError, match="1000"):
        call_operation(world, "graph-link", links=[link] * 1001)


def test_code_symbol_is_a_valid_link_target(world: World, ids: list[str]) -> None:
    add_link(world, ids[0], "related_to", "code:src/kiln.py::fire")
    assert links_of(world, ids[0])[0].to == "code:src/kiln.py::fire"
    assert "code:src/kiln.py::fire" in [
        node.id for node in call_operation(world, "graph-show", reference=ids[0]).nodes
    ]
    assert (
        next(item for item in call_operation(world, "doctor-deep") if item.name == "links").state
        == "ok"
    )


# Effects of links


def test_superseding_link_ends_its_target_until_its_removal(world: World, ids: list[str]) -> None:
    add_link(world, ids[1], "supersedes", ids[0])
    assert get(world.context(), ids[0]).superseded_by == ids[1]
    with pytest.raises(ConflictError, match="cannot have an end"):
        call_operation(
            world,
            "graph-unlink",
            source=ids[1],
            relation="supersedes",
            target=ids[0],
            ends=True,
        )
    with pytest.raises(ConflictError, match="two active memories"):
        add_link(world, ids[2], "supersedes", ids[0])
    call_operation(world, "graph-unlink", source=ids[1], relation="supersedes", target=ids[0])
    assert get(world.context(), ids[0]).superseded_by is None


def test_contradicts_link_waits_for_review(world: World, ids: list[str]) -> None:
    add_link(world, ids[0], "contradicts", ids[1])
    (pair,) = call_operation(world, "review", only="conflict").items
    assert set(pair.id.split("+")) == {ids[0], ids[1]}
    assert links_of(world, ids[1])[0].rel == "contradicts"  # the later memory has the link


# Ending links


def test_ended_link_is_kept_but_is_not_in_effect(world: World, ids: list[str]) -> None:
    add_link(world, ids[0], "depends_on", ids[1])
    today = world.clock.now.date()
    change = call_operation(
        world, "graph-unlink", source=ids[0], relation="depends_on", target=ids[1], ends=True
    )
    assert (change.changed, change.links[0].valid.until, change.links[0].holds) == (1, today, False)
    assert call_operation(world, "graph-list").total == 0
    assert call_operation(world, "graph-list", ended=True).total == 1
    assert call_operation(world, "graph-list", as_of="2020-01-01").total == 1
    assert len(call_operation(world, "graph-show", reference=ids[0]).hops) == 0
    assert len(call_operation(world, "graph-show", reference=ids[0], as_of="2020-01-01").hops) == 1
    add_link(world, ids[0], "depends_on", ids[1])
    assert call_operation(world, "graph-list").total == 1


def test_link_end_before_its_start_is_refused(world: World, ids: list[str]) -> None:
    add_link(world, ids[0], "depends_on", ids[1], since="2026-05-01")
    with pytest.raises(InvalidInputError, match="cannot end"):
        call_operation(
            world,
            "graph-unlink",
            source=ids[0],
            relation="depends_on",
            target=ids[1],
            ends=True,
            at="2026-04-01",
        )


def test_recall_follows_a_link_during_its_validity(world: World, ids: list[str]) -> None:
    def recalled_ids(**fields: Any) -> set[str]:
        with world.open() as memory:
            question = "which wood is the kiln fired with?"
            hits = memory.recall(question, mode="lexical", filter=Filter(**fields)).hits
        return {hit.memory.id for hit in hits}

    assert ids[3] not in recalled_ids()
    add_link(world, ids[3], "related_to", ids[0], until="2027-01-01")
    assert {ids[0], ids[3]} <= recalled_ids()
    world.clock.pass_days(1000)
    assert ids[0] in recalled_ids()
    assert ids[3] not in recalled_ids()
    assert ids[3] in recalled_ids(as_of=date(2026, 12, 1))


def test_stronger_link_adds_more_to_the_score(world: World, ids: list[str]) -> None:
    add_link(world, ids[3], "related_to", ids[0], strength=0.3)
    add_link(world, ids[4], "related_to", ids[0], strength=0.9)
    with world.open() as memory:
        hits = {
            hit.memory.id: hit
            for hit in memory.recall("which wood is the kiln fired with?", mode="lexical").hits
        }
    assert (
        0
        < hits[ids[3]].components["link"]
        < hits[ids[4]].components["link"]
        < hits[ids[0]].components["relevance"]
    )


def test_link_can_only_be_removed_in_its_direction(world: World, ids: list[str]) -> None:
    add_link(world, ids[0], "depends_on", ids[1])
    with pytest.raises(ConflictError, match="opposite direction"):
        call_operation(world, "graph-unlink", source=ids[1], relation="depends_on", target=ids[0])
    with pytest.raises(NotFoundError, match="does not have this link"):
        call_operation(world, "graph-unlink", source=ids[0], relation="part_of", target=ids[1])
    assert (
        call_operation(
            world, "graph-unlink", source=ids[0], relation="depends_on", target=ids[1]
        ).removed
        == 1
    )
    assert "links:" not in file_of(world, "beech").read_text(encoding="utf-8")


def test_mention_in_text_is_not_a_removable_link(world: World, ids: list[str]) -> None:
    with world.open() as memory:
        memory.edit(ids[0], subject="Kiln")
        door = memory.store("The door of the [[Kiln]] sticks.", project="pottery").memory_id
    assert [link.origin for link in call_operation(world, "graph-list").links] == ["body"]
    with pytest.raises(ConflictError, match="text contains that link"):
        call_operation(world, "graph-unlink", source=door, relation="related_to", target=ids[0])


# Traversal


def test_traversal_shows_links_once_and_memories_at_nearest_distance(
    world: World, ids: list[str]
) -> None:
    for source, target in ((0, 1), (1, 2), (2, 3), (3, 0), (3, 4)):
        add_link(world, ids[source], "builds_on", ids[target])
    traversal: Traversal = call_operation(world, "graph-show", reference=ids[0], depth=10)
    assert [node.id for node in traversal.nodes] == [ids[0], ids[1], ids[3], ids[2], ids[4]]
    assert len(traversal.hops) == 5
    assert [traversal.nodes[hop.child].id for hop in traversal.hops if hop.is_again] == [ids[2]]
    out: Traversal = call_operation(
        world, "graph-show", reference=ids[0], depth=2, direction="outbound"
    )
    assert [node.id for node in out.nodes] == [ids[0], ids[1], ids[2]]
    into: Traversal = call_operation(
        world, "graph-show", reference=ids[0], depth=1, direction="inbound"
    )
    assert [node.id for node in into.nodes] == [ids[0], ids[3]]


def test_traversal_respects_its_limit_and_reports_more(world: World, ids: list[str]) -> None:
    for item in ids[1:]:
        add_link(world, item, "part_of", ids[0])
    traversal: Traversal = call_operation(world, "graph-show", reference=ids[0], limit=2)
    assert (len(traversal.nodes), traversal.more) == (3, True)
    assert call_operation(world, "graph-show", reference=ids[0], relations=["builds_on"]).hops == ()
    with pytest.raises(InvalidInputError):
        call_operation(world, "graph-show", reference=ids[0], depth=11)


def test_traversal_shows_the_state_of_each_memory(world: World, ids: list[str]) -> None:
    add_link(world, ids[0], "builds_on", ids[1])
    add_link(world, ids[0], "builds_on", ids[2])
    add_link(world, ids[3], "supersedes", ids[1])
    with world.open() as memory:
        memory.retire(ids[2])
    states = {
        node.id: node.state
        for node in call_operation(world, "graph-show", reference=ids[0], depth=1).nodes
    }
    assert states == {ids[0]: "active", ids[1]: "superseded", ids[2]: "retired"}


def test_memory_shows_memories_used_together(world: World, ids: list[str]) -> None:
    with world.open() as memory:
        for item in ids[:2]:
            memory.get(item, session="afternoon")
    call_operation(world, "feedback-judge", references=[ids[3]], good=True)
    (companion,) = call_operation(world, "look", reference=ids[0]).together
    assert (companion.memory.id, companion.sessions) == (ids[1], 1)


# Other machines


def test_links_sync_and_concurrent_changes_merge_by_field(tmp_path: Path, remote: Path) -> None:
    one_machine, other_machine = (
        machine(tmp_path, remote, "one"),
        machine(tmp_path, remote, "other"),
    )
    first, second = (
        one_machine.store(words, project="harbour")
        for words in ("The crane lifts ten tons.", "The quay is wet.")
    )
    one_machine.sync(remote=str(remote))
    other_machine.sync(remote=str(remote))
    add_part_of(one_machine, first, second)
    converge(one_machine, other_machine)
    assert other_machine.do(get, first).links == (Link("part_of", second),)
    add_part_of(one_machine, first, second, strength=0.9)
    add_part_of(other_machine, first, second, until=date(2027, 1, 1))
    converge(one_machine, other_machine)
    merged = (Link("part_of", second, None, None, 0.9, Validity(until=date(2027, 1, 1))),)
    assert (one_machine.do(get, first).links, other_machine.do(get, first).links) == (
        merged,
        merged,
    )


def add_part_of(on_machine: Machine, source: str, target: str, **more: Any) -> None:
    add_link(on_machine.world, source, "part_of", target, **more)


def test_export_preserves_strength_and_validity_of_links(
    world: World, ids: list[str], tmp_path: Path
) -> None:
    add_link(world, ids[0], "builds_on", ids[1], strength=0.25, until="2027-03-01")
    call_operation(world, "export", target=str(tmp_path / "all.jsonl"))
    (tmp_path / "there").mkdir()
    copy = World(tmp_path / "there", environ={"PATH": os.environ["PATH"]})
    call_operation(copy, "import", path=str(tmp_path / "all.jsonl"), trust=True)
    assert links_of(copy, ids[0]) == (
        Link("builds_on", ids[1], None, None, 0.25, Validity(until=date(2027, 3, 1))),
    )


def test_unknown_relations_are_preserved_and_can_be_ended(world: World, ids: list[str]) -> None:
    file = file_of(world, "beech")
    text = file.read_text(encoding="utf-8")
    links = f"links: [{{rel: inspired_by, to: {ids[1]}, strength: 0.4, valid: {{to: 2030-01-01}}}}]"
    file.write_text(text.replace("kind:", f"{links}\nkind:", 1), encoding="utf-8")
    (line,) = call_operation(world, "graph-list", relations=["inspired_by"]).links
    assert (line.rel, line.strength, line.valid.until) == ("inspired_by", 0.4, date(2030, 1, 1))
    call_operation(
        world, "graph-unlink", source=ids[0], relation="inspired_by", target=ids[1], ends=True
    )
    assert call_operation(world, "graph-list").total == 0


# Agents


def test_agent_links_its_memories_and_requests_links_of_the_owners(
    world: World, ids: list[str]
) -> None:
    own = store(
        world.context(),
        StoreRequest(content="The kiln door sticks.", project="pottery", speaker=Speaker.AGENT),
    )
    with by_agent(world) as memory:
        change = memory.call(
            "graph-link",
            links=[
                {"source": own.memory_id, "relation": "part_of", "target": ids[0]},
                {"source": ids[1], "relation": "part_of", "target": ids[0]},
            ],
        )
    assert (change.made, change.waiting) == (1, (ids[1],))
    assert links_of(world, own.memory_id) == (Link("part_of", ids[0], origin="agent"),)
    assert links_of(world, ids[1]) == ()
    (review,) = [
        item
        for item in call_operation(world, "review", only="doubt").items
        if item.memory.id == ids[1]
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
    add_link(world, **ends)
    with by_agent(world) as memory:
        assert memory.call("graph-unlink", **ends).waiting == (own.memory_id,)
        assert memory.call("graph-unlink", **ends, ends=True).waiting == (own.memory_id,)
    assert links_of(world, own.memory_id) == (Link("part_of", ids[0]),)


def test_agent_cannot_change_the_owners_link_or_its_origin(world: World, ids: list[str]) -> None:
    own = store(
        world.context(),
        StoreRequest(content="The kiln door sticks.", project="pottery", speaker=Speaker.AGENT),
    )
    ends = {"source": own.memory_id, "relation": "part_of", "target": ids[0]}
    add_link(world, **ends, reason="it hangs there")
    with by_agent(world) as memory:
        change = memory.call("graph-link", links=[{**ends, "until": "2020-01-01", "strength": 0.1}])
        memory.call("graph-link", links=[{**ends, "relation": "builds_on", "origin": "manual"}])
    assert (change.changed, change.waiting) == (0, (own.memory_id,))
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
        change = memory.call(
            "graph-link", links=[{"source": own.memory_id, "relation": relation, "target": ids[0]}]
        )
    assert (change.made, len(change.waiting)) == (0, 1)
    assert get(world.context(), ids[0]).superseded_by is None
    assert call_operation(world, "review").conflicts == 0
