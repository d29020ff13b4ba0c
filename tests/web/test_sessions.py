"""The Sessions pages: the timeline, the search, and complete sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from playwright.sync_api import Page, expect

import nacre as api
from nacre.memories.usage import session_name
from nacre.values.recall import Filter
from tests.web.driving import PHONE, Dashboard, nacre

pytestmark = pytest.mark.web

INGEST = "Let's get the ingest endpoint of hivelog going"
ID = "0b1c7a52-5c7e-4f0e-9d2a-3b7f6f1c9e10"
SESSION = f"/sessions/claude-code%3A{ID}"
LONG, NAMED = 2_400, 1_900

WriteSession = Callable[..., None]


@pytest.fixture
def write_session(home: Path, tmp_path: Path) -> WriteSession:
    """Ingest a session that alternates between owner and agent. ``calls`` maps positions to tool
    calls."""

    def write(*words: str, calls: dict[int, tuple[str, str]] | None = None) -> None:
        path = tmp_path / "projects" / "-srv-till" / f"{ID}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            line
            for place, text in enumerate(words)
            for line in _turn(place, text, (calls or {}).get(place))
        ]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        nacre("ingest", str(tmp_path / "projects"), home=home)

    return write


def _turn(place: int, words: str, call: tuple[str, str] | None) -> list[dict[str, Any]]:
    """A turn in Claude Code's format, and the output of a failed command."""
    seconds = place * 20
    at = f"2026-10-{1 + seconds // 86_400:02}T{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.000Z"
    facts = {
        "sessionId": ID,
        "uuid": f"turn-{place}",
        "timestamp": at,
        "cwd": "/srv/till",
        "version": "2.0.1",
    }
    if place % 2 == 0:
        return [{**facts, "type": "user", "message": {"role": "user", "content": words}}]
    content: list[dict[str, Any]] = [{"type": "text", "text": words}]
    answers = []
    if call:
        command, error = call
        content.append(
            {
                "type": "tool_use",
                "id": f"call-{place}",
                "name": "Bash",
                "input": {"command": command},
            }
        )
        result = {
            "type": "tool_result",
            "tool_use_id": f"call-{place}",
            "is_error": True,
            "content": error,
        }
        message = {"role": "user", "content": [result]}
        answers = [{**facts, "uuid": f"answer-{place}", "type": "user", "message": message}]
    answer = {
        "role": "assistant",
        "id": f"message-{place}",
        "model": "claude-opus-4-6",
        "content": content,
    }
    return [{**facts, "type": "assistant", "message": answer}, *answers]


def rows(page: Page) -> Any:
    """Return the sessions that the page lists."""
    return page.get_by_role("list", name="Sessions").get_by_role("link")


def test_timeline_lists_sessions_of_all_tools_by_day(board: Dashboard) -> None:
    page = board.show("/sessions")
    expect(page.get_by_role("status").filter(has_text="session")).to_have_text("9 sessions")
    expect(rows(page).filter(has_text="nacre-chat")).to_have_count(3)
    expect(rows(page).filter(has_text="openclaw")).to_have_count(2)
    expect(page.get_by_role("heading", level=2).nth(5)).to_be_visible()
    page.get_by_label("Tool").select_option("claude-code")
    page.get_by_label("Project", exact=True).select_option("hivelog")
    expect(rows(page)).to_have_count(1)
    expect(rows(page)).to_contain_text("16 turns")
    page.reload()
    expect(rows(page)).to_have_count(1)
    page.get_by_role("button", name="Clear").click()
    expect(rows(page)).to_have_count(9)


def test_period_includes_its_last_day(board: Dashboard) -> None:
    page = board.show("/sessions?since=2026-10-05&until=2026-10-05")
    expect(rows(page)).to_have_count(1)
    expect(rows(page)).to_contain_text(INGEST)
    page.get_by_label("From", exact=True).fill("2026-10-06")
    page.get_by_label("To", exact=True).fill("2026-10-06")
    expect(page.get_by_text("No matching session")).to_be_visible()


