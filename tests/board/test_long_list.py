"""A list of 200 items: what is far away is reached by scrolling with the row in the hand."""

import pytest

from tests.board import hand
from tests.board.conftest import Visit
from tests.board.site import Site

LAST_IN_VIEW = """
() => document.querySelector('[data-sortable] > .item:nth-last-child(1 of .item)').getBoundingClientRect().bottom < innerHeight
"""


@pytest.mark.timeout(400)  # frame by frame over ten screens, twice
def test_the_window_scrolls_with_the_row_in_the_hand(site: Site, visit: Visit) -> None:
    plan = site.plan(200)
    page = visit(plan.path)
    page.locator("#more").click()
    page.wait_for_function("() => document.querySelectorAll('[data-sortable] > .item').length === 200")
    model = plan.order()
    first, last = model[0], model[-1]
    page.evaluate("() => scrollTo(0, 0)")
    hand.lift(page, first)
    page.mouse.move(300, 880, steps=4)
    page.wait_for_function(LAST_IN_VIEW, timeout=90_000)
    page.mouse.move(300, 450)  # far from the edges, so that it scrolls no more
    page.mouse.move(300, hand.goal(page, first, 199), steps=4)
    with hand.moved(page):
        page.mouse.up()
    model.append(model.pop(0))
    hand.shows(page, model)
    assert plan.order() == model
    hand.grip(page, last).scroll_into_view_if_needed()
    hand.lift(page, last)
    page.mouse.move(300, 100, steps=4)
    page.wait_for_function("() => scrollY === 0", timeout=90_000)
    page.mouse.move(300, hand.goal(page, last, 0), steps=4)
    with hand.moved(page):
        page.mouse.up()
    model.insert(0, model.pop(model.index(last)))
    hand.shows(page, model)
    assert plan.order() == model
    middle = model[120]
    hand.grip(page, middle).focus()
    page.keyboard.press("Space")
    page.keyboard.press("Home")
    with hand.moved(page):
        page.keyboard.press("Space")
    model.insert(0, model.pop(120))
    hand.shows(page, model)
    assert plan.order() == model
