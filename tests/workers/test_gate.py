"""A worker fetches a message only when it has a free slot, and acknowledges it before the body runs (rule 11; A1)."""

import signal
import time
from collections.abc import Callable

from tests.conftest import Scale
from tests.workers.proxy import Proxy
from tests.workers.worker_process import Workers, until

WorkersOn = Callable[[str], Workers]
Through = Callable[[str], tuple[Proxy, str]]


def test_no_message_waits_behind_a_long_body(broker: str, start_workers: WorkersOn, scale: Scale) -> None:
    """Three long bodies leave one of four slots; every short one must take it at once, and each runs once."""
    pool = start_workers(broker)
    processes = [pool.start(slots=2), pool.start(slots=2)]
    for number in range(3):
        pool.hold(f"long{number}")
    until(lambda: len(pool.bodies("start")) == 3, 30, "three long bodies run")
    sent: list[str] = []
    until_end = time.monotonic() + scale.seconds(18, least=2)
    while time.monotonic() < until_end or len(sent) < 10:
        sent.append(f"short{len(sent)}:0")
        pool.send(sent[-1])
        time.sleep(0.15)
    # The long ones last until they are let go, so none of these has waited behind one.
    until(lambda: set(sent) <= pool.bodies("end").keys(), 15, "every short body has run")
    assert not [name for name in pool.bodies("end") if name.startswith("long")]
    starts = pool.bodies("start")
    pool.let_go()
    until(lambda: len(pool.bodies("end")) == 3 + len(sent), 30, "the long bodies have ended")
    assert {name: len(times) for name, times in pool.bodies("start").items()} == dict.fromkeys(starts, 1)
    until(lambda: pool.publisher.queue_sizes([pool.queue]) == {pool.queue: 0}, 30, "the last message is acknowledged")
    assert [process.poll() for process in processes] == [None, None]


def test_a_full_worker_takes_nothing_even_after_it_reconnected(broker: str, start_workers: WorkersOn, through_proxy: Through) -> None:
    between, url = through_proxy(broker)
    pool = start_workers(url)
    full = pool.start(slots=2)
    for number in range(2):
        pool.hold(f"long{number}")
    until(lambda: len(pool.bodies("start")) == 2, 30, "two long bodies run")
    between.cut()
    until(lambda: pool.log().count("Connected to") == 2, 30, "the full worker is connected again")
    pool.send("next:0")
    pool.send("last:0")
    other = pool.start(slots=1)
    pool.ends("next:0")
    pool.ends("last:0")
    assert not [name for name in pool.bodies("end") if name.startswith("long")]
    assert {line["pid"] for line in pool.notes("bodies") if line["id"] in ("next:0", "last:0")}.isdisjoint(
        {line["pid"] for line in pool.notes("bodies") if line["id"].startswith("long")}
    )
    # Its slots free again, the first worker takes its share.
    pool.let_go()
    pool.ends("long0:held")
    pool.ends("long1:held")
    other.terminate()
    other.wait(30)
    pool.runs("alone:0")
    assert full.poll() is None
    assert all(len(times) == 1 for times in pool.bodies("start").values())


def test_one_message_at_a_time_while_one_slot_is_free(broker: str, start_workers: WorkersOn) -> None:
    """Two messages are there before the worker looks again: the second is not for it, however fast the broker pushes."""
    pool = start_workers(broker)
    busy = pool.start(slots=2)
    pool.hold("long0")
    until(lambda: pool.bodies("start"), 30, "a long body runs")
    until(lambda: pool.publisher.queue_sizes([pool.queue]) == {pool.queue: 0}, 15, "its message is acknowledged")
    busy.send_signal(signal.SIGSTOP)
    long1 = pool.hold("long1")
    pool.send("short:0")
    time.sleep(0.3)  # time for a broker that pushes too much to do so
    busy.send_signal(signal.SIGCONT)
    until(lambda: long1 in pool.bodies("start"), 30, "the second slot is taken")
    pool.start(slots=1)
    pool.ends("short:0")
    assert list(pool.bodies("end")) == ["short:0"]
