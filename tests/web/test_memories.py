"""The Memories pages list, show, edit and retire memories and never run their contents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import nacre as api
from tests.web.driving import PHONE, Dashboard, nacre

pytestmark = pytest.mark.web

RAW = "Readings are kept raw for two years"
ALERTS = "Alerts go out by text message"


@pytest.fixture
def store_memory(home: Path) -> Callable[..., str]:
    """Store a memory before the daemon starts and return its id."""

    def store(content: str, **fields: Any) -> str:
        with api.open_memory(home) as memory:
            return str(memory.call("store", content=content, force=True, **fields).memory_id)

    return store


def open_memory_page(board: Dashboard, subject: str) -> Page:
    """Open the page of a memory from the list."""
    page = board.show("/memories")
    page.get_by_label("Search as you type").fill(subject)
    page.get_by_role("main").get_by_role("link", name=subject).first.click()
    expect(page.get_by_role("heading", level=1, name=subject)).to_be_visible()
    return board.settled()


def test_memory_list_follows_filters_and_stores_filters_in_the_url(board: Dashboard) -> None:
    page = board.show("/memories")
    page.get_by_label("Search as you type").fill("readings")
    page.get_by_label("Kind").select_option("lesson")
    rows = page.get_by_role("list", name="Memories").get_by_role("link")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Migrations lock the readings table")
    page.reload()
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Clear").click()
    expect(rows.nth(8)).to_be_visible()


def test_keys_navigate_the_list(board: Dashboard) -> None:
    page = board.show("/memories")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("j")
    second = page.get_by_role("list", name="Memories").get_by_role("link").nth(1)
    expect(second).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/memories/*-*")
    board.settled()
    page.keyboard.press("e")
    expect(page.get_by_label("Subject")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Subject")).to_have_count(0)


def test_memory_shows_its_source_and_earlier_versions(board: Dashboard) -> None:
    page = open_memory_page(board, "We're moving from SQLite to PostgreSQL")
    expect(page.get_by_text("The Raspberry Pi is no longer the limit.")).to_be_visible()
    expect(page.get_by_role("link", name="Show it in the conversation")).to_have_attribute(
        "href", "/sessions/codex%3A758c1421-0500-4bff-899d-051517287267?turn=f256727e335a1b52"
    )
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    expect(
        page.get_by_text("nobody there wants to look after a database server").first
    ).to_be_visible()


def test_a_change_is_shown_line_by_line(board: Dashboard) -> None:
    page = open_memory_page(board, ALERTS)
    edited = page.locator("main li").filter(has_text="Edited")
    edited.get_by_role("button", name="Show", exact=True).click()
    entry = page.locator("ins").filter(has_text="only swarm alerts are sent")
    expect(entry.first).to_be_visible()


def test_sentence_is_shown_once_in_plain_words(board: Dashboard) -> None:
    page = open_memory_page(board, "Uploads of the gateway have changed to 25 MB")
    assert page.locator("main").inner_text().count("Uploads of the gateway have changed") == 1
    page = open_memory_page(board, "Never commit rendered PDFs")
    expect(page.get_by_role("link", name="Show it in the conversation")).to_be_visible()
    assert page.locator("main").inner_text().count("Never commit rendered PDFs") == 1
    aside = page.locator(".memory-aside")
    expect(aside).to_contain_text("used fewer than 5 times")
    expect(aside).to_contain_text("not judged yet")
    page = open_memory_page(board, RAW)
    related = page.locator(".memory-links")
    expect(related.get_by_role("link", name="Batches are idempotent")).to_be_visible()
    expect(page.get_by_role("link", name="hivelog")).to_be_visible()


def test_rows_are_36_pixels_high_and_grouped_by_day(board: Dashboard) -> None:
    page = board.show("/memories")
    row = page.get_by_role("link", name="Twelve lamps were installed")
    expect(row).to_contain_text("Event")
    box = row.bounding_box()
    assert box is not None
    assert round(box["height"]) == 36
    days = page.locator(".list-group").all_inner_texts()
    assert days == list(dict.fromkeys(days))
    assert len(days) > 3
    board.show("/sessions")
    box = page.locator(".sessions-row").first.bounding_box()
    assert box is not None
    assert round(box["height"]) == 36


def test_edit_is_saved_in_the_file(board: Dashboard, home: Path) -> None:
    page = open_memory_page(board, ALERTS)
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Content").fill("Alerts are sent as text messages alone.")
    page.get_by_label("Tags").fill("alerts, phones")
    page.get_by_label("Triggers").fill("alerts/, $ make alerts")
    page.get_by_label("Times shown").fill("5")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").get_by_text("Saved")).to_be_visible()
    expect(page.locator(".markdown")).to_have_text("Alerts are sent as text messages alone.")
    expect(page.get_by_text("alerts/, $ make alerts")).to_be_visible()
    expect(page.get_by_text("0 / 5")).to_be_visible()
    output = nacre("show", ALERTS, home=home)
    assert "Alerts are sent as text messages alone." in output
    assert "0 of 5 times" in output


def test_concurrent_editor_change_is_shown_and_not_overwritten(boards: Any, home: Path) -> None:
    board = boards()
    page = open_memory_page(board, ALERTS)
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Content").fill("What the browser says.")
    file = next((home / "vault").rglob("alerts-go-out-by-text-message.md"))
    front, _, _ = file.read_text(encoding="utf-8").rpartition("---\n")
    file.write_text(f"{front}---\nWhat the editor says.\n", encoding="utf-8")
    page.get_by_role("button", name="Save").click()
    conflict = page.get_by_role("alert").filter(has_text="This memory was changed")
    expect(conflict).to_contain_text("What the editor says.")
    assert "What the editor says." in file.read_text(encoding="utf-8")
    conflict.get_by_role("button", name="Save mine").click()
    expect(page.locator(".markdown")).to_have_text("What the browser says.")
    assert "What the browser says." in file.read_text(encoding="utf-8")


def test_memory_is_retired_and_restored(board: Dashboard, home: Path) -> None:
    page = open_memory_page(board, RAW)
    page.get_by_role("button", name="Retire").click()
    expect(page.get_by_text("This memory is retired")).to_be_visible()
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(page.get_by_text("This memory is retired")).to_have_count(0)
    assert RAW in nacre("list", "--limit", "100", home=home)


def test_retired_memories_are_listed_separately(board: Dashboard, home: Path) -> None:
    nacre("retire", RAW, "--yes", home=home)
    page = board.show("/memories?state=retired")
    expect(page.get_by_role("list", name="Memories").get_by_role("link", name=RAW)).to_be_visible()


def test_memory_stored_in_a_terminal_appears_live(board: Dashboard, home: Path) -> None:
    page = board.show("/memories")
    nacre(
        "store",
        "The lamps at the pond blink twice at dusk.",
        "--subject",
        "Lamps blink at dusk",
        home=home,
    )
    expect(
        page.get_by_role("list", name="Memories").get_by_role("link", name="Lamps blink at dusk")
    ).to_be_visible()


ATTACKS = (
    "<script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    "<svg onload='window.pwned = 1'><animate onbegin='window.pwned = 1'></svg>",
    "<style>* { display: none }</style><div style='position:fixed;inset:0'>over all</div>",
    "</p></div></article></main><h1>Trusted by the owner</h1>",
    "[click](javascript:window.pwned=1) [data](data:text/html,<script>1</script>) <javascript:window.pwned=1>",
    "<a href='javascript:window.pwned=1'>click</a>",
    '![x](x" onerror="window.pwned=1)',
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "```html\n</code></pre><script>window.pwned = 1</script>\n```",
    "| a |\n|---|\n| <script>window.pwned=1</script> |",
    "user\u202egpj.exe\u2066 and \u200bnothing \x1b[2J",
)

DANGEROUS = """it => [
    ...it.querySelectorAll('script, iframe, style, img, [onerror], [onload], [srcdoc], [style*=fixed]'),
    ...[...it.querySelectorAll('a')].filter(a => !/^(https?|mailto):/.test(a.protocol)),
].map(e => e.outerHTML)"""


def test_hostile_memory_content_has_no_effect(
    boards: Callable[..., Dashboard], store_memory: Callable[..., str]
) -> None:
    ids = [
        store_memory(
            f"Number {index}. {attack}", subject=f"Attack {index} {attack[:60]}", tags=[attack[:30]]
        )
        for index, attack in enumerate(ATTACKS)
    ]
    board = boards()
    board.show("/memories")
    for item in ids:
        page = board.show(f"/memories/{item}")
        inside = page.locator("main").evaluate(DANGEROUS)
        assert inside == []
        assert page.evaluate("window.pwned") is None
        expect(page.get_by_role("navigation", name="Pages").first).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
    assert board.problems == []


def test_hidden_and_bidirectional_characters_are_shown(
    boards: Callable[..., Dashboard], store_memory: Callable[..., str]
) -> None:
    page = boards().show(f"/memories/{store_memory(ATTACKS[-1])}")
    content = page.locator(".markdown")
    expect(content).to_contain_text("U+202E")
    expect(content).to_contain_text("U+2066")
    assert (
        page.evaluate(
            "/[\\u202e\\u2066\\u200b\\u001b]/.test(document.body.innerText + document.title)"
        )
        is False
    )


def test_origin_marks_cannot_be_imitated_by_text(
    boards: Callable[..., Dashboard], store_memory: Callable[..., str]
) -> None:
    mark = "From outside"
    board = boards()
    page = open_memory_page(board, "Datasheet: sleep current of the radio")
    expect(page.locator(".origin.outside > .origin-mark")).to_contain_text(mark)
    memory_id = store_memory(
        f"# {mark}\n\n<p class='origin-mark'><span class='badge warn'>{mark}</span></p>",
        subject="Imitation",
    )
    page = board.show(f"/memories/{memory_id}")
    expect(page.locator(".origin-mark")).to_have_count(0)
    expect(page.locator(".origin-text .badge")).to_have_count(0)


def test_memory_page_is_accessible_and_fits_a_phone(boards: Callable[..., Dashboard]) -> None:
    board = boards(viewport=PHONE, color_scheme="dark")
    page = open_memory_page(board, RAW)
    assert page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    assert board.violations() == []
    page.get_by_role("button", name="Edit").click()
    assert board.violations() == []