def test_words_are_found_while_typing_and_shown_in_context(board: Dashboard) -> None:
    page = board.show("/sessions")
    page.get_by_label("Search all messages and actions").fill("swarm alerts")
    expect(rows(page).first).to_contain_text("1500 g within an hour")
    expect(rows(page).first.locator("mark").first).to_have_text("Swarm")
    page.get_by_role("button", name="You", exact=True).click()
    expect(rows(page).get_by_text("Agent", exact=True)).to_have_count(0)
    rows(page).first.click()
    page.wait_for_url("**/sessions/*turn=*")
    expect(page.locator(".session-turn.named")).to_contain_text("1500 g within an hour")
    page.go_back()
    expect(rows(page).first).to_contain_text("1500 g within an hour")


def test_invalid_regular_expression_is_refused_with_a_message(
    boards: Callable[..., Dashboard],
) -> None:
    page = boards().show("/sessions?q=locked%28&how=pattern")
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Search all messages and actions").fill("lock(ed)")
    expect(rows(page).first).to_contain_text("locked")


def test_memory_links_to_its_turn_and_back(board: Dashboard) -> None:
    page = board.show("/memories?q=timestamps")
    page.get_by_role("main").get_by_role("link", name="Always store timestamps in UTC").click()
    page.get_by_role("link", name="Show it in the conversation").click()
    turn = page.locator(".session-turn.named")
    expect(turn).to_contain_text("Always store timestamps in UTC")
    expect(turn).to_be_in_viewport()
    turn.get_by_role("link", name="Always store timestamps in UTC").click()
    page.wait_for_url("**/memories/*")


def test_session_page_shows_resulting_memories_and_files(board: Dashboard, home: Path) -> None:
    page = board.show("/sessions?tool=claude-code&project=hivelog")
    rows(page).first.click()
    page.wait_for_url("**/sessions/claude-code*")
    with api.open_memory(home) as memory:
        memories = memory.list(
            filter=Filter(sessions=(unquote(page.url.rsplit("/", 1)[1]),)), limit=500
        )
    assert len(memories) >= 3
    about = page.get_by_role("complementary", name="About this session")
    expect(about.get_by_text(f"Learned from it: {len(memories)}", exact=True)).to_be_visible()
    expect(about.get_by_text("Done", exact=True)).to_be_visible()
    expect(about.get_by_text("hivelog/schema.sql")).to_be_visible()
    about.get_by_role("link", name="A gateway sends the same batch again").last.click()
    expect(page.locator(".session-turn.named")).to_contain_text(
        "same batch again after a power cut"
    )


def test_session_page_shows_the_injected_memories(board: Dashboard, home: Path) -> None:
    with api.open_memory(home) as memory:
        shown_memory = memory.call("list", words="Charts begin at zero").memories[0]
        (line,) = memory.call(
            "sessions", filter={"project": "hivelog", "tool": "claude-code"}, limit=1
        ).lines
        name = session_name(line.session.session.id)
        with memory._home.transaction():
            memory._home.usage.record_effect(
                shown_memory.id, name, "followed", memory._home.now_ms()
            )
    page = board.show("/sessions?tool=claude-code&project=hivelog")
    rows(page).first.click()
    about = page.get_by_role("complementary", name="About this session")
    part = about.locator("section").filter(has_text="Injected in this session: 1")
    expect(part.get_by_role("link", name="Charts begin at zero")).to_be_visible()
    expect(part).to_contain_text("followed")


def test_long_session_opens_at_the_turn_in_the_url(
    write_session: WriteSession, boards: Any
) -> None:
    write_session(
        *(
            f"Part {place} of the till: " + "count the coins. " * (place % 9)
            for place in range(LONG)
        )
    )
    page = boards().show(f"{SESSION}?turn=turn-{NAMED}")
    named_turn = page.locator(".session-turn.named")
    expect(named_turn).to_contain_text(f"Part {NAMED} of the till")
    expect(named_turn).to_be_in_viewport()
    assert page.locator(".session-turn").count() < 60
    expect(page.get_by_role("button", name="Summarise")).to_be_visible()


