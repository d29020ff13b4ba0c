"""The Review page handles pending items by single keys, with undo and concurrent edits."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

import nacre as api
from tests.web.driving import PHONE, Dashboard, nacre

pytestmark = pytest.mark.web

PROPOSED = "Lyrics are hyphenated by dictionary"
HOSTILE = "<img src=x onerror=\"document.title='owned'\"> </script> \u202eevil\u202c [go](javascript:alert(1))"

# The page handles the daemon's answer some time after it arrives; six hundred frames are ten seconds.
UNTIL_NOTHING_ASKS_TO_STAY = """async () => {
    const mayLeave = () => dispatchEvent(new Event("beforeunload", { cancelable: true }));
    for (let frame = 0; frame < 600 && !mayLeave(); frame++) await new Promise(requestAnimationFrame);
}"""

WAITING = 5
"""The pending items in the story's home: two conflicts, a doubt and candidates."""
OLDER, NEWER = "Uploads of the gateway may be 10 MB", "Uploads of the gateway have changed to 25 MB"


def call(home: Path, operation: str, **request: Any) -> Any:
    """Run an operation in the home as its owner, in parallel to the daemon."""
    with api.open_memory(home) as memory:
        return memory.call(operation, **request)


def propose(home: Path, *contents: str) -> None:
    with api.open_memory(home) as memory:
        for content in contents:
            memory.call("store", content=content, speaker="agent", project="lantern", force=True)


def skip_to(page: Page, words: str) -> None:
    """Press the key for skipping until the words are shown."""
    card = page.locator(".review-card")
    for _ in range(20):
        expect(card).to_be_visible()
        if words in card.inner_text():
            return
        text = card.inner_text()
        page.keyboard.press("s")
        expect(card).not_to_have_text(text, use_inner_text=True)
    raise AssertionError(f"{words!r} does not wait")


def pending_count(page: Page) -> Any:
    return page.locator(".review-counts b")


def active(home: Path) -> set[str]:
    return {memory.content for memory in call(home, "list", limit=500).memories}


def test_conflict_shows_both_memories_with_differences(board: Dashboard) -> None:
    page = board.show("/review")
    skip_to(page, "10 MB")
    two = page.locator(".review-two section")
    expect(two.first.locator("del").last).to_have_text("may be 10 ")
    expect(two.last.locator("ins").last).to_have_text("have changed to 25 ")
    expect(page.locator(".review-detail")).to_contain_text("10 MB → 25 MB")
    assert board.violations() == []


@pytest.mark.parametrize(
    ("key", "remaining", "removed"),
    [
        ("o", {OLDER}, {NEWER}),
        ("d", {NEWER}, {OLDER}),
        ("k", {OLDER, NEWER}, set()),
        ("m", {f"{NEWER} {OLDER}"}, {OLDER, NEWER}),
    ],
)
def test_key_settles_a_conflict_and_another_key_undoes(
    board: Dashboard, home: Path, key: str, remaining: set[str], removed: set[str]
) -> None:
    page = board.show("/review")
    skip_to(page, "10 MB")
    page.keyboard.press(key)
    expect(page.get_by_text("1 decided")).to_be_visible()
    expect(page.locator(".nav-count").first).to_have_text(str(WAITING - 1))
    assert remaining <= active(home)
    assert not removed & active(home)
    page.keyboard.press("u")
    expect(page.locator(".review-card")).to_contain_text("10 MB")
    expect(page.locator(".nav-count").first).to_have_text(str(WAITING))
    assert {OLDER, NEWER} <= active(home)


def test_kept_candidate_is_pending_again_after_undo(board: Dashboard, home: Path) -> None:
    page = board.show("/review")
    words = "The root cause was the commit hash"
    skip_to(page, words)
    expect(page.locator(".said.evidence")).to_contain_text("root cause was the commit hash")
    page.keyboard.press("k")
    expect(page.get_by_text("1 decided")).to_be_visible()
    expect(page.locator(".review-card")).not_to_contain_text(words)
    page.keyboard.press("u")
    expect(page.locator(".review-card")).to_contain_text(words)
    page.keyboard.press("k")
    expect(page.get_by_text("1 decided")).to_be_visible()
    page.get_by_role("link", name="Memories").click()
    page.get_by_role("searchbox").fill("commit hash LilyPond")
    expect(page.get_by_role("link", name="The root cause was the commit hash")).to_be_visible()


