"""Adding one item: where it stands, what its key means, and what is refused at the door."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Connection

from ordering import add, decision, items, plans, row
from ordering.errors import EntryOut, Invalid, KeyConflict, NotInLine, UnknownItem, UnknownPlan
from ordering.model import After, Before, First, Last, NewItem, OnInterrupt, Place, State
from tests.ordering.acts import ACTOR, BROKEN, TOMORROW, bring, end, events, order, plan, put, run


def one(tx: Connection, to: Place = Last(), task: str = "noop", **fields: Any) -> add.Added:  # noqa: B008 - frozen
    return add.add(tx, "line", NewItem(task, **fields), actor=ACTOR, to=to)


def test_an_item_is_as_it_was_added(tx: Connection) -> None:
    plan(tx)
    added = one(
        tx, task="shell", args=[1, "ü"], kwargs={"a": {"b": None}}, title="Tïtle", kind="fix", key="k", entry="e",
        not_before=TOMORROW, on_interrupt=OnInterrupt.REQUEUE, max_attempts=7,
    )  # fmt: skip
    item = items.get(tx, added.id)
    assert added.new
    assert (item.task, item.args, item.kwargs, item.title, item.kind) == ("shell", [1, "ü"], {"a": {"b": None}}, "Tïtle", "fix")
    assert (item.key, item.entry, item.not_before, item.on_interrupt, item.max_attempts) == ("k", "e", TOMORROW, "requeue", 7)
    assert (item.state, item.position, item.at_head, item.attempts) == (State.WAITING, Decimal(1), False, 0)
    assert events(tx, added.id) == ["add"]


def test_it_stands_where_it_was_put(tx: Connection) -> None:
    plan(tx)
    a, b = put(tx, 2)
    first = one(tx, First()).id
    last = one(tx, Last()).id
    behind = one(tx, After(a)).id
    before = one(tx, Before(last)).id
    assert order(tx) == [first, a, behind, b, before, last]
    assert items.get(tx, behind).position == Decimal("1.5")


def test_first_is_behind_what_is_out_and_last_behind_what_is_postponed(tx: Connection) -> None:
    plan(tx)
    head, waiting, asleep = put(tx, 3)
    plans.start(tx, "line", actor=ACTOR)
    run(tx)
    items.postpone(tx, asleep, TOMORROW, actor=ACTOR)
    first, last = one(tx, First()).id, one(tx, Last()).id
    at = {each: items.get(tx, each).position for each in (head, first, waiting, asleep, last)}
    assert sorted(at, key=at.__getitem__) == [head, first, waiting, asleep, last]


def test_the_same_key_and_content_give_the_same_item_whatever_became_of_it(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    first = one(tx, key="k", kwargs={"a": 1, "b": 2})
    again = one(tx, First(), key="k", kwargs={"b": 2, "a": 1})
    end(tx)
    later = one(tx, key="k", kwargs={"a": 1, "b": 2})
    assert first.new
    assert again == later == add.Added(first.id, new=False)
    assert events(tx, first.id) == ["add"]


def test_a_key_belongs_to_its_plan(tx: Connection) -> None:
    plan(tx)
    plan(tx, "other")
    assert one(tx, key="k").new
    assert add.add(tx, "other", NewItem("noop", key="k", title="else"), actor=ACTOR).new


@pytest.mark.parametrize(
    "other",
    [
        {"task": "else"},
        {"title": "else"},
        {"kind": "else"},
        {"args": [1]},
        {"kwargs": {"a": 1}},
        {"entry": "else"},
        {"max_attempts": 2},
        {"on_interrupt": OnInterrupt.HOLD},
        {"not_before": TOMORROW},
    ],
)
def test_the_same_key_with_another_content_is_refused(tx: Connection, other: dict[str, Any]) -> None:
    plan(tx)
    first = one(tx, key="k").id
    with pytest.raises(KeyConflict, match=f"'k' was already used for item {first}"):
        one(tx, key="k", **other)
    assert order(tx) == [first]


def test_a_time_is_the_same_content_in_any_zone(tx: Connection) -> None:
    plan(tx)
    when = datetime(2030, 1, 1, 12, tzinfo=UTC)
    first = one(tx, key="k", not_before=when)
    assert one(tx, key="k", not_before=when.astimezone(timezone(timedelta(hours=5)))).id == first.id


@pytest.mark.parametrize("state", [State.WAITING, State.POSTPONED, State.DISPATCHED, State.RUNNING, State.FAILED, State.INTERRUPTED])
def test_an_entry_is_out_once(tx: Connection, state: State) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    bring(tx, state, entry="e")
    with pytest.raises(EntryOut, match="'e' has an item that is not settled"):
        one(tx, entry="e")
    put(tx)  # the transaction is not lost


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.SKIPPED, State.RESOLVED, State.CANCELLED])
def test_a_settled_entry_may_be_added_again(tx: Connection, state: State) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    bring(tx, state, entry="e")
    assert one(tx, entry="e").new


BAD: list[tuple[str, dict[str, Any]]] = [
    ("task", {"task": ""}),
    ("task", {"task": "a\x00b"}),
    ("task", {"task": "x" * 201}),
    ("args", {"args": ["\x00"]}),
    ("args", {"args": ["\ud800"]}),
    ("args", {"args": [float("nan")]}),
    ("args", {"args": [object()]}),
    ("args", {"args": "text"}),
    ("args", {"args": {"a": 1}}),
    ("args", {"args": ["x" * 1_000_001]}),
    ("args", {"kwargs": {"a": "ü" * 500_001}}),
    ("args", {"kwargs": {"\x00": 1}}),
    ("args", {"kwargs": []}),
    ("title", {"title": "\u200b\u2060"}),
    ("title", {"title": "\ud800"}),
    ("title", {"title": "x" * 12_001}),
    ("kind", {"kind": "\u00ad"}),
    ("kind", {"kind": "x" * 101}),
    ("key", {"key": ""}),
    ("key", {"key": "\x00"}),
    ("key", {"key": "x" * 501}),
    ("entry", {"entry": "\x00"}),
    ("max_attempts", {"max_attempts": 0}),
    ("max_attempts", {"max_attempts": 1001}),
    ("not_before", {"not_before": datetime(2030, 1, 1)}),
    ("not_before", {"not_before": datetime.now(UTC) + timedelta(days=4000)}),
    ("repairs", {"repairs": 999_999_999}),
    ("repairs", {"repairs": 2**63}),
]


@pytest.mark.parametrize(("field", "fields"), BAD)
@pytest.mark.parametrize("many", [False, True])
def test_bad_input_is_refused_in_a_sentence_that_names_the_field(tx: Connection, field: str, fields: dict[str, Any], many: bool) -> None:
    plan(tx)
    new = NewItem(**{"task": "noop", **fields})
    with pytest.raises(Invalid) as refusal:
        add.add_many(tx, "line", [NewItem("noop"), new], actor=ACTOR) if many else add.add(tx, "line", new, actor=ACTOR)
    assert refusal.value.field == field
    assert str(refusal.value).endswith(".")
    assert len(str(refusal.value)) < 300
    assert order(tx) == []


@pytest.mark.parametrize("actor", ["", " ", "a\x00", "x" * 201])
def test_somebody_must_have_done_it(tx: Connection, actor: str) -> None:
    plan(tx)
    with pytest.raises(Invalid, match=r"^actor: "):
        add.add(tx, "line", NewItem("noop"), actor=actor)


def test_a_neighbour_that_is_out_gone_or_elsewhere_is_refused(tx: Connection) -> None:
    plan(tx)
    plan(tx, "other")
    plans.start(tx, "line", actor=ACTOR)
    done = end_of(tx)
    (elsewhere,) = put(tx, plan="other")
    for neighbour, why in ((done, "it is failed"), (elsewhere, "it is in another plan"), (0, "it is not there")):
        for place in (After(neighbour), Before(neighbour)):
            with pytest.raises(NotInLine, match=why):
                one(tx, place)


def end_of(tx: Connection) -> int:
    put(tx)
    return end(tx, BROKEN)


def test_an_unknown_plan_and_item_are_named(tx: Connection) -> None:
    with pytest.raises(UnknownPlan):
        add.add(tx, "nowhere", NewItem("noop"), actor=ACTOR)
    plan(tx)
    for verb in (decision.retry, decision.skip, items.cancel):
        with pytest.raises(UnknownItem, match="no item 77"):
            verb(tx, 77, actor=ACTOR)


def test_a_delay_said_again_is_the_same_content(tx: Connection) -> None:
    new = NewItem("shell", key="k", delay=timedelta(minutes=15))
    earlier, later = (row.row_of(new, lambda hour=hour: datetime(2030, 1, 1, hour, tzinfo=UTC)) for hour in (1, 2))  # type: ignore[misc]
    assert earlier.digest == later.digest
    assert earlier.not_before == datetime(2030, 1, 1, 1, 15, tzinfo=UTC)
    plan(tx)
    first = one(tx, key="k", delay=timedelta(minutes=15))
    assert one(tx, key="k", delay=timedelta(minutes=15)) == add.Added(first.id, new=False)
    with pytest.raises(KeyConflict):
        one(tx, key="k", delay=timedelta(minutes=16))


@pytest.mark.parametrize("delay", [timedelta(seconds=-1), timedelta(days=4000), timedelta.max])
def test_an_absurd_delay_is_refused(tx: Connection, delay: timedelta) -> None:
    plan(tx)
    with pytest.raises(Invalid, match="delay"):
        one(tx, delay=delay)
