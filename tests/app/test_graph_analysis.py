"""Graph analysis finds central memories and gaps, with the same counts in every operation."""

from __future__ import annotations

import random
from collections.abc import Sequence

from nacre.memories.graph import Brief, GraphMap
from nacre.values.memory import Actor, Face, acting
from tests.app.conftest import World
from tests.app.test_graph import call_operation

NOTE = "---\nid: {id}\nkind: fact\nsubject: {name}\ncreated: 2026-11-01\nlinks: [{links}]\n---\n{name} {word}.\n"
TWO_TOWNS = [
    ("mill", "weir"),
    ("baker", "mill"),
    ("miller", "mill"),
    ("weir", "mill"),
    ("road", "mill"),
    ("road", "harbour"),
    ("crane", "harbour"),
    ("pilot", "harbour"),
    ("quay", "harbour"),
]
"""Two groups connected by a road."""


def write_memories(
    world: World, pairs: Sequence[tuple[str, str]], *alone: str, project: str = "valley"
) -> dict[str, str]:
    """Write memories with ``part_of`` links from the first of each pair to the second."""
    names = sorted({name for pair in pairs for name in pair} | set(alone))
    ids = {
        name: f"0197{number:04x}-0000-7000-8000-00000000{number:04x}"
        for number, name in enumerate(names)
    }
    for number, name in enumerate(names):
        links = ", ".join(f"{{rel: part_of, to: {ids[to]}}}" for item, to in pairs if item == name)
        text = NOTE.format(
            id=ids[name], name=name, links=links, word="abcdefghijklmnopqrst"[number % 20] * 9
        )
        world.write(f"projects/{project}/fact/{name}.md", text)
    return ids


def test_central_memories_have_the_most_links(world: World) -> None:
    ids = write_memories(world, TWO_TOWNS)
    result = call_operation(world, "graph-central", limit=3)
    degrees = [(item.memory.id, item.degree) for item in result.found]
    assert degrees == [(ids["mill"], 5), (ids["harbour"], 4), (ids["road"], 2)]
    assert (result.memories, result.links) == (9, 9)


def test_gaps_list_proven_memories_first(world: World) -> None:
    ids = write_memories(world, TWO_TOWNS, "chapel")
    with world.open() as memory:
        for _ in range(20):
            memory.get(ids["baker"])
            world.clock.pass_days(1)
    result = call_operation(world, "graph-gaps", limit=3)
    assert [(item.memory.id, item.degree) for item in result.found[:2]] == [
        (ids["baker"], 1),
        (ids["chapel"], 0),
    ]
    assert result.found[0].maturity.value == "proven"
    assert (result.total, result.unlinked) == (6, 1)


def test_graph_analysis_can_be_limited_to_a_project(world: World) -> None:
    write_memories(world, TWO_TOWNS)
    world.write(
        "projects/coast/fact/lamp.md", "---\nkind: fact\nsubject: lamp\n---\nThe lamp is lit.\n"
    )
    assert call_operation(world, "graph-central", project="coast").memories == 1
    assert call_operation(world, "graph-brief", project="valley").memories == 9
    assert call_operation(world, "graph-gaps", project="coast").unlinked == 1


def test_graph_brief_is_short_and_updated_after_each_change(world: World) -> None:
    ids = write_memories(world, TWO_TOWNS, "chapel")
    with world.open() as memory:
        first: Brief = memory.call("graph-brief")
        memory.call(
            "graph-link",
            links=[{"source": ids["chapel"], "relation": "part_of", "target": ids["mill"]}],
        )
        second: Brief = memory.call("graph-brief")
        memory.store("We decided to mend the weir in May.", kind="decision", project="valley")
        third: Brief = memory.call("graph-brief")
    assert (first.links, second.links, first.unlinked, second.unlinked) == (9, 10, 1, 0)
    assert "10 memories in 1 project, 9 links between them" in first.text
    assert "Recent decisions: We decided to mend the weir in May" in third.text
    assert len(third.text.split()) < 150


