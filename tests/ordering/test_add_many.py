"""Adding many by COPY: the order, keys inside one call, all or none, and bounded memory."""

import tracemalloc
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import add, db, plans
from ordering.errors import DatabaseUnreachable, EntryOut, Invalid, KeyConflict
from ordering.model import After, Before, First, Last, NewItem, Place
from tests.conftest import Scale
from tests.ordering.acts import ACTOR, assert_sound, events, open_run, order, plan, put, run


def new(*titles: str, keyed: bool = False) -> list[NewItem]:
    return [NewItem("noop", title=title, key=title if keyed else None) for title in titles]


def titles(tx: Connection) -> list[str]:
    return list(tx.execute(text("select title from relevo.item where state = 'waiting' order by position")).scalars())


@pytest.mark.parametrize("count", [0, 1, 3, add.CHUNK, add.CHUNK + 1])
@pytest.mark.parametrize("end", [First(), Last()])
def test_items_stand_in_the_order_given(tx: Connection, count: int, end: Place) -> None:
    plan(tx)
    put(tx, 2)
    added = add.add_many(tx, "line", new(*(f"{n}" for n in range(count))), actor=ACTOR, to=end)
    old = ["", ""]
    made = [str(n) for n in range(count)]
    assert titles(tx) == (made + old if end == First() else old + made)
    assert [each.id for each in added] == (order(tx)[:count] if end == First() else order(tx)[2:])
    assert all(each.new for each in added)
    assert events(tx).count("add") == (2 if count else 1)


def test_items_stand_in_the_gap_named(tx: Connection) -> None:
    plan(tx)
    a, b = put(tx, 2)
    behind = [each.id for each in add.add_many(tx, "line", new("1", "2", "3"), actor=ACTOR, to=After(a))]
    before = [each.id for each in add.add_many(tx, "line", iter(new("4", "5")), actor=ACTOR, to=Before(b))]
    assert order(tx) == [a, *behind, *before, b]
    assert_sound(tx)


def test_many_into_a_gap_with_hardly_any_room(tx: Connection) -> None:
    plan(tx)
    a, b = put(tx, 2)
    tx.execute(text("update relevo.item set position = 1.000000000000000000000001 where id = :id"), {"id": b})
    made = [each.id for each in add.add_many(tx, "line", new("1", "2", "3"), actor=ACTOR, to=After(a))]
    assert order(tx) == [a, *made, b]
    assert_sound(tx)


def test_known_keys_give_their_items_and_only_the_rest_is_made(tx: Connection) -> None:
    plan(tx)
    first = add.add_many(tx, "line", new("a", "b", keyed=True), actor=ACTOR)
    again = add.add_many(tx, "line", new("b", "c", "a", keyed=True), actor=ACTOR)
    assert [(each.id, each.new) for each in again] == [(first[1].id, False), (again[1].id, True), (first[0].id, False)]
    assert titles(tx) == ["a", "b", "c"]


def test_a_call_repeated_makes_nothing_even_when_its_neighbour_is_out(tx: Connection) -> None:
    plan(tx)
    put(tx)
    plans.start(tx, "line", actor=ACTOR)
    at = After(order(tx)[0])
    first = add.add_many(tx, "line", new("a", "b", keyed=True), actor=ACTOR, to=at)
    run(tx)
    again = add.add_many(tx, "line", new("a", "b", keyed=True), actor=ACTOR, to=at)
    assert [each.id for each in again] == [each.id for each in first]
    assert not any(each.new for each in again)
    assert events(tx).count("add") == 2


def test_a_key_twice_in_one_call_is_one_item(tx: Connection) -> None:
    plan(tx)
    added = add.add_many(tx, "line", new("a", "b", "a", "a", "c", keyed=True), actor=ACTOR)
    assert [each.new for each in added] == [True, True, False, False, True]
    assert added[0].id == added[2].id == added[3].id
    assert titles(tx) == ["a", "b", "c"]


