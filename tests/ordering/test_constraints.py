"""What must never be, Postgres refuses: bad rows are written past the verbs, and the constraint that says no is named."""

from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from ordering import plans
from ordering.model import State
from tests.ordering.acts import ACTOR, bring, plan, put

CHECK, UNIQUE, EXCLUSION, FOREIGN, NOT_NULL = "23514", "23505", "23P01", "23503", "23502"


def refused(tx: Connection, statement: str, **values: Any) -> tuple[str, str | None]:
    """The SQLSTATE and the constraint with which Postgres refuses the statement."""
    with pytest.raises(DBAPIError) as refusal, tx.begin_nested():
        tx.execute(text(statement), values)
    error: Any = refusal.value.orig
    return error.sqlstate, error.diag.constraint_name


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.SKIPPED, State.RESOLVED, State.CANCELLED])
def test_settled_has_its_time(tx: Connection, state: State) -> None:
    plan(tx)
    (item_id,) = put(tx)
    statement = "update relevo.item set state = :state where id = :id"
    assert refused(tx, statement, state=state, id=item_id) == (CHECK, "item_settled")


@pytest.mark.parametrize("state", [State.WAITING, State.POSTPONED, State.DISPATCHED, State.FAILED, State.INTERRUPTED])
def test_only_settled_has_its_time(tx: Connection, state: State) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    item_id = bring(tx, state)
    assert refused(tx, "update relevo.item set settled_at = now() where id = :id", id=item_id) == (CHECK, "item_settled")


@pytest.mark.parametrize(
    ("state", "change"),
    [
        (State.WAITING, "at_head = true"),
        (State.WAITING, "dispatch_id = (select id from relevo.dispatch limit 1)"),
        (State.POSTPONED, "at_head = true"),
        (State.POSTPONED, "not_before = null"),
        (State.POSTPONED, "dispatch_id = (select id from relevo.dispatch limit 1)"),
        (State.DISPATCHED, "dispatch_id = null"),
        (State.INTERRUPTED, "dispatch_id = null"),
        (State.SUCCEEDED, "at_head = true"),
        (State.SKIPPED, "at_head = true"),
        (State.RESOLVED, "at_head = true"),
    ],
)
def test_only_what_is_out_has_a_head_and_a_dispatch(tx: Connection, state: State, change: str) -> None:
    plan(tx, "other")
    plans.start(tx, "other", actor=ACTOR)
    bring(tx, State.DISPATCHED, "other")
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    item_id = bring(tx, state)
    assert refused(tx, f"update relevo.item set {change} where id = :id", id=item_id) == (CHECK, "item_out")


