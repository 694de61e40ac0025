"""The soft time limit belongs to a body: it neither breaks a claim or a finish, nor gets lost before the body begins."""

import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID

import pytest
from celery.exceptions import SoftTimeLimitExceeded

from ordering.decide import Failed, Succeeded
from ordering.model import Claimed, OnInterrupt
from workers import batch, body

CLAIMED = Claimed(
    UUID(int=1), 1, 1, "p", False, "t", [], {}, 1, 0, 3, OnInterrupt.HOLD, datetime.now(UTC), stepped=False, size=2
)  # fmt: skip


@pytest.fixture(autouse=True)
def as_in_a_pool_process() -> Iterator[None]:
    def over(*_: object) -> None:
        raise SoftTimeLimitExceeded

    before = signal.signal(signal.SIGUSR1, over)
    yield
    signal.signal(signal.SIGUSR1, before)


def come() -> None:
    signal.raise_signal(signal.SIGUSR1)


def ended(call: object = None) -> object:
    return body.run(call or (lambda: "done"), exhausted=lambda: False)  # type: ignore[arg-type]


def test_before_the_body_it_waits_for_it() -> None:
    with body.soft_limit_waits():
        come()
        assert ended() == Failed("SoftTimeLimitExceeded", "The soft time limit was exceeded.")


def test_in_the_body_it_raises() -> None:
    with body.soft_limit_waits():
        assert ended(come) == Failed("SoftTimeLimitExceeded", "The soft time limit was exceeded.")


def test_after_the_body_it_means_nothing() -> None:
    with body.soft_limit_waits():
        assert ended() == Succeeded("done")
        come()
    with body.soft_limit_waits():
        assert ended() == Succeeded("done")
    with pytest.raises(SoftTimeLimitExceeded):
        come()


def test_a_batch_s_verdict_that_is_given_is_noted_first() -> None:
    noted: list[object] = []

    def note(_: object, verdict: object) -> None:
        come()
        noted.append(verdict)

    message = batch.Message(CLAIMED, note)
    with pytest.raises(SoftTimeLimitExceeded):
        message.ack()
    assert noted == [Succeeded(None)]
    message.fail("too late")
    assert noted == [Succeeded(None)]
