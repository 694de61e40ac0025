"""One browser, one server and one database for all tests of the board; each test has plans and pages of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from sqlalchemy import Engine

from tests.app.web import http_database
from tests.board import chromium
from tests.board.chromium import PATIENCE, WIDE, Watch
from tests.board.site import Site, serving_site

#: Opens a context of its own: what one person has in front of them.
Visit = Callable[..., Page]


# While a browser is open its loop is the main thread's, and no other test may run one there: it ends with the package.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium.started() as browser:
        yield browser


@pytest.fixture(scope="package")
def board_engine(server_url: str, template: str) -> Iterator[Engine]:
    """The database of all tests of the board, as the HTTP server uses it."""
    with http_database(server_url, template) as made:
        yield made


@pytest.fixture(scope="package")
def site(board_engine: Engine) -> Iterator[Site]:
    """The server, where everybody is an admin."""
    with serving_site(board_engine) as site:
        yield site


@pytest.fixture
def contexts(browser: Browser) -> Iterator[Callable[..., tuple[BrowserContext, Watch]]]:
    """Makes contexts; at the end each must have had nothing to complain of."""
    made: list[tuple[BrowserContext, Watch]] = []

    def make(url: str, **options: Any) -> tuple[BrowserContext, Watch]:
        context = browser.new_context(base_url=url, **{"viewport": WIDE, "locale": "en-GB", **options})
        context.set_default_timeout(PATIENCE)
        made.append((context, Watch(context, url)))
        return made[-1]

    yield make
    for context, _ in made:
        context.close()
    for _, watch in made:
        watch.check()


@pytest.fixture
def visit(site: Site, contexts: Callable[..., tuple[BrowserContext, Watch]]) -> Visit:
    """Opens a path of the board in a context of its own and waits until it is live; `live=False` waits for nothing."""

    def open_page(path: str, *, live: bool = True, allow: list[str] | None = None, **options: Any) -> Page:
        context, watch = contexts(site.url, **options)
        watch.allowed += allow or []
        page = context.new_page()
        page.goto(path)
        if live:
            chromium.settled(page)
        return page

    return open_page
