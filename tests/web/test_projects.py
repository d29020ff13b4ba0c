"""The Projects pages show contents and pages of projects, and rename and merge them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import nacre as api
from nacre.values.recall import Filter
from tests.web.driving import PHONE, Dashboard, nacre

pytestmark = pytest.mark.web


def test_projects_are_listed_with_contents(board: Dashboard, home: Path) -> None:
    with api.open_memory(home) as memory:
        active = memory.list(filter=Filter(projects=("hivelog",), strict=True), limit=500)
    memories = f"{len(active)} memories"
    page = board.show("/projects")
    rows = page.get_by_role("list", name="Projects").get_by_role("link")
    expect(rows).to_have_count(3)
    hivelog = rows.filter(has_text="hivelog")
    expect(hivelog).to_contain_text(memories)
    expect(hivelog.get_by_role("img")).to_have_attribute("aria-label", "35 turns in 12 weeks")
    hivelog.click()
    page.wait_for_url("**/projects/hivelog")
    page.get_by_role("link", name=memories).click()
    page.wait_for_url("**/memories?project=hivelog")


def test_project_page_is_edited_in_place_and_undone(board: Dashboard, home: Path) -> None:
    page = board.show("/projects/hivelog")
    page.get_by_role("button", name="Write it").click()
    page.get_by_role("textbox", name="About").fill("# hivelog\n\nScales of **bee hives**.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".own-page strong")).to_have_text("bee hives")
    with api.open_memory(home) as memory:
        assert (
            "Scales of **bee hives**."
            in memory.call("page-own", name="project", project="hivelog").text
        )
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".own-page strong")).to_have_count(0)


def test_concurrent_page_change_is_not_overwritten(boards: Any, home: Path) -> None:
    page = boards().show("/beliefs")
    page.get_by_role("button", name="Write it").last.click()
    page.get_by_label("How you want things done").fill("Answer in short sentences, always.")
    with api.open_memory(home) as memory:
        memory.call("page-write", name="profile", text="Answer in long sentences, always.")
    page.get_by_role("button", name="Save").click()
    conflict = page.get_by_role("alert")
    expect(conflict).to_contain_text("Somebody changed this page while you wrote")
    expect(conflict.locator("del")).to_have_text("long")
    expect(conflict.locator("ins")).to_have_text("short")
    conflict.get_by_role("button", name="Save mine").click()
    expect(page.get_by_text("Answer in short sentences, always.")).to_be_visible()


def test_project_is_renamed_and_renamed_back(board: Dashboard) -> None:
    page = board.show("/projects/lantern")
    page.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("dialog")).to_contain_text("8 memories")
    page.get_by_label("New name").fill("pond-lamps")
    page.keyboard.press("Enter")
    page.wait_for_url("**/projects/pond-lamps")
    expect(page.get_by_role("heading", level=1)).to_have_text("pond-lamps")
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url("**/projects/lantern")
    expect(page.get_by_role("heading", level=1)).to_have_text("lantern")


def test_merge_shows_its_plan_first(board: Dashboard) -> None:
    page = board.show("/projects/lantern")
    page.get_by_role("button", name="Merge").click()
    dialog = page.get_by_role("dialog")
    merge = dialog.get_by_role("button", name="Merge")
    expect(merge).to_be_disabled()
    dialog.get_by_label("Into").select_option("hivelog")
    expect(dialog).to_contain_text("name lantern")
    merge.click()
    page.wait_for_url("**/projects/hivelog")
    expect(page.get_by_text("lantern is now part of hivelog")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text=re.compile("^lantern$"))).to_be_visible()


def test_a_dependency_is_added_and_removed(board: Dashboard) -> None:
    page = board.show("/projects/hivelog")
    page.get_by_label("Add a project").select_option("lantern")
    expect(page.get_by_role("complementary").get_by_role("link", name="lantern")).to_be_visible()
    page.get_by_role("button", name="Remove lantern").click()
    expect(page.get_by_role("complementary").get_by_role("link", name="lantern")).to_have_count(0)


def test_newly_stored_memory_appears_live(board: Dashboard, home: Path) -> None:
    page = board.show("/projects/lantern")
    nacre("store", "Lamps are switched off at 23:00.", "--project", "lantern", home=home)
    expect(page.get_by_role("link", name="Lamps are switched off at 23:00")).to_be_visible()


@pytest.mark.parametrize(
    "options", [{}, {"color_scheme": "dark"}, {"viewport": PHONE}, {"locale": "zh-CN"}]
)
def test_project_pages_have_no_accessibility_violations(
    boards: Any, options: dict[str, Any]
) -> None:
    board = boards(**options)
    for address in ("/projects", "/projects/hivelog", "/beliefs"):
        page = board.show(address)
        assert board.violations() == []
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    assert board.problems == []
