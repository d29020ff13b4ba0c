"""The frame of every page: navigation, search, keys, themes, access and a restarting daemon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.driving import PAGES, PHONE, Dashboard, nacre

pytestmark = pytest.mark.web


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_passes_accessibility_checks(
    boards: Callable[..., Dashboard], scheme: str
) -> None:
    board = boards(color_scheme=scheme)
    results = {}
    for path in PAGES:
        board.show(path)
        results[path] = board.violations()
    assert {path: item for path, item in results.items() if item} == {}


def test_every_page_fits_a_phone(boards: Callable[..., Dashboard]) -> None:
    board = boards(viewport=PHONE)
    wide = [
        path
        for path in PAGES
        if board.show(path).evaluate(
            "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )
    ]
    assert wide == []


def test_phone_reaches_every_page(boards: Callable[..., Dashboard]) -> None:
    page = boards(viewport=PHONE).page
    page.get_by_role("button", name="More").click()
    page.get_by_role("dialog").get_by_role("link", name="Settings").click()
    expect(page.get_by_role("heading", level=1, name="Settings")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_page_requests_each_resource_once(board: Dashboard) -> None:
    requests: list[str] = []
    board.page.route(
        "**/api/v1/events*", lambda _: None
    )  # blocks events, each of which makes pages reload their data
    board.page.on("request", lambda request: requests.append(f"{request.url} {request.post_data}"))
    for path in PAGES:
        board.page.goto("about:blank")
        requests.clear()
        board.show(path)
        operations = [item for item in requests if "/api/v1/" in item]
        assert sorted(set(operations)) == sorted(operations), path


def test_the_sessions_page_offers_every_tool(board: Dashboard) -> None:
    page = board.show("/sessions")
    offered = page.get_by_label("Tool", exact=True).locator("option").all_inner_texts()
    assert offered[0] == "All tools"
    card_text = {text.split(" · ")[0] for text in page.locator(".sessions-facts").all_inner_texts()}
    assert card_text
    assert card_text <= set(offered[1:])


def test_search_finds_memories_while_typing_by_keyboard(board: Dashboard) -> None:
    page = board.page
    page.keyboard.press("/")
    page.keyboard.type("pinyin coll")
    expect(page.get_by_role("option", name="Sorting by pinyin needs a collation")).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url("**/memories/*-*")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_search_finds_sessions_and_commands_of_the_page(board: Dashboard) -> None:
    page = board.show("/review")
    page.keyboard.press("/")
    page.keyboard.type("skip")
    page.get_by_role("option", name="skip it").click()
    expect(page.get_by_text("1 skipped")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("swarm alerts")
    page.get_by_role("option", name="1500 g within an hour").first.click()
    page.wait_for_url("**/sessions/*turn=*")


def test_writer_pages_are_collapsed_without_a_writer(board: Dashboard, home: Path) -> None:
    links = board.page.get_by_role("navigation", name="Pages").first
    expect(links.get_by_role("link", name="Dreams")).to_be_hidden()
    links.get_by_text("Needs a writer").click()
    links.get_by_role("link", name="Dreams").click()
    expect(board.page.get_by_role("heading", level=1, name="Dreams")).to_be_visible()
    nacre("config", "set", "models.extraction", "ollama:qwen3", home=home)
    board.show("/memories")
    expect(links.get_by_role("link", name="Dreams")).to_be_visible()
    expect(links.get_by_text("Needs a writer")).to_have_count(0)


def test_shortcut_keys_open_pages_and_show_help(board: Dashboard) -> None:
    page = board.page
    page.keyboard.press("g")
    page.keyboard.press("m")
    page.wait_for_url("**/memories")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog").get_by_text("Show the keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_shortcut_keys_are_inactive_while_typing(board: Dashboard) -> None:
    page = board.page
    page.keyboard.press("/")
    page.keyboard.type("g m?")
    expect(page.get_by_role("combobox")).to_have_value("g m?")
    assert page.url == f"{board.base}/"


def test_search_receives_keys_typed_immediately_after_opening(board: Dashboard) -> None:
    role = board.page.evaluate(
        """async () => {
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true }));
            const channel = new MessageChannel();
            await new Promise((next) => { channel.port1.onmessage = next; channel.port2.postMessage(0); });
            return document.activeElement.getAttribute("role");
        }"""
    )
    assert role == "combobox"


def test_colour_scheme_choice_is_kept(board: Dashboard) -> None:
    page = board.page
    page.get_by_role("button", name="Dark").click()
    page.get_by_role("button", name="中文", exact=True).click()
    board.show("/memories")
    expect(page.get_by_role("heading", level=1, name="记忆")).to_be_visible()
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert ground == "rgb(22, 20, 18)"
    assert page.evaluate("document.documentElement.lang") == "zh-Hans"


def test_stopped_daemon_is_reported_and_reconnected(
    boards: Callable[..., Dashboard], home: Path
) -> None:
    board = boards()
    nacre("serve", "stop", home=home)
    banner = board.page.get_by_role("alert").filter(has_text="nacre has stopped")
    expect(banner).to_be_visible(timeout=20_000)
    board.page.get_by_role("navigation").get_by_role("link", name="Review").click()
    expect(board.page.get_by_text("It opens as soon as nacre answers again")).to_be_visible()
    nacre("open", "--print", home=home)
    expect(banner).to_have_count(0, timeout=30_000)
    expect(board.page.get_by_role("heading", name="Review", exact=True)).to_be_visible()


def test_browser_without_a_cookie_is_shown_the_open_command(
    boards: Callable[..., Dashboard],
) -> None:
    board = boards()
    board.context.clear_cookies()
    board.page.reload()
    expect(board.page.get_by_text("nacre open", exact=True)).to_be_visible()


def test_unknown_address_shows_page_not_found(board: Dashboard) -> None:
    board.page.goto(f"{board.base}/nothing/here")
    expect(board.page.get_by_text("Page not found")).to_be_visible()


def test_eight_tabs_share_one_stream_after_the_leader_closes(board: Dashboard, home: Path) -> None:
    streams: list[str] = []
    board.context.on(
        "request",
        lambda request: streams.append(request.url) if "/api/v1/events" in request.url else None,
    )
    tabs = [board.show("/memories"), *(board.context.new_page() for _ in range(7))]
    for tab in tabs[1:]:
        tab.goto(f"{board.base}/memories")
        expect(tab.get_by_role("list", name="Memories")).to_be_visible()
    assert len(streams) == 1
    nacre("store", "The lamps blink twice at dusk.", "--subject", "Lamps blink", home=home)
    expect(tabs[7].get_by_role("link", name="Lamps blink")).to_be_visible()
    tabs[0].close()
    nacre("store", "The gate is green.", "--subject", "Gate is green", home=home)
    for tab in tabs[1:]:
        expect(tab.get_by_role("link", name="Gate is green")).to_be_visible()
    assert len(streams) == 2


def test_hidden_tab_without_lock_support_closes_its_stream(board: Dashboard, home: Path) -> None:
    board.context.add_init_script("Object.defineProperty(navigator, 'locks', {value: undefined})")
    page = board.show("/memories")
    show = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true})"
    turn = "; document.dispatchEvent(new Event('visibilitychange'))"
    with page.expect_event("requestfailed", lambda request: "/api/v1/events" in request.url):
        page.evaluate(show % "true" + turn)
    nacre("store", "The gate is green.", "--subject", "Gate is green", home=home)
    page.evaluate(show % "false" + turn)
    expect(page.get_by_role("link", name="Gate is green")).to_be_visible()
