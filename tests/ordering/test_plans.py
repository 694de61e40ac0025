"""Plans and runs: what may be created, and when a run begins, changes and ends."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text

from ordering import decision, items, plans
from ordering.errors import Invalid, NotStarted, PlanBlocked, PlanExists, UnknownPlan
from ordering.model import OnFailure, State
from tests.ordering.acts import ACTOR, BROKEN, TOMORROW, bring, end, events, feed, open_run, order, plan, put, run, state


def test_a_plan_is_as_it_was_created(tx: Connection) -> None:
    made = plan(tx, "a.b-c_9", title="Nightly", on_failure=OnFailure.CONTINUE, max_attempts=3, autostart=True)
    assert plans.get(tx, "a.b-c_9") == made
    assert (made.title, made.on_failure, made.max_attempts, made.autostart, made.serial) == ("Nightly", "continue", 3, True, True)
    assert events(tx) == ["create"]
    assert not open_run(tx, "a.b-c_9")


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "a" * 64, "a\x00", "a\n", "ä", "../x"])
def test_a_name_that_is_none_is_refused(tx: Connection, name: str) -> None:
    with pytest.raises(Invalid, match=r"^plan: .* is not a plan name; use"):
        plan(tx, name)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("concurrency", 0),
        ("concurrency", 10_001),
        ("max_attempts", 0),
        ("max_attempts", 1001),
        ("stop_grace", timedelta(seconds=-1)),
        ("stop_grace", timedelta(days=2)),
        ("title", "\u200b"),
        ("title", "a\x00"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(tx: Connection, field: str, value: Any) -> None:
    with pytest.raises(Invalid) as refusal:
        plan(tx, **{field: value})
    assert refusal.value.field == field
    assert tx.execute(text("select count(*) from relevo.plan")).scalar_one() == 0


def test_a_name_is_taken_once_and_the_transaction_goes_on(tx: Connection) -> None:
    plan(tx)
    with pytest.raises(PlanExists, match="choose another name"):
        plan(tx)
    assert plan(tx, "other").name == "other"


def test_an_unknown_plan_is_named(tx: Connection) -> None:
    for verb in (plans.get, plans.lock_by_name):
        with pytest.raises(UnknownPlan, match="'nowhere'"):
            verb(tx, "nowhere")
    with pytest.raises(UnknownPlan):
        plans.start(tx, "nowhere", actor=ACTOR)
    with pytest.raises(UnknownPlan):
        plans.pause(tx, "nowhere", actor=ACTOR)


def test_a_stream_always_runs(tx: Connection) -> None:
    plan(tx, concurrency=2)
    assert open_run(tx)


def test_start_opens_a_run_once_with_the_plans_policy(tx: Connection) -> None:
    plan(tx, on_failure=OnFailure.CONTINUE)
    first = plans.start(tx, "line", actor=ACTOR)
    again = plans.start(tx, "line", actor=ACTOR)
    assert (first.opened, first.on_failure) == (True, "continue")
    assert (again.opened, again.id, again.on_failure) == (False, first.id, "continue")
    assert events(tx) == ["create", "start"]


def test_start_of_a_running_plan_changes_its_policy_and_only_that(tx: Connection) -> None:
    plan(tx)
    first = plans.start(tx, "line", actor=ACTOR)
    changed = plans.start(tx, "line", actor=ACTOR, on_failure=OnFailure.CONTINUE)
    assert (changed.id, changed.on_failure, changed.opened) == (first.id, "continue", False)
    assert plans.get(tx, "line").on_failure == "halt"
    put(tx, 2)
    end(tx, BROKEN)
    assert feed(tx) is not None
    assert events(tx).count("start") == 2


@pytest.mark.parametrize("unresolved", [State.FAILED, State.INTERRUPTED])
@pytest.mark.parametrize("policy", list(OnFailure))
def test_start_is_refused_while_anything_is_unresolved(tx: Connection, unresolved: State, policy: OnFailure) -> None:
    plan(tx, on_failure=policy)
    plans.start(tx, "line", actor=ACTOR)
    item_id = bring(tx, unresolved)
    for paused in (False, True):
        with pytest.raises(PlanBlocked, match=f"{item_id} 'noop' \\({unresolved}\\); retry, skip or resolve") as refusal:
            plans.start(tx, "line", actor=ACTOR)
        assert refusal.value.items == [(item_id, "noop", unresolved)]
        if not paused and open_run(tx):
            plans.pause(tx, "line", actor=ACTOR)
    decision.skip(tx, item_id, actor=ACTOR)
    assert plans.start(tx, "line", actor=ACTOR).opened


def test_the_refusal_names_at_most_twenty(tx: Connection) -> None:
    plan(tx, on_failure=OnFailure.CONTINUE)
    plans.start(tx, "line", actor=ACTOR)
    put(tx, 21)
    for _ in range(21):
        end(tx, BROKEN)
    with pytest.raises(PlanBlocked) as refusal:
        plans.start(tx, "line", actor=ACTOR)
    assert len(refusal.value.items) == 20


def test_pause_lets_what_is_out_end_and_feeds_nothing(tx: Connection) -> None:
    plan(tx)
    put(tx, 2)
    plans.start(tx, "line", actor=ACTOR)
    out = run(tx)
    plans.pause(tx, "line", actor=ACTOR, reason="lunch")
    assert feed(tx) is None
    assert state(tx, out.item_id) is State.RUNNING
    with pytest.raises(NotStarted, match="nothing to pause"):
        plans.pause(tx, "line", actor=ACTOR)
    plans.start(tx, "line", actor=ACTOR)
    assert feed(tx) is None  # the first one is still out
    assert tx.execute(text("select ended_as from relevo.run order by id")).scalars().all() == ["paused", None]


def test_a_paused_stream_feeds_nothing_until_it_is_started(tx: Connection) -> None:
    plan(tx, concurrency=2)
    put(tx)
    plans.pause(tx, "line", actor=ACTOR)
    assert feed(tx) is None
    plans.start(tx, "line", actor=ACTOR)
    assert feed(tx) is not None


def test_a_run_drains_when_nothing_is_waiting_out_or_postponed(tx: Connection) -> None:
    plan(tx)
    (first, second) = put(tx, 2)
    plans.start(tx, "line", actor=ACTOR)
    items.postpone(tx, second, TOMORROW, actor=ACTOR)
    end(tx)
    assert feed(tx) is None
    assert open_run(tx)
    items.cancel(tx, second, actor=ACTOR)
    assert feed(tx) is None
    assert not open_run(tx)
    assert events(tx)[-1] == "drain"
    assert state(tx, first) is State.SUCCEEDED


def test_a_halted_run_stays_open_and_a_decision_lets_it_go_on(tx: Connection) -> None:
    plan(tx)
    put(tx, 2)
    plans.start(tx, "line", actor=ACTOR)
    broken = end(tx, BROKEN)
    assert feed(tx) is None
    assert open_run(tx)
    decision.skip(tx, broken, actor=ACTOR)
    assert feed(tx) is not None


def test_an_idle_autostart_plan_is_started_by_an_add(tx: Connection) -> None:
    plan(tx, autostart=True)
    assert not open_run(tx)
    put(tx)
    assert open_run(tx)


def test_autostart_has_the_refusal_of_start(tx: Connection) -> None:
    plan(tx, autostart=True, on_failure=OnFailure.CONTINUE)
    put(tx)
    broken = end(tx, BROKEN)
    feed(tx)
    assert not open_run(tx)
    (later,) = put(tx)
    assert not open_run(tx)
    decision.skip(tx, broken, actor=ACTOR)
    assert open_run(tx)
    assert order(tx) == [later]


def test_settling_the_last_unresolved_of_an_empty_autostart_plan_starts_nothing(tx: Connection) -> None:
    plan(tx, autostart=True, on_failure=OnFailure.CONTINUE)
    put(tx)
    broken = end(tx, BROKEN)
    feed(tx)
    decision.resolve(tx, broken, actor=ACTOR, note="done by hand")
    assert not open_run(tx)
