"""One sample a minute for each plan, exactly one however many write it; the last hour of them."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from sqlalchemy import Connection, Engine, text

from ordering import db, plans, samples, signals
from tests.ordering.acts import ACTOR, BROKEN, DONE, end, plan, put

TALLY = "insert into relevo.tally (session_id, plan_id, task, succeeded, retries)"
NOW = "date_trunc('minute', now())"


def put_sample(tx: Connection, minutes_ago: int, attempts: int = 0, retries: int = 0, depth: int = 0, plan: str = "line") -> None:
    tx.execute(
        text(f"""
            insert into relevo.sample (minute, plan_id, depth, oldest_seconds, attempts, retries, dead_letters)
            select {NOW} - :ago, id, :depth, 0, :attempts, :retries, 0 from relevo.plan where name = :plan"""),
        {"ago": timedelta(minutes=minutes_ago), "attempts": attempts, "retries": retries, "depth": depth, "plan": plan},
    )


def count(tx: Connection) -> int:
    found: int = tx.execute(text("select count(*) from relevo.sample")).scalar_one()
    return found


def test_many_feeders_write_one_sample_of_each_plan(engine: Engine) -> None:
    with engine.begin() as tx:
        for name in ("line", "other"):
            plan(tx, name)
        put(tx, 3)
        minute = tx.execute(text(f"select {NOW}")).scalar_one()
    with ThreadPoolExecutor(6) as feeders:
        written = list(feeders.map(lambda _: db.transact(engine, samples.take), range(12)))
    with engine.connect() as tx:
        minutes = tx.execute(text("select minute, count(*) as plans, sum(depth) as depth from relevo.sample group by 1")).all()
        last = tx.execute(text(f"select {NOW}")).scalar_one()
    # One minute, or the next too should it begin just now.
    assert minutes
    for each in minutes:
        assert minute <= each.minute <= last
        assert (each.plans, each.depth) == (2, 3)
    assert sum(written) == len(minutes)


def test_a_sample_says_what_the_signals_say(tx: Connection) -> None:
    plan(tx)
    put(tx, 4)
    plans.start(tx, "line", actor=ACTOR)
    end(tx, DONE)
    end(tx, BROKEN)
    assert samples.take(tx)
    assert not samples.take(tx)
    (row,) = tx.execute(text("select depth, attempts, retries, dead_letters from relevo.sample")).all()
    assert tuple(row) == (2, 2, 0, 1)


def test_old_samples_go(tx: Connection) -> None:
    plan(tx)
    for minutes in (119, 122, 500):
        put_sample(tx, minutes)
    samples.take(tx)
    assert count(tx) == 2


def test_the_retry_ratio_is_taken_over_five_minutes(tx: Connection) -> None:
    plan(tx)
    tx.execute(text("update relevo.plan set created_at = now() - interval '1 day'"))
    tx.execute(text(f"{TALLY} select 0, id, 'noop', 100, 30 from relevo.plan"))

    def ratio() -> float:
        return signals.signals(tx)[0].retry_ratio

    assert ratio() == 0  # nothing to compare it with: since the beginning is not five minutes
    put_sample(tx, 60, attempts=10, retries=10)
    assert ratio() == 0
    put_sample(tx, 2, attempts=98, retries=29)
    assert ratio() == 0.5  # a feeder that has just begun: the oldest there is
    put_sample(tx, 6, attempts=60, retries=20)
    assert ratio() == 0.25
    put_sample(tx, 5, attempts=80, retries=28)
    assert ratio() == 0.1
    tx.execute(text("update relevo.tally set retries = 99"))
    assert ratio() == 1.0


def test_a_plan_that_was_made_meanwhile_is_compared_with_nothing(tx: Connection) -> None:
    plan(tx, "old")
    put_sample(tx, 6, attempts=5, plan="old")
    plan(tx)
    tx.execute(text(f"{TALLY} select 0, id, 'noop', 4, 1 from relevo.plan where name = 'line'"))
    assert {each.plan: each.retry_ratio for each in signals.signals(tx)} == {"line": 0.25, "old": 0.0}


def test_the_last_hour_has_sixty_minutes_and_shows_its_gaps(tx: Connection) -> None:
    plan(tx)
    plan(tx, "empty")
    for minutes, attempts, retries, depth in ((64, 100, 0, 9), (59, 200, 50, 8), (3, 300, 50, 7), (2, 310, 55, 6), (0, 310, 55, 5)):
        put_sample(tx, minutes, attempts=attempts, retries=retries, depth=depth)
    past = samples.past(tx)
    assert list(past) == ["empty", "line"]
    found = past["line"]
    assert found.until == tx.execute(text(f"select {NOW}")).scalar_one()
    assert found.depth == [8, *[None] * 55, 7, 6, None, 5]
    assert found.retry_ratio == [0.5, *[None] * 55, 0.0, 0.5, None, 0.5]
    assert [len(each) for each in (found.oldest_age, found.dead_letters)] == [60, 60]
    assert past["empty"].depth == [None] * 60
    assert list(samples.past(tx, ["line"])) == ["line"]


def test_the_hour_ends_with_the_minute_before_until_this_ones_sample_is_taken(tx: Connection) -> None:
    plan(tx)
    put_sample(tx, 1, depth=2)
    assert samples.past(tx)["line"].depth[-1] == 2
    put_sample(tx, 0, depth=3)
    assert samples.past(tx)["line"].depth[-2:] == [2, 3]


def test_the_next_minute_is_near(tx: Connection) -> None:
    assert 0 < samples.seconds_to_next(tx) <= 60
