"""Answers that cross: a page that was asked for before another address was shown takes nothing away from what is shown now."""

from playwright.sync_api import Page, Route, expect

from ordering import items
from tests.board.conftest import Visit
from tests.board.site import Site
from tests.patience import wait_until

#: Notes whether the line ever has fewer rows than now.
OBSERVE = """
() => {
    const line = document.querySelector('[data-sortable]');
    const before = line.querySelectorAll('.item').length;
    window.shrank = false;
    new MutationObserver(() => { window.shrank ||= line.querySelectorAll('.item').length < before; }).observe(line, { childList: true });
}
"""
ROUND_TRIP = "() => fetch(location.href).then(answer => answer.text())"
ROWS = "count => document.querySelectorAll('[data-sortable] > .item').length === count"


def held(page: Page, pattern: str) -> list[Route]:
    """The first request for these addresses, once it has come: it waits until the test lets it go on. Later ones pass."""
    waiting = list[Route]()

    def handle(route: Route) -> None:
        if waiting:
            route.continue_()
        else:
            waiting.append(route)

    page.route(pattern, handle)
    return waiting


def come(page: Page, waiting: list[Route]) -> Route:
    """The first request that waits, once there is one."""

    def first() -> list[Route]:
        page.wait_for_timeout(20)  # in which the browser is heard
        return waiting

    return wait_until(first, 30, "a request")[0]


def test_a_look_at_the_address_before_takes_no_rows_away(site: Site, visit: Visit) -> None:
    plan = site.plan(150)
    page = visit(plan.path)
    page.wait_for_timeout(1200)  # the next look may come a second after the last
    more, looks = held(page, f"**{plan.path}?*"), held(page, f"**{plan.path}")
    page.locator("#more").click()
    asked = come(page, more)
    plan.do(items.edit, plan.ids[0], items.Edit(title="Renamed meanwhile"))
    look = come(page, looks)
    asked.continue_()
    page.wait_for_function(ROWS, arg=150)
    page.evaluate(OBSERVE)
    with page.expect_response(f"**{plan.path}"):
        look.continue_()
    page.evaluate(ROUND_TRIP)  # what its answer would do is done by then
    assert not page.evaluate("() => window.shrank")
    page.wait_for_function(ROWS, arg=150)


def test_the_last_dialog_that_was_asked_for_is_open(site: Site, visit: Visit) -> None:
    plan = site.plan(2)
    page = visit(plan.path)
    first, last = (page.locator(f"#i{item} a[data-ask][href*='ask=edit']") for item in plan.ids)
    slow = held(page, f"**ask=edit*item={plan.ids[0]}*")
    first.evaluate("link => link.click()")
    asked = come(page, slow)
    last.evaluate("link => link.click()")
    expect(page.locator("dialog[open] [name=title]")).to_have_value("Item 2")
    with page.expect_response(f"**item={plan.ids[0]}*"):
        asked.continue_()
    page.evaluate(ROUND_TRIP)  # what the answer before would do is done by then
    expect(page.locator("dialog[open] [name=title]")).to_have_value("Item 2")


def test_the_last_address_that_was_asked_for_is_shown(site: Site, visit: Visit) -> None:
    plan = site.plan(3)
    page = visit(plan.path)
    first, last = f"{plan.path}?q=Item+1", f"{plan.path}?q=Item+2"
    page.evaluate(
        """links => links.forEach((link, at) => document.body.insertAdjacentHTML(
            'beforeend', `<a data-own data-visit id="link${at}" href="${link}">x</a>`))""",
        [first, last],
    )
    slow = held(page, f"**{first}")
    page.evaluate("() => document.getElementById('link0').click()")
    asked = come(page, slow)
    page.evaluate("() => document.getElementById('link1').click()")
    page.wait_for_function("query => location.search === query", arg="?q=Item+2")
    with page.expect_response(f"**{first}"):
        asked.continue_()
    page.evaluate(ROUND_TRIP)  # what the answer before would do is done by then
    assert page.url.endswith(last)
