"""Traces: the calls of models, and one of them whole."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.web.driving import PHONE, Dashboard

pytestmark = pytest.mark.web


def test_call_is_filtered_by_task_and_shown_completely(board: Dashboard) -> None:
    page = board.show("/traces")
    expect(page.get_by_role("status").filter(has_text="traces")).to_have_text("3 traces")
    page.get_by_label("Task").select_option("dedup")
    expect(page.get_by_role("status").filter(has_text="traces")).to_have_text("2 traces")
    page.get_by_role("link", name="Which statement about the scales is newer?").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Duplicates")
    expect(page.locator(".traces-text")).to_have_text(
        ["Which statement about the scales is newer?", '{"action": "UPDATE"}']
    )


def test_failed_calls_are_shown_with_their_errors(board: Dashboard) -> None:
    page = board.show("/traces?state=failed")
    row = page.get_by_role("main").get_by_role("link").filter(has_text="does not answer")
    row.click()
    expect(page.locator(".traces-text").last).to_have_text("the provider does not answer")


def test_markup_in_a_prompt_is_text(board: Dashboard) -> None:
    page = board.show("/traces")
    row = page.get_by_role("main").get_by_role("link").filter(has_text="onerror")
    expect(row).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator("main img").count() == 0


def test_keys_navigate_from_the_list_to_a_trace(board: Dashboard) -> None:
    page = board.show("/traces")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/traces/*")


@pytest.mark.parametrize(
    "options", [{}, {"color_scheme": "dark"}, {"viewport": PHONE}, {"locale": "zh-CN"}]
)
def test_trace_pages_have_no_accessibility_violations(boards, options) -> None:
    board = boards(**options)
    page = board.show("/traces")
    assert board.violations() == []
    page.locator(".traces-row").first.click()
    page.wait_for_url("**/traces/*")
    board.settled()
    assert board.violations() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    assert board.problems == []
