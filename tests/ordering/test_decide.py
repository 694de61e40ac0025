"""What follows from how a body ended: every case of the table."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordering.decide import BACKOFF_CAP, AlreadyDone, Failed, Next, NotYet, Succeeded, after, backoff, runs_again
from ordering.model import OnInterrupt, Outcome, State

SOON = timedelta(seconds=7)
YES_NO = (True, False)


@pytest.mark.parametrize(("serial", "tries"), list(product(YES_NO, range(3))))
def test_what_did_not_fail(serial: bool, tries: int) -> None:
    def following(ended: Succeeded | AlreadyDone | NotYet) -> Next:
        return after(ended, serial=serial, tries=tries, max_attempts=2, jitter=0.5)

    assert following(Succeeded([1])) == Next(State.SUCCEEDED, Outcome.SUCCEEDED, counts=True)
    assert following(AlreadyDone("why")) == Next(State.SKIPPED, None)
    assert following(NotYet(datetime.now(UTC), "why")) == Next(State.POSTPONED, None)


@pytest.mark.parametrize(("serial", "final", "asked", "left"), list(product(YES_NO, repeat=4)))
def test_a_failure(serial: bool, final: bool, asked: bool, left: bool) -> None:
    ended = Failed("E", "text", retry_in=SOON if asked else None, final=final)
    found = after(ended, serial=serial, tries=1, max_attempts=3 if left else 2, jitter=0.5)
    if asked and left:
        assert found == Next(State.WAITING, Outcome.FAILED, counts=True, delay=SOON)
    elif left and not serial and not final:
        assert found == Next(State.WAITING, Outcome.FAILED, counts=True, delay=timedelta(seconds=10))
    else:
        assert found == Next(State.FAILED, Outcome.FAILED, counts=True, keeps_head=serial)


@given(st.integers(1, 1000), st.booleans())
def test_the_tries_are_bounded(max_attempts: int, serial: bool) -> None:
    ended = Failed("E", "text", retry_in=SOON)
    states = [after(ended, serial=serial, tries=tries, max_attempts=max_attempts, jitter=1).state for tries in range(max_attempts)]
    assert states == [State.WAITING] * (max_attempts - 1) + [State.FAILED]


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_the_backoff_doubles_with_full_jitter_up_to_its_cap(tries: int, jitter: float) -> None:
    delay = backoff(tries, jitter)
    assert timedelta(0) <= delay <= min(BACKOFF_CAP, timedelta(seconds=10) * 2 ** min(tries, 20))
    assert backoff(tries, 0) == timedelta(0)
    assert backoff(tries, 1) == min(BACKOFF_CAP, timedelta(seconds=10) * 2 ** min(tries, 20))


@pytest.mark.parametrize(
    ("policy", "tries", "again"),
    [
        (OnInterrupt.HOLD, 0, False),
        (OnInterrupt.HOLD, 9, False),
        (OnInterrupt.REQUEUE, 0, True),
        (OnInterrupt.REQUEUE, 2, True),
        (OnInterrupt.REQUEUE, 3, False),
        (OnInterrupt.REQUEUE, 9, False),
    ],
)
def test_only_what_may_be_repeated_runs_again_and_not_for_ever(policy: OnInterrupt, tries: int, again: bool) -> None:
    assert runs_again(policy, tries, 3) is again
