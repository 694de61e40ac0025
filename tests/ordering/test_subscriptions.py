"""Subscriptions: start-up adds and updates them, only a command removes, and only a stream hears."""

import time
from threading import Barrier

import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import IntegrityError

from ordering import db, facts, plans, subscriptions
from ordering.errors import Invalid, NotAStream, UnknownSubscription
from ordering.subscriptions import Subscription
from tests.ordering.acts import ACTOR, events, feed, plan

ISSUED = Subscription("invoice.issued", "notify", "hearing")


def shown(tx: Connection) -> list[tuple[str, str, str]]:
    return [(each.type, each.task, each.plan) for each in subscriptions.subscriptions(tx)]


def test_a_subscription_creates_its_stream_which_runs(tx: Connection) -> None:
    assert subscriptions.subscribe(tx, ISSUED, actor="worker")
    made = plans.get(tx, "hearing")
    assert (made.serial, made.concurrency) == (False, plans.DEFAULT_CONCURRENCY)
    assert events(tx) == ["create", "start", "subscribe"]
    facts.emit(tx, "invoice.issued", {})
    assert feed(tx, "hearing") is not None


def test_a_task_without_a_plan_hears_in_the_default_stream(tx: Connection) -> None:
    subscriptions.subscribe(tx, Subscription("a", "notify"), actor=ACTOR)
    assert shown(tx) == [("a", "notify", "default")]


def test_said_again_it_changes_nothing_and_is_no_event(tx: Connection) -> None:
    subscriptions.subscribe(tx, ISSUED, actor=ACTOR)
    before = events(tx)
    assert not subscriptions.subscribe(tx, ISSUED, actor=ACTOR)
    assert events(tx) == before


def test_another_plan_moves_the_subscription_and_not_what_was_heard(tx: Connection) -> None:
    subscriptions.subscribe(tx, ISSUED, actor=ACTOR)
    facts.emit(tx, "invoice.issued", {})
    assert subscriptions.subscribe(tx, Subscription("invoice.issued", "notify", "other"), actor=ACTOR)
    facts.emit(tx, "invoice.issued", {})
    assert shown(tx) == [("invoice.issued", "notify", "other")]
    found = "select p.name from relevo.item i join relevo.plan p on p.id = i.plan_id order by i.id"
    assert list(tx.execute(text(found)).scalars()) == ["hearing", "other"]
    last = tx.execute(text("select before, after from relevo.event where action = 'subscribe' order by id desc limit 1")).one()
    assert last == ({"plan": "hearing"}, {"type": "invoice.issued", "task": "notify", "plan": "other"})


def test_none_is_removed_by_what_others_want(tx: Connection) -> None:
    subscriptions.subscribe_all(tx, [ISSUED, Subscription("b", "draw")], actor=ACTOR)
    subscriptions.subscribe_all(tx, [Subscription("b", "other")], actor=ACTOR)
    subscriptions.subscribe_all(tx, [], actor=ACTOR)
    assert shown(tx) == [("b", "draw", "default"), ("b", "other", "default"), ("invoice.issued", "notify", "hearing")]


def test_only_unsubscribe_removes_and_says_so_in_the_trail(tx: Connection) -> None:
    subscriptions.subscribe(tx, ISSUED, actor=ACTOR)
    facts.emit(tx, "invoice.issued", {})
    assert subscriptions.unsubscribe(tx, "invoice.issued", "notify", actor="ana", reason="nobody reads it") == ISSUED
    assert shown(tx) == []
    last = tx.execute(text("select actor, action, before, reason from relevo.event order by id desc limit 1")).one()
    gone = {"type": "invoice.issued", "task": "notify", "plan": "hearing"}
    assert tuple(last) == ("ana", "unsubscribe", gone, "nobody reads it")
    assert facts.fact(tx, facts.emit(tx, "invoice.issued", {})).heard == 0
    assert tx.execute(text("select count(*) from relevo.item")).scalar_one() == 1, "what was heard stays"


