"""The Settings page shows settings, connected agents, checks and the home."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.driving import PHONE, Dashboard, nacre

pytestmark = pytest.mark.web
VIEWS = ("/settings", "/settings?view=settings", "/settings?view=checks", "/settings?view=home")


def row(page: Page, key: str) -> Locator:
    return page.get_by_role("listitem").filter(has=page.get_by_text(key, exact=True))


def value(home: Path, key: str) -> object:
    return json.loads(nacre("config", "show", key, "--json", home=home))["value"]


def test_setting_is_changed_shown_and_reset(board: Dashboard, home: Path) -> None:
    page = board.show("/settings?q=recall.limit")
    field = page.get_by_label("recall.limit", exact=True)
    field.fill("7")
    field.press("Enter")
    expect(page.get_by_text("recall.limit is saved")).to_be_visible()
    expect(row(page, "recall.limit").get_by_text("Default: 10")).to_be_visible()
    assert value(home, "recall.limit") == 7
    page.get_by_role("button", name="Reset: recall.limit").click()
    expect(page.get_by_label("recall.limit", exact=True)).to_have_value("10")
    assert "recall" not in (home / "config.toml").read_text(encoding="utf-8").replace(
        "[recall]", ""
    )


def test_switch_is_toggled_and_toggled_back(board: Dashboard, home: Path) -> None:
    page = board.show("/settings?q=dream.at_night")
    switch = page.get_by_role("switch", name="dream.at_night")
    switch.click()
    expect(switch).to_have_attribute("aria-checked", "true")
    assert value(home, "dream.at_night") is True
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(switch).to_have_attribute("aria-checked", "false")
    assert value(home, "dream.at_night") is False


def test_settings_open_on_agents_writer_privacy_and_eight_switches(
    board: Dashboard, home: Path
) -> None:
    page = board.show("/settings")
    sections = page.locator("main .section h2").all_inner_texts()
    assert sections == ["Agents on this machine", "Writer", "Privacy", "Switches"]
    expect(page.get_by_text("None: only plain statements are learned")).to_be_visible()
    switches = page.locator(".section", has_text="Switches").get_by_role("switch")
    expect(switches).to_have_count(8)
    page.get_by_role("switch", name="redaction.emails").click()
    expect(page.get_by_text("redaction.emails is saved")).to_be_visible()
    assert value(home, "redaction.emails") is True
    page.get_by_role("button", name="All settings").click()
    expect(page.get_by_label("recall.limit", exact=True)).to_be_visible()


def test_invalid_value_is_refused_next_to_the_setting(
    boards: Callable[..., Dashboard], home: Path
) -> None:
    page = boards().show("/settings?q=recall.limit")
    field = page.get_by_label("recall.limit", exact=True)
    field.fill("0")
    field.press("Enter")
    expect(row(page, "recall.limit").get_by_role("alert")).to_contain_text(
        "recall.limit must be at least 1"
    )
    assert value(home, "recall.limit") == 10


def test_list_setting_is_edited_with_an_item_per_line(board: Dashboard, home: Path) -> None:
    page = board.show("/settings?q=forgetting.protect")
    page.get_by_label("forgetting.protect").fill("client *\n\nscales")
    page.get_by_label("forgetting.protect").blur()
    expect(page.get_by_text("forgetting.protect is saved")).to_be_visible()
    assert value(home, "forgetting.protect") == ["client *", "scales"]


def test_setting_from_the_environment_is_read_only(board: Dashboard) -> None:
    page = board.show("/settings?q=embedding.model")
    expect(page.get_by_text("Set by NACRE_EMBEDDING_MODEL")).to_be_visible()
    expect(page.get_by_label("embedding.model")).to_be_disabled()


def test_changed_settings_can_be_filtered(board: Dashboard, home: Path) -> None:
    nacre("config", "set", "recall.turns", "5", home=home)
    page = board.show("/settings?which=changed")
    expect(page.get_by_label("recall.turns", exact=True)).to_have_value("5")
    expect(page.get_by_label("recall.limit", exact=True)).to_have_count(0)


def test_setting_containing_a_secret_is_not_editable(board: Dashboard, home: Path) -> None:
    secret = "sk-ant-api03-" + "Zq7Rk2" * 12
    nacre("config", "set", "ingest.exclude", json.dumps([secret]), home=home)
    page = board.show("/settings?q=ingest.exclude")
    expect(page.get_by_text("It seems to contain a secret")).to_be_visible()
    assert secret not in page.content()
    expect(page.get_by_label("ingest.exclude", exact=True)).to_have_count(0)


def test_agent_is_connected_after_a_preview_and_removed(
    boards: Callable[..., Dashboard], home: Path, user_home: Path
) -> None:
    rules = user_home / ".cursor" / "mcp.json"
    rules.parent.mkdir()
    rules.write_text(
        '{"mcpServers": {"other": {"env": {"API_KEY": "sk-ant-api03-' + "Zq7Rk2" * 12 + '"}}}}'
    )
    board = boards()
    page = board.show("/settings")
    page.get_by_role("button", name="Connect Cursor").click()
    plan = page.get_by_role("dialog", name="Connect Cursor")
    expect(plan.get_by_text(str(rules))).to_be_visible()
    assert "Zq7Rk2" not in page.content()
    assert "nacre" not in rules.read_text(encoding="utf-8")
    plan.get_by_role("button", name="Connect").click()
    expect(page.get_by_text("Cursor is connected")).to_be_visible()
    assert "nacre" in json.loads(rules.read_text(encoding="utf-8"))["mcpServers"]
    page.get_by_role("button", name="Remove nacre from Cursor").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("nacre was removed from Cursor")).to_be_visible()
    assert "nacre" not in rules.read_text(encoding="utf-8")


def test_checks_show_problems_and_rerun_after_repair(board: Dashboard, home: Path) -> None:
    page = board.show("/settings?view=checks")
    expect(page.get_by_text("2 checks need attention")).to_be_visible()
    home.chmod(0o755)
    page.keyboard.press("r")
    expect(page.get_by_text("3 checks need attention")).to_be_visible()
    page.get_by_role("button", name="Repair automatically").click()
    expect(page.get_by_text("2 checks need attention")).to_be_visible()
    assert home.stat().st_mode & 0o777 == 0o700


def test_checks_page_fits_a_phone(boards: Callable[..., Dashboard], home: Path) -> None:
    home.chmod(0o755)
    page = boards(viewport=PHONE).show("/settings?view=checks")
    expect(page.get_by_role("button", name="Repair automatically")).to_be_visible()
    assert page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )


def test_home_page_shows_the_token_path(board: Dashboard, home: Path) -> None:
    page = board.show("/settings?view=home")
    expect(page.get_by_text(f"{home}/http.token")).to_be_visible()
    expect(page.get_by_text("nacre open --forget")).to_be_visible()


def test_error_messages_are_translated_to_chinese(
    boards: Callable[..., Dashboard],
) -> None:
    page = boards(locale="zh-CN").show("/settings?view=settings")
    meaning = (
        page.locator(".settings-row", has=page.get_by_text("recall.limit", exact=True))
        .locator("p")
        .first
    )
    expect(meaning).to_have_text("一次回答中的记忆条数。")
    texts = page.locator(".settings-words p").all_inner_texts()
    assert [item for item in texts if not re.search("[\u4e00-\u9fff]", item)] == []
    field = page.get_by_label("recall.limit")
    field.fill("0")
    field.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("recall.limit 必须至少为 1")
    page = boards(locale="zh-CN").show("/memories/no-such-memory")
    expect(page.locator(".state-title")).to_contain_text("没有名为")


@pytest.mark.parametrize(
    "options", [{}, {"color_scheme": "dark"}, {"viewport": PHONE}, {"locale": "zh-CN"}]
)
def test_settings_pages_have_no_accessibility_violations(
    boards: Callable[..., Dashboard], options: dict[str, object]
) -> None:
    board = boards(**options)
    for view in VIEWS:
        page = board.show(view)
        assert board.violations() == []
        assert page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        ), view
    assert board.problems == []
