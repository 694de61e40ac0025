"""Signing in: a token opens the board as far as its role goes; without one there is the form and nothing else."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from sqlalchemy import Engine

from app import tokens
from app.caller import Role
from app.tokens import Tokens
from tests.board import chromium, hand
from tests.board.chromium import Watch
from tests.board.site import Site, serving_site

Contexts = Callable[..., tuple[BrowserContext, Watch]]


@pytest.fixture(scope="module")
def secured(board_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, dict[Role, str]]]:
    """A server with a tokens file, and a token of each role."""
    file: Path = tmp_path_factory.mktemp("tokens") / "tokens"
    made = {role: tokens.create(file, f"the-{role}", role) for role in Role}
    with serving_site(board_engine, Tokens(file), only_loopback=False) as site:
        yield site, made


def sign_in(page: Page, token: str) -> None:
    page.locator("input[name=token]").fill(token)
    page.locator("main form button").first.click()


def test_a_token_opens_the_page_that_was_asked_for(secured: tuple[Site, dict[Role, str]], contexts: Contexts) -> None:
    site, made = secured
    plan = site.plan(2)
    context, _ = contexts(site.url)
    page = context.new_page()
    page.goto(plan.path)
    expect(page).to_have_url(f"{site.url}/login?back={plan.path}")
    sign_in(page, "wrong")
    expect(page.get_by_role("alert")).to_be_visible()
    sign_in(page, made[Role.OPERATE])
    chromium.settled(page)
    expect(page).to_have_url(f"{site.url}{plan.path}")
    (cookie,) = [each for each in context.cookies() if each["name"] == "relevo"]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    with hand.moved(page):
        hand.carry(page, plan.ids[1], 0)
    hand.shows(page, plan.ids[::-1])
    assert plan.order() == plan.ids[::-1]
    page.locator("#who-menu > summary").click()
    page.locator("form[action='/logout'] button").click()
    expect(page.locator("input[name=token]")).to_be_visible()
    page.goto(plan.path)
    expect(page.locator("input[name=token]")).to_be_visible()


def test_who_may_only_look_sees_no_buttons(secured: tuple[Site, dict[Role, str]], contexts: Contexts) -> None:
    site, made = secured
    plan = site.plan(3, start=True)
    plan.end(plan.run())
    context, _ = contexts(site.url)
    page = context.new_page()
    page.goto(f"/login?back={plan.path}")
    sign_in(page, made[Role.VIEW])
    chromium.settled(page)
    for what in (".grip", ".pick", ".acts", "main form[method=post] button", "#page-head .btn"):
        expect(page.locator(what)).to_have_count(0)
    for path in ("/", "/dead-letters", f"/items/{plan.ids[0]}", "/schedules", "/facts"):
        page.goto(path)
        expect(page.locator("main form[method=post] button")).to_have_count(0)


def test_a_token_that_is_taken_back_signs_out(secured: tuple[Site, dict[Role, str]], contexts: Contexts) -> None:
    site, made = secured
    plan = site.plan(2)
    context, _ = contexts(site.url)
    page = context.new_page()
    page.goto(f"/login?back={plan.path}")
    sign_in(page, made[Role.OPERATE])
    chromium.settled(page)
    context.clear_cookies()
    hand.drag(page, plan.ids[0], 1)
    expect(page.locator("#out")).to_be_visible()
    hand.shows(page, plan.ids)
    assert plan.order() == plan.ids
