"""Nothing a message says is trusted (rule 13; G2): each bad one is recorded once, dropped, and harms nobody."""

from collections.abc import Callable

import redis
from hypothesis import given
from hypothesis import strategies as st

from tests.workers import bad_messages
from tests.workers.worker_process import Workers, until
from workers import refusal

WorkersOn = Callable[[str], Workers]


def expect_refused(pool: Workers, names: list[str], push: Callable[[str], object]) -> None:
    """Push each and wait until it is recorded; afterwards the same worker runs a valid message."""
    process = pool.processes[0]
    for number, name in enumerate(names, start=len(pool.notes("refused")) + 1):
        push(name)
        until(lambda n=number: len(pool.notes("refused")) >= n or process.poll() is not None, 30, f"{name} is recorded")  # type: ignore[misc]
        assert process.poll() is None, f"{name} ended the worker: {pool.log()[-3000:]}"
    pool.runs("valid:0")
    assert len(pool.notes("refused")) == len(names), "one record for each"
    assert list(pool.bodies("start")) == ["valid:0"]
    until(lambda: pool.publisher.queue_sizes([pool.queue]) == {pool.queue: 0}, 30, "the last message is acknowledged")
    # Once for each connection: no message was taken for a lost connection.
    assert pool.log().count("Connected to") == 1
    for line in pool.notes("refused"):
        assert line["reason"]
        assert len(line["preview"].encode()) <= refusal.PREVIEW_BYTES
        assert not line["preview"] or line["preview"].isprintable()


def test_each_bad_message_is_recorded_once_and_dropped(broker: str, start_workers: WorkersOn) -> None:
    pool = start_workers(broker)
    pool.start(slots=2)
    bad = {message.name: message for message in bad_messages.messages()}
    push = bad_messages.push_amqp if broker.startswith("amqp") else bad_messages.push_redis
    expect_refused(pool, list(bad), lambda name: push(broker, pool.queue, bad[name]))
    lines = dict(zip(bad, pool.notes("refused"), strict=True))
    assert lines["unknown task"]["task"] == "nobody.knows"
    assert lines["unknown task"]["id"] == "bad-unknown task:0"
    assert lines["unknown task"]["reason"] == "The task is unknown to this worker."
    assert lines["deep"]["size"] == 4000
    assert lines["id a list"]["id"] is None


def test_each_broken_envelope_is_recorded_once_and_dropped(broker_url: str, start_workers: WorkersOn) -> None:
    pool = start_workers(broker_url)
    pool.start(slots=2)
    bad = dict(bad_messages.envelopes())
    expect_refused(pool, list(bad), lambda name: bad_messages.push_raw(broker_url, pool.queue, bad[name]))


def test_a_broadcast_that_is_no_message_is_survived(broker_url: str, start_workers: WorkersOn) -> None:
    pool = start_workers(broker_url)
    pool.start(slots=2)
    client = redis.Redis.from_url(broker_url)
    bad = {"list": b"[1, 2]", "number": b"5", "empty": b"{}", "headers": b'{"headers": 5, "properties": {"delivery_tag": "1"}}'}
    try:
        expect_refused(pool, list(bad), lambda name: client.publish("/0.celery.pidbox", bad[name]))
    finally:
        client.close()


def test_a_flood_does_not_keep_the_valid_ones_back(broker: str, start_workers: WorkersOn) -> None:
    """All at once and already there when the worker starts, as after a bad deployment."""
    pool = start_workers(broker)
    pool.send("first:0")
    bad = list(bad_messages.messages())
    push = bad_messages.push_amqp if broker.startswith("amqp") else bad_messages.push_redis
    for message in bad:
        push(broker, pool.queue, message)
    pool.send("last:0")
    process = pool.start(slots=1)
    pool.ends("last:0")
    assert sorted(pool.bodies("start")) == ["first:0", "last:0"]
    assert len(pool.notes("refused")) == len(bad)
    assert process.poll() is None


@given(st.binary(max_size=400), st.integers(min_value=1, max_value=200))
def test_a_preview_is_short_and_printable(raw: bytes, limit: int) -> None:
    text = refusal.printable(raw, limit)
    assert len(text.encode()) <= limit
    assert text == "" or text.isprintable()


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_no_header_value_makes_the_check_itself_fail(value: object) -> None:
    for name in ("id", "task", "eta", "timelimit", "retries", "stamps", "shadow"):
        refusal.fault({"id": "1", "task": "a", name: value}, {"correlation_id": value}, "application/json", "utf-8")
    refusal.fault(value, value, value, value)
    described = refusal.refusal("r", value, {"id": value, "task": value})
    assert len(described.preview.encode()) <= refusal.PREVIEW_BYTES
