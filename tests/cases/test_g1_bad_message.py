"""G1: one bad message of a batch spoils nobody else's: each has its own verdict, its own attempts and its own end."""

import pytest

from ordering.model import NewItem, State
from tests.cases.kit import Kit, wait_until

TASKS = ("batch.one", "batch.all")


@pytest.fixture
def stream(kit: Kit) -> str:
    """A stream whose items are known to be quick, so that ten travel together."""
    catalogue = kit.catalogue(imports=("tests.cases.probe_tasks", "tests.cases.batch_tasks"), name="batches.toml")
    kit.up(workers=1, slots=2, RELEVO_CATALOGUE=str(catalogue))
    kit.plan("s", concurrency=2, max_attempts=3)
    for task in (*TASKS, "batch.silent"):
        warm = kit.add_many("s", [NewItem(task, args=["ok"])] * 6)
        kit.wait_done(wanted=warm)
    # However slow this machine is now.
    kit.sql("update relevo.dispatch set ended_at = claimed_at + interval '1 ms' * size where ended_at > claimed_at")
    return "s"


def send(kit: Kit, stream: str, task: str, seventh: object) -> tuple[list[int], int]:
    """Twenty messages in two batches of ten; the seventh of the first is bad."""
    kit.sql("update relevo.run set ended_at = now(), ended_as = 'paused' where ended_at is null")
    line = kit.add_many(stream, [NewItem(task, args=[seventh if number == 6 else "ok"]) for number in range(20)], start=False)
    kit.start(stream)
    wait_until(
        lambda: kit.sql("select max(size) from relevo.dispatch where task = :task", task=task)[0][0] == 10, 30, "ten travel together"
    )
    return line, line[6]


@pytest.mark.parametrize("task", TASKS)
def test_the_seventh_raises(kit: Kit, stream: str, task: str) -> None:
    line, bad = send(kit, stream, task, "raise")
    others = [item for item in line if item != bad]
    kit.wait_done(wanted=others)
    hurry(kit, bad)
    assert kit.wait_state(bad, State.FAILED, seconds=30).error
    assert kit.item(bad).tries == 3
    assert "no. 7 is bad" in (kit.item(bad).error or "")
    assert {len(kit.starts(item)) for item in others} == {1}, "an effect was repeated"
    assert {kit.item(item).tries for item in others} == {1}


@pytest.mark.parametrize("task", TASKS)
def test_the_seventh_kills_the_process(kit: Kit, stream: str, task: str) -> None:
    line, bad = send(kit, stream, task, "poison")
    others = [item for item in line if item != bad]
    kit.wait_done(90, wanted=others)
    assert kit.wait_state(bad, State.INTERRUPTED, seconds=60).tries == 3
    assert {kit.state(item) for item in others} == {State.SUCCEEDED}
    # Nobody knows which of several it was, so none of them pays: only tries that were made alone count.
    assert {kit.item(item).tries for item in others} == {1}
    assert kit.outcomes(bad)[-3:] == ["interrupted"] * 3


def test_three_wait_and_the_others_do_not(kit: Kit, stream: str) -> None:
    kit.sql("update relevo.run set ended_at = now(), ended_as = 'paused' where ended_at is null")
    delays = {2: 5.0, 4: 6.0, 6: 7.0}  # more than all the others need
    line = kit.add_many(
        stream, [NewItem("batch.all", args=[["retry", delays[n]] if n in delays else "ok"]) for n in range(20)], start=False
    )
    kit.start(stream)
    waiting = [line[n] for n in delays]
    others = [item for item in line if item not in waiting]
    kit.wait_done(wanted=line)
    soonest = min(kit.starts(item)[1].at for item in waiting)
    assert all(end.at < soonest for item in others for end in kit.ends(item)), "the others do not wait"
    for number, delay in delays.items():
        first, second = kit.starts(line[number])
        assert delay <= second.at - first.at < delay + 15
    assert [kit.outcomes(item) for item in waiting] == [["failed", "succeeded"]] * 3


def test_the_first_verdict_wins_and_silence_is_assent(kit: Kit, stream: str) -> None:
    (refused,) = kit.add_many(stream, [NewItem("batch.all", args=[["fail", "not wanted"]])])
    quiet = kit.add_many(stream, [NewItem("batch.silent", args=["ok"])] * 12)
    assert kit.wait_state(refused, State.FAILED).error == "not wanted"
    assert kit.item(refused).tries == 1
    kit.wait_done(wanted=quiet)
    assert {kit.state(item) for item in quiet} == {State.SUCCEEDED}


def test_outcomes_are_recorded_before_the_batch_ends_and_a_slow_one_holds_up_nobody(kit: Kit, stream: str) -> None:
    """A neighbour that takes long: what ended before it is on record at once, what stands behind it goes elsewhere."""
    kit.sql("update relevo.run set ended_at = now(), ended_as = 'paused' where ended_at is null")
    release = kit.folder / "release"
    line = kit.add_many(stream, [NewItem("batch.one", args=[["until", str(release)] if n == 6 else "ok"]) for n in range(20)], start=False)
    kit.start(stream)
    slow = line[6]
    kit.wait_start(slow)
    wait_until(lambda: {kit.state(item) for item in line[:6]} == {State.SUCCEEDED}, 15, "the six in front are on record")
    assert kit.state(slow) is State.RUNNING
    kit.wait_done(wanted=[item for item in line if item != slow])
    assert kit.state(slow) is State.RUNNING
    release.touch()
    kit.wait_done(wanted=[slow])
    assert {len(kit.starts(item)) for item in line} == {1}


def hurry(kit: Kit, item: int) -> None:
    """Let the item's backoffs be over at once, until it is decided or used up."""

    def over() -> bool:
        kit.sql("update relevo.item set not_before = now() where id = :id and state = 'waiting' and not_before > now()", id=item)
        return kit.state(item) in (State.FAILED, State.INTERRUPTED)

    wait_until(over, 40, "the bad one's tries are used up", pause=0.1)
