"""Control Chromium as a user does: sign in with ``nacre open`` to a home that a daemon serves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from scripts.install_chromium import find

PROJECT = Path(__file__).parents[2]
AXE = PROJECT / "web" / "node_modules" / "axe-core" / "axe.min.js"
DESKTOP, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
PAGES = (
    "/",
    "/memories",
    "/review",
    "/sessions",
    "/chats",
    "/projects",
    "/beliefs",
    "/timeline",
    "/graph",
    "/ask",
    "/dreams",
    "/settings",
)
"""Paths without an id."""

_SECONDS = 60
_PATIENCE_MS = 20_000
expect.set_options(timeout=_PATIENCE_MS)


def nacre(*arguments: str, home: Path) -> str:
    """Return the output of a command that the owner runs in a terminal."""
    result = subprocess.run(
        [sys.executable, "-m", "nacre", *arguments],
        env={**os.environ, "NACRE_HOME": str(home)},
        text=True,
        capture_output=True,
        timeout=_SECONDS,
        check=True,
    )
    return result.stdout.strip()


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        browser = playwright.chromium.launch(
            executable_path=find(), args=[*arguments, "--force-color-profile=srgb"]
        )
        yield browser
        browser.close()


class Dashboard:
    """The dashboard of a home in a browser, with the problems that its pages report."""

    def __init__(self, context: BrowserContext, home: Path) -> None:
        self.context, self.home = context, home
        self.problems: list[str] = []
        context.set_default_timeout(_PATIENCE_MS)
        self.page: Page = context.new_page()
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self._note)
        address = nacre("open", "--print", home=home)
        self.base = "{0.scheme}://{0.netloc}".format(urlsplit(address))
        self.page.goto(address)
        self.settled()

    def _note(self, message: Any) -> None:
        if message.type == "error":
            self.problems.append(f"{message.text} {message.location.get('url', '')}")

    def show(self, path: str) -> Page:
        """Open a page and wait until its requests have finished."""
        self.page.goto(self.base + path)
        return self.settled()

    def settled(self) -> Page:
        """Wait until nothing is loading. The policy forbids the script text that
        ``wait_for_function`` runs."""
        self.page.wait_for_selector("main h1, main .state")
        expect(self.page.locator(".skeleton")).to_have_count(0)
        return self.page

    def violations(self) -> list[str]:
        """Return the page's accessibility violations as reported by axe."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        issues = self.page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        return [
            f"{item['id']}: {node['html'][:200]} {node['failureSummary']}"
            for item in issues
            for node in item["nodes"]
        ]


@contextmanager
def dashboard(browser: Browser, home: Path, **options: Any) -> Iterator[Dashboard]:
    """Open the dashboard of a home. ``options`` are those of Playwright's contexts, such as
    ``color_scheme``."""
    context = browser.new_context(
        **{"viewport": DESKTOP, "locale": "en-GB", "timezone_id": "UTC", **options}
    )
    try:
        yield Dashboard(context, home)
    finally:
        context.close()
