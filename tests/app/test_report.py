"""The page of pictures: one file that needs nothing, runs nothing, and shows what there is."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterator
from datetime import date
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from nacre.errors import InvalidInput
from nacre.graph.requests import MapRequest
from nacre.reporting.node_link import layout, linked_part
from nacre.reporting.values import Report
from tests.app.conftest import World
from tests.app.test_graph_analysis import TWO_TOWNS, written
from tests.app.test_looking_back import ingested, talk

HOSTILE = '</title></svg><script>alert(1)</script><img src=x onerror="alert(2)">\u202e"\'&'


def reported(world: World, **asked: Any) -> Report:
    with world.open() as memory:
        found: Report = memory.call("report", **asked)
    return found


class Tags(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.found if tag == name]


def pictures(page: str) -> Iterator[ElementTree.Element]:
    return map(ElementTree.fromstring, re.findall(r"<svg .*?</svg>", page, re.DOTALL))


@pytest.fixture
def valley(world: World) -> World:
    """Linked memories, a session, and one memory that would like to run something."""
    written(world, TWO_TOWNS)
    talk(world, "5e55-0001", "2026-11-18T23:50:00.000Z", "2026-11-19T00:05:00.000Z")
    ingested(world)
    with world.open() as memory:
        memory.store("Wool is dyed in autumn.", subject=HOSTILE, kind="fact", project="valley")
        memory.call("graph-link", links=[{"source": HOSTILE, "relation": "part_of", "target": "mill"}])
    return world


def test_a_page_runs_nothing_and_asks_nothing_of_a_network(valley: World) -> None:
    page = reported(valley).html
    tags = Tags(page)
    assert not tags.named("script") + tags.named("img") + tags.named("link") + tags.named("a")
    assert not [name for _, attributes in tags.found for name in attributes if name.startswith("on") or name == "style"]
    assert set(re.findall(r"https?://[^\"]+", page)) == {"http://www.w3.org/2000/svg"}
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = (one["content"] for one in tags.named("meta") if one.get("http-equiv"))
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert "url(" not in style
    assert "@import" not in style


def test_what_memories_say_is_text_whatever_they_hold(valley: World) -> None:
    page = reported(valley).html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\u202e" not in page


def test_each_picture_is_well_formed_named_and_has_its_numbers(valley: World) -> None:
    page = reported(valley).html
    drawn = list(pictures(page))
    titles = [one.findtext("{http://www.w3.org/2000/svg}title") for one in drawn]
    assert titles == [
        "Turns by day and tool", "Memories at the end of each day, by kind", "Turns of each day", "Memories by age",
        "Memories and their links",
    ]  # fmt: skip
    assert len(Tags(page).named("details")) == len(drawn)


def test_the_numbers_say_what_the_pictures_show(valley: World) -> None:
    page = reported(valley).html
    assert '<th scope="row">Wed 18 Nov 2026</th><td>1</td><td>1</td>' in page
    assert '<th scope="row">Thu 19 Nov 2026</th><td>1</td><td>0</td>' in page
    assert '<th scope="row">mill</th><td>fact</td><td>valley</td><td>6</td>' in page


def test_the_same_home_gives_the_same_page(valley: World) -> None:
    assert reported(valley).html == reported(valley).html


def test_an_empty_home_has_a_page_that_says_so(world: World) -> None:
    page = reported(world).html
    assert "Nothing is remembered." in page
    assert "No session was read in this time." in page


def test_a_year_begins_where_anything_does_and_a_month_is_whole(world: World) -> None:
    written(world, TWO_TOWNS)
    year = reported(world).activity
    assert (year.since, year.until, year.step) == (date(2026, 10, 24), date(2026, 11, 20), "day")
    month = reported(world, month="2026-10").activity
    assert (month.since, month.until) == (date(2026, 10, 1), date(2026, 10, 31))
    assert reported(world, month="2026-11").activity.until == date(2026, 11, 20)


@pytest.mark.parametrize("month", ["2026-12", "2026-13", "2026", "11-2026"])
def test_what_is_no_month_or_has_not_begun_is_refused(world: World, month: str) -> None:
    with pytest.raises(InvalidInput):
        reported(world, month=month)


def test_a_page_of_a_project_has_nothing_of_another_one(valley: World) -> None:
    with valley.open() as memory:
        memory.store("The ferry leaves at noon.", project="harbour-town")
    page = reported(valley, project="harbour-town").html
    assert "<h1>harbour-town</h1>" in page
    assert "mill" not in page


def test_what_is_drawn_of_many_links_hangs_together(world: World) -> None:
    written(world, [*TWO_TOWNS, *((f"hut{at}", f"well{at}") for at in range(5))])
    with world.open() as memory:
        found = memory.call("graph-map", limit=MapRequest().limit)
    nodes, edges = linked_part(found, 9)
    assert {one.subject for one in nodes} == {name for pair in TWO_TOWNS for name in pair}
    assert len(edges) == len(TWO_TOWNS)
    assert linked_part(found, 3)[1]


def test_linked_nodes_lie_nearer_than_others() -> None:
    places = layout(20, [(0, 1), (1, 2), (0, 2), (10, 11)])
    assert places == layout(20, [(0, 1), (1, 2), (0, 2), (10, 11)])
    away = math.dist(places[0], places[1]), math.dist(places[0], places[10])
    assert away[0] < away[1] / 2
    assert min(math.dist(one, other) for at, one in enumerate(places) for other in places[:at]) > 0.01
