"""Where an item came from, and what was added to repair it."""

from sqlalchemy import Connection, text

from ordering import facts, items, origin, subscriptions
from ordering.model import State
from ordering.origin import Related
from ordering.subscriptions import Subscription
from tests.ordering.acts import ACTOR, plan, put


def of(tx: Connection, item_id: int) -> origin.Origin:
    return origin.origin(tx, items.get(tx, item_id))


def test_an_item_that_a_person_added_came_from_nowhere(tx: Connection) -> None:
    plan(tx)
    (item_id,) = put(tx, key="schedule of mine")
    assert of(tx, item_id) == origin.Origin(None, None, None, None, None, [])


def test_a_fact_a_schedule_and_an_entry_are_named(tx: Connection) -> None:
    plan(tx)
    subscriptions.subscribe(tx, Subscription("invoice.issued", "notify", "mails"), actor=ACTOR)
    fact = facts.emit(tx, "invoice.issued", {"id": 7})
    item_id = tx.execute(text("select id from relevo.item where fact_id = :fact"), {"fact": fact}).scalar_one()
    found = of(tx, item_id)
    assert (found.fact, found.fact_type) == (fact, "invoice.issued")
    (ticked, by_hand) = [*put(tx, key="schedule nightly-2 2030-01-31T02:30:00Z"), *put(tx, key="schedule nightly-2 2030-01-31T02:30:00.5Z")]
    assert [of(tx, each).schedule for each in (ticked, by_hand)] == ["nightly-2"] * 2
    (entered,) = put(tx, entry="audit-deps")
    assert of(tx, entered).entry == "audit-deps"


def test_repairs_are_told_from_both_sides(tx: Connection) -> None:
    plan(tx)
    (broken,) = put(tx, title="Audit")
    first, second = put(tx, 2, title="Repair", repairs=broken)
    assert of(tx, first).repairs == Related(broken, "Audit", "noop", State.WAITING)
    assert [each.id for each in of(tx, broken).repaired_by] == [second, first]
