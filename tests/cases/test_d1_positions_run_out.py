"""D1: positions do not run out, whatever is dropped where and how often."""

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import quantiles

import pytest

from ordering import add, move, plans
from ordering.model import After, Before, First, Last, NewItem, Place, State
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit
from tests.cases.line import act, positions_fit, shown
from tests.conftest import Scale
from tests.patience import Stopwatch

SLOWEST = 0.5  # seconds within which nearly every request must be done


class Line:
    """A paused plan whose head runs, and the list that its line must equal."""

    def __init__(self, kit: Kit, length: int) -> None:
        self.kit = kit
        self.release = kit.folder / "release"
        kit.up(workers=1, slots=1)
        kit.plan("a")
        self.head = kit.add("a", "probe.wait_for", str(self.release))
        kit.wait_start(self.head)
        act(kit, plans.pause, "a", actor=ACTOR)
        self.model = kit.add_many("a", [NewItem("probe.nap") for _ in range(length)], start=False)
        self.times: list[float] = []

    def move(self, item: int, to: Place) -> None:
        with self.timed():
            act(self.kit, move.move, item, to, actor=ACTOR)

    def add(self, to: Place) -> int:
        with self.timed():
            return act(self.kit, add.add, "a", NewItem("probe.nap"), actor=ACTOR, to=to).id

    @contextmanager
    def timed(self) -> Iterator[None]:
        with Stopwatch() as watch:
            yield
        self.times.append(watch.seconds)


def drops(line: Line, count: int) -> None:
    for _ in range(count):
        last = line.model.pop()
        line.move(last, After(line.model[0]))
        line.model.insert(1, last)


def swaps(line: Line, count: int) -> None:
    for number in range(count):
        second, third = line.model[1:3]
        line.move(*((third, Before(second)) if number % 2 else (second, After(third))))
        line.model[1:3] = third, second


def appends(line: Line, count: int) -> None:
    line.model += [line.add(Last()) for _ in range(count)]


def prepends(line: Line, count: int) -> None:
    line.model[:0] = reversed([line.add(First()) for _ in range(count)])


BLOCKS = ((drops, 2000), (swaps, 2000), (appends, 5000), (prepends, 5000))


@pytest.mark.timeout(900)
def test_order_equals_a_plain_list(kit: Kit, scale: Scale) -> None:
    line = Line(kit, 20)
    standing = kit.item(line.head).position
    for work, full in (*BLOCKS, *((work, full // 10) for work, full in BLOCKS)):
        work(line, scale.rounds(full, least=200 if work is drops else 20))
        assert shown(kit, "a") == line.model, work.__name__
        positions_fit(kit)
        head = kit.item(line.head)
        assert (head.state, head.position, head.at_head) == (State.RUNNING, standing, True)
    assert quantiles(line.times, n=100)[98] < SLOWEST, f"slowest {max(line.times):.3f} s"
    line.release.touch()
    kit.wait_done(wanted=[line.head])
    assert len(kit.starts()) == 1, "a paused plan hands out nothing, however much it is rearranged"
    checks(kit)
