"""The feeder's sampler writes each minute's sample soon, survives a database that goes away, and ends with its block."""

import time

import pytest
from sqlalchemy import Engine, text

from tests.ordering.acts import plan
from tests.patience import wait_until
from workers import sampling
from workers.sampling import Sampler


def samples(engine: Engine) -> int:
    with engine.begin() as tx:
        found: int = tx.execute(text("select count(*) from relevo.sample")).scalar_one()
        return found


def until_sampled(engine: Engine) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if samples(engine):
            return True
        time.sleep(0.02)
    return False


def test_the_first_sample_is_taken_at_once(engine: Engine) -> None:
    with engine.begin() as tx:
        plan(tx)
    with Sampler(engine) as sampler:
        assert until_sampled(engine)
    wait_until(lambda: not sampler._thread.is_alive(), 30, "the sampler ends")


def test_what_failed_is_told_and_tried_again(engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(sampling, "AGAIN", 0.05)
    with engine.begin() as tx:
        plan(tx)
        tx.execute(text("alter table relevo.sample rename to gone"))
    with Sampler(engine) as sampler:
        deadline = time.monotonic() + 60
        while "No sample could be taken" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.02)
        assert "No sample could be taken" in caplog.text
        with engine.begin() as tx:
            tx.execute(text("alter table relevo.gone rename to sample"))
        assert until_sampled(engine)
    wait_until(lambda: not sampler._thread.is_alive(), 30, "the sampler ends")
