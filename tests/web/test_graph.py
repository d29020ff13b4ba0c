"""The Graph page draws, searches and filters the graph, and shows it as a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.driving import PHONE, Dashboard, nacre

pytestmark = pytest.mark.web
READINGS, BATCHES = "Readings are kept raw for two years", "Batches are idempotent"


def wait_until_drawn(page: Page) -> Page:
    """Wait until the picture stops moving."""
    expect(page.locator(".graph-canvas")).to_have_attribute("aria-busy", "false")
    return page


def test_graph_is_drawn_and_coloured_by_project(board: Dashboard) -> None:
    page = wait_until_drawn(board.show("/graph"))
    expect(page.get_by_role("img", name="Graph of 63 memories")).to_be_visible()
    expect(page.locator(".graph-canvas canvas").first).to_be_visible()
    expect(page.get_by_text("63 memories, 28 connections")).to_be_visible()
    legend = page.get_by_role("list", name="Project").get_by_role("listitem")
    expect(legend).to_have_text(["choirbook", "hivelog", "lantern", "All projects"])
    colours = legend.locator("circle").evaluate_all(
        "all => all.map(one => one.attributes.fill.value)"
    )
    assert len(set(colours)) == 4


def test_memory_is_found_and_shown_with_its_neighbours(board: Dashboard) -> None:
    page = wait_until_drawn(board.show("/graph"))
    page.keyboard.press("f")
    page.keyboard.type("readings kept")
    page.keyboard.press("Enter")
    side = page.get_by_role("complementary", name="Details")
    expect(side.get_by_role("heading", name=READINGS)).to_be_visible()
    side.get_by_role("button", name=BATCHES).click()
    expect(side.get_by_role("heading", name=BATCHES)).to_be_visible()
    page.keyboard.press("Escape")
    expect(side.get_by_role("heading", name=BATCHES)).to_have_count(0)


def test_keys_navigate_the_graph_and_open_a_memory(board: Dashboard) -> None:
    page = wait_until_drawn(board.show("/graph"))
    page.keyboard.press("j")
    page.wait_for_url("**memory=*")
    page.keyboard.press("Enter")
    page.wait_for_url("**/memories/*")


def test_graph_is_filtered_by_connection(board: Dashboard) -> None:
    page = wait_until_drawn(board.show("/graph"))
    page.get_by_label("Connections").select_option("link")
    expect(page.get_by_text("63 memories, 15 connections")).to_be_visible()
    page.get_by_label("Connections").select_option("session")
    expect(page.get_by_text("63 memories, 13 connections")).to_be_visible()
    expect(page.get_by_role("img", name="Graph of 63 memories")).to_be_visible()


def test_few_connections_are_shown_as_a_table(board: Dashboard) -> None:
    page = board.show("/graph?project=lantern")
    expect(page.get_by_text("8 memories, 2 connections")).to_be_visible()
    expect(page.get_by_role("list", name="Memories")).to_be_visible()
    page.get_by_role("button", name="Picture").click()
    expect(page.get_by_role("img", name="Graph of 8 memories")).to_be_visible()


def test_table_shows_the_same_graph(board: Dashboard) -> None:
    page = board.show("/graph?view=table")
    page.keyboard.press("j")
    side = page.get_by_role("complementary", name="Details")
    expect(side.get_by_role("link", name="Open")).to_be_visible()
    expect(page.get_by_role("list", name="Memories").get_by_role("button").first).to_contain_text(
        "3 connections"
    )


def test_missing_webgl_falls_back_to_a_table(boards: Callable[..., Dashboard]) -> None:
    board = boards()
    board.context.add_init_script(
        "const get = HTMLCanvasElement.prototype.getContext;"
        "HTMLCanvasElement.prototype.getContext = function (kind, ...more) {"
        " return kind.startsWith('webgl') ? null : get.call(this, kind, ...more) }"
    )
    page = board.show("/graph")
    expect(page.get_by_text("This browser cannot draw the graph")).to_be_visible()
    expect(page.get_by_role("list", name="Memories")).to_be_visible()


def test_newly_stored_memory_appears_live(board: Dashboard, home: Path) -> None:
    page = wait_until_drawn(board.show("/graph"))
    nacre(
        "store",
        "Lamps at the pond blink twice.",
        "--subject",
        "Lamps blink <b>twice</b>",
        home=home,
    )
    expect(page.get_by_text("64 memories, 28 connections")).to_be_visible()
    page.get_by_label("Find in the graph").fill("blink")
    expect(page.get_by_role("button", name="Lamps blink <b>twice</b>")).to_be_visible()


def test_drawing_code_is_loaded_only_by_the_graph_page(board: Dashboard) -> None:
    urls: list[str] = []
    board.page.on("request", lambda request: urls.append(request.url))
    board.show("/memories")
    assert [item for item in urls if "drawing" in item] == []
    wait_until_drawn(board.show("/graph"))
    assert [item for item in urls if "drawing" in item] != []


@pytest.mark.parametrize(
    "options", [{}, {"color_scheme": "dark"}, {"viewport": PHONE}, {"locale": "zh-CN"}]
)
def test_graph_page_has_no_accessibility_violations(
    boards: Callable[..., Dashboard], options: dict[str, object]
) -> None:
    board = boards(**options)
    page = wait_until_drawn(board.show("/graph"))
    assert board.violations() == []
    page.keyboard.press("j")
    page.wait_for_url("**memory=*")
    board.settled()
    assert board.violations() == []
    board.show("/graph?view=table")
    assert board.violations() == []
    assert page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    assert board.problems == []
