"""Traces: which there are, and what one of them went through."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.driving import PHONE, Dashboard, nacre

pytestmark = pytest.mark.web


def test_a_question_is_found_by_its_kind_and_told_step_by_step(board: Dashboard) -> None:
    page = board.show("/traces")
    expect(page.get_by_role("status").filter(has_text="traces")).to_have_text("4 traces")
    page.get_by_label("Kind").select_option("case")
    expect(page.get_by_role("status").filter(has_text="traces")).to_have_text("3 traces")
    page.get_by_role("link", name="why did the migration block the gateways?").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "why did the migration block the gateways?"
    )
    expect(page.locator(".traces-steps > li").first).to_be_visible()
    page.get_by_role("main").get_by_role(
        "link", name="Migrations lock the readings table"
    ).first.click()
    page.wait_for_url("**/memories/*")


def test_a_question_asked_in_a_terminal_appears_in_the_list(board: Dashboard, home: Path) -> None:
    page = board.show("/traces?kind=case")
    nacre("recall", "who calibrates the scales?", home=home)
    expect(page.get_by_role("link", name="who calibrates the scales?")).to_be_visible()


def test_markup_in_a_question_is_text(board: Dashboard, home: Path) -> None:
    nacre("recall", "<img src=x onerror=alert(1)>", home=home)
    page = board.show("/traces?kind=case")
    row = page.get_by_role("main").get_by_role("link").filter(has_text="onerror")
    expect(row).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator("main img").count() == 0


def test_by_keys_alone_from_the_list_to_a_trace(board: Dashboard) -> None:
    page = board.show("/traces")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/traces/*")


@pytest.mark.parametrize(
    "options", [{}, {"color_scheme": "dark"}, {"viewport": PHONE}, {"locale": "zh-CN"}]
)
def test_nothing_is_wrong_for_readers_of_any_kind(boards, options) -> None:
    board = boards(**options)
    page = board.show("/traces?kind=case")
    assert board.violations() == []
    page.locator(".traces-row").first.click()
    page.wait_for_url("**/traces/*")
    board.settled()
    assert board.violations() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    assert board.problems == []
