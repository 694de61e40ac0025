"""Debian's Chromium, driven by Playwright: started once for the suite, and every page watched for what it complains of."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, ViewportSize, expect, sync_playwright

PATH = "/usr/bin/chromium"
#: Headless, for whoever runs as root in a container, and never looking for anything outside.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
]
PATIENCE = 30_000  # ms for what a page should show
WIDE, NARROW = ViewportSize(width=1440, height=900), ViewportSize(width=390, height=844)
#: What Chromium writes about a status that a test wanted.
STATUS = re.compile(r"Failed to load resource: the server responded with a status of (4\d\d|503)")


@contextmanager
def started() -> Iterator[Browser]:
    """A browser; skips where there is none (in CI a skip fails)."""
    path = PATH if shutil.which(PATH) else shutil.which("chromium")
    if path is None:
        pytest.skip(f"There is no {PATH}: apt-get install chromium")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Watch:
    """What the pages of one context complained of, and whom they asked."""

    def __init__(self, context: BrowserContext, site: str) -> None:
        self.complaints: list[str] = []
        self.allowed: list[str] = []  # parts of complaints that the test has caused on purpose
        self._site = site
        context.on("console", self._console)
        context.on("weberror", lambda error: self.complaints.append(f"an exception: {error.error}"))
        context.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not STATUS.match(message.text):
            self.complaints.append(f"{message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self._site, "data:", "blob:")):
            self.complaints.append(f"a request to another host: {request.url}")

    def check(self) -> None:
        """Assert that nothing was complained of but what is allowed."""
        left = [each for each in self.complaints if not any(part in each for part in self.allowed)]
        assert not left, left


def settled(page: Page) -> None:
    """Wait until the page is live: its script has run and the stream is there."""
    page.locator("#live[data-s=live]").wait_for()
