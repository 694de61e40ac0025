"""Other ways to look at the pages: on paper, in the reader's own colours, without motion, and magnified four times."""

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from ordering import items
from tests.board import hand
from tests.board.chromium import NARROW
from tests.board.conftest import Visit
from tests.board.site import Plan, Site
from tests.ordering.acts import TOMORROW

PATHS = ("/", "/dead-letters", "/steps", "/facts", "/schedules", "/workers", "/trail", "/api", "/find?q=item")
LONG = "Recalculate the value added tax of every invoice of the last quarter that was changed after its day of issue"
WIDTHS = "() => [document.documentElement.scrollWidth, innerWidth]"
#: The titles that are cut, and those that are narrower than a word, of those that are to be read.
CUT = """
() => [...document.querySelectorAll('.item .title, .decide .title')].filter(e => e.checkVisibility()).filter(
    e => e.scrollHeight > e.clientHeight + 1 || e.parentElement.getBoundingClientRect().width < 120).map(e => e.textContent)
"""
#: Controls on the page that a person could press, were it not paper.
PRESSED = "() => [...document.querySelectorAll('.btn, .menu, .grip, .pick, textarea')].filter(e => e.checkVisibility()).length"


@pytest.fixture(scope="module")
def full(site: Site) -> Plan:
    """A halted plan with a waiting and a postponed item, all with long titles."""
    plan = site.plan([f"{LONG} {number}" for number in range(5)], start=True)
    plan.end(plan.run())
    plan.do(items.postpone, plan.ids[4], TOMORROW)
    return plan


def sideways(page: Page) -> bool:
    """Whether the page has to be scrolled sideways."""
    whole, window = page.evaluate(WIDTHS)
    return bool(whole > window)


def test_on_paper_everything_is_there_and_nothing_is_to_be_pressed(full: Plan, visit: Visit) -> None:
    page = visit(full.path, viewport=ViewportSize(width=794, height=1123))
    assert page.evaluate(PRESSED) > 0
    page.emulate_media(media="print")
    assert page.evaluate(CUT) == []
    assert page.evaluate(PRESSED) == 0
    expect(page.locator("#decide")).to_contain_text("A person must decide")
    expect(page.locator("header.top")).to_be_hidden()
    assert not sideways(page)


def test_nothing_is_scrolled_sideways_at_320_pixels(full: Plan, visit: Visit) -> None:
    page = visit("/", viewport=ViewportSize(width=320, height=568))
    asked = (full.path, f"{full.path}?ask=settings", f"/items/{full.ids[0]}", "/?ask=new-plan", "/schedules?ask=edit", *PATHS)
    assert [path for path in asked if page.goto(path) and sideways(page)] == []


def test_the_tab_of_the_page_is_in_view_on_a_narrow_screen(site: Site, visit: Visit) -> None:
    page = visit("/trail", viewport=NARROW)
    expect(page.locator(".nav [aria-current]")).to_be_in_viewport(ratio=0.9)
    assert page.evaluate("scrollY") == 0


def test_what_is_chosen_is_seen_in_the_readers_own_colours(full: Plan, visit: Visit) -> None:
    page = visit(full.path, forced_colors="active")
    colour = "e => getComputedStyle(e).backgroundColor"
    pressed, other = (page.locator(f"#policy [aria-pressed={word}]").evaluate(colour) for word in ("true", "false"))
    assert pressed != other
    page.locator(f"#a{full.ids[1]} > summary").click()
    icon = "e => getComputedStyle(e, '::before').backgroundColor"
    around = page.locator(f"#a{full.ids[1]} .menu-pop")
    assert around.locator(".ic-top").evaluate(icon) != around.evaluate(colour)


def test_nothing_moves_by_itself_where_that_is_not_wanted(site: Site, visit: Visit) -> None:
    plan = site.plan(3, start=True)
    plan.run()
    moving = "() => document.getAnimations().length"
    page = visit(plan.path)
    page.wait_for_function("() => document.getAnimations().length > 0")  # the head turns
    page = visit(plan.path, reduced_motion="reduce")
    assert page.evaluate(moving) == 0
    with hand.moved(page):
        hand.carry(page, plan.ids[2], 0)
    assert page.evaluate(moving) == 0
