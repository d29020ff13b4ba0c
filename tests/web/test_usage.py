"""Usage: what models cost, what was recalled, how memories grow and age, and whether they help."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

import nacre as api
from nacre.values.models import Call, Tokens
from tests.web.driving import PHONE, Dashboard, nacre

pytestmark = pytest.mark.web


@pytest.fixture
def spent(home: Path) -> None:
    """Two tasks that models did yesterday and today."""
    now = datetime.now(UTC)
    with api.open_memory(home) as memory:
        for number, task in enumerate(("extraction", "dedup", "extraction")):
            at = now - timedelta(days=number % 2)
            used = Call(
                f"call-{number}",
                at,
                at.date(),
                task,
                "openai:x",
                True,
                Tokens(12_000, 800),
                40_000,
                outcome="done",
            )
            memory._home.spending.add(used)


def test_cost_is_shown_by_task_and_as_a_table(spent: None, board: Dashboard) -> None:
    page = board.show("/usage")
    expect(page.get_by_text("of $1.00")).to_be_visible()
    figure = page.locator("figure.figure").filter(has_text="Cost by task")
    figure.get_by_role("button", name="As a table").click()
    expect(figure.get_by_role("columnheader", name="extraction")).to_be_visible()
    expect(figure.get_by_text("$0.08").first).to_be_visible()


def test_missing_model_calls_are_reported(board: Dashboard) -> None:
    expect(board.show("/usage").get_by_text("No model calls in this period")).to_be_visible()


def test_question_in_a_terminal_is_counted(board: Dashboard, home: Path) -> None:
    page = board.show("/usage")
    nacre("recall", "why did the migration block the gateways?", home=home)
    figure = board.show("/usage").locator("figure.figure").filter(has_text="Questions")
    expect(figure.get_by_text("Answered", exact=True)).to_be_visible()
    expect(page.get_by_text("No questions in this period")).to_have_count(0)


def test_project_shows_its_growth_without_costs(board: Dashboard) -> None:
    page = board.show("/usage")
    page.get_by_label("Project").select_option("lantern")
    expect(page.get_by_role("heading", name="Tokens and money")).to_have_count(0)
    figure = page.locator("figure.figure").filter(has_text="Age of memories")
    figure.get_by_role("button", name="As a table").click()
    counts = figure.locator("td").all_inner_texts()
    assert sum(int(one) for one in counts) == 8


def test_usefulness_links_to_its_setting(board: Dashboard) -> None:
    board.show("/usage").get_by_role("link", name="Set it").click()
    expect(board.page.get_by_label("usefulness.hold_out")).to_be_visible()


@pytest.mark.parametrize(
    "options", [{}, {"color_scheme": "dark"}, {"viewport": PHONE}, {"locale": "zh-CN"}]
)
def test_usage_page_has_no_accessibility_violations(
    spent: None, boards: Callable[..., Dashboard], options: dict[str, object]
) -> None:
    board = boards(**options)
    page = board.show("/usage")
    assert board.violations() == []
    assert page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    assert board.problems == []
