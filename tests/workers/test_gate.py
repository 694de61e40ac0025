"""A worker fetches a message only when it has a free slot, and acknowledges it before the body runs (rule 11; A1)."""

import signal
import time
from collections.abc import Callable

from tests.conftest import Scale
from tests.workers.proxy import Proxy
from tests.workers.worker_process import Workers, until

WorkersOn = Callable[[str], Workers]
Through = Callable[[str], tuple[Proxy, str]]
LONG = 20  # seconds that a long body takes: more than another worker needs to start on a busy machine


def test_no_message_waits_behind_a_long_body(broker: str, start_workers: WorkersOn, scale: Scale) -> None:
    """Three long bodies leave one of four slots; every short one must take it at once, and each runs once."""
    pool = start_workers(broker)
    processes = [pool.start(slots=2), pool.start(slots=2)]
    long = scale.seconds(20, least=4)
    for number in range(3):
        pool.send(f"long{number}:{long}")
    until(lambda: len(pool.bodies("start")) == 3, 5, "three long bodies run")
    sent: dict[str, float] = {}
    until_end = time.monotonic() + long - 2
    while time.monotonic() < until_end:
        name = f"short{len(sent)}:0"
        sent[name] = time.time()
        pool.send(name)
        time.sleep(0.15)
    until(lambda: sent.keys() <= pool.bodies("end").keys(), 1, "every short body has run")
    assert not [name for name in pool.bodies("end") if name.startswith("long")]
    starts = pool.bodies("start")
    assert max(starts[name][0] - at for name, at in sent.items()) < 1
    until(lambda: len(pool.bodies("end")) == 3 + len(sent), long, "the long bodies have ended")
    assert {name: len(times) for name, times in pool.bodies("start").items()} == dict.fromkeys(starts, 1)
    assert pool.publisher.queue_sizes([pool.queue]) == {pool.queue: 0}
    assert [process.poll() for process in processes] == [None, None]


def test_a_full_worker_takes_nothing_even_after_it_reconnected(broker: str, start_workers: WorkersOn, through_proxy: Through) -> None:
    between, url = through_proxy(broker)
    pool = start_workers(url)
    full = pool.start(slots=2)
    for number in range(2):
        pool.send(f"long{number}:{LONG}")
    until(lambda: len(pool.bodies("start")) == 2, 5, "two long bodies run")
    between.cut()
    until(lambda: pool.log().count("Connected to") == 2, 10, "the full worker is connected again")
    pool.send("next:0")
    pool.send("last:0")
    other = pool.start(slots=1)
    pool.ends("next:0", LONG)
    pool.ends("last:0", 5)
    assert not [name for name in pool.bodies("end") if name.startswith("long")]
    assert {line["pid"] for line in pool.notes("bodies") if line["id"] in ("next:0", "last:0")}.isdisjoint(
        {line["pid"] for line in pool.notes("bodies") if line["id"].startswith("long")}
    )
    # Its slots free again, the first worker takes its share.
    pool.ends(f"long0:{LONG}", 2 * LONG)
    pool.ends(f"long1:{LONG}", 5)
    other.terminate()
    other.wait(10)
    pool.runs("alone:0")
    assert full.poll() is None
    assert all(len(times) == 1 for times in pool.bodies("start").values())


def test_one_message_at_a_time_while_one_slot_is_free(broker: str, start_workers: WorkersOn) -> None:
    """Two messages are there before the worker looks again: the second is not for it, however fast the broker pushes."""
    pool = start_workers(broker)
    busy = pool.start(slots=2)
    pool.send(f"long0:{LONG}")
    until(lambda: pool.bodies("start"), 5, "a long body runs")
    until(lambda: pool.publisher.queue_sizes([pool.queue]) == {pool.queue: 0}, 5, "its message is acknowledged")
    busy.send_signal(signal.SIGSTOP)
    pool.send(f"long1:{LONG}")
    pool.send("short:0")
    time.sleep(0.3)  # time for a broker that pushes too much to do so
    busy.send_signal(signal.SIGCONT)
    until(lambda: f"long1:{LONG}" in pool.bodies("start"), 5, "the second slot is taken")
    pool.start(slots=1)
    pool.ends("short:0", LONG)
    assert list(pool.bodies("end")) == ["short:0"]