def test_missing_turn_is_reported(boards: Any, write_session: WriteSession) -> None:
    write_session("Which till?", "The left one.")
    page = boards().show(f"{SESSION}?turn=gone")
    expect(page.get_by_role("alert")).to_contain_text("no turn 'gone'")
    expect(page.locator(".session-turn")).to_have_count(2)


def test_messages_are_escaped_and_tool_calls_are_collapsed(
    board: Dashboard, write_session: WriteSession
) -> None:
    key = "sk-ant-api03-" + "k3Yq9Zr7Wm2Tb5Nc8Xv1Lp4Hs6Jd0Fg" * 2
    markup = f"<img src=x onerror=alert(1)> and the key {key}"
    write_session(markup, "It **fails**.", calls={1: ("make till", "till.c:7: error: no coins")})
    page = board.show(SESSION)
    owner, agent = page.locator(".session-turn.owner"), page.locator(".session-turn.agent")
    expect(owner).to_contain_text("<img src=x onerror=alert(1)>")
    expect(owner).not_to_contain_text(key)
    assert page.locator("main img").count() == 0
    expect(agent.locator("strong")).to_have_text("fails")
    expect(agent.locator("pre")).to_be_hidden()
    agent.get_by_text("make till").first.click()
    expect(agent.locator("pre")).to_have_text("till.c:7: error: no coins")
    expect(agent.get_by_text("failed", exact=True)).to_be_visible()


def test_new_turns_appear_live(board: Dashboard, write_session: WriteSession) -> None:
    write_session("Which till?", "The left one.")
    page = board.show(SESSION)
    expect(page.locator(".session-turn")).to_have_count(2)
    write_session("Which till?", "The left one.", "And the right one?", "It is broken.")
    expect(page.locator(".session-turn")).to_have_count(4)
    expect(page.get_by_text("It is broken.").first).to_be_visible()


def test_session_is_copied_as_markdown(boards: Any, write_session: WriteSession) -> None:
    write_session(
        "Which till?", "# The left one\nIt is open.", calls={1: ("ls till", "no such file")}
    )
    board = boards(permissions=["clipboard-read", "clipboard-write"])
    page = board.show(SESSION)
    page.keyboard.press("c")
    expect(page.get_by_text("Copied: 2 turns")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("# Which till?\n\n*claude-code · ")
    assert re.search(r"## Agent\n\n### The left one\nIt is open\.\n\n- Bash: `ls till` → ", copied)


def test_keys_navigate_from_the_timeline_to_a_turn(board: Dashboard) -> None:
    page = board.show("/sessions?tool=claude-code")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/claude-code*")
    expect(page.locator(".session-turn").first).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**?turn=*")


def test_long_line_in_the_sidebar_is_truncated(boards: Any, write_session: WriteSession) -> None:
    error = "lint failed: " + "a" * 400
    write_session(
        "Fix the lint.",
        "It fails.",
        "Try again.",
        "Done.",
        calls={1: ("make lint " + "b" * 300, error)},
    )
    aside = boards().show(SESSION).locator(".session-about aside")
    expect(aside.get_by_text("lint failed").first).to_be_visible()
    assert aside.evaluate("it => it.scrollWidth <= it.clientWidth")


@pytest.mark.parametrize(
    "options", [{}, {"color_scheme": "dark"}, {"viewport": PHONE}, {"locale": "zh-CN"}]
)
def test_session_pages_have_no_accessibility_violations(
    boards: Any, options: dict[str, Any]
) -> None:
    board = boards(**options)
    page = board.page
    for address in ("/sessions", "/sessions?q=swarm", "/sessions?tool=claude-code&project=hivelog"):
        board.show(address)
        expect(page.locator(".sessions-row, .sessions-hit").first).to_be_visible()
        assert board.violations() == []
    page.locator(".sessions-row").first.click()
    expect(page.locator(".session-turn").first).to_be_visible()
    board.settled()
    assert board.violations() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    assert board.problems == []