def test_a_key_twice_in_one_call_with_other_content_is_refused(tx: Connection) -> None:
    plan(tx)
    with pytest.raises(Invalid, match=r"^key: 'a' stands twice in this call with different content"):
        add.add_many(tx, "line", [*new("a", keyed=True), NewItem("noop", title="b", key="a")], actor=ACTOR)
    assert order(tx) == []


def test_a_key_of_another_content_refuses_the_whole_call(tx: Connection) -> None:
    plan(tx)
    add.add(tx, "line", NewItem("noop", key="k"), actor=ACTOR)
    with pytest.raises(KeyConflict, match="'k' was already used"):
        add.add_many(tx, "line", new(*"abc", "k", keyed=True), actor=ACTOR)
    assert titles(tx) == [""]


@pytest.mark.parametrize("first_is_stored", [False, True])
def test_an_entry_that_is_out_refuses_the_whole_call(tx: Connection, first_is_stored: bool) -> None:
    plan(tx)
    entries = [NewItem("noop", entry="e"), NewItem("noop", entry="f"), NewItem("noop", entry="e")]
    if first_is_stored:
        put(tx, entry="e")
    with pytest.raises(EntryOut, match="'e' has an item that is not settled"):
        add.add_many(tx, "line", entries[first_is_stored:], actor=ACTOR)
    assert len(order(tx)) == first_is_stored


def test_a_bad_item_behind_stored_chunks_takes_them_all_back(tx: Connection) -> None:
    plan(tx, autostart=True)
    with pytest.raises(Invalid, match=r"^title: "):
        add.add_many(tx, "line", new(*map(str, range(2 * add.CHUNK)), "a\x00"), actor=ACTOR)
    assert order(tx) == []
    assert not open_run(tx)
    put(tx)  # the transaction is not lost
    assert open_run(tx)


def test_special_characters_arrive_as_they_are(tx: Connection) -> None:
    plan(tx)
    odd = 'tab\t newline\n return\r backslash\\ \\N \\. quote" ü 😀'
    add.add_many(tx, "line", [NewItem("noop", [odd], {odd: odd}, title=odd, kind="x\\y", key=odd)], actor=ACTOR)
    row = tx.execute(text("select args, kwargs, title, kind, key from relevo.item where state = 'waiting'")).one()
    assert tuple(row) == ([odd], {odd: odd}, odd, "x\\y", odd)


def test_a_connection_lost_while_copying_is_told_as_such(engine: Engine) -> None:
    with engine.begin() as tx:
        plan(tx)

    def items(backend: int) -> Iterator[NewItem]:
        for n in range(3 * add.CHUNK):
            if n == add.CHUNK + 10:
                with engine.begin() as other:
                    other.execute(text("select pg_terminate_backend(:pid)"), {"pid": backend})
            yield NewItem("noop", title="x" * 100)

    with pytest.raises(DatabaseUnreachable, match=r"^Postgres is unreachable: "), db.reachable(), engine.begin() as tx:
        add.add_many(tx, "line", items(tx.execute(text("select pg_backend_pid()")).scalar_one()), actor=ACTOR)
    with engine.begin() as tx:
        assert order(tx) == []


@pytest.mark.timeout(300)
def test_a_stream_of_items_needs_memory_only_for_its_answer(tx: Connection, scale: Scale, monkeypatch: pytest.MonkeyPatch) -> None:
    count = scale.rounds(100_000, least=20_000)
    monkeypatch.setattr(add, "CHUNK", 500)
    plan(tx)
    tracemalloc.start()
    try:
        added = add.add_many(tx, "line", (NewItem("noop", kwargs={"n": n}, title=f"Item {n}") for n in range(count)), actor=ACTOR)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(added) == count
    assert peak < 110 * count + 4000 * add.CHUNK  # whole rows would take about 700 bytes each
