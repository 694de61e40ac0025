"""A stream beside the serial plans of a case: what happens to them happens to it, and it holds up none of them."""

from ordering import add
from ordering.model import NewItem, State
from tests.cases.kit import ACTOR, Kit, wait_until

PLAN = "beside"


def stream_beside(kit: Kit, count: int) -> frozenset[int]:
    """A stream with that many short items, which are not among `kit.added`."""
    kit.plan(PLAN, concurrency=3)
    with kit.tx() as tx:
        return frozenset(each.id for each in add.add_many(tx, PLAN, [NewItem("probe.nap", [0.01])] * count, actor=ACTOR))


def all_once(kit: Kit, beside: frozenset[int], seconds: float = 60) -> None:
    """Each item of the stream runs, once."""
    wait_until(lambda: {kit.state(item) for item in beside} == {State.SUCCEEDED}, seconds, "the stream beside is done", pause=0.2)
    started = [note.item for note in kit.starts() if note.item in beside]
    assert len(started) == len(set(started)) == len(beside)
