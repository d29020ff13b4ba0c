"""The Today page shows pending items, recent sessions, new memories and a yearly calendar."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from tests.web.driving import Dashboard, nacre

pytestmark = pytest.mark.web


def test_month_shows_learned_memories_and_pending_items(board: Dashboard) -> None:
    page = board.show("/?days=30")
    expect(page.get_by_role("heading", name=re.compile(r"^\d+ decisions to make$"))).to_be_visible()
    expect(
        page.get_by_role("main").get_by_role("link", name="Dates in file names sort by ISO")
    ).to_be_visible()
    expect(page.get_by_text("From outside")).to_be_visible()
    expect(page.get_by_role("complementary")).to_contain_text("$0.0036")


def test_quiet_day_shows_the_latest_earlier_memories(board: Dashboard, home: Path) -> None:
    todays = json.loads(nacre("list", "--since", "today", "--all", "--json", home=home))["memories"]
    for memory in todays:
        nacre("retire", memory["id"], "--reason", "the day shall be quiet", home=home)
    page = board.show("/?days=1")
    section = page.locator("section.section").filter(
        has=page.get_by_role("heading", name="Learned")
    )
    expect(section.get_by_text("nothing in this period; latest earlier memories")).to_be_visible()
    assert section.locator(".memory-row").count() == 8


def test_pending_decision_links_to_review(board: Dashboard) -> None:
    review = board.page.get_by_role("main").get_by_role("link", name=re.compile(r"^Review \d+$"))
    waiting = review.inner_text().split()[1]
    review.click()
    board.page.wait_for_url("**/review")
    expect(board.page.get_by_text(re.compile(rf"^{waiting} left"))).to_be_visible()


def test_latest_sessions_come_first_and_are_resumed(
    boards: Callable[..., Dashboard], home: Path
) -> None:
    page = boards(permissions=["clipboard-read", "clipboard-write"]).page
    first = page.locator("section.section").first
    expect(first.get_by_role("heading", name="Latest sessions")).to_be_visible()
    page.route(
        "**/api/v1/resume",
        lambda route: route.fulfill(
            json={"line": None, "command": ["claude", "--resume", "5e55"], "folder": "/code/a b"}
        ),
    )
    first.get_by_role("button", name="Resume: Slow engraving").click()
    expect(page.get_by_text("Copied: cd '/code/a b' && claude --resume 5e55")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "cd '/code/a b' && claude --resume 5e55"


def test_empty_day_shows_the_last_seven_days_until_a_memory_is_stored(
    board: Dashboard, home: Path
) -> None:
    def clear_today(route: Route) -> None:
        body = json.loads(route.request.post_data or "{}")
        answer = route.fetch().json()
        if body["since"] == answer["until"]:
            answer |= {"learned": [], "sessions": []}
        route.fulfill(json=answer)

    board.page.route("**/api/v1/today", clear_today)
    page = board.show("/")
    expect(page.get_by_text("nothing yet today; the last seven days")).to_be_visible()
    expect(page.get_by_role("button", name="7 days")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".memory-row").first).to_be_visible()
    board.page.unroute("**/api/v1/today")
    nacre("store", "The pond's path is lit.", "--subject", "Path lit", home=home)
    expect(page.get_by_role("main").get_by_role("link", name="Path lit")).to_be_visible()
    expect(page.get_by_role("button", name="Today")).to_have_attribute("aria-pressed", "true")


def test_calendar_comes_last_and_has_a_table(board: Dashboard) -> None:
    figure = board.page.locator("figure.figure")
    expect(figure).to_have_count(1)
    assert figure.evaluate("figure => figure === figure.parentElement.lastElementChild")
    figure.get_by_role("button", name="As a table").click()
    expect(figure.get_by_role("table")).to_be_visible()
    assert board.violations() == []


def test_newly_stored_memory_appears_live(board: Dashboard, home: Path) -> None:
    nacre(
        "store",
        "The pond's path is lit until eleven.",
        "--subject",
        "Path lit until eleven",
        home=home,
    )
    expect(
        board.page.get_by_role("main").get_by_role("link", name="Path lit until eleven")
    ).to_be_visible()
