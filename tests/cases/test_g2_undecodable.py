"""G2: messages that cannot be decoded: each is shown once beside the dead letters, none comes back, and the worker goes on."""

import time

from ordering import refused
from ordering.model import DEFAULT_QUEUE, State
from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.workers import bad_messages


@both_brokers
def test_each_is_in_the_panel_once_and_the_next_one_runs(kit: Kit) -> None:
    (worker,) = kit.up(workers=1, slots=1)
    pids = kit.living()
    kit.plan("s", concurrency=2)
    bad = list(bad_messages.messages())
    push = bad_messages.push_amqp if kit.broker_url.startswith("amqp") else bad_messages.push_redis
    for message in bad:
        push(kit.broker_url, DEFAULT_QUEUE, message)
    valid = kit.add("s", "probe.nap", 0)
    kit.wait_state(valid, State.SUCCEEDED, seconds=30)

    def panel() -> list[refused.RefusedMessage]:
        with kit.tx() as tx:
            return refused.refused(tx, limit=500)

    wait_until(lambda: len(panel()) >= len(bad), 30, "all are shown")
    time.sleep(1)  # for one that would be delivered again
    assert len(panel()) == len(bad)
    assert all(line.reason and line.size is not None and len(line.preview.encode()) <= 200 for line in panel())
    assert worker.process.poll() is None
    assert kit.living() == pids
    wait_until(lambda: kit.messages() == 0, 30, "the last message is acknowledged")
    checks(kit)