def test_graph_brief_omits_untrusted_and_agent_statements(world: World) -> None:
    ids = write_memories(world, [("road", "mill"), ("weir", "mill")])
    with world.open() as memory:
        with acting(Actor(Face.MCP, "claude-code")):
            own = memory.store(
                "We decided to burn the mill.", kind="decision", project="valley"
            ).memory_id
        statement = {
            "content": "We decided to sell the weir.",
            "kind": "decision",
            "project": "valley",
        }
        outside = memory.call("store", **statement, trust="untrusted")
        for target in ids.values():
            for source in (own, outside.memory_id):
                memory.call(
                    "graph-link",
                    links=[{"source": source, "relation": "part_of", "target": target}],
                )
        brief: Brief = memory.call("graph-brief")
    assert "burn" not in brief.text
    assert "sell" not in brief.text
    assert {item.memory.id for item in brief.central} == set(ids.values())
    assert brief.memories == 5


def test_every_operation_counts_the_same_links(world: World) -> None:
    ids = write_memories(world, TWO_TOWNS)
    with world.open() as memory:
        memory.store("The [[mill]] stands still on Sundays.", project="valley")
        memory.call(
            "graph-link",
            links=[{"source": ids["quay"], "relation": "supersedes", "target": ids["pilot"]}],
        )
        memory.call(
            "graph-unlink",
            source=ids["crane"],
            relation="part_of",
            target=ids["harbour"],
            ends=True,
        )
        memory.ingest()
        counts = {
            memory.call("graph-brief").links,
            memory.call("graph-list").total,
            memory.call("graph-central").links,
            memory.call("db-stats").links,
            memory.call("overview").links,
        }
    assert counts == {
        8
    }  # nine links and the mention, without the links of pilot, the ended link and the supersession


def test_rebuild_does_not_change_graph_analysis(world: World) -> None:
    write_memories(world, [(f"n{item}", f"n{other}") for item, other in _net(60, 120)])
    answers = []
    for _ in range(2):
        answers.append(
            [
                [item.memory.id for item in call_operation(world, name, limit=20).found]
                for name in ("graph-central", "graph-gaps")
            ]
        )
        world.rebuild()
    assert answers[0] == answers[1]


def _net(nodes: int, links: int) -> list[tuple[int, int]]:
    draw = random.Random(nodes)  # noqa: S311 - no secret depends on it
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < links:
        source, target = draw.randrange(nodes), int(draw.random() ** 2 * nodes)
        if source != target and (target, source) not in pairs:
            pairs.add((source, target))
    return sorted(pairs)


def test_map_shows_the_most_linked_memories_with_their_links(world: World) -> None:
    ids = write_memories(world, TWO_TOWNS, "island")
    graph_map: GraphMap = call_operation(world, "graph-map", limit=3)
    assert [item.id for item in graph_map.nodes][:2] == [ids["mill"], ids["harbour"]]
    assert [item.degree for item in graph_map.nodes] == [5, 4, 2]
    assert {
        (graph_map.nodes[edge.source].subject, graph_map.nodes[edge.target].subject)
        for edge in graph_map.edges
    } == {
        (item, end)
        for item, end in TWO_TOWNS
        if {item, end} <= {node.subject for node in graph_map.nodes}
    }
    assert (graph_map.memories, graph_map.links) == (10, 9)


def test_graph_map_connects_memories_of_a_session_tag_or_file(world: World) -> None:
    for name, front in {
        "a": "session: 'codex:1'\ntags: [mill]",
        "b": "session: 'codex:1'",
        "c": "tags: [mill]",
    }.items():
        source = front.replace("session: 'codex:1'", "source: {session: 'codex:1', turns: []}")
        world.write(
            f"projects/valley/fact/{name}.md",
            f"---\nid: {name}\nkind: fact\nsubject: {name}\ncreated: 2026-11-01\n{source}\n---\nMemory {name}.\n",
        )
    graph_map = call_operation(world, "graph-map")
    assert {
        (graph_map.nodes[edge.source].id, edge.rel, graph_map.nodes[edge.target].id)
        for edge in graph_map.edges
    } == {("a", "session", "b"), ("a", "tag", "c")}
    assert call_operation(world, "graph-map", project="elsewhere").nodes == ()
