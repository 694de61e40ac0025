"""Streams: positions are taken without waiting for anybody."""

from sqlalchemy import Engine, text

from ordering import add, move
from ordering.model import After, First, NewItem
from tests.ordering.acts import ACTOR, assert_sound, order, plan, put


def test_an_open_transaction_that_took_a_position_holds_up_no_add_and_no_move(engine: Engine) -> None:
    with engine.begin() as tx:
        plan(tx, concurrency=2)
        line = put(tx, 3)
    with engine.connect() as open_, engine.begin() as tx:
        open_.begin()
        open_.execute(text("insert into relevo.item (plan_id, position, task) "
                           "select id, nextval('relevo.stream_position'), 'noop' from relevo.plan"))  # fmt: skip
        tx.execute(text("set local lock_timeout = '10s'"))
        last = add.add(tx, "line", NewItem("noop"), actor=ACTOR).id
        many = [each.id for each in add.add_many(tx, "line", [NewItem("noop")] * 5, actor=ACTOR)]
        for _ in range(30):
            move.move(tx, last, First(), actor=ACTOR)
            move.move(tx, line[2], First(), actor=ACTOR)
            move.move(tx, many[0], After(line[0]), actor=ACTOR)
            move.move(tx, many[1], After(line[0]), actor=ACTOR)
        assert order(tx) == [line[2], last, line[0], many[1], many[0], line[1], *many[2:]]
        whole = "select count(*) from relevo.item where position > 3 and position = trunc(position) and id = any(:ids)"
        assert tx.execute(text(whole), {"ids": [last, line[2], many[0], many[1]]}).scalar_one() == 0
        assert_sound(tx)


def test_adds_to_one_stream_do_not_wait_for_each_other(engine: Engine) -> None:
    with engine.begin() as tx:
        plan(tx, concurrency=2)
    with engine.connect() as first, engine.connect() as second:
        for each in (first, second):
            each.begin()
            each.execute(text("set local lock_timeout = '10s'"))
        add.add(first, "line", NewItem("noop"), actor=ACTOR)
        add.add(second, "line", NewItem("noop"), actor=ACTOR)
        first.commit()
        second.commit()
