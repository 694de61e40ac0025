"""What the broker lost or never got is sent again, and nothing else is."""

import pytest
from sqlalchemy import Connection, text

from ordering import head, items, plans
from ordering.model import DEFAULT_QUEUE, Dispatch
from tests.ordering.acts import ACTOR, claim, feed, plan, put

QUEUE = DEFAULT_QUEUE


@pytest.fixture
def out(tx: Connection) -> Dispatch:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    put(tx, args=[1])
    fed = feed(tx)
    assert fed
    return fed


def ago(tx: Connection, seconds: float) -> None:
    """As if the last send had been that long ago."""
    tx.execute(text("update relevo.dispatch set sent_at = now() - make_interval(secs => :s)"), {"s": seconds})


def sends(tx: Connection) -> int:
    found: int = tx.execute(text("select sends from relevo.dispatch")).scalar_one()
    return found


@pytest.mark.parametrize(("seconds", "again"), [(0, False), (1.9, False), (2.1, True), (3600, True)])
def test_what_was_never_marked_published_goes_again_after_two_seconds(tx: Connection, out: Dispatch, seconds: float, again: bool) -> None:
    ago(tx, seconds)
    assert head.take_unsent(tx, {}) == ([out] if again else [])
    assert sends(tx) == 1 + again
    assert head.take_unsent(tx, {}) == []  # it counts as sent now


def test_what_the_broker_holds_is_not_sent_again(tx: Connection, out: Dispatch) -> None:
    head.mark_published(tx, [out.id])
    ago(tx, 3600)
    assert head.outstanding(tx) == {QUEUE: 1}
    assert head.take_unsent(tx, {QUEUE: 1}) == []
    assert head.take_unsent(tx, {QUEUE: 7}) == []
    assert head.take_unsent(tx, {}) == []  # no answer from the broker is no proof of a loss
    assert head.take_unsent(tx, {"other": 0}) == []


def test_a_flushed_broker_is_noticed_after_ten_seconds_doubling_to_five_minutes(tx: Connection, out: Dispatch) -> None:
    head.mark_published(tx, [out.id])
    for wait in (10, 20, 40, 80, 160, 300, 300):
        ago(tx, wait - 0.1)
        assert head.take_unsent(tx, {QUEUE: 0}) == []
        ago(tx, wait + 0.1)
        assert head.take_unsent(tx, {QUEUE: 0}) == [out]
    assert sends(tx) == 8


def test_what_is_claimed_is_neither_outstanding_nor_sent_again(tx: Connection, out: Dispatch) -> None:
    head.mark_published(tx, [out.id])
    claim(tx, out)
    ago(tx, 3600)
    assert head.outstanding(tx) == {}
    assert head.take_unsent(tx, {QUEUE: 0}) == []


def test_what_was_withdrawn_is_neither_outstanding_nor_sent_again(tx: Connection, out: Dispatch) -> None:
    items.cancel(tx, tx.execute(text("select id from relevo.item")).scalar_one(), actor=ACTOR)
    ago(tx, 3600)
    assert head.outstanding(tx) == {}
    assert head.take_unsent(tx, {QUEUE: 0}) == []


def test_a_claimed_dispatch_needs_no_mark(tx: Connection, out: Dispatch) -> None:
    claim(tx, out)
    head.mark_published(tx, [out.id])
    assert tx.execute(text("select published_at from relevo.dispatch")).scalar_one() is None


def test_the_first_mark_stays(tx: Connection, out: Dispatch) -> None:
    tx.execute(text("update relevo.dispatch set published_at = now() - interval '1 hour'"))
    head.mark_published(tx, [out.id])
    assert tx.execute(text("select published_at < now() from relevo.dispatch")).scalar_one()


def test_the_oldest_go_first_up_to_the_limit(tx: Connection) -> None:
    made = plan(tx, concurrency=10)
    put(tx, 10)
    fed = head.feed(tx, made.id, serial=False)
    for age, each in enumerate(fed):
        tx.execute(
            text("update relevo.dispatch set created_at = now() - make_interval(hours => :age) where id = :id"), {"age": age, "id": each.id}
        )
    ago(tx, 60)
    assert {each.id for each in head.take_unsent(tx, {}, limit=3)} == {each.id for each in fed[-3:]}
    assert len(head.take_unsent(tx, {})) == 7
