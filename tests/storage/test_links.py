"""Links on both engines."""

from __future__ import annotations

from datetime import date

import pytest

from nacre.store.memories import EdgeFilter, Links, StoredLink
from nacre.store.schema import Database
from nacre.values.memory import Kind, Link, Validity
from nacre.values.session import Trust
from tests.storage.made import DAY, NOON, an_id, memory, put, retired

TODAY = NOON.date()


@pytest.fixture
def links(database: Database) -> Links:
    """Links of every sort between memories of two projects."""
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


def _told(edges: list[StoredLink]) -> list[tuple[int, str, int, str]]:
    return [
        (int(one.source[5:], 16), one.rel, int(one.target[5:], 16), one.origin) for one in edges
    ]


def test_all_edges_of_a_memory_are_listed_completely(links: Links) -> None:
    assert _told(links.of(an_id(2))) == [
        (2, "related_to", 1, "auto"),
        (1, "related_to", 2, "reflect"),
        (2, "related_to", 3, "body"),
    ]
    assert links.of(an_id(2))[1] == StoredLink(
        an_id(1), "related_to", an_id(2), "reflect", "why", 0.25, Validity(TODAY, TODAY + DAY)
    )
    assert links.of(an_id(98)) == []


def test_links_are_valid_until_the_day_before_their_end(links: Links) -> None:
    held = [
        (1, "related_to", 2, "reflect"),
        (1, "uses", 3, "manual"),
        (1, "uses", 0x63, "manual"),
        (3, "contradicts", 1, "dedup"),
        (5, "related_to", 1, "manual"),
    ]
    assert sorted(_told(links.at([an_id(1)], TODAY))) == held
    assert sorted(_told(links.at([an_id(1)], TODAY + DAY))) == held[1:]
    assert sorted(_told(links.at([an_id(1)], TODAY - DAY))) == [
        *held[1:4],
        (4, "uses", 1, "manual"),
        held[4],
    ]
    assert sorted(_told(links.at([an_id(1)], None))) == [
        *held[:4],
        (4, "uses", 1, "manual"),
        held[4],
    ]
    assert sorted(_told(links.at([an_id(1)], TODAY, without=[an_id(3)]))) == [
        held[0],
        held[2],
        held[4],
    ]
    assert sorted(_told(links.at([an_id(1)], TODAY, among=[an_id(3), an_id(5)]))) == [
        held[1],
        held[3],
        held[4],
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
    assert (_told(page), count) == (every[:2], 5)
    page, count = links.page(EdgeFilter(), limit=2, offset=4)
    assert (_told(page), count) == (every[4:], 5)
    assert links.page(EdgeFilter(), limit=2, offset=9) == ([], 5)
    assert links.page(EdgeFilter(day=TODAY), limit=9)[1] == 4
    assert _told(links.page(EdgeFilter(relations=("uses", "x")), limit=9)[0]) == [
        every[0],
        every[4],
    ]
    assert _told(links.page(EdgeFilter(origins=("auto",)), limit=9)[0]) == [
        (3, "related_to", 4, "auto"),
        (2, "related_to", 1, "auto"),
    ]
    assert _told(links.page(EdgeFilter(memory=an_id(5)), limit=9)[0]) == [
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
    one = (an_id(1), "Subject 1", "fact", "a", 7, 0, 1, "2026-11-02")
    two = (an_id(2), "Subject 2", "fact", "b", 9, 0, 1, "2026-01-01")
    assert links.map_nodes(None, [], None)[:2] == [one, two]
    assert links.map_nodes(None, ["todo"], None) == [
        (an_id(3), "Subject 3", "todo", "a", 7, 0, 1, "2026-11-02")
    ]
    assert links.map_nodes(None, [], date(2026, 2, 1)) == [two]
    assert links.map_nodes(None, [], date(2026, 2, 2)) == []
    assert [row[0] for row in links.map_nodes(None, [], TODAY)] == [an_id(1), an_id(3), an_id(4)]
    assert [row[-2] for row in links.map_nodes(None, [], None)] == [1, 1, 1, 0]
    assert [row[:3] for row in links.map_links(TODAY, ["contradicts"])] == [
        (an_id(3), "contradicts", an_id(1))
    ]
    assert (len(links.map_links(TODAY)), len(links.map_links(TODAY, alike=True))) == (6, 9)
    assert sorted(links.ends([an_id(5), an_id(6), an_id(77)])) == [
        (an_id(5), "Subject 5", "fact", None, 1, 0, "trusted"),
        (an_id(6), "Subject 6", "fact", None, 0, 1, "trusted"),
    ]


def test_links_are_found_by_origin_and_connect_both_ends(links: Links) -> None:
    assert links.of_origin("manual", None) == [an_id(1), an_id(4), an_id(5)]
    assert links.of_origin("manual", "a") == [an_id(1)]
    assert links.of_origin("dedup", None) == []
    assert _told(links.alike()) == [
        (1, "related_to", 5, "auto"),
        (2, "related_to", 1, "auto"),
        (3, "related_to", 4, "auto"),
    ]
    pairs = {(1, 2), (1, 3), (1, 0x63), (2, 3), (4, 1), (5, 1)}
    assert links.connected() == {
        (an_id(a), an_id(b)) for a, b in pairs | {(b, a) for a, b in pairs}
    }
    before = links.state()
    assert before == (7, 1.25, 2, (TODAY + DAY).isoformat(), TODAY.isoformat())