def test_a_serial_plan_has_one_head(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    bring(tx, State.FAILED)
    (second,) = put(tx)
    statement = """update relevo.item set state = 'dispatched', at_head = true,
        dispatch_id = (select id from relevo.dispatch limit 1) where id = :id"""
    assert refused(tx, statement, id=second) == (UNIQUE, "item_head")


def test_two_unsettled_items_never_share_a_place(tx: Connection) -> None:
    plan(tx)
    a, b = put(tx, 2)
    statement = "update relevo.item set position = (select position from relevo.item where id = :a) where id = :b"
    assert refused(tx, statement, a=a, b=b) == (EXCLUSION, "item_line")
    swap = "update relevo.item set position = 3 - position where id in (:a, :b)"
    tx.execute(text(swap), {"a": a, "b": b})  # in one statement they may change places


@pytest.mark.parametrize("position", ["1e15", "-1e15", "0.0000000000000000000000001", "'NaN'", "'infinity'"])
def test_a_position_is_bounded(tx: Connection, position: str) -> None:
    plan(tx)
    (item_id,) = put(tx)
    state, name = refused(tx, f"update relevo.item set position = {position} where id = :id", id=item_id)
    assert (state, name) == (CHECK, "item_position_check")


def test_a_plan_has_one_open_run(tx: Connection) -> None:
    made = plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    statement = "insert into relevo.run (plan_id, on_failure, started_by) values (:plan, 'halt', 'x')"
    assert refused(tx, statement, plan=made.id) == (UNIQUE, "run_open")
    assert refused(tx, "update relevo.run set ended_at = now()") == (CHECK, "run_check")
    assert refused(tx, "update relevo.run set ended_at = now(), ended_as = 'x'") == (CHECK, "run_ended_as_check")


def test_a_key_is_used_once_and_has_a_digest(tx: Connection) -> None:
    plan(tx)
    put(tx, key="k")
    (other,) = put(tx)
    assert refused(tx, "update relevo.item set key = 'k', digest = 'd' where id = :id", id=other) == (UNIQUE, "item_key")
    assert refused(tx, "update relevo.item set key = 'x' where id = :id", id=other) == (CHECK, "item_key_digest")


def test_an_entry_is_out_once(tx: Connection) -> None:
    plan(tx)
    put(tx, entry="e")
    (other,) = put(tx)
    assert refused(tx, "update relevo.item set entry = 'e' where id = :id", id=other) == (UNIQUE, "item_entry_open")


def test_attempts_are_numbered_once(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    bring(tx, State.FAILED)
    copy = """insert into relevo.attempt (item_id, number, dispatch_id, started_at, outcome, counts)
        select item_id, number, dispatch_id, started_at, outcome, counts from relevo.attempt"""
    assert refused(tx, copy) == (UNIQUE, "attempt_item_id_number_key")


@pytest.mark.parametrize(
    ("table", "change", "name"),
    [
        ("item", "state = 'running', at_head = false", "item_state_check"),
        ("item", "args = '{}'", "item_args_check"),
        ("item", "kwargs = '[]'", "item_kwargs_check"),
        ("item", "on_interrupt = 'x'", "item_on_interrupt_check"),
        ("item", "max_attempts = 0", "item_max_attempts_check"),
        ("item", "tries = attempts + 1", "item_check"),
        ("item", "tries = -1", "item_check"),
        ("item", "task = ''", "item_task"),
        ("item", "not_before = 'infinity'", "item_not_before"),
        ("item", "not_before = '-infinity'", "item_not_before"),
        ("plan", "name = 'A'", "plan_name_check"),
        ("plan", "concurrency = 0", "plan_concurrency_check"),
        ("plan", "concurrency = 2", "plan_kind"),
        ("plan", "on_failure = 'x'", "plan_on_failure_check"),
        ("plan", "on_interrupt = 'x'", "plan_on_interrupt_check"),
        ("plan", "max_attempts = 1001", "plan_max_attempts_check"),
        ("plan", "stop_grace = interval '2 days'", "plan_stop_grace_check"),
        ("run", "on_failure = 'x'", "run_on_failure_check"),
        ("attempt", "outcome = 'x'", "attempt_outcome_check"),
        ("dispatch", "session_id = null", "dispatch_check"),
    ],
)
def test_every_value_is_one_of_its_kind(tx: Connection, table: str, change: str, name: str) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    bring(tx, State.FAILED)
    assert refused(tx, f"update relevo.{table} set {change}") == (CHECK, name)


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("delete from relevo.plan", FOREIGN),
        ("delete from relevo.dispatch", FOREIGN),
        ("delete from relevo.session", FOREIGN),
        ("update relevo.item set repairs = 999999999", FOREIGN),
        ("update relevo.item set plan_id = 999999999", FOREIGN),
        ("update relevo.item set position = null", NOT_NULL),
        ("update relevo.plan set name = null", NOT_NULL),
    ],
)
def test_nothing_points_to_what_is_not_there(tx: Connection, statement: str, state: str) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    bring(tx, State.RUNNING)
    assert refused(tx, statement)[0] == state


def test_an_items_history_goes_with_it_and_a_repair_outlives_what_it_repairs(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    broken = bring(tx, State.RESOLVED)
    (repair,) = put(tx, repairs=broken)
    tx.execute(text("delete from relevo.item where id = :id"), {"id": broken})
    assert tx.execute(text("select count(*) from relevo.attempt")).scalar_one() == 0
    assert tx.execute(text("select repairs from relevo.item where id = :id"), {"id": repair}).scalar_one() is None
