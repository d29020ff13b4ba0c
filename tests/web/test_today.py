"""Today: what was learned, what waits, what it cost, and the pictures of the last months."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.driving import Dashboard, nacre

pytestmark = pytest.mark.web


def test_month_shows_learned_memories_and_pending_items(board: Dashboard) -> None:
    page = board.show("/?days=30")
    expect(page.get_by_role("heading", name=re.compile(r"^\d+ decisions to make$"))).to_be_visible()
    expect(
        page.get_by_role("main").get_by_role("link", name="Dates in file names sort by ISO")
    ).to_be_visible()
    expect(page.get_by_text("From outside")).to_be_visible()
    expect(page.get_by_text("No costs this month.")).to_be_visible()


def test_quiet_day_shows_the_latest_earlier_memories(board: Dashboard, home: Path) -> None:
    todays = json.loads(nacre("list", "--since", "today", "--all", "--json", home=home))["memories"]
    for memory in todays:
        nacre("retire", memory["id"], "--reason", "the day shall be quiet", home=home)
    page = board.show("/")
    learned = page.locator("section.section").filter(
        has=page.get_by_role("heading", name="Learned")
    )
    expect(learned.get_by_text("nothing in this period; latest earlier memories")).to_be_visible()
    assert learned.locator(".memory-row").count() == 8


def test_pending_decision_links_to_review(board: Dashboard) -> None:
    review = board.page.get_by_role("main").get_by_role("link", name=re.compile(r"^Review \d+$"))
    waiting = review.inner_text().split()[1]
    review.click()
    board.page.wait_for_url("**/review")
    expect(board.page.get_by_text(re.compile(rf"^{waiting} left"))).to_be_visible()


def test_every_chart_has_a_table(board: Dashboard) -> None:
    page = board.page
    figures = page.locator("figure.figure")
    expect(figures).to_have_count(3)
    for figure in figures.all():
        figure.get_by_role("button", name="As a table").click()
        expect(figure.get_by_role("table")).to_be_visible()
    expect(figures.first.get_by_role("columnheader", name="Decision")).to_be_visible()
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
