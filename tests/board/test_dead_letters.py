"""Dead letters: grouped by error, one replayed first, then a selection, then all; and one edited on the way."""

import json

import pytest
from playwright.sync_api import Page, expect

from ordering import attempt, head
from ordering.decide import Failed
from ordering.model import State
from tests.board.conftest import Visit
from tests.board.site import Plan, Site
from tests.ordering import acts


@pytest.fixture
def dead(site: Site) -> Plan:
    """A stream whose six items have died of one cause."""
    stream = site.plan([f"Invoice {n}" for n in range(1, 7)], concurrency=8, item={"kwargs": {"url": "http://a.invalid/", "amount": "12"}})
    with stream.engine.begin() as tx:
        fed = head.feed(tx, stream.id, serial=False)
        claimed = [each for dispatch in fed for each in attempt.claim(tx, dispatch.id, session_id=acts.dead_session(tx))]
    for each in claimed:
        stream.end(each, Failed("ConnectionError", f"host {each.item_id} is away"))
    return stream


def states(plan: Plan) -> list[State]:
    return [plan.item(item).state for item in plan.ids]


@pytest.fixture
def page(dead: Plan, visit: Visit) -> Page:
    """The letters of the stream, with their one group open."""
    page = visit(f"/dead-letters?plan={dead.name}")
    page.locator(".grp-sum").click()
    expect(page.locator(".grp .pick")).to_have_count(6)
    return page


def test_replay_one_first_then_the_rest(dead: Plan, page: Page) -> None:
    page.get_by_role("button", name="Retry one first").click()
    expect(page.locator(".grp .pick")).to_have_count(5)
    assert states(dead).count(State.WAITING) == 1
    page.get_by_role("button", name="Retry all 5", exact=True).click()
    expect(page.locator(".grp")).to_have_count(0)
    assert states(dead) == [State.WAITING] * 6
    assert dead.events("retry") == 6


def test_replay_of_a_selection(dead: Plan, page: Page) -> None:
    page.locator(".grp .pick").nth(0).check()
    page.locator(".grp .pick").nth(2).click(modifiers=["Shift"])
    expect(page.locator("#bulk [data-count]")).to_have_text("3")
    page.locator("#bulk").get_by_role("button", name="Retry").click()
    expect(page.locator(".grp .pick")).to_have_count(3)
    expect(page.locator(".pick:checked")).to_have_count(0)
    assert states(dead).count(State.WAITING) == 3


def test_edit_and_replay(dead: Plan, page: Page) -> None:
    page.locator(".grp .title").first.click()
    expect(page.locator("#detail .error-whole")).to_contain_text("is away")
    page.locator("#edit-retry > summary").click()
    field = page.locator("textarea[data-json]")
    written = json.loads(field.input_value())
    field.fill("{ not json")
    expect(page.locator(".json-told")).to_contain_text("line 1")
    field.fill(json.dumps({**written, "amount": "13"}))
    expect(page.locator(".json-told")).to_contain_text("amount")
    field.locator("xpath=ancestor::form").locator("button.btn-primary").click()
    expect(page.locator(".grp .pick")).to_have_count(5)
    (again,) = [item for item in dead.ids if dead.item(item).state is State.WAITING]
    assert dead.item(again).kwargs["amount"] == "13"
