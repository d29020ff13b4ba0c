"""The graph: drawn, searched, filtered, looked back at, analysed, and as a table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.driving import PHONE, Dashboard, nacre

pytestmark = pytest.mark.web
READINGS, BATCHES = "Readings are kept raw for two years", "Batches are idempotent"


def drawn(page: Page) -> Page:
    """Wait until the picture stands still."""
    expect(page.locator(".graph-canvas")).to_have_attribute("aria-busy", "false")
    return page


def looked_back(page: Page, days: int) -> None:
    """Move the slider, as a hand does."""
    page.get_by_role("slider").evaluate(
        f"it => {{ it.value = {-days}; it.dispatchEvent(new Event('input', {{bubbles: true}})) }}"
    )


def test_graph_is_drawn_and_labelled(board: Dashboard) -> None:
    page = drawn(board.show("/graph"))
    expect(page.get_by_role("img", name="Graph of 63 memories")).to_be_visible()
    expect(page.locator(".graph-canvas canvas").first).to_be_visible()
    expect(page.get_by_text("63 memories, 15 links")).to_be_visible()


def test_memory_is_found_and_shown_with_its_neighbours(board: Dashboard) -> None:
    page = drawn(board.show("/graph"))
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
    page = drawn(board.show("/graph"))
    page.keyboard.press("j")
    page.wait_for_url("**memory=*")
    page.keyboard.press("Enter")
    page.wait_for_url("**/memories/*")


def test_graph_is_filtered_by_project_kind_and_day(board: Dashboard) -> None:
    page = drawn(board.show("/graph?project=lantern"))
    expect(page.get_by_text("8 memories, 2 links")).to_be_visible()
    page.get_by_role("group", name="Kinds").get_by_role("button", name="Fact").click()
    expect(page.get_by_text("5 memories")).to_be_visible()
    page = board.show("/graph")
    looked_back(page, days=60)
    page.wait_for_url("**as_of=*")
    expect(page.get_by_text("63 memories, 15 links")).to_have_count(0)
    page.get_by_role("button", name="Back to today").click()
    expect(page.get_by_text("63 memories, 15 links")).to_be_visible()
    expect(page).to_have_url(f"{board.base}/graph")


@pytest.mark.parametrize("hour", [1, 23])
def test_selected_past_day_is_independent_of_the_hour(board: Dashboard, hour: int) -> None:
    now = datetime.now(UTC).replace(hour=hour)
    board.page.clock.set_fixed_time(now)
    page = board.show("/graph")
    looked_back(page, days=3)
    wanted = f"{board.base}/graph?as_of={now - timedelta(days=3):%Y-%m-%d}"
    expect(page).to_have_url(wanted)
    expect(page.get_by_role("slider")).to_have_value("-3")
    page.get_by_role("group", name="Kinds").get_by_role("button", name="Fact").click()
    page.wait_for_url(f"{wanted}&kinds=*")
    expect(page.get_by_role("slider")).to_have_value("-3")


def test_day_without_memories_offers_a_return_to_today(board: Dashboard) -> None:
    page = board.show("/graph?as_of=2001-01-01")
    expect(page.get_by_text("No matching memory")).to_be_visible()
    page.get_by_role("button", name="Back to today").click()
    expect(page.get_by_text("63 memories, 15 links")).to_be_visible()


def test_analyses_show_central_memories_with_reasons(board: Dashboard) -> None:
    page = drawn(board.show("/graph"))
    page.get_by_role("button", name="Central").click()
    side = page.get_by_role("complementary", name="Details")
    expect(side.get_by_role("listitem").first).to_contain_text("3 links")
    page.get_by_role("button", name="Groups").click()
    expect(side.get_by_text("memories, ").first).to_be_visible()


def test_table_shows_the_same_graph(board: Dashboard) -> None:
    page = board.show("/graph?view=table")
    page.keyboard.press("j")
    side = page.get_by_role("complementary", name="Details")
    expect(side.get_by_role("link", name="Open")).to_be_visible()
    expect(page.get_by_role("list", name="Memories").get_by_role("button").first).to_contain_text(
        "3 links"
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
    page = drawn(board.show("/graph"))
    nacre(
        "store",
        "Lamps at the pond blink twice.",
        "--subject",
        "Lamps blink <b>twice</b>",
        home=home,
    )
    expect(page.get_by_text("64 memories, 15 links")).to_be_visible()
    page.get_by_label("Find in the graph").fill("blink")
    expect(page.get_by_role("button", name="Lamps blink <b>twice</b>")).to_be_visible()


def test_drawing_code_is_loaded_only_by_the_graph_page(board: Dashboard) -> None:
    asked: list[str] = []
    board.page.on("request", lambda request: asked.append(request.url))
    board.show("/memories")
    assert [one for one in asked if "drawing" in one] == []
    drawn(board.show("/graph"))
    assert [one for one in asked if "drawing" in one] != []


@pytest.mark.parametrize(
    "options", [{}, {"color_scheme": "dark"}, {"viewport": PHONE}, {"locale": "zh-CN"}]
)
def test_graph_page_has_no_accessibility_violations(
    boards: Callable[..., Dashboard], options: dict[str, object]
) -> None:
    board = boards(**options)
    page = drawn(board.show("/graph?find=central"))
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
