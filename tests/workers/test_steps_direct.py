"""Steps where there is no item: a direct call, a batch handler, another thread; and the delays between a step's tries."""

import signal
import threading
from datetime import timedelta
from typing import Any

import pytest
from celery.app.task import Context
from hypothesis import example, given
from hypothesis import strategies as st

from ordering.errors import Invalid
from workers import body, celery, pool
from workers.durable import Retries
from workers.enqueue import NotSupported


@celery.task(bind=True, name="direct.workflow")
def workflow(self: Any, value: int) -> Any:
    doubled = self.step("double", lambda number, times: number * times, value, times=2, retries=3)
    self.sleep("long", days=14)
    return self.step("wrap", tuple, [doubled]), self.idempotency_key("charge")


@pytest.mark.parametrize("call", [workflow, workflow.run])
def test_a_direct_call_only_calls_the_functions(call: Any) -> None:
    assert call(4)[0] == (8,)
    assert call(4)[1] != call(4)[1]


@pytest.mark.parametrize("use", [lambda: workflow.step("a", int), lambda: workflow.sleep("a"), lambda: workflow.idempotency_key("a")])
def test_a_batch_handler_has_no_steps(use: Any) -> None:
    workflow.request_stack.push(Context(id="a-batch", called_directly=False))
    try:
        with pytest.raises(NotSupported, match=r"direct\.workflow: .* has no meaning in a batch handler; .*\."):
            use()
    finally:
        workflow.request_stack.pop()


def test_another_thread_of_a_pool_process_has_no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "is_begun", lambda: True)
    told: list[str] = []

    def elsewhere() -> None:
        try:
            workflow.step("a", int)
        except NotSupported as refused:
            told.append(str(refused))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(60)
    assert told == ["direct.workflow: step() was called from another thread; call it where the body runs."]
    assert workflow.step("a", int) == 0


def test_the_delay_grows_to_an_hour_and_no_further() -> None:
    policy = Retries(5, 600, 3).checked()
    assert [policy.after(failures) for failures in range(1, 7)] == [timedelta(minutes=m) for m in (10, 30, 60, 60, 60)] + [None]
    assert policy.after(7) == timedelta(minutes=10)


def test_a_delay_above_an_hour_stays_as_it_is() -> None:
    policy = Retries(2, timedelta(days=1), 2).checked()
    assert [policy.after(failures) for failures in (1, 2, 3)] == [timedelta(days=1)] * 2 + [None]


@example(106, 0.0, 863.0, 106)
@example(1000, 5e-324, 1000.0, 105)
@given(st.integers(0, 1000), st.floats(0, 3660 * 86_400), st.floats(1, 1000), st.integers(1, 5000))
def test_a_delay_is_bounded_and_retries_are_counted(retries: int, delay: float, backoff: float, failures: int) -> None:
    found = Retries(retries, delay, backoff).checked().after(failures)
    assert (found is None) == (failures % (retries + 1) == 0)
    if found is not None:
        assert min(delay, 3600) - 1e-6 <= found.total_seconds() <= max(delay, 3600) + 1e-6


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        (Retries(True, 1, 1), "retries"),
        (Retries(1001, 1, 1), "retries"),
        (Retries(1, float("nan"), 1), "delay"),
        (Retries(1, timedelta(days=3661), 1), "delay"),
        (Retries(1, -1, 1), "delay"),
        (Retries(1, 1, float("inf")), "backoff"),
        (Retries(1, 1, 0.5), "backoff"),
    ],
)
def test_a_bad_policy_names_its_field(policy: Retries, field: str) -> None:
    with pytest.raises(Invalid, match=f"^{field}: "):
        policy.checked()


def write_amid(number: int, done: list[str]) -> None:
    """The signal comes in the middle of a write."""
    with body.undisturbed():
        signal.raise_signal(number)
        done.append("written")
    done.append("not reached")


def test_a_stop_and_a_soft_limit_wait_for_the_end_of_a_write() -> None:
    done: list[str] = []

    def limit(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGUSR1, limit)
    try:
        with body.stoppable() as told:
            with pytest.raises(TimeoutError):
                write_amid(signal.SIGUSR1, done)
            with pytest.raises(body.Stopped):
                write_amid(signal.SIGTERM, done)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert told.to_stop
    assert done == ["written", "written"]
