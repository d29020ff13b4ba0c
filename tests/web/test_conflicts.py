"""Conflicts: two memories beside each other; one holds, or both do, and it can be undone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.driving import Dashboard, nacre
from tests.web.test_review import call

pytestmark = pytest.mark.web

OLDER, NEWER = "Uploads of the gateway may be 10 MB", "The upload limit for a gateway is a generous 25 MB now"


def shown(page: Page) -> str:
    return page.locator(".conflict-pair").inner_text()


def test_a_pair_stands_side_by_side_with_what_differs(board: Dashboard) -> None:
    page = board.show("/conflicts")
    expect(page.get_by_text("1 of 2")).to_be_visible()
    expect(page.locator(".conflict-side").first.locator("del").last).to_have_text("may be 10 ")
    expect(page.locator(".conflict-side").last.locator("ins").last).to_have_text("now")
    expect(page.locator(".conflict-reason")).to_contain_text("10 MB → 25 MB")
    page.keyboard.press("j")
    expect(page.get_by_text("2 of 2")).to_be_visible()
    expect(page.locator(".conflict-pair")).to_contain_text("print shop")


@pytest.mark.parametrize(
    ("key", "says", "kept", "gone"),
    [
        ("1", "The older one holds", OLDER, NEWER),
        ("2", "The newer one holds", NEWER, OLDER),
        ("b", "Both hold", OLDER, None),
    ],
)  # fmt: skip
def test_a_key_settles_it_and_another_takes_it_back(
    board: Dashboard, home: Path, key: str, says: str, kept: str, gone: str | None
) -> None:
    page = board.show("/conflicts")
    page.keyboard.press(key)
    expect(page.locator(".toast", has_text=says)).to_be_visible()
    expect(page.get_by_text("1 of 1")).to_be_visible()
    expect(page.locator(".conflict-history li")).to_have_count(1)
    active = {memory.content for memory in call(home, "list", limit=500).memories}
    assert kept in active
    assert gone not in active
    page.keyboard.press("u")
    expect(page.get_by_text("1 of 2")).to_be_visible()
    expect(page.locator(".conflict-pair")).to_contain_text("10 MB")
    active = {memory.content for memory in call(home, "list", limit=500).memories}
    assert {OLDER, NEWER} <= active


def test_what_is_settled_in_a_terminal_is_gone_here(board: Dashboard, home: Path) -> None:
    page = board.show("/conflicts")
    (first, *_) = call(home, "waiting").conflicts
    nacre("conflicts", "resolve", first.id, "keep-new", home=home)
    expect(page.get_by_text("1 of 1")).to_be_visible()


def test_without_any_it_says_what_would_stand_there(board: Dashboard, home: Path) -> None:
    page = board.show("/conflicts")
    for left in ("1 of 1", None):
        page.keyboard.press("2")
        if left:
            expect(page.get_by_text(left)).to_be_visible()
    expect(page.get_by_text("Nothing contradicts anything")).to_be_visible()
    expect(page.locator(".conflict-history li")).to_have_count(2)
    assert board.violations() == []
