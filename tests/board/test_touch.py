"""Fingers: a drag starts at the grip only, so that the page still scrolls; events as a touch screen sends them."""

from typing import Any

from playwright.sync_api import CDPSession, Page, expect

from tests.board import hand
from tests.board.chromium import NARROW
from tests.board.conftest import Visit
from tests.board.site import Site


def touch(line: CDPSession, kind: str, *points: tuple[float, float]) -> None:
    line.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]})


def swipe(page: Page, line: CDPSession, start: tuple[float, float], end: float) -> None:
    """A finger goes down, moves to the height `end` in small steps and stays there."""
    x, y = start
    touch(line, "touchStart", (x, y))
    for part in range(1, 9):
        touch(line, "touchMove", (x, y + (end - y) * part / 8))
        page.wait_for_timeout(16)  # one frame, as a screen reports


def test_a_finger_drags_from_the_grip_and_scrolls_elsewhere(site: Site, visit: Visit) -> None:
    plan = site.plan(30)
    options: dict[str, Any] = {"viewport": NARROW, "has_touch": True, "is_mobile": True}
    page = visit(plan.path, **options)
    line = page.context.new_cdp_session(page)
    model = plan.order()
    moving = model[1]
    hand.grip(page, moving).evaluate("grip => grip.scrollIntoView({ block: 'center' })")  # far from where it scrolls by itself
    swipe(page, line, hand.middle(hand.grip(page, moving)), hand.goal(page, moving, 3))
    expect(page.locator(".ghost")).to_be_visible()
    with hand.moved(page):
        touch(line, "touchEnd")
    model.insert(3, model.pop(1))
    hand.shows(page, model)
    assert plan.order() == model
    before = page.evaluate("scrollY")
    swipe(page, line, hand.middle(hand.row(page, model[4]).locator(".title")), 120)
    touch(line, "touchEnd")
    page.wait_for_function("before => scrollY > before", arg=before)
    expect(page.locator(".ghost")).to_have_count(0)
    assert plan.order() == model
