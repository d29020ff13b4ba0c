"""The Timeline page draws a project's decisions, reversals and sessions as a shareable picture."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.web.driving import PHONE, Dashboard

pytestmark = pytest.mark.web

OLD = "Let's use SQLite for the readings, not PostgreSQL"


def test_reversal_is_joined_to_its_decision_and_opens_its_words(board: Dashboard) -> None:
    page = board.show("/timeline?project=hivelog")
    picture = page.locator(".timeline-picture")
    expect(picture.locator(".timeline-point")).to_have_count(5)
    expect(picture.locator(".timeline-point.replaced")).to_contain_text(OLD[:20])
    expect(picture.locator(".timeline-arc")).to_have_count(1)
    expect(picture.locator(".timeline-session")).to_have_count(3)
    picture.get_by_role("link", name="Decision, Nov 10").locator("text").first.click()
    words = page.get_by_role("dialog")
    expect(words.locator(".said.evidence")).to_contain_text("moving from SQLite to PostgreSQL")
    page.keyboard.press("Escape")
    picture.locator(".timeline-session rect").first.click()
    page.wait_for_url("**/sessions/*")


def test_points_are_reached_by_keys_and_listed_in_a_table(board: Dashboard) -> None:
    page = board.show("/timeline?project=hivelog")
    points = page.locator(".timeline-picture a")
    expect(points).to_have_count(8)
    for number in range(3):
        page.keyboard.press("ArrowRight")
        expect(points.nth(number)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Let's use SQLite")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Table").click()
    row = page.get_by_role("row").filter(has_text="We're moving from SQLite")
    expect(row).to_contain_text("Nov 10")
    expect(row).to_contain_text(f"instead of: {OLD}")
    assert board.violations() == []


def test_period_is_selectable_and_earlier_periods_are_reachable(board: Dashboard) -> None:
    page = board.show("/timeline?project=hivelog&zoom=week")
    points = page.locator(".timeline-picture a")
    expect(points).to_have_count(0)
    for _ in range(2):
        page.get_by_role("button", name="Earlier").click()
    expect(page.get_by_role("link", name="We're moving from SQLite")).to_be_visible()
    page.get_by_role("button", name="All", exact=True).click()
    expect(points).to_have_count(8)


@pytest.mark.parametrize("options", [{"color_scheme": "dark"}, {"viewport": PHONE}])
def test_picture_is_saved_with_project_and_dates(
    boards: Callable[..., Dashboard], options: dict[str, object]
) -> None:
    board = boards(**options)
    page = board.show("/timeline?project=hivelog")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as picture").click()
    name = download.value.suggested_filename
    assert name.startswith("hivelog ")
    assert "2026" in name or "20" in name
    picture = download.value.path().read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 20_000  # a picture without text is smaller
    assert board.violations() == []
    assert board.problems == []
