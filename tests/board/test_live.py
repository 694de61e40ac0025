"""Live: what one person does is seen by the other at once; a lost stream is shown, and made good."""

from collections.abc import Callable

from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from ordering import items, move
from ordering.model import After, First
from tests.board import chromium, hand
from tests.board.conftest import Visit
from tests.board.site import Site, serving_site
from tests.ports import free_port

#: When the line last showed another order, in the page's own clock and since 1970.
OBSERVE = """
() => {
    const line = document.querySelector('[data-sortable]');
    window.seenAt = 0;
    window.observer?.disconnect();
    const first = line.querySelector('.item').id;
    window.observer = new MutationObserver(() => {
        if (!window.seenAt && line.querySelector('.item').id !== first) window.seenAt = Date.now();
    });
    window.observer.observe(line, { childList: true, subtree: true });
}
"""


def test_a_move_shows_in_a_second_browser(site: Site, visit: Visit) -> None:
    plan = site.plan(5)
    one, other = visit(plan.path), visit(plan.path)
    times = []
    for _ in range(3):
        other.wait_for_timeout(1200)  # the next look may come a second after the last
        other.evaluate(OBSERVE)
        began = one.evaluate("() => Date.now()")
        last = hand.shown(one)[-1]
        with hand.moved(one):
            hand.carry(one, last, 0)
        other.wait_for_function("() => window.seenAt")
        times.append(other.evaluate("() => window.seenAt") - began)
        for page in (one, other):
            hand.shows(page, plan.order())
    assert min(times) < 4000, times
    print(f"a move was seen elsewhere after {times} ms, counted from before it was made")  # noqa: T201 - for the curious, with -s


def test_what_a_machine_does_is_seen(site: Site, visit: Visit) -> None:
    plan = site.plan(3, start=True)
    page = visit(plan.path)
    claimed = plan.run()
    expect(page.locator(".head-item")).to_contain_text("Item 1")
    plan.end(claimed)
    expect(page.locator("#page-head .state")).to_have_attribute("data-s", "halted")


def test_the_order_is_held_while_somebody_is_at_it(site: Site, visit: Visit) -> None:
    plan = site.plan(5)
    a, b, c, d, e = plan.ids
    page = visit(plan.path)
    hand.lift(page, a)
    plan.do(move.move, e, First())
    plan.do(items.cancel, d)
    expect(page.locator("#live")).to_contain_text("2 changes waiting")
    assert hand.shown(page) == [a, b, c, d, e]
    page.keyboard.press("Escape")
    page.mouse.up()
    expect(page.locator("#live")).to_have_attribute("data-s", "live")
    hand.shows(page, [e, a, b, c])
    hand.row(page, a).locator(".pick").check()
    plan.do(move.move, e, After(c))
    expect(page.locator("#live")).to_contain_text("1 change waiting")
    plan.do(items.edit, b, items.Edit(title="Renamed meanwhile"))
    expect(hand.row(page, b)).to_contain_text("Renamed meanwhile")
    assert hand.shown(page) == [e, a, b, c]
    page.locator("#live [data-show]").click()
    hand.shows(page, [a, b, c, e])
    expect(hand.row(page, a).locator(".pick")).to_be_checked()


def test_a_point_holds_and_lets_go(site: Site, visit: Visit) -> None:
    plan = site.plan(3)
    page = visit(plan.path)
    page.keyboard.press(".")
    expect(page.locator("#live")).to_have_attribute("data-s", "held")
    plan.do(move.move, plan.ids[2], First())
    expect(page.locator("#live")).to_contain_text("1 change waiting")
    page.keyboard.press(".")
    expect(page.locator("#live")).to_have_attribute("data-s", "live")
    hand.shows(page, plan.order())


def test_what_is_half_typed_stays(site: Site, visit: Visit) -> None:
    plan = site.plan(3)
    page = visit(plan.path)
    page.keyboard.press("/")
    page.keyboard.type("half a wo")
    plan.do(move.move, plan.ids[2], First())
    expect(page.locator("[data-sortable] > .item").first).to_have_id(f"i{plan.ids[2]}")
    page.keyboard.type("rd")
    assert page.evaluate("() => document.activeElement.value") == "half a word"


def test_a_lost_stream_is_shown_and_made_good(
    board_engine: Engine, contexts: Callable[..., tuple[object, chromium.Watch]], site: Site
) -> None:
    plan = site.plan(3)
    port = free_port()
    with serving_site(board_engine, port=port) as own:
        context, watch = contexts(own.url)
        watch.allowed += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE"]
        page: Page = context.new_page()  # type: ignore[attr-defined]
        page.clock.install()
        page.goto(plan.path)
        chromium.settled(page)
    expect(page.locator("#live")).to_have_attribute("data-s", "retrying")
    page.clock.fast_forward(20_000)
    expect(page.locator("#live")).to_have_attribute("data-s", "off")
    expect(page.locator("#stale")).to_be_visible()
    plan.do(move.move, plan.ids[2], First())
    with serving_site(board_engine, port=port):
        page.clock.fast_forward(10_000)
        chromium.settled(page)
        expect(page.locator("#stale")).to_be_hidden()
        expect(page.locator("[data-sortable] > .item").first).to_have_id(f"i{plan.ids[2]}")
        page.close()
