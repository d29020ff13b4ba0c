"""The Beliefs page shows statements about the owner or a project with quotes, and accepts answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

import nacre as api
from tests.web.driving import Dashboard

pytestmark = pytest.mark.web

WEIGHTS = "Weights are integers in grams, never floats"


def belief_subjects(home: Path, project: str | None = "hivelog") -> list[str]:
    with api.open_memory(home) as memory:
        return [
            item.memory.subject
            for item in memory.call("beliefs", project=project, limit=100).beliefs
        ]


def test_statement_has_its_quote_and_is_denied_and_restored(board: Dashboard, home: Path) -> None:
    page = board.show("/projects/hivelog")
    statement = page.locator(".belief").filter(has_text=WEIGHTS)
    expect(statement.locator("q")).to_contain_text("rounding to kilograms hides the slow losses")
    expect(statement).to_contain_text("since Oct 5")
    statement.get_by_role("button", name=f"No: {WEIGHTS}").click()
    expect(statement).to_have_count(0)
    assert WEIGHTS not in belief_subjects(home)
    page.get_by_role("button", name="Undo").click()
    expect(statement).to_be_visible()
    assert WEIGHTS in belief_subjects(home)


def test_last_day_is_set_and_past_statements_disappear(board: Dashboard, home: Path) -> None:
    page = board.show("/projects/hivelog")
    statement = page.locator(".belief").filter(has_text=WEIGHTS)
    today = datetime.now(UTC).date()
    for last, remains in ((today, 1), (today - timedelta(days=1), 0)):
        statement.get_by_role("button", name="Until…").click()
        page.get_by_role("dialog").get_by_label("Last day").fill(last.isoformat())
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(statement).to_have_count(remains)
        assert (WEIGHTS in belief_subjects(home)) == bool(remains)


def test_replaced_statements_are_shown_on_demand(board: Dashboard) -> None:
    page = board.show("/projects/hivelog")
    expect(page.locator(".belief").first).to_be_visible()
    expect(page.locator(".belief del")).to_have_count(0)
    page.get_by_role("button", name="With replaced").click()
    newer = page.locator(".belief").filter(has_text="We're moving from SQLite to PostgreSQL")
    expect(newer.locator("del")).to_contain_text("Let's use SQLite")


def test_statements_about_the_owner_leave_out_projects(board: Dashboard, home: Path) -> None:
    page = board.show("/beliefs")
    expect(page.locator(".belief").first).to_be_visible()
    texts = page.locator(".belief-words > a").all_inner_texts()
    assert sorted(texts) == sorted(belief_subjects(home, None))
    assert board.violations() == []
    page.get_by_label("About", exact=True).select_option("hivelog")
    page.wait_for_url("**/projects/hivelog")
