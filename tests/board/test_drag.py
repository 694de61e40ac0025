"""An item lands exactly where it was dropped, by mouse and by keyboard, upwards and downwards, and onto itself (case D4)."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.board import hand
from tests.board.conftest import Visit
from tests.board.site import Plan, Site


def all_moves(page: Page, plan: Plan, by: Callable[[Page, int, int], None]) -> None:
    """All 36 moves of six items, each compared with a list's pop and insert, on the page and in Postgres."""
    model = plan.order()
    for origin in range(6):
        for target in range(6):
            item = model.pop(origin)
            model.insert(target, item)
            events = plan.events("move")
            if origin == target:
                by(page, item, target)
            else:
                with hand.moved(page):
                    by(page, item, target)
            hand.shows(page, model)
            assert plan.order() == model, f"from {origin} to {target}"
            assert plan.events("move") == events + (origin != target), "only a move is an event"
    page.reload()
    hand.shows(page, model)


@pytest.mark.parametrize("by", [hand.drag, hand.carry], ids=["mouse", "keyboard"])
def test_all_36_moves_of_six_items(site: Site, visit: Visit, by: Callable[[Page, int, int], None]) -> None:
    plan = site.plan(6)
    all_moves(visit(plan.path), plan, by)


def test_the_hand_shows_what_will_be(site: Site, visit: Visit) -> None:
    plan = site.plan(4)
    page = visit(plan.path)
    hand.lift(page, plan.ids[3])
    page.mouse.move(hand.middle(hand.grip(page, plan.ids[3]))[0], hand.goal(page, plan.ids[3], 1), steps=4)
    expect(page.locator(".drop")).to_contain_text("1.5")
    expect(page.locator(".ghost .pos b")).to_have_text("1")
    expect(page.locator(".ghost .pos i")).to_have_text(".5")
    with hand.moved(page):
        page.mouse.up()
    assert str(plan.item(plan.ids[3]).position) == "1.5"
    expect(page.locator(".ghost, .drop, .is-lifted")).to_have_count(0)


def test_escape_puts_back(site: Site, visit: Visit) -> None:
    plan = site.plan(4)
    page = visit(plan.path)
    hand.lift(page, plan.ids[0])
    page.mouse.move(300, hand.goal(page, plan.ids[0], 3), steps=4)
    page.keyboard.press("Escape")
    expect(page.locator(".ghost, .drop, .is-lifted")).to_have_count(0)
    page.mouse.up()
    hand.grip(page, plan.ids[0]).focus()
    for key in ("Space", "ArrowDown", "End", "Escape"):
        page.keyboard.press(key)
    expect(hand.grip(page, plan.ids[0])).to_be_focused()
    expect(page.locator("#say")).to_contain_text("Item 1 is back at its place.")
    for key in ("Enter", "ArrowDown", "Tab"):
        page.keyboard.press(key)
    expect(page.locator(".is-picked")).to_have_count(0)
    hand.shows(page, plan.ids)
    assert plan.order() == plan.ids
    assert plan.events("move") == 0


def test_a_press_without_a_drag_moves_nothing(site: Site, visit: Visit) -> None:
    plan = site.plan(3)
    page = visit(plan.path)
    x, y = hand.middle(hand.grip(page, plan.ids[0]))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 2, y + 2)
    expect(page.locator(".ghost")).to_have_count(0)
    page.mouse.up()
    assert plan.events("move") == 0


def test_alt_and_arrows_move_by_one(site: Site, visit: Visit) -> None:
    plan = site.plan(4)
    page = visit(plan.path)
    hand.row(page, plan.ids[0]).locator(".title").focus()
    for _ in range(2):
        page.keyboard.press("Alt+ArrowDown")
    expect(page.locator("[data-sortable] > .item").nth(2)).to_have_id(f"i{plan.ids[0]}")
    hand.quiet(page)
    a, b, c, d = plan.ids
    hand.shows(page, [b, c, a, d])
    assert plan.order() == [b, c, a, d]
    expect(hand.row(page, a).locator(".title")).to_be_focused()


def test_what_is_selected_moves_together(site: Site, visit: Visit) -> None:
    plan = site.plan(6)
    page = visit(plan.path)
    a, b, c, d, e, f = plan.ids
    for item in (b, e):
        hand.row(page, item).locator(".pick").check()
    hand.lift(page, e)
    expect(page.locator(".ghost .stack")).to_have_text("2")
    page.mouse.move(300, hand.row(page, a).bounding_box()["y"] + 3, steps=4)  # type: ignore[index]
    with hand.moved(page):
        page.mouse.up()
    hand.shows(page, [b, e, a, c, d, f])
    assert plan.order() == [b, e, a, c, d, f]
    expect(page.locator(".pick:checked")).to_have_count(0)


def test_the_menu_moves_too(site: Site, visit: Visit) -> None:
    plan = site.plan(3)
    page = visit(plan.path)
    a, b, c = plan.ids
    for word, model in (("Move down", [b, a, c]), ("Move up", [a, b, c])):
        hand.row(page, a).locator("details.menu > summary").click()
        with hand.moved(page):
            hand.row(page, a).get_by_role("button", name=word, exact=False).first.click()
        hand.shows(page, model)
        assert plan.order() == model
    hand.row(page, c).locator("details.menu > summary").click()
    with hand.moved(page):
        hand.row(page, c).get_by_role("button", name="Move to the top").click()
    hand.shows(page, [c, a, b])
    assert plan.order() == [c, a, b]
