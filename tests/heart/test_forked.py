"""A body that forks: a child that comes back out of it ends, and records, feeds and reads nothing of its parent's."""

import pytest

from ordering import items
from ordering.model import State
from tests.cases.kit import Kit


@pytest.mark.parametrize("in_step", [False, True], ids=["body", "step"])
@pytest.mark.parametrize(("way", "code"), [("returns", 0), ("exits", 3), ("raises", 1)])
def test_a_child_that_comes_back_ends_and_the_body_goes_on(up: Kit, line: str, way: str, code: int, in_step: bool) -> None:
    item = up.wait_state(up.add(line, "heart.forks", way, in_step), State.SUCCEEDED)
    assert item.result == code
    assert up.outcomes(item.id) == ["succeeded"]


def test_a_child_has_no_steps(up: Kit, line: str) -> None:
    item = up.wait_state(up.add(line, "heart.forks", "steps"), State.SUCCEEDED)
    assert item.result == 1
    assert up.sql("select name from relevo.step where item_id = :item", item=item.id) == []


def test_a_cancel_ends_the_child_with_the_body(up: Kit, line: str) -> None:
    item = up.add(line, "heart.forks", "waits")
    up.wait_state(item, State.RUNNING)
    with up.tx() as tx:
        items.cancel(tx, item, actor="ana")
    up.wait_state(item, State.CANCELLED)
    other = f"{line}-other"
    up.plan(other)
    up.wait_state(up.add(other, "probe.nap", 0), State.SUCCEEDED)


def test_no_collection_in_a_pool_process_copies_what_its_worker_has_loaded(up: Kit, line: str) -> None:
    kept = up.wait_state(up.add(line, "heart.shared"), State.SUCCEEDED).result
    assert isinstance(kept, int)
    assert kept > 10_000, "objects that no collection touches"
