"""What stands around every page: navigation, search, keys, looks, who may, and a daemon that goes and comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.driving import PAGES, PHONE, Dashboard, nacre

pytestmark = pytest.mark.web


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_barrier(boards: Callable[..., Dashboard], scheme: str) -> None:
    board = boards(color_scheme=scheme)
    found = {}
    for path in PAGES:
        board.show(path)
        found[path] = board.violations()
    assert {path: one for path, one in found.items() if one} == {}


def test_no_page_is_wider_than_a_phone(boards: Callable[..., Dashboard]) -> None:
    board = boards(viewport=PHONE)
    wide = [
        path
        for path in PAGES
        if board.show(path).evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    ]
    assert wide == []


def test_a_phone_reaches_every_page(boards: Callable[..., Dashboard]) -> None:
    page = boards(viewport=PHONE).page
    page.get_by_role("button", name="More").click()
    page.get_by_role("dialog").get_by_role("link", name="Settings").click()
    expect(page.get_by_role("heading", level=1, name="Settings")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_page_asks_for_each_thing_once(board: Dashboard) -> None:
    asked: list[str] = []
    board.page.route("**/api/v1/events*", lambda _: None)  # no event is heard: each makes pages read again
    board.page.on("request", lambda request: asked.append(f"{request.url} {request.post_data}"))
    for path in PAGES:
        board.page.goto("about:blank")
        asked.clear()
        board.show(path)
        operations = [one for one in asked if "/api/v1/" in one]
        assert sorted(set(operations)) == sorted(operations), path


def test_the_sessions_page_offers_every_tool(board: Dashboard) -> None:
    page = board.show("/sessions")
    offered = page.get_by_label("Tool", exact=True).locator("option").all_inner_texts()
    assert offered[0] == "All tools"
    shown = {one.split(" · ")[0] for one in page.locator(".sessions-facts").all_inner_texts()}
    assert shown
    assert shown <= set(offered[1:])


def test_search_finds_memories_as_one_types_by_keys_alone(board: Dashboard) -> None:
    page = board.page
    page.keyboard.press("/")
    page.keyboard.type("pinyin coll")
    expect(page.get_by_role("option", name="Sorting by pinyin needs a collation")).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url("**/memories/*-*")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_keys_go_to_pages_and_a_list_says_which(board: Dashboard) -> None:
    page = board.page
    page.keyboard.press("g")
    page.keyboard.press("m")
    page.wait_for_url("**/memories")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog").get_by_text("Show the keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_keys_do_nothing_while_one_types(board: Dashboard) -> None:
    page = board.page
    page.keyboard.press("/")
    page.keyboard.type("g m?")
    expect(page.get_by_role("combobox")).to_have_value("g m?")
    assert page.url == f"{board.base}/"


def test_the_search_has_the_next_key_however_fast_one_types(board: Dashboard) -> None:
    role = board.page.evaluate(
        """async () => {
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true }));
            const channel = new MessageChannel();
            await new Promise((next) => { channel.port1.onmessage = next; channel.port2.postMessage(0); });
            return document.activeElement.getAttribute("role");
        }"""
    )
    assert role == "combobox"


def test_the_look_is_kept(board: Dashboard) -> None:
    page = board.page
    page.get_by_role("button", name="Dark").click()
    page.get_by_role("button", name="中文").click()
    board.show("/memories")
    expect(page.get_by_role("heading", level=1, name="记忆")).to_be_visible()
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert ground == "rgb(22, 20, 18)"
    assert page.evaluate("document.documentElement.lang") == "zh-Hans"


def test_a_daemon_that_ends_is_told_and_one_that_comes_back_is_found(
    boards: Callable[..., Dashboard], home: Path
) -> None:
    board = boards()
    nacre("serve", "stop", home=home)
    banner = board.page.get_by_role("alert").filter(has_text="nacre has stopped")
    expect(banner).to_be_visible(timeout=20_000)
    board.page.get_by_role("navigation").get_by_role("link", name="Conflicts").click()
    expect(board.page.get_by_text("It opens as soon as nacre answers again")).to_be_visible()
    nacre("open", "--print", home=home)
    expect(banner).to_have_count(0, timeout=30_000)
    expect(board.page.get_by_role("heading", name="Conflicts")).to_be_visible()


def test_a_browser_without_a_cookie_is_told_how_to_get_one(boards: Callable[..., Dashboard]) -> None:
    board = boards()
    board.context.clear_cookies()
    board.page.reload()
    expect(board.page.get_by_text("nacre open", exact=True)).to_be_visible()


def test_an_address_that_there_is_not_says_so(board: Dashboard) -> None:
    board.page.goto(f"{board.base}/nothing/here")
    expect(board.page.get_by_text("There is no such page")).to_be_visible()