def test_leaving_during_a_pending_decision_asks_for_confirmation(board: Dashboard) -> None:
    page = board.show("/review")
    routes: list[Route] = []
    dialogs: list[str] = []
    page.route("**/api/v1/review-drop", lambda route: routes.append(route))
    page.on("dialog", lambda dialog: (dialogs.append(dialog.type), dialog.dismiss()))
    skip_to(page, "Use plain SQL files")
    page.keyboard.press("d")
    expect(page.get_by_text("1 decided")).to_be_visible()
    with page.expect_event("dialog"):
        page.evaluate("void location.assign('/memories')")
    expect(page.get_by_text("1 decided")).to_be_visible()
    assert dialogs == ["beforeunload"]
    with page.expect_response("**/api/v1/review-drop") as dropped:
        routes[0].continue_()
    assert dropped.value.ok
    page.evaluate(UNTIL_NOTHING_ASKS_TO_STAY)
    page.evaluate("void location.assign('/memories')")
    page.wait_for_url("**/memories")
    assert dialogs == ["beforeunload"]


def test_menu_count_updates_before_the_event_arrives(
    boards: Callable[..., Dashboard],
) -> None:
    """On a busy machine an event may arrive seconds late."""
    board = boards()
    board.page.route("**/api/v1/events*", lambda route: route.abort())
    page = board.show("/review")
    waiting = page.locator("nav .nav-count").first
    before = int(waiting.inner_text())

    page.keyboard.press("k")

    expect(waiting).to_have_text(str(before - 1))
    page.keyboard.press("u")
    expect(waiting).to_have_text(str(before))


def test_dropped_candidate_is_not_proposed_again(board: Dashboard, home: Path) -> None:
    page = board.show("/review")
    total = call(home, "review").total
    skip_to(page, "Use plain SQL files")
    page.keyboard.press("d")
    expect(page.locator(".nav-count").first).to_have_text(str(WAITING - 1))
    assert call(home, "review").total == total - 1


def test_doubted_memory_is_kept_with_edited_text(board: Dashboard, home: Path) -> None:
    page = board.show("/review")
    skip_to(page, PROPOSED[:20])
    page.keyboard.press("e")
    field = page.get_by_role("textbox", name="Text")
    expect(field).to_be_focused()
    field.fill("Hyphens follow the dictionary of 1996.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("1 decided")).to_be_visible()
    memory = call(home, "get", reference=PROPOSED)
    assert memory.content == "Hyphens follow the dictionary of 1996."
    assert not memory.proposed


def test_concurrent_editor_change_is_not_overwritten(
    boards: Callable[..., Dashboard], home: Path
) -> None:
    page = boards().show("/review")
    skip_to(page, PROPOSED[:20])
    page.keyboard.press("e")
    field = page.get_by_role("textbox", name="Text")
    field.fill("My words.")
    file = next((home / "vault").rglob("lyrics-are-hyphenated*.md"))
    file.write_text(file.read_text("utf-8").replace("of 1996", "of 2004"), "utf-8")
    page.keyboard.press("Control+Enter")
    notice = page.get_by_role("alert").filter(has_text="Its file was changed")
    expect(notice).to_contain_text("2004")
    expect(field).to_have_value("My words.")
    assert "of 2004" in file.read_text("utf-8")
    page.get_by_role("button", name="Keep my text").click()
    page.get_by_role("button", name="Keep this text").click()
    expect(page.get_by_text("1 decided")).to_be_visible()
    assert call(home, "get", reference=PROPOSED).content == "My words."


def test_metadata_change_does_not_block_an_edit(
    boards: Callable[..., Dashboard], home: Path
) -> None:
    page = boards().show("/review")
    skip_to(page, PROPOSED[:20])
    with page.expect_response("**/api/v1/look"):
        page.keyboard.press("e")
    page.get_by_role("textbox", name="Text").fill("My words.")
    call(home, "edit", reference=PROPOSED, triggers=["hyphen"])
    page.get_by_role("button", name="Keep this text").click()
    expect(page.get_by_text("1 decided")).to_be_visible()
    memory = call(home, "get", reference=PROPOSED)
    assert (memory.content, memory.triggers) == ("My words.", ("hyphen",))


def test_editor_change_while_the_form_opens_is_not_overwritten(
    boards: Callable[..., Dashboard], home: Path
) -> None:
    page = boards().show("/review")
    skip_to(page, PROPOSED[:20])
    file = next((home / "vault").rglob("lyrics-are-hyphenated*.md"))

    def save_elsewhere(route: Route) -> None:
        file.write_text(file.read_text("utf-8").replace("of 1996", "of 2004"), "utf-8")
        route.continue_()

    page.route("**/api/v1/look", save_elsewhere)
    with page.expect_response("**/api/v1/look"):
        page.keyboard.press("e")
    field = page.get_by_role("textbox", name="Text")
    field.fill("My words.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert").filter(has_text="Its file was changed")).to_contain_text(
        "2004"
    )
    expect(field).to_have_value("My words.")
    assert "of 2004" in file.read_text("utf-8")


