"""Durable steps through a real worker: remembered results, retries of their own, sleeps, and definitions that changed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from ordering import clock, items
from ordering.model import Item, State
from tests.cases.kit import ACTOR, Kit, wait_until

Lines = list[list[Any]]


def script(up: Kit, line: str, *lines: list[Any], **fields: Any) -> int:
    return up.add(line, "heart.script", list(lines), **fields)


def effects(up: Kit, item: int) -> list[str]:
    """What the steps' functions noted, in order."""
    return [note.what for note in up.notes(item) if note.what not in ("start", "end")]


def again(up: Kit, item: int, *lines: list[Any]) -> None:
    """Retry with another definition."""
    up.retry(item, items.Edit(args=[list(lines)]))


def rows(up: Kit, item: int) -> list[Any]:
    return up.sql("select * from relevo.step where item_id = :item order by number", item=item)


def test_a_later_attempt_gets_the_result_without_a_call(up: Kit, line: str) -> None:
    item = script(up, line, ["step", "a", 1], ["step", "b", {"x": 2}], ["fail"])
    up.wait_state(item, State.FAILED)
    again(up, item, ["step", "a", 1], ["step", "b", {"x": 2}], ["step", "c", 3])
    assert up.wait_state(item, State.SUCCEEDED).result == [1, {"x": 2}, 3]
    assert effects(up, item) == ["a", "b", "c"]
    steps = up.history(item).steps
    assert [(step.number, step.name, step.kind, step.done, step.attempt) for step in steps] == [
        (1, "a", "step", True, 1), (2, "b", "step", True, 1), (3, "c", "step", True, 2),
    ]  # fmt: skip
    assert steps[1].result == '{"x": 2}'


def test_a_result_has_the_same_type_fresh_and_remembered(up: Kit, line: str) -> None:
    item = up.wait_state(up.add(line, "heart.typed_steps"), State.SUCCEEDED)
    assert item.result["fresh"] is True
    for part in (
        "datetime.datetime(2030",
        "datetime.date(2030",
        "UUID('",
        "b'\\xff\\x00'",
        "Decimal('1.10')",
        "1e+22",
        "{'b': 1, 'a'",
        "\\x00",
    ):
        assert part in item.result["shown"]
    assert effects(up, item.id).count("typed") == 1


def test_keyword_arguments_go_to_the_function(up: Kit, line: str) -> None:
    assert up.wait_state(up.add(line, "heart.keyword", kwargs={"days": 2}), State.SUCCEEDED).result == 172_800.0


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("generator", "generator is not JSON"),
        ("file", "TextIOWrapper is not JSON"),
        ("lambda", "function is not JSON"),
        ("large", "50000002 bytes"),
        ("set", "set is not JSON"),
        ("nan", "not JSON compliant"),
        ("disguised", "nonsense"),
        ("deep", "nested too deeply"),
    ],
)
def test_a_result_that_cannot_be_stored_fails_at_its_step_and_is_not_made_again(up: Kit, line: str, kind: str, words: str) -> None:
    lines: Lines = [["step", "first"], ["caught", "odd", {"unstorable": kind}], ["step", "behind"]]
    item = script(up, line, *lines)
    for _ in range(2):
        failed = up.wait_state(item, State.FAILED)
        assert failed.error is not None
        assert "Step 2 'odd'" in failed.error
        assert words in failed.error
        assert failed.error.count("\n") == 0
        up.retry(item)
        wait_until(lambda: up.item(item).attempts >= 2 and up.state(item) is State.FAILED, 30, "the next attempt")
    assert effects(up, item) == ["first", "odd"]


def test_the_error_of_a_step_is_its_own_whatever_it_is(up: Kit, line: str) -> None:
    item = up.wait_state(script(up, line, ["step", "odd", {"raises": "wild"}]), State.FAILED)
    assert (item.error or "").startswith("Wild: (str() of the error raised LookupError)")
    (step,) = up.history(item.id).steps
    assert (step.done, step.failures) == (False, 1)
    assert (step.error or "").startswith("Wild")