@pytest.mark.parametrize(
    ("type", "task", "sentence"),
    [
        ("invoice.issued", "draw", "'invoice.issued' is heard by notify, not by 'draw'; the list of subscriptions says who hears what."),
        ("nothing", "notify", "'nothing' is heard by no task, not by 'notify'; the list of subscriptions says who hears what."),
    ],
)
def test_unsubscribing_what_is_not_there_is_refused(tx: Connection, type: str, task: str, sentence: str) -> None:
    subscriptions.subscribe(tx, ISSUED, actor=ACTOR)
    with pytest.raises(UnknownSubscription) as refused:
        subscriptions.unsubscribe(tx, type, task, actor=ACTOR)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        (Subscription("a b", "notify"), "notify: on: 'a b' is not the name of a fact"),
        (Subscription("a\0", "notify"), "notify: on: 'a\\x00' is not the name of a fact"),
        (Subscription("a", ""), "task: is empty"),
        (Subscription("a", "\u200b"), "task: holds only invisible characters"),
        (Subscription("a", "\ud83d"), "task: holds a NUL character or half a surrogate pair"),
        (Subscription("a", "t" * 201), "task: has 201 characters"),
        (Subscription("a", "notify", "Not a plan"), "plan: 'Not a plan' is not a plan name"),
        (Subscription("a", "notify", "\0"), "plan: '\\x00' is not a plan name"),
    ],
)
def test_a_wrong_subscription_is_one_sentence(tx: Connection, wanted: Subscription, sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        subscriptions.subscribe(tx, wanted, actor=ACTOR)
    assert str(refused.value).startswith(sentence)
    assert shown(tx) == []


def test_a_serial_plan_hears_nothing(tx: Connection) -> None:
    plan(tx, "line")
    with pytest.raises(NotAStream) as refused:
        subscriptions.subscribe(tx, Subscription("invoice.issued", "notify", "line"), actor=ACTOR)
    assert str(refused.value) == (
        "plan: 'line' is a serial plan, so the task 'notify' cannot hear 'invoice.issued' there; name a stream (a plan with a concurrency "
        "above 1), or leave plan out for the stream 'default'."
    )


def test_the_database_keeps_serial_plans_from_hearing(tx: Connection) -> None:
    line = plan(tx, "line")
    with pytest.raises(IntegrityError), tx.begin_nested():
        tx.execute(text("insert into relevo.subscription (type, task, plan_id) values ('a', 'b', :plan)"), {"plan": line.id})
    subscriptions.subscribe(tx, ISSUED, actor=ACTOR)
    with pytest.raises(IntegrityError), tx.begin_nested():
        tx.execute(text("update relevo.plan set concurrency = 1 where name = 'hearing'"))


def test_the_list_counts_what_is_not_settled(tx: Connection) -> None:
    subscriptions.subscribe_all(tx, [ISSUED, Subscription("invoice.issued", "draw", "drawing"), Subscription("b", "notify")], actor=ACTOR)
    made = [facts.emit(tx, "invoice.issued", number) for number in range(5)]
    for number, change in enumerate(
        (
            "state = 'failed', unresolved_at = now()",
            "state = 'succeeded', settled_at = now()",
            "state = 'postponed', not_before = now()",
            "state = 'dispatched', dispatch_id = (select id from out)",
        )
    ):
        tx.execute(
            text(f"""with out as (insert into relevo.dispatch (plan_id, queue, task) select id, 'q', 'notify' from relevo.plan limit 1
            returning id) update relevo.item set {change} where task = 'notify' and fact_id = {made[number]}""")
        )
    b, draw, notify = subscriptions.subscriptions(tx)
    assert (notify.type, notify.task, notify.waiting, notify.out, notify.unresolved) == ("invoice.issued", "notify", 2, 1, 1)
    assert (draw.plan, draw.waiting, draw.out, draw.unresolved) == ("drawing", 5, 0, 0)
    assert notify.last == facts.fact(tx, made[-1]).at
    assert (b.waiting, b.last) == (0, None)


def test_workers_that_start_at_once_do_not_deadlock(engine: Engine) -> None:
    from concurrent.futures import ThreadPoolExecutor

    wanted = [Subscription(f"type{number % 7}", f"task{number}", f"plan{number % 5}") for number in range(30)]
    barrier = Barrier(4)

    def start(number: int) -> None:
        barrier.wait(60)
        moved = [Subscription(each.type, each.task, f"plan{(index + number) % 5}") for index, each in enumerate(wanted)]
        with engine.begin() as tx:  # a deadlock would be raised here: nothing is tried again
            subscriptions.subscribe_all(tx, reversed(moved), actor=ACTOR)
            time.sleep(0.05)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(start, number) for number in range(4)]:
            done.result(60)
    found = db.transact(engine, shown)
    assert [(type, task) for type, task, _ in found] == sorted((each.type, each.task) for each in wanted)
