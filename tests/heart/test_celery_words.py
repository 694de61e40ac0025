"""Celery's own words keep their meaning: retries, limits, `.delay()`; what would bypass the plan is refused."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from celery import chain, chord, group

from ordering.errors import Invalid
from ordering.model import State
from tests.cases.kit import Kit, wait_until
from workers import celery
from workers.enqueue import NotSupported


@pytest.fixture
def tasks(up: Kit, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tasks as a user's own process imports them, with only a database to reach."""
    for name, value in up.environment().items():
        if name.startswith(("RELEVO_", "PROBE_")):
            monkeypatch.setenv(name, value)
    from tests.heart import heart_tasks

    return heart_tasks


def test_autoretry_waits_in_postgres_and_then_succeeds(up: Kit, line: str) -> None:
    item = up.add(line, "heart.auto", 1)
    waiting = up.wait_state(item, State.WAITING, State.SUCCEEDED)
    if waiting.state is State.WAITING and waiting.attempts == 1:
        assert waiting.not_before is not None
    assert up.wait_state(item, State.SUCCEEDED).result == 1
    assert up.outcomes(item) == ["failed", "succeeded"]


def test_autoretry_used_up_fails_with_the_original_error(up: Kit, line: str) -> None:
    item = up.wait_state(up.add(line, "heart.auto", 9), State.FAILED, seconds=60)
    assert item.tries == 3
    assert item.error is not None
    assert "ConnectionError: try 2" in item.error


def test_retry_may_change_the_arguments(up: Kit, line: str) -> None:
    item = up.wait_state(up.add(line, "heart.changed", 2), State.SUCCEEDED)
    assert (item.args, item.attempts, item.result) == ([0], 3, "done")


def test_the_item_s_own_allowance_bounds_the_task_s_retries(up: Kit, line: str) -> None:
    item = up.wait_state(up.add(line, "heart.changed", 9, max_attempts=2), State.FAILED)
    assert (item.attempts, item.tries) == (2, 2)


def test_soft_time_limit_is_readable_or_handled(up: Kit, line: str) -> None:
    failed = up.wait_state(up.add(line, "heart.soft"), State.FAILED)
    assert failed.error == "The soft time limit was exceeded."
    other = f"{line}-other"
    up.plan(other)
    assert up.wait_state(up.add(other, "heart.soft_kind"), State.SUCCEEDED).result == "tidied up"


def test_hard_time_limit_fails_the_item_and_frees_the_slot(up: Kit, line: str) -> None:
    item = up.wait_state(up.add(line, "probe.overrun"), State.FAILED)
    assert item.error == "time limit: the body was killed after 1 s"
    assert up.outcomes(item.id) == ["failed"]
    other = f"{line}-other"
    up.plan(other)
    up.wait_state(up.add(other, "probe.nap"), State.SUCCEEDED)


@pytest.mark.parametrize(
    ("verdict", "state", "words"),
    [
        ("go", State.SUCCEEDED, ""),
        ("done", State.SKIPPED, "somebody did it"),
        ("raise", State.FAILED, "cannot tell"),
        ("nonsense", State.FAILED, "precheck returned 'nonsense'"),
        ("naive", State.FAILED, "no time zone"),
    ],
)
def test_precheck_decides_before_the_body(up: Kit, line: str, verdict: str, state: State, words: str) -> None:
    item = up.wait_state(up.add(line, "heart.checked", verdict), state)
    assert words in (item.error or "")
    assert len(up.starts(item.id)) == (verdict == "go")


def test_precheck_puts_off(up: Kit, line: str) -> None:
    item = up.wait_state(up.add(line, "heart.checked", "later"), State.POSTPONED)
    assert item.not_before is not None
    assert timedelta(minutes=59) < item.not_before - datetime.now(UTC) < timedelta(minutes=61)
    assert item.attempts == 0


def test_a_result_that_cannot_be_stored_fails_the_item(up: Kit, line: str) -> None:
    item = up.wait_state(up.add(line, "heart.unstorable"), State.FAILED)
    assert item.error is not None
    assert "The result cannot be stored as JSON" in item.error


def test_a_result_that_is_no_number_of_json_fails_as_one(up: Kit, line: str) -> None:
    item = up.wait_state(up.add(line, "heart.infinite"), State.FAILED)
    assert item.error is not None
    assert "The result cannot be stored as JSON: Out of range float values" in item.error
    assert "SQL" not in item.error