CHANGES: dict[str, tuple[Lines, Lines, str]] = {
    "another name": (
        [["step", "a"], ["step", "b"]],
        [["step", "a"], ["step", "x"]],
        "step 2 is recorded as 'b', and now it is the step 'x'",
    ),
    "another order": (
        [["step", "a"], ["step", "b"]],
        [["step", "b"], ["step", "a"]],
        "step 1 is recorded as 'a', and now it is the step 'b'",
    ),
    "one more in front": ([["step", "a"]], [["step", "new"], ["step", "a"]], "step 1 is recorded as 'a', and now it is the step 'new'"),
    "a sleep now": ([["step", "a"]], [["sleep", "a", {"hours": 1}]], "step 1 is recorded as 'a', and now it is the sleep 'a'"),
    "one less": ([["step", "a"], ["step", "b"]], [["step", "a"]], "step 2 'b' is recorded, but the body returned without it"),
    "none left": ([["step", "a"]], [["key", "a"]], "step 1 'a' is recorded, but the body returned without it"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_definition_stops_for_a_person(up: Kit, line: str, name: str) -> None:
    old, new, sentence = CHANGES[name]
    item = script(up, line, *old, ["fail"])
    up.wait_state(item, State.FAILED)
    ran = effects(up, item)
    # In a body that would carry on: what ends it is said again by each further step, and by its return.
    again(up, item, *new)
    wait_until(lambda: up.item(item).attempts == 2 and up.state(item) is State.FAILED, 30, "the second attempt")
    assert sentence in (up.item(item).error or "")
    assert effects(up, item) == ran
    again(up, item, *old)
    up.wait_state(item, State.SUCCEEDED)
    assert effects(up, item) == ran


REFUSED: dict[str, tuple[Lines, str]] = {
    "twice": ([["step", "a"], ["step", "a"]], "Step 2 is called 'a', as an earlier one of this run"),
    "no name": ([["step", "a"], ["step", ""]], "Step 2: name: '' is no name"),
    "a number": ([["step", 7]], "Step 1: name: 7 is no name"),
    "a long name": ([["step", "x" * 201]], "Step 1: name: has 201 characters"),
    "invisible": ([["step", "\u200b"]], "Step 1: name: holds only invisible characters"),
    "nested": ([["step", "outer", "nested"]], "Step 'inner' was called inside step 'outer'"),
    "retries": ([["step", "a", 1, {"retries": -1}]], "Step 1 'a': retries: -1 is not"),
    "half a retry": ([["step", "a", 1, {"retries": 1.5}]], "Step 1 'a': retries: 1.5 is not"),
    "delay": ([["step", "a", 1, {"delay": 10**12}]], "Step 1 'a': delay: 1000000000000 is not"),
    "backoff": ([["step", "a", 1, {"backoff": 0}]], "Step 1 'a': backoff: 0 is not"),
    "a long sleep": ([["sleep", "a", {"days": 3661}]], "Sleep 1 'a': days=3661 is not a time from 0 seconds to ten years"),
    "an absurd sleep": ([["sleep", "a", {"seconds": 10**30}]], "Sleep 1 'a': seconds="),
    "a sleep backwards": ([["sleep", "a", {"hours": 1, "minutes": -61}]], "Sleep 1 'a': hours=1, minutes=-61 is not"),
    "no time": ([["sleep", "a", {"days": "two"}]], "Sleep 1 'a': days='two' is not"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_words_are_refused_with_a_sentence(up: Kit, line: str, name: str) -> None:
    lines, sentence = REFUSED[name]
    error = up.wait_state(script(up, line, *lines), State.FAILED).error or ""
    assert error.startswith(sentence)
    assert "\n" not in error


def test_a_failing_step_waits_in_postgres_and_uses_up_no_try(up: Kit, line: str) -> None:
    item = script(up, line, ["step", "a"], ["step", "flaky", {"fails": 3}, {"retries": 3, "delay": 0.2, "backoff": 1}], max_attempts=1)
    done = up.wait_state(item, State.SUCCEEDED)
    assert done.result == [None, 3]
    assert (done.attempts, done.tries) == (4, 1)
    assert effects(up, item) == ["a", "flaky", "flaky", "flaky", "flaky"]
    assert [(attempt.outcome, attempt.counts) for attempt in up.history(item).attempts] == [("failed", False)] * 3 + [("succeeded", True)]
    assert [(step.done, step.failures, step.error) for step in up.history(item).steps] == [(True, 0, None), (True, 3, None)]


def test_in_a_stream_too(up: Kit) -> None:
    up.plan("flow", concurrency=4)
    items = [
        script(up, "flow", ["step", "a"], ["step", "flaky", {"fails": 1}, {"retries": 1, "delay": 0}], ["sleep", "nap", {"seconds": 0}])
        for _ in range(5)
    ]
    for item in items:
        done = up.wait_state(item, State.SUCCEEDED, seconds=60)
        assert (done.result, done.tries, effects(up, item)) == ([None, 1], 1, ["a", "flaky", "flaky"])


def test_used_up_retries_fail_the_item_and_a_person_s_retry_grants_fresh_ones(up: Kit, line: str) -> None:
    item = script(up, line, ["step", "flaky", {"fails": 5}, {"retries": 2, "delay": 0}])
    failed = up.wait_state(item, State.FAILED)
    assert (failed.attempts, failed.tries) == (3, 1)
    assert (failed.error or "").startswith("ConnectionError: no 3")
    up.retry(item)
    done = up.wait_state(item, State.SUCCEEDED)
    assert (done.result, done.attempts) == ([5], 6)


def test_a_sleep_frees_the_slot_and_the_line_goes_on(up: Kit, line: str) -> None:
    item = script(up, line, ["step", "a"], ["sleep", "night", {"hours": 8}], ["step", "b"])
    behind = script(up, line, ["step", "other"])
    asleep = up.wait_state(item, State.POSTPONED)
    assert asleep.not_before is not None
    assert asleep.tries == asleep.attempts == 0
    first, second = up.history(item).steps
    assert (first.done, second.done, second.kind, second.wake_at) == (True, False, "sleep", asleep.not_before)
    up.wait_state(behind, State.SUCCEEDED)
    assert up.state(item) is State.POSTPONED
    # Eight hours pass.
    with up.tx() as tx:
        for over in ("item set not_before = now() where id", "step set wake_at = now() where kind = 'sleep' and item_id"):
            tx.execute(text(f"update relevo.{over} = :item"), {"item": item})
        due = clock.now(tx)
    done = up.wait_state(item, State.SUCCEEDED)
    assert (done.attempts, effects(up, item)) == (1, ["a", "b"])
    (late,) = up.sql("select ended_at - :due as late from relevo.step where item_id = :item and name = 'b'", item=item, due=due)
    assert timedelta(0) <= late.late < timedelta(seconds=15)
    assert [step.done for step in up.history(item).steps] == [True] * 3


def test_a_sleep_that_a_person_ends_is_over(up: Kit, line: str) -> None:
    item = script(up, line, ["sleep", "long", {"days": 14}], ["step", "b"], ["fail"])
    asleep = up.wait_state(item, State.POSTPONED)
    assert asleep.not_before is not None
    assert timedelta(days=13, hours=23) < asleep.not_before - datetime.now(UTC) <= timedelta(days=14)
    with up.tx() as tx:
        items.postpone(tx, item, datetime.now(UTC), actor=ACTOR)
    up.wait_state(item, State.FAILED)
    again(up, item, ["sleep", "long", {"days": 14}], ["step", "b"])
    up.wait_state(item, State.SUCCEEDED)
    assert effects(up, item) == ["b"]


def test_a_body_that_catches_everything_sleeps_all_the_same(up: Kit, line: str) -> None:
    item = script(up, line, ["careless", "nap"], ["step", "never"])
    up.wait_state(item, State.POSTPONED)
    assert [row.name for row in rows(up, item)] == ["nap"]
    assert effects(up, item) == []


def test_a_failure_that_the_body_handles_is_not_remembered_as_a_result(up: Kit, line: str) -> None:
    item = script(up, line, ["caught", "flaky", {"fails": 1}], ["step", "b"], ["fail"])
    up.wait_state(item, State.FAILED)
    up.retry(item)
    wait_until(lambda: up.item(item).attempts == 2, 30, "the second attempt")
    assert effects(up, item) == ["flaky", "b", "flaky"]


def test_an_idempotency_key_is_stable_and_belongs_to_item_and_name(up: Kit, line: str) -> None:
    keys: list[Item] = []
    for _ in range(2):
        item = script(up, line, ["key", "a"], ["key", "b"])
        keys.append(up.wait_state(item, State.SUCCEEDED))
    assert len({key for item in keys for key in item.result}) == 4
    (before,) = up.sql("update relevo.item set state = 'waiting', settled_at = null where id = :item returning result", item=keys[0].id)
    up.start(line)
    assert up.wait_state(keys[0].id, State.SUCCEEDED).result == before.result == keys[0].result
    assert up.item(keys[0].id).attempts == 2


def test_a_cancelled_item_s_step_is_not_recorded_and_its_body_ends(up: Kit, line: str) -> None:
    item, behind = script(up, line, ["step", "a"], ["nap", 30], ["step", "b"]), script(up, line, ["step", "other"])
    wait_until(lambda: rows(up, item), 30, "the first step")
    with up.tx() as tx:
        items.cancel(tx, item, actor=ACTOR)
    up.wait_state(behind, State.SUCCEEDED)
    assert [row.name for row in rows(up, item)] == ["a"]


def test_a_soft_time_limit_among_steps_is_heard(up: Kit, line: str) -> None:
    item = up.wait_state(up.add(line, "heart.many_steps"), State.FAILED, seconds=60)
    assert item.error == "The soft time limit was exceeded."
    (row,) = up.sql("select count(*), max(number), bool_and(done) as done from relevo.step where item_id = :item", item=item.id)
    assert (row.count, row.done) == (row.max, True)
    assert "Postgres cannot take it now" not in up.logs()


def test_a_soft_time_limit_as_a_result_is_stored_is_no_fault_of_the_result(up: Kit, line: str) -> None:
    item = up.wait_state(script(up, line, ["step", "a", "limited"], ["step", "b"]), State.FAILED)
    assert up.item(item.id).error == "The soft time limit was exceeded."
    assert [(row.name, row.done, row.error) for row in rows(up, item.id)] == [("a", True, None)]
