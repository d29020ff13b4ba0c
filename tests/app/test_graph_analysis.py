"""What the links of all memories say: central ones, gaps, components, and one count for every face."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date

from nacre.memories.graph import Brief, GraphMap
from nacre.values.memory import Actor, Face, acting
from tests.app.conftest import World
from tests.app.test_graph import asked

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
"""Two groups, and a road between them."""


def written(
    world: World, pairs: Sequence[tuple[str, str]], *alone: str, project: str = "valley"
) -> dict[str, str]:
    """Memories by their names, with links ``part_of`` from the first of each pair to the second."""
    names = sorted({name for pair in pairs for name in pair} | set(alone))
    ids = {
        name: f"0197{number:04x}-0000-7000-8000-00000000{number:04x}"
        for number, name in enumerate(names)
    }
    for number, name in enumerate(names):
        links = ", ".join(f"{{rel: part_of, to: {ids[to]}}}" for one, to in pairs if one == name)
        text = NOTE.format(
            id=ids[name], name=name, links=links, word="abcdefghijklmnopqrst"[number % 20] * 9
        )
        world.write(f"projects/{project}/fact/{name}.md", text)
    return ids


def test_central_memories_have_the_most_links(world: World) -> None:
    ids = written(world, TWO_TOWNS)
    found = asked(world, "graph-central", limit=3)
    found_ids = [(one.memory.id, one.degree) for one in found.found]
    assert found_ids == [(ids["mill"], 5), (ids["harbour"], 4), (ids["road"], 2)]
    assert (found.memories, found.links) == (9, 9)


def test_gaps_list_proven_memories_first(world: World) -> None:
    ids = written(world, TWO_TOWNS, "chapel")
    with world.open() as memory:
        for _ in range(20):
            memory.get(ids["baker"])
            world.clock.pass_days(1)
    found = asked(world, "graph-gaps", limit=3)
    assert [(one.memory.id, one.degree) for one in found.found[:2]] == [
        (ids["baker"], 1),
        (ids["chapel"], 0),
    ]
    assert found.found[0].maturity.value == "proven"
    assert (found.total, found.unlinked) == (6, 1)


def test_components_group_linked_memories(world: World) -> None:
    written(world, [*TWO_TOWNS, ("tower", "bell")], "chapel")
    found = asked(world, "graph-components", limit=1)
    assert (found.total, found.alone) == (2, 1)
    assert (found.found[0].size, found.found[0].links) == (9, 9)
    assert found.found[0].central[0].subject == "mill"


def test_graph_analysis_can_be_limited_to_a_project(world: World) -> None:
    written(world, TWO_TOWNS)
    world.write(
        "projects/coast/fact/lamp.md", "---\nkind: fact\nsubject: lamp\n---\nThe lamp is lit.\n"
    )
    assert asked(world, "graph-central", project="coast").memories == 1
    assert asked(world, "graph-brief", project="valley").memories == 9
    assert asked(world, "graph-gaps", project="coast").unlinked == 1


def test_graph_brief_is_short_and_updated_after_each_change(world: World) -> None:
    ids = written(world, TWO_TOWNS, "chapel")
    with world.open() as memory:
        first: Brief = memory.call("graph-brief")
        assert memory.call("graph-brief") is first
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
    ids = written(world, [("road", "mill"), ("weir", "mill")])
    with world.open() as memory:
        with acting(Actor(Face.MCP, "claude-code")):
            own = memory.store(
                "We decided to burn the mill.", kind="decision", project="valley"
            ).memory_id
        sold = {"content": "We decided to sell the weir.", "kind": "decision", "project": "valley"}
        outside = memory.call("store", **sold, trust="untrusted")
        for target in ids.values():
            for source in (own, outside.memory_id):
                memory.call(
                    "graph-link",
                    links=[{"source": source, "relation": "part_of", "target": target}],
                )
        found: Brief = memory.call("graph-brief")
    assert "burn" not in found.text
    assert "sell" not in found.text
    assert {one.memory.id for one in found.central} == set(ids.values())
    assert found.memories == 5


def test_every_operation_counts_the_same_links(world: World) -> None:
    ids = written(world, TWO_TOWNS)
    with world.open() as memory:
        memory.store("The [[mill]] stands still on Sundays.", project="valley")
        memory.call(
            "graph-link",
            links=[{"source": ids["quay"], "relation": "supersedes", "target": ids["pilot"]}],
        )
        memory.call(
            "graph-invalidate", source=ids["crane"], relation="part_of", target=ids["harbour"]
        )
        memory.ingest()
        counts = {
            memory.call("graph-brief").links,
            memory.call("graph-list").total,
            memory.call("graph-central").links,
            memory.call("db-stats").links,
            memory.call("overview").links,
            sum(one.links for one in memory.call("graph-components").found),
        }
    assert (
        counts == {8}
    )  # nine, and the name; without pilot's, the ended one, and the succession, whose end holds no more


def test_rebuild_does_not_change_graph_analysis(world: World) -> None:
    written(world, [(f"n{one}", f"n{other}") for one, other in _net(60, 120)])
    answers = []
    for _ in range(2):
        answers.append(
            [
                [one.memory.id for one in asked(world, name, limit=20).found]
                for name in ("graph-central", "graph-gaps")
            ]
        )
        world.rebuild()
    assert answers[0] == answers[1]


def _net(nodes: int, links: int) -> list[tuple[int, int]]:
    draw = random.Random(nodes)  # noqa: S311 - no secret depends on it
    found: set[tuple[int, int]] = set()
    while len(found) < links:
        one, other = draw.randrange(nodes), int(draw.random() ** 2 * nodes)
        if one != other and (other, one) not in found:
            found.add((one, other))
    return sorted(found)


def test_map_shows_the_most_linked_memories_with_their_links(world: World) -> None:
    ids = written(world, TWO_TOWNS, "island")
    found: GraphMap = asked(world, "graph-map", limit=3)
    assert [one.id for one in found.nodes][:2] == [ids["mill"], ids["harbour"]]
    assert [one.degree for one in found.nodes] == [5, 4, 2]
    assert {
        (found.nodes[one.source].subject, found.nodes[one.target].subject) for one in found.edges
    } == {
        (one, other)
        for one, other in TWO_TOWNS
        if {one, other} <= {node.subject for node in found.nodes}
    }
    assert (found.memories, found.links) == (10, 9)


def test_graph_map_shows_the_state_of_a_date(world: World) -> None:
    ids = written(world, TWO_TOWNS)
    world.write(
        "projects/valley/fact/dam.md",
        f"---\nid: dam\nkind: fact\nsubject: dam\ncreated: 2026-11-01\nvalid: {{from: 2026-03-01, to: 2026-04-01}}\n"
        f"links: [{{rel: part_of, to: {ids['mill']}, from: 2026-11-05}}]\n---\nThere was a dam.\n",
    )
    assert [one.subject for one in asked(world, "graph-map", as_of=date(2026, 3, 15)).nodes] == [
        "dam"
    ]
    early = asked(world, "graph-map", as_of=date(2026, 11, 2))
    assert (len(early.nodes), len(early.edges)) == (9, 9)


def test_graph_map_can_be_filtered_by_project_kind_and_relation(world: World) -> None:
    written(world, TWO_TOWNS)
    assert asked(world, "graph-map", project="elsewhere").nodes == ()
    assert asked(world, "graph-map", kinds=["decision"]).nodes == ()
    by_relation = asked(world, "graph-map", relations=["depends_on"])
    assert (len(by_relation.nodes), by_relation.edges) == (9, ())
