"""The Ask page shows the answers of recall, their explanations and an agent's context."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.driving import Dashboard
from tests.web.test_review import call

pytestmark = pytest.mark.web

QUESTION = "how long are readings kept"


def test_question_is_answered_while_typing_with_reasons(board: Dashboard, home: Path) -> None:
    page = board.show("/ask")
    field = page.get_by_role("searchbox", name="Ask a question or search words")
    expect(field).to_be_focused()
    page.keyboard.type(QUESTION)
    first = page.locator(".ask-hit").first
    expect(first.get_by_role("link", name="Readings are kept raw for two years")).to_be_visible()
    expect(page.get_by_text("lexical: searched")).to_be_visible()
    first.get_by_text("Why it ranks here").click()
    expect(first.get_by_role("row", name="× recency")).to_contain_text("time since")
    expect(first.get_by_role("row", name=re.compile(r"^relevance \d"))).to_be_visible()
    assert page.url.endswith("/ask?q=how+long+are+readings+kept")


def test_every_score_component_is_explained(board: Dashboard) -> None:
    for question in ("readings", "alert", "search index", "pinyin"):
        page = board.show(f"/ask?q={question.replace(' ', '+')}")
        expect(page.locator(".ask-hit").first).to_be_visible()
        cells = page.locator(".ask-why tr td:last-child").all_text_contents()
        assert cells
        assert all(cells)


def test_dashboard_question_leaves_no_trace(board: Dashboard, home: Path) -> None:
    def recorded_usage() -> tuple[int, int]:
        used = call(
            home, "look", reference="Readings are kept raw for two years"
        ).usage.recall_count
        call(home, "today")  # moves the recorded questions into the database
        with closing(sqlite3.connect(home / "nacre.db")) as database:
            (count,) = database.execute("SELECT count(*) FROM questions").fetchone()
        return count, used

    before = recorded_usage()
    page = board.show(f"/ask?q={QUESTION.replace(' ', '+')}")
    expect(page.locator(".ask-hit").first).to_be_visible()
    assert recorded_usage() == before


def test_candidate_answers_and_leads_to_its_review(board: Dashboard) -> None:
    page = board.show("/ask?q=plain+SQL+files+in+migrations")
    hit = page.locator(".ask-hit", has_text="Use plain SQL files").first
    expect(hit.get_by_text("Pending candidate")).to_be_visible()
    hit.get_by_role("link").first.click()
    expect(page.locator(".review-card")).to_contain_text("Use plain SQL files")


def test_answer_can_be_pinned(board: Dashboard, home: Path) -> None:
    question = "which search does choirbook use"
    page = board.show(f"/ask?q={question.replace(' ', '+')}")
    hit = page.locator(".ask-hit", has_text="Pagefind").first
    hit.get_by_role("button", name="Pin").click()
    expect(page.get_by_text("Pinned. nacre warns")).to_be_visible()
    (pin,) = call(home, "check")
    assert (pin.question, pin.holds) == (question, True)
    assert "Pagefind" in pin.answer


def test_filters_narrow_the_results(board: Dashboard) -> None:
    page = board.show("/ask?q=search")
    expect(page.locator(".ask-hit").first).to_be_visible()
    expect(page.get_by_label("Project").first).to_be_hidden()
    page.get_by_text("Filters", exact=True).click()
    page.get_by_label("Project").first.select_option("choirbook")
    expect(page.locator(".ask-hit .memory-facts").filter(has_text="hivelog")).to_have_count(0)
    expect(page.locator(".ask-hit").first).to_be_visible()
    assert "project=choirbook" in page.url
    page.get_by_label("Kind").select_option("todo")
    expect(page.get_by_text("0 memories")).to_be_visible()
    page.get_by_role("button", name="To do").click()
    expect(page.locator(".ask-hit").first).to_be_visible()
    assert page.url.endswith("/ask?q=search&project=choirbook")


def test_inferred_time_is_a_chip_that_can_be_removed(board: Dashboard) -> None:
    page = board.show("/ask?q=readings+last+month")
    chip = page.get_by_role("button", name="“last month”")
    chip.click()
    expect(chip).to_have_count(0)
    page.get_by_role("button", name="Time ignored").click()
    expect(chip).to_be_visible()


def test_turns_of_conversations_are_found(board: Dashboard) -> None:
    page = board.show("/ask?q=weights+in+grams")
    expect(page.locator(".ask-said").first).to_contain_text("grams")


def test_page_shows_agent_context_at_start_and_prompt(board: Dashboard) -> None:
    page = board.show("/ask")
    page.get_by_text("Context for agents").click()
    form = page.locator(".given-form")
    form.get_by_label("Project").select_option("hivelog")
    expect(form.get_by_label("Folder the agent works in")).to_have_value("/home/me/hivelog")
    context = page.locator(".given")
    expect(context).to_contain_text("Weight charts always begin at zero")
    expect(context.locator(".given-head b")).to_contain_text("tokens")
    context.get_by_role("button", name="Exact text").click()
    expect(context.locator("pre")).to_contain_text("<nacre-context>")
    page.get_by_role("button", name="With a prompt").click()
    page.get_by_role("textbox", name="What you type to the agent").fill(
        "add a column to the readings table"
    )
    expect(context).to_contain_text("Migrations lock the readings table")
    form.get_by_label("Folder the agent works in").fill("")
    expect(page.get_by_text("Enter a folder")).to_be_visible()


def test_empty_result_suggests_remedies(board: Dashboard) -> None:
    page = board.show("/ask?q=zyxwvut")
    expect(page.locator("main").get_by_text("Nothing matches")).to_be_visible()