def test_doubt_is_merged_into_a_chosen_memory_and_restored(board: Dashboard, home: Path) -> None:
    page = board.show("/review")
    skip_to(page, PROPOSED[:20])
    page.keyboard.press("m")
    page.get_by_role("combobox").fill("page breaks tenor")
    expect(page.get_by_role("option", selected=True)).to_contain_text(
        "Page breaks follow the tenor part"
    )
    expect(page.locator(".merge-result ins")).to_contain_text("dictionary of 1996")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 decided")).to_be_visible()
    expect(page.locator(".nav-count").first).to_have_text(str(WAITING - 1))
    target = call(home, "get", reference="Page breaks follow the tenor part")
    assert "tenor rests" in target.content
    assert "dictionary of 1996" in target.content
    page.keyboard.press("u")
    expect(page.locator(".review-card")).to_contain_text("1996")
    expect(page.locator(".nav-count").first).to_have_text(str(WAITING))
    assert "1996" not in call(home, "get", reference="Page breaks follow the tenor part").content


def test_new_items_do_not_replace_the_current_item(board: Dashboard, home: Path) -> None:
    page = board.show("/review")
    skip_to(page, "Use plain SQL files")
    before = pending_count(page).inner_text()
    nacre("store", "The gate closes at dusk", "--project", "lantern", home=home)
    propose(home, "The pond is 40 cm deep at the lamps")
    expect(pending_count(page)).not_to_have_text(before)
    expect(page.locator(".review-card")).to_contain_text("Use plain SQL files")


def test_list_shows_the_queue_and_accepts_all_items_of_a_kind(board: Dashboard, home: Path) -> None:
    propose(home, *(f"Lamp {lamp} stands {lamp * 7} metres from the gate" for lamp in range(1, 4)))
    page = board.show("/review")
    queue = page.get_by_role("navigation", name="All pending items")
    entries = queue.locator("section > button")
    expect(entries).to_have_count(WAITING + 3)
    entries.filter(has_text="Lamp 2 stands").click()
    expect(page.locator(".review-card")).to_contain_text("Lamp 2 stands 14 metres")
    expect(entries.filter(has_text="Lamp 2 stands")).to_have_attribute("aria-current", "true")
    queue.get_by_role("button", name="Keep all: Memory in doubt").click()
    expect(page.get_by_text("4 kept")).to_be_visible()
    expect(page.locator(".nav-count").first).to_have_text(str(WAITING - 1))
    assert not any(
        memory.proposed for memory in call(home, "list", words="metres from the gate").memories
    )
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(page.locator(".nav-count").first).to_have_text(str(WAITING + 3))


