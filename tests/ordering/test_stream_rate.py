"""The rate of a stream: what is due waits for its time, and each rate lets something go."""

import pytest
from sqlalchemy import Connection, text

from ordering import head, plans, rate
from ordering.model import Dispatch
from tests.ordering.acts import plan, put


def out(tx: Connection) -> list[Dispatch]:
    return head.feed(tx, plans.get(tx, "line").id, serial=False)


def items(tx: Connection, fed: list[Dispatch]) -> int:
    found: int = tx.execute(
        text("select sum(size) from relevo.dispatch where id = any(:ids)"), {"ids": [each.id for each in fed]}
    ).scalar_one()
    return found


def test_a_rate_holds_back_what_is_due(tx: Connection) -> None:
    plan(tx, concurrency=50)
    tx.execute(text("update relevo.plan set rate = 10"))
    put(tx, 100)
    assert items(tx, out(tx)) == 10
    assert out(tx) == []
    tx.execute(text("update relevo.pace set free_at = free_at - interval '300 milliseconds'"))
    assert items(tx, out(tx)) == 3
    tx.execute(text("update relevo.pace set free_at = free_at - interval '1 hour'"))
    assert items(tx, out(tx)) == 10  # a second's worth, not an hour's


def test_less_than_one_a_second_is_a_rate_too(tx: Connection) -> None:
    plan(tx, concurrency=50)
    tx.execute(text("update relevo.plan set rate = 0.1"))
    put(tx, 5)
    assert len(out(tx)) == 1
    tx.execute(text("update relevo.pace set free_at = free_at - interval '9 seconds'"))
    assert out(tx) == []
    tx.execute(text("update relevo.pace set free_at = free_at - interval '1 second'"))
    assert len(out(tx)) == 1


@pytest.mark.parametrize("written", ["0.9/s", "0.3/s", "20/m", "7/m", "7/h", "3/h", "0.042/h", "100000/s"])
def test_each_rate_lets_go_of_one_at_once_and_of_the_next_in_its_time(tx: Connection, written: str) -> None:
    per_second = rate.parse(written)
    assert per_second is not None
    plan(tx, concurrency=4, rate=per_second)
    put(tx, 8)
    slow = per_second < 1
    for _ in range(2):
        assert len(out(tx)) == (1 if slow else 4)
        if slow:
            assert out(tx) == []
        tx.execute(text("update relevo.dispatch set ended_at = now(); update relevo.item set dispatch_id = null, state = 'cancelled', "
                        "settled_at = now() where state = 'dispatched'"))  # fmt: skip
        tx.execute(text("update relevo.pace set free_at = free_at - make_interval(secs => 1 / :rate)"), {"rate": per_second})
