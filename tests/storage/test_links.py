"""Links on both engines."""

from __future__ import annotations

from datetime import date

import pytest

from nacre.store.memories import EdgeFilter, Links, StoredLink
from nacre.store.schema import Database
from nacre.values.memory import Kind, Link, Validity
from nacre.values.session import Trust
from tests.storage.samples import DAY, NOON, an_id, memory, put, retired

TODAY = NOON.date()


@pytest.fixture
def links(database: Database) -> Links:
    """Return links of every kind between memories of two projects."""
    put(
        database,
        memory(
            1,
            project="a",
            links=(
                Link("related_to", an_id(2), "why", "reflect", 0.25, Validity(TODAY, TODAY + DAY)),
                Link("uses", an_id(3)),
                Link("uses", an_id(99)),
            ),
        ),
        memory(
            2,
            "[[Subject 3]]",
            project="b",
            valid=Validity(date(2026, 1, 1), date(2026, 2, 1)),
            importance=9,
        ),
        memory(
            3,
            project="a",
            kind=Kind.TODO,
            links=(Link("contradicts", an_id(1), origin="dedup", strength=1.0),),
        ),
        memory(
            4, links=(Link("uses", an_id(1), valid=Validity(None, TODAY)),), trust=Trust.UNTRUSTED
        ),
        memory(
            5,
            superseded_by=an_id(1),
            links=(Link("related_to", an_id(1)),),
            valid=Validity(until=TODAY),
        ),
        memory(6, **retired()),
    )
    for source, target in ((1, 2), (2, 1), (3, 4), (1, 5)):
        database.run("insert_auto_link", source=an_id(source), target=an_id(target), strength=0.9)
    return Links(database)


def _numbered(edges: list[StoredLink]) -> list[tuple[int, str, int, str]]:
    return [
        (int(edge.source[5:], 16), edge.rel, int(edge.target[5:], 16), edge.origin)
        for edge in edges
    ]


def test_all_edges_of_a_memory_are_listed_completely(links: Links) -> None:
    assert _numbered(links.of(an_id(2))) == [
        (2, "related_to", 1, "auto"),
        (1, "related_to", 2, "reflect"),
        (2, "related_to", 3, "body"),
    ]
    assert links.of(an_id(2))[1] == StoredLink(
        an_id(1), "related_to", an_id(2), "reflect", "why", 0.25, Validity(TODAY, TODAY + DAY)
    )
    assert links.of(an_id(98)) == []


def test_links_are_valid_until_the_day_before_their_end(links: Links) -> None:
    edges = [
        (1, "related_to", 2, "reflect"),
        (1, "uses", 3, "manual"),
        (1, "uses", 0x63, "manual"),
        (3, "contradicts", 1, "dedup"),
        (5, "related_to", 1, "manual"),
    ]
    assert sorted(_numbered(links.at([an_id(1)], TODAY))) == edges
    assert sorted(_numbered(links.at([an_id(1)], TODAY + DAY))) == edges[1:]
    assert sorted(_numbered(links.at([an_id(1)], TODAY - DAY))) == [
        *edges[1:4],
        (4, "uses", 1, "manual"),
        edges[4],
    ]
    assert sorted(_numbered(links.at([an_id(1)], None))) == [
        *edges[:4],
        (4, "uses", 1, "manual"),
        edges[4],
    ]
    assert sorted(_numbered(links.at([an_id(1)], TODAY, without=[an_id(3)]))) == [
        edges[0],
        edges[2],
        edges[4],
    ]
    assert sorted(_numbered(links.at([an_id(1)], TODAY, among=[an_id(3), an_id(5)]))) == [
        edges[1],
        edges[3],
        edges[4],
    ]
    assert links.at([], TODAY) == []


def test_links_are_paginated_with_a_total(links: Links) -> None:
    every = [
        (4, "uses", 1, "manual"),
        (3, "contradicts", 1, "dedup"),
        (2, "related_to", 3, "body"),
        (1, "related_to", 2, "reflect"),
        (1, "uses", 3, "manual"),
    ]
    page, count = links.page(EdgeFilter(), limit=2)
    assert (_numbered(page), count) == (every[:2], 5)
    page, count = links.page(EdgeFilter(), limit=2, offset=4)
    assert (_numbered(page), count) == (every[4:], 5)
    assert links.page(EdgeFilter(), limit=2, offset=9) == ([], 5)
    assert links.page(EdgeFilter(day=TODAY), limit=9)[1] == 4
    assert _numbered(links.page(EdgeFilter(relations=("uses", "x")), limit=9)[0]) == [
        every[0],
        every[4],
    ]
    assert _numbered(links.page(EdgeFilter(origins=("auto",)), limit=9)[0]) == [
        (3, "related_to", 4, "auto"),
        (2, "related_to", 1, "auto"),
    ]
    assert _numbered(links.page(EdgeFilter(memory=an_id(5)), limit=9)[0]) == [
        (5, "related_to", 1, "manual")
    ]
    assert links.page(EdgeFilter(project="b"), limit=9)[1] == 2
    assert links.page(EdgeFilter(project="c"), limit=9, offset=3) == ([], 0)


def test_links_and_likenesses_are_counted(links: Links) -> None:
    assert (
        links.count(TODAY),
        links.count(TODAY - DAY),
        links.count(TODAY, "a"),
        links.count(TODAY, "b"),
    ) == (
        4,
        4,
        2,
        0,
    )
    assert (links.count_alike(), links.count_alike("a")) == (2, 0)
    assert links.between(TODAY, None) == [
        (an_id(1), an_id(2), 0.25),
        (an_id(1), an_id(3), 0.5),
        (an_id(2), an_id(3), 0.5),
        (an_id(3), an_id(1), 1.0),
    ]
    assert links.nodes(None) == [an_id(1), an_id(2), an_id(3), an_id(4)]
    assert links.nodes("a") == [an_id(1), an_id(3)]


def test_map_shows_links_valid_on_a_day(links: Links) -> None:
    assert [row[0] for row in links.map_nodes(None)] == [an_id(number) for number in range(1, 5)]
    assert [row[:5] for row in links.map_nodes("a")] == [
        (an_id(1), "Subject 1", "fact", "a", 7),
        (an_id(3), "Subject 3", "todo", "a", 7),
    ]
    assert (an_id(3), an_id(1), "contradicts") in links.map_links(TODAY)
    assert len(links.map_links(TODAY)) == 6
    assert sorted(links.ends([an_id(5), an_id(6), an_id(77)])) == [
        (an_id(5), "Subject 5", "fact", None, 1, 0, "trusted"),
        (an_id(6), "Subject 6", "fact", None, 0, 1, "trusted"),
    ]


def test_similarity_links_are_listed(links: Links) -> None:
    assert _numbered(links.alike()) == [
        (1, "related_to", 5, "auto"),
        (2, "related_to", 1, "auto"),
        (3, "related_to", 4, "auto"),
    ]
