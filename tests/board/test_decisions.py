"""A failed head: retry, skip, and resolve with a note, which is not lost while the page goes on."""

import pytest
from playwright.sync_api import Page, Route, expect

from ordering import decision, items
from ordering.model import State
from tests.board import hand
from tests.board.conftest import Visit
from tests.board.hand import REFUSAL
from tests.board.site import Plan, Site


@pytest.fixture
def halted(site: Site, visit: Visit) -> tuple[Plan, Page]:
    """A plan whose first item has failed, and its page."""
    plan = site.plan(3, start=True)
    plan.end(plan.run())
    page = visit(plan.path)
    expect(page.locator("#page-head .state")).to_have_attribute("data-s", "halted")
    return plan, page


def test_retry(halted: tuple[Plan, Page]) -> None:
    plan, page = halted
    page.locator("#decide").get_by_role("button", name="Retry").click()
    expect(page.locator("#decide")).to_have_count(0)
    assert plan.item(plan.ids[0]).state is State.WAITING
    assert plan.events("retry") == 1
    hand.shows(page, plan.ids)
    assert plan.order() == plan.ids


def test_skip(halted: tuple[Plan, Page]) -> None:
    plan, page = halted
    page.locator("#decide").get_by_role("button", name="Skip").click()
    expect(page.locator("#decide")).to_have_count(0)
    assert plan.item(plan.ids[0]).state is State.SKIPPED
    hand.shows(page, plan.ids[1:])


def test_resolve_wants_a_note(halted: tuple[Plan, Page]) -> None:
    plan, page = halted
    resolve = page.locator("#decide").get_by_role("button", name="Resolve")
    resolve.click()
    expect(page.locator(REFUSAL)).to_contain_text("note")
    page.locator("#decide-note").fill("   ")
    resolve.click()
    expect(page.locator(REFUSAL)).to_contain_text("note")
    page.locator("#decide-note").fill("ran it by hand")
    plan.do(items.edit, plan.ids[2], items.Edit(title="Renamed meanwhile"))
    expect(hand.row(page, plan.ids[2])).to_contain_text("Renamed meanwhile")
    expect(page.locator("#decide-note")).to_have_value("ran it by hand")
    resolve.click()
    expect(page.locator("#decide")).to_have_count(0)
    assert plan.item(plan.ids[0]).state is State.RESOLVED


def test_a_decision_that_somebody_else_made_is_refused(halted: tuple[Plan, Page]) -> None:
    plan, page = halted
    held: list[object] = []

    def late(route: Route) -> None:
        if not held:  # the other one is faster
            held.append(plan.do(decision.skip, plan.ids[0]))
        route.continue_()

    page.route("**/retry", late)
    with page.expect_response("**/retry") as answer:
        page.locator("#decide").get_by_role("button", name="Retry").click()
    assert answer.value.status == 409
    expect(page.locator(REFUSAL)).to_be_visible()
    expect(page.locator("#decide")).to_have_count(0)
    assert plan.item(plan.ids[0]).state is State.SKIPPED
