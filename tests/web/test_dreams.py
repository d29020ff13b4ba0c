"""The Dreams page shows the plan, applies it, lists earlier runs and undoes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.driving import PHONE, Dashboard, nacre
from tests.web.test_review import call

pytestmark = pytest.mark.web

TWICE = ("The print shop wants PDF/X-4", "Only swarm alerts may wake people")


def count_memories(home: Path, words: str) -> int:
    return len(
        [
            memory
            for memory in call(home, "list", limit=500).memories
            if memory.content.startswith(words)
        ]
    )


def test_selected_dream_steps_are_applied_and_undone(board: Dashboard, home: Path) -> None:
    page = board.show("/dreams")
    plan = page.locator(".section", has_text="Repeated")
    expect(plan).to_contain_text("2 memories end")
    plan.get_by_role("checkbox", name=TWICE[1]).uncheck()
    expect(plan).to_contain_text("1 memory ends")
    page.get_by_role("button", name="Do 1 step").click()
    expect(page.locator(".toast", has_text="1 memory ended")).to_be_visible()
    assert [count_memories(home, words) for words in TWICE] == [1, 2]
    past = page.locator(".dream-past > li")
    expect(past).to_have_count(1)
    past.locator("summary").click()
    expect(past.locator(".dream-differences")).to_contain_text("retired")
    past.get_by_role("button", name="Undo").click()
    page.get_by_role("dialog").get_by_role("button", name="Undo").click()
    expect(past.get_by_text("Undone")).to_be_visible()
    assert [count_memories(home, words) for words in TWICE] == [2, 2]


def test_project_pages_are_planned_without_a_writer(board: Dashboard, home: Path) -> None:
    page = board.show("/dreams")
    page.get_by_role("button", name="+ pages").click()
    page.keyboard.press("p")
    expect(page.locator(".dream-changes").last).to_contain_text("Recent activity")
    page.get_by_role("button", name="Do 4 steps").click()
    expect(page.locator(".dream-past > li")).to_have_count(1)
    assert "Recent activity" in (home / "vault" / "projects" / "hivelog" / "project.md").read_text(
        "utf-8"
    )


def test_a_dream_in_a_terminal_is_listed_here(board: Dashboard, home: Path) -> None:
    page = board.show("/dreams")
    expect(page.get_by_text("No dream yet")).to_be_visible()
    nacre("dream", "--yes", home=home)
    nacre("dream", "--yes", home=home)
    expect(page.locator(".dream-past > li")).to_have_count(1)


def test_dreams_page_fits_a_phone_in_dark_mode(boards: Callable[..., Dashboard]) -> None:
    board = boards(viewport=PHONE, color_scheme="dark")
    page = board.show("/dreams")
    expect(page.locator(".dream-group")).to_be_visible()
    assert not page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
    assert board.violations() == []
