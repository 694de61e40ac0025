"""Several people at once: a stale drop is refused with the fresh order, and no act is done twice."""

from playwright.sync_api import Route, expect

from ordering import items, move
from ordering.model import After, First, Last
from tests.board import hand
from tests.board.conftest import Visit
from tests.board.site import Site


def test_a_stale_drop_is_refused_and_the_card_goes_back(site: Site, visit: Visit) -> None:
    plan = site.plan(5)
    a, b, c, d, e = plan.ids
    page = visit(plan.path)
    page.keyboard.press(".")
    hand.lift(page, a)
    page.mouse.move(300, hand.goal(page, a, 2), steps=3)  # between c and d
    plan.do(move.move, e, After(c))
    with page.expect_response(lambda answer: hand.moving_done(answer) and answer.status == 409):
        page.mouse.up()
    expect(page.locator(hand.REFUSAL)).to_be_visible()
    hand.shows(page, [a, b, c, e, d])
    assert plan.order() == [a, b, c, e, d]
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    with hand.moved(page):
        hand.drag(page, a, 2)
    hand.shows(page, [b, c, a, e, d])
    assert plan.order() == [b, c, a, e, d]
    expect(page.locator(hand.REFUSAL)).to_have_count(0)


def test_a_drop_beside_what_has_left_is_refused(site: Site, visit: Visit) -> None:
    plan = site.plan(4, start=True)
    _, b, c, d = plan.ids
    page = visit(plan.path)
    hand.lift(page, d)
    page.mouse.move(300, hand.goal(page, d, 0), steps=3)
    plan.run()
    with page.expect_response(lambda answer: hand.moving_done(answer) and answer.status == 409):
        page.mouse.up()
    expect(page.locator(hand.REFUSAL)).to_be_visible()
    hand.shows(page, [b, c, d])
    assert plan.order() == [b, c, d]


def test_the_row_in_the_hand_starts_running(site: Site, visit: Visit) -> None:
    plan = site.plan(3, start=True)
    a, b, c = plan.ids
    page = visit(plan.path)
    hand.lift(page, a)
    plan.run()
    page.mouse.move(300, hand.goal(page, a, 2), steps=3)
    with page.expect_response(lambda answer: hand.moving_done(answer) and answer.status == 409):
        page.mouse.up()
    expect(page.locator(hand.REFUSAL)).to_be_visible()
    hand.shows(page, [b, c])


def test_a_second_press_does_nothing(site: Site, visit: Visit) -> None:
    plan = site.plan(3)
    page = visit(plan.path)
    posts: list[str] = []

    def slow(route: Route) -> None:
        posts.append(route.request.url)
        page.wait_for_timeout(300)
        route.continue_()

    page.route("**/start", slow)
    start = page.locator("form[action$='/start'] button").first
    start.click(click_count=3, no_wait_after=True)
    expect(page.locator("#page-head .state")).to_have_attribute("data-s", "running")
    assert len(posts) == 1
    assert plan.events("start") == 1


def test_no_answer_is_said_and_nothing_is_lost(site: Site, visit: Visit) -> None:
    plan = site.plan(3)
    page = visit(plan.path, allow=["ERR_FAILED"])
    page.route("**/move", lambda route: route.abort())
    hand.drag(page, plan.ids[0], 2)
    expect(page.locator("#trouble")).to_be_visible()
    hand.shows(page, plan.ids)
    assert plan.order() == plan.ids
    page.unroute("**/move")
    with hand.moved(page):
        hand.drag(page, plan.ids[0], 2)
    expect(page.locator("#trouble")).to_be_hidden()


def test_what_starts_running_drops_out_of_the_selection(site: Site, visit: Visit) -> None:
    plan = site.plan(4, start=True)
    page = visit(plan.path)
    for item in plan.ids[:2]:
        hand.row(page, item).locator(".pick").check()
    expect(page.locator("[data-count]").first).to_have_text("2")
    plan.run()
    expect(page.locator("[data-count]").first).to_have_text("1")
    expect(page.locator("#say")).to_contain_text("Item 1 has left the line")


def test_undo_takes_a_move_back(site: Site, visit: Visit) -> None:
    plan = site.plan(4)
    page = visit(plan.path)
    with hand.moved(page):
        hand.drag(page, plan.ids[3], 0)
    page.keyboard.press("u")
    expect(page.locator("[data-sortable] > .item").last).to_have_id(f"i{plan.ids[3]}")
    assert plan.order() == plan.ids
    plan.do(move.move, plan.ids[0], Last())
    plan.do(items.cancel, plan.ids[1])
    plan.do(move.move, plan.ids[2], First())