@pytest.mark.parametrize("countdown", ["nan", "5", [1], True])
def test_a_countdown_that_is_no_number_is_named(up: Kit, tasks: Any, line: str, countdown: Any) -> None:
    item = up.wait_state(up.add(line, "heart.retries_in", countdown), State.FAILED)
    assert item.error is not None
    assert "is not a number of seconds" in item.error
    with pytest.raises(Invalid, match=r"countdown: .* is not a number of seconds"):
        tasks.auto.apply_async([0], countdown=float(countdown) if countdown == "nan" else countdown)


def test_a_countdown_beyond_ten_years_is_ten_years(up: Kit, line: str) -> None:
    added = up.add(line, "heart.retries_in", 1e300)
    wait_until(lambda: up.outcomes(added) == ["failed"], 30, "the first try")
    item = up.wait_state(added, State.WAITING)
    wait_until(lambda: up.messages() == 0, 30, "a retry waits in Postgres, and nothing of it in the broker")
    assert item.not_before is not None
    assert timedelta(days=3640) < item.not_before - datetime.now(UTC) < timedelta(days=3660)


def test_replace_is_refused_in_a_body(up: Kit, line: str) -> None:
    item = up.wait_state(up.add(line, "heart.replaces"), State.FAILED)
    assert item.error is not None
    assert "outside a plan" in item.error


def test_delay_adds_an_item_and_types_survive(up: Kit, tasks: Any) -> None:
    up.plan("typed", autostart=True)
    result = tasks.typed.delay(datetime(2030, 1, 1, tzinfo=UTC), price=Decimal("1.10"))
    item = up.wait_state(int(result.id), State.SUCCEEDED)
    assert item.plan == "typed"
    assert item.result["kinds"] == ["datetime", "Decimal"]
    with pytest.raises(NotSupported, match="relevo show"):
        result.get()


def test_delay_without_a_plan_goes_to_the_default_stream(up: Kit, tasks: Any) -> None:
    item = up.wait_state(int(tasks.changed.delay(0).id), State.SUCCEEDED)
    assert item.plan == "default"


def test_apply_async_delays_in_the_row_and_task_id_is_the_key(up: Kit, tasks: Any) -> None:
    first = tasks.changed.apply_async((0,), countdown=3600, task_id="only-once")
    with pytest.raises(Invalid, match="key"):
        tasks.changed.apply_async((0,), task_id="bad\x00key")
    assert up.item(int(first.id)).not_before is not None
    same = tasks.soft.apply_async(task_id="once")
    assert tasks.soft.apply_async(task_id="once").id == same.id


@pytest.mark.parametrize("countdown", [10**12, 10**30])
def test_an_absurd_countdown_is_refused(tasks: Any, countdown: int) -> None:
    with pytest.raises(Invalid, match="delay"):
        tasks.changed.apply_async((0,), countdown=countdown)


def test_what_bypasses_a_plan_is_refused_with_a_helpful_sentence(up: Kit, tasks: Any) -> None:
    s = tasks.changed.si(0)
    before = up.sql("select count(*) from relevo.item")
    calls: list[Any] = [
        lambda: chain(s, s).apply_async(),
        lambda: group(s, s).apply_async(),
        lambda: chord([s, s], s).apply_async(),
        lambda: tasks.changed.map([1, 2]).apply_async(),
        lambda: tasks.changed.chunks([(1,), (2,)], 1).apply_async(),
        lambda: tasks.changed.apply_async((0,), link=s),
        lambda: tasks.changed.apply_async((0,), queue="other"),
        lambda: tasks.changed.apply_async((0,), priority=3),
        lambda: tasks.changed.apply_async((0,), expires=60),
        lambda: tasks.changed.apply_async((0,), time_limit=60),
        lambda: celery.send_task("nobody.knows"),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(NotSupported) as refused:
            call()
        assert str(refused.value).endswith("."), number
    assert up.sql("select count(*) from relevo.item") == before


def test_send_task_adds_an_item(up: Kit, tasks: Any) -> None:
    assert up.item(int(celery.send_task("heart.changed", (0,)).id)).task == "heart.changed"


def test_retry_may_ask_for_more_tries_than_the_task_has(up: Kit, line: str) -> None:
    assert up.wait_state(up.add(line, "heart.patient", 6), State.SUCCEEDED, seconds=60).result == 6
