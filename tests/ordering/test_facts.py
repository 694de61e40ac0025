"""Facts: stored once in the caller's transaction, one item for each subscription, and what is shown of them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from sqlalchemy import Connection, Engine, text

from ordering import facts, plans, subscriptions
from ordering.errors import FactKeyConflict, Invalid, UnknownFact
from ordering.lines import TEXT_LIMIT
from ordering.model import State
from ordering.subscriptions import Subscription
from tests.ordering.acts import ACTOR, feed, plan
from tests.ordering.test_text import ANY_JSON


def subscribe(tx: Connection, *tasks: str, type: str = "invoice.issued", plan: str = "hearing") -> None:
    """Let these tasks hear the type in this stream."""
    for task in tasks:
        subscriptions.subscribe(tx, Subscription(type, task, plan), actor=ACTOR)


def items(tx: Connection) -> list[tuple[Any, ...]]:
    """Task, arguments and fact of every item, in their order."""
    return [tuple(row) for row in tx.execute(text("select task, args, fact_id from relevo.item order by position"))]


def count(tx: Connection, table: str) -> int:
    return int(tx.execute(text(f"select count(*) from relevo.{table}")).scalar_one())


def test_a_fact_becomes_one_item_for_each_subscription(tx: Connection) -> None:
    subscribe(tx, "notify")
    subscribe(tx, "draw", plan="drawing")
    subscribe(tx, "other", type="invoice.paid")
    made = facts.emit(tx, "invoice.issued", {"id": 7})
    assert sorted(items(tx)) == [("draw", [{"id": 7}], made), ("notify", [{"id": 7}], made)]
    found = facts.fact(tx, made)
    assert (found.type, found.key, found.data, found.heard) == ("invoice.issued", None, {"id": 7}, 2)
    assert sorted((each.plan, each.task, each.title, each.state) for each in found.items) == [
        ("drawing", "draw", "invoice.issued", State.WAITING),
        ("hearing", "notify", "invoice.issued", State.WAITING),
    ]


def test_an_item_of_a_fact_is_fed_as_any_other(tx: Connection) -> None:
    subscribe(tx, "notify")
    made = facts.emit(tx, "invoice.issued", {"id": 7})
    fed = feed(tx, "hearing")
    assert fed is not None
    assert fed.task == "notify"
    assert [each.state for each in facts.fact(tx, made).items] == [State.DISPATCHED]


def test_a_fact_that_nobody_hears_is_kept_as_unheard(tx: Connection) -> None:
    made = facts.emit(tx, "invoice.issued", {"id": 7})
    subscribe(tx, "notify")
    facts.emit(tx, "invoice.issued", {"id": 8})
    assert [each.id for each in facts.facts(tx, unheard=True).facts] == [made]
    assert facts.fact(tx, made).heard == 0
    assert len(items(tx)) == 1


def test_facts_stand_in_the_line_in_the_order_of_their_emits(tx: Connection) -> None:
    subscribe(tx, "notify")
    made = [facts.emit(tx, "invoice.issued", number) for number in range(20)]
    assert [fact_id for _, _, fact_id in items(tx)] == made


def test_the_same_key_and_data_is_the_same_fact(tx: Connection) -> None:
    subscribe(tx, "notify")
    first = facts.emit(tx, "invoice.issued", {"id": 7, "amount": 1.5}, key="7")
    assert facts.emit(tx, "invoice.issued", {"amount": 1.50, "id": 7}, key="7") == first
    assert (count(tx, "fact"), count(tx, "item")) == (1, 1)
    other = facts.emit(tx, "invoice.paid", {"id": 8}, key="7")
    assert other != first, "a key is one of its type"
    assert facts.emit(tx, "invoice.issued", {"id": 7, "amount": 1.5}) != first, "without a key it is another fact"


def test_the_same_key_with_other_data_is_refused(tx: Connection) -> None:
    made = facts.emit(tx, "invoice.issued", {"id": 7}, key="seven")
    for other in ({"id": 8}, {}, None, [{"id": 7}], {"id": 7, "more": None}):
        with pytest.raises(FactKeyConflict) as refused, tx.begin_nested():
            facts.emit(tx, "invoice.issued", other, key="seven")
        assert str(refused.value) == "key: seven was used for another fact of type invoice.issued; use another key, or the same data."
    assert facts.fact(tx, made).data == {"id": 7}


def test_an_emit_tells_whether_it_is_new_and_who_heard_it(engine: Engine) -> None:
    with engine.begin() as tx:
        subscribe(tx, "notify", "draw")
        made = facts.emit(tx, "invoice.issued", {}, key="k")
        assert facts.emitted(tx, made) == facts.Emitted(made, 2, new=True)
    with engine.begin() as tx:
        assert facts.emitted(tx, facts.emit(tx, "invoice.issued", {}, key="k")) == facts.Emitted(made, 2, new=False)


def test_what_is_rolled_back_leaves_nothing(engine: Engine) -> None:
    with engine.begin() as tx:
        subscribe(tx, "notify")
    with engine.connect() as tx, tx.begin() as transaction:
        facts.emit(tx, "invoice.issued", {}, key="k")
        transaction.rollback()
    with engine.begin() as tx:
        assert (count(tx, "fact"), count(tx, "item")) == (0, 0)
        facts.emit(tx, "invoice.issued", {"other": True}, key="k")  # the key is free


@given(value=ANY_JSON)
def test_data_come_back_as_they_were_or_are_refused_in_one_sentence(tx: Connection, value: Any) -> None:
    savepoint = tx.begin_nested()
    if _storable(value):
        made = facts.emit(tx, "any.thing", value)
        assert json.dumps(facts.fact(tx, made).data, sort_keys=True) == json.dumps(_stored(tx, value), sort_keys=True)
    else:
        with pytest.raises(Invalid, match=r"^data: "):
            facts.emit(tx, "any.thing", value)
    savepoint.rollback()


def _storable(value: Any) -> bool:
    """Whether every text in it is one that Postgres can store."""
    match value:
        case str():
            return not any(char == "\0" or "\ud800" <= char <= "\udfff" for char in value)
        case list():
            return all(map(_storable, value))
        case dict():
            return all(_storable(each) for pair in value.items() for each in pair)
        case _:
            return True


def _stored(tx: Connection, value: Any) -> Any:
    """What jsonb makes of it: -0.0 and the exponents of whole numbers are written otherwise."""
    return tx.execute(text("select cast(:value as jsonb)"), {"value": json.dumps(value, ensure_ascii=False)}).scalar_one()


def nested(depth: int) -> Any:
    made: Any = 1
    for _ in range(depth):
        made = [made]
    return made


WRONG: dict[str, tuple[str, Callable[[Connection], object]]] = {
    "no type": ("type: '' is not the name of a fact", lambda tx: facts.emit(tx, "", {})),
    "a type with a blank": ("type: 'a b' is not the name of a fact", lambda tx: facts.emit(tx, "a b", {})),
    "a line end": ("type: 'a\\n' is not the name of a fact", lambda tx: facts.emit(tx, "a\n", {})),
    "a NUL in the type": ("type: 'a\\x00' is not", lambda tx: facts.emit(tx, "a\0", {})),
    "half a pair in the type": ("type: '\\ud83d' is not", lambda tx: facts.emit(tx, "\ud83d", {})),
    "a long type": ("type: ", lambda tx: facts.emit(tx, "a" * 201, {})),
    "a type that is no text": ("type: '7' is not", lambda tx: facts.emit(tx, 7, {})),  # type: ignore[arg-type]
    "a NUL": ("data: holds a NUL character or half a surrogate pair", lambda tx: facts.emit(tx, "a", {"a": "\0"})),
    "a NUL in a name": ("data: holds a NUL character or half a surrogate pair", lambda tx: facts.emit(tx, "a", {"\0": 1})),
    "half a pair": ("data: holds a NUL character or half a surrogate pair", lambda tx: facts.emit(tx, "a", ["\udc80"])),
    "not a number": ("data: is not JSON", lambda tx: facts.emit(tx, "a", float("nan"))),
    "no JSON": ("data: is not JSON", lambda tx: facts.emit(tx, "a", object())),
    "10 MB": ("data: is larger than 1000000 bytes as JSON", lambda tx: facts.emit(tx, "a", "x" * 10_000_000)),
    "deep": ("data: is nested more than 100 levels deep", lambda tx: facts.emit(tx, "a", nested(101))),
    "an empty key": ("key: is empty", lambda tx: facts.emit(tx, "a", {}, key="")),
    "a NUL in the key": ("key: holds a NUL character", lambda tx: facts.emit(tx, "a", {}, key="a\0")),
    "half a pair in the key": ("key: holds a NUL character", lambda tx: facts.emit(tx, "a", {}, key="\ud83d")),
    "a long key": ("key: has 501 characters", lambda tx: facts.emit(tx, "a", {}, key="k" * 501)),
    "a page that is too long": ("limit: 10001 is out of range", lambda tx: facts.facts(tx, limit=10_001)),
    "no page": ("limit: -1 is out of range", lambda tx: facts.facts(tx, limit=-1)),
    "no cursor": ("cursor: 0 is none", lambda tx: facts.facts(tx, before=0)),
    "a cursor beyond all": ("cursor: 9223372036854775808 is none", lambda tx: facts.facts(tx, before=2**63)),
    "facts of no type": ("type: 'a b' is not the name of a fact", lambda tx: facts.facts(tx, type="a b")),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_one_sentence_that_names_the_field(tx: Connection, name: str) -> None:
    sentence, call = WRONG[name]
    with pytest.raises(Invalid) as refused, tx.begin_nested():
        call(tx)
    assert str(refused.value).startswith(sentence)
    assert len(str(refused.value).splitlines()) == 1
    assert count(tx, "fact") == 0


def test_what_is_just_allowed_is_stored(tx: Connection) -> None:
    subscribe(tx, "notify", type="a" * 200)
    made = facts.emit(tx, "a" * 200, {"x": "y" * 999_000, "deep": nested(99)}, key="😀" * 500)
    found = facts.fact(tx, made)
    assert found.key == "😀" * 500
    assert found.data["deep"] == nested(99)


def test_facts_are_listed_page_by_page_latest_first(tx: Connection) -> None:
    subscribe(tx, "notify", type="b")
    made = [facts.emit(tx, "ab"[number % 2], {"n": number}) for number in range(10)]
    first = facts.facts(tx, limit=4)
    assert [each.id for each in first.facts] == made[:-5:-1]
    second = facts.facts(tx, limit=4, before=first.next)
    third = facts.facts(tx, limit=4, before=second.next)
    assert [each.id for page in (second, third) for each in page.facts] == made[5::-1]
    assert third.next is None
    exact = facts.facts(tx, limit=10)
    assert (len(exact.facts), exact.next) == (10, None)
    assert [each.id for each in facts.facts(tx, type="b").facts] == made[::-2]
    assert [each.id for each in facts.facts(tx, unheard=True).facts] == made[-2::-2]
    assert facts.facts(tx, type="b", unheard=True) == facts.FactPage([], None)
    assert [each.id for each in facts.facts(tx, type="a", unheard=True, limit=2, before=made[6]).facts] == [made[4], made[2]]
    assert facts.facts(tx, type="nobody.says.this").facts == []


def test_long_data_are_cut_in_a_list(tx: Connection) -> None:
    facts.emit(tx, "a", {"text": "é" * 1000})
    (found,) = facts.facts(tx).facts
    assert len(found.data) == TEXT_LIMIT


def test_an_unknown_fact_is_refused(tx: Connection) -> None:
    with pytest.raises(UnknownFact, match=r"^There is no fact 99; the list of facts has the latest\.$"):
        facts.fact(tx, 99)


def test_a_paused_stream_keeps_what_it_hears(tx: Connection) -> None:
    subscribe(tx, "notify")
    plans.pause(tx, "hearing", actor=ACTOR)
    facts.emit(tx, "invoice.issued", {})
    assert feed(tx, "hearing") is None
    plans.start(tx, "hearing", actor=ACTOR)
    assert feed(tx, "hearing") is not None


def test_no_other_item_of_the_plan_is_touched(tx: Connection) -> None:
    plan(tx, "line")
    subscribe(tx, "notify")
    before = tx.execute(text("select xmin from relevo.plan order by id")).all()
    facts.emit(tx, "invoice.issued", {})
    assert tx.execute(text("select xmin from relevo.plan order by id")).all() == before, "no plan's row is written"