def test_later_statement_that_contradicts_an_item_is_shown_with_it(
    boards: Callable[..., Dashboard], home: Path, tmp_path: Path
) -> None:
    # The daemon must not learn from the statement, because that would retire the item.
    nacre("config", "set", "extraction.enabled", "false", home=home)
    before = datetime.now(UTC) - timedelta(days=2)
    with api.open_memory(home, clock=lambda: before) as memory:
        memory.call(
            "store", content="We take Sapling for the schema.", speaker="agent", project="till"
        )
    message = {"role": "user", "content": "We no longer use Sapling."}
    line = {
        "type": "user",
        "sessionId": "5e55",
        "uuid": "u1",
        "cwd": "/srv/till",
        "message": message,
    }
    line["timestamp"] = f"{before + timedelta(days=1):%Y-%m-%dT%H:%M:%S.000Z}"
    transcript = tmp_path / "projects" / "-srv-till" / "5e55.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text(json.dumps(line) + "\n", encoding="utf-8")
    nacre("ingest", str(tmp_path / "projects"), home=home)
    board = boards()
    page = board.show("/review")
    skip_to(page, "We take Sapling")
    expect(page.locator(".review-later")).to_have_text("Later you said: We no longer use Sapling.")
    assert board.problems == []


def test_finished_queue_shows_skipped_items_again(board: Dashboard) -> None:
    page = board.show("/review")
    for rest in range(WAITING - 1, -1, -1):
        page.keyboard.press("s" if rest else "k")
        expect(pending_count(page)).to_have_text(f"{rest} left")
    expect(page.get_by_text(f"{WAITING - 1} skipped").last).to_be_visible()
    page.get_by_role("button", name="Review them").click()
    expect(pending_count(page)).to_have_text(f"{WAITING - 1} left")


def test_hostile_candidate_text_has_no_effect(board: Dashboard, home: Path) -> None:
    propose(home, HOSTILE)
    page = board.show("/review")
    skip_to(page, "onerror")
    expect(page.locator(".review-card")).to_contain_text("U+202E")
    assert page.locator(".review-card img, .review-card a[href^='javascript']").count() == 0
    assert page.title() == "Review · nacre"


def test_fifty_items_are_decided_by_keys_within_two_minutes(
    board: Dashboard, home: Path, record_property: Callable[[str, object], None]
) -> None:
    propose(home, *(f"Lamp {lamp} stands {lamp * 7} metres from the gate" for lamp in range(1, 51)))
    page = board.show("/review")
    card = page.locator(".review-card")
    many = WAITING + 50
    expect(pending_count(page)).to_have_text(f"{many} left")
    began = time.monotonic()
    for decided in range(50):
        page.keyboard.press("kd"[decided % 2 and decided > 1])
        expect(pending_count(page)).to_have_text(f"{many - 1 - decided} left")
    seconds = time.monotonic() - began
    expect(card).to_be_visible()
    expect(page.locator(".nav-count").first).to_have_text(str(many - 50), timeout=60_000)
    elapsed = time.monotonic() - began
    record_property("ms_a_decision_shown", round(seconds / 50 * 1000))
    record_property("ms_a_decision_done", round(elapsed / 50 * 1000))
    print(f"{seconds / 50 * 1000:.0f} ms shown, {elapsed / 50 * 1000:.0f} ms done, a decision")  # noqa: T201 - measured
    assert call(home, "review").total == many - 50
    assert elapsed < 120


def test_phone_decides_by_buttons(boards: Callable[..., Dashboard]) -> None:
    board = boards(viewport=PHONE, has_touch=True)
    page = board.show("/review")
    page.get_by_role("button", name="Drop older").tap()
    expect(pending_count(page)).to_have_text(f"{WAITING - 1} left")
    page.get_by_role("button", name="Undo").tap()
    expect(pending_count(page)).to_have_text(f"{WAITING} left")
    assert board.violations() == []


def test_review_page_is_translated_to_chinese(boards: Callable[..., Dashboard]) -> None:
    page = boards(locale="zh-CN").show("/review")
    expect(page.get_by_role("button", name="两者都成立")).to_be_visible()
    expect(pending_count(page)).to_have_text(f"剩余 {WAITING} 项")
