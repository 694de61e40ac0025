"""Any sequence of verbs leaves the line as the model has it."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
from sqlalchemy import Connection, Engine, text

from ordering import add, attempt, decision, finish, head, items, move, plans
from ordering.decide import AlreadyDone, Failed, Succeeded
from ordering.errors import NotAllowed, NotInLine, NotMovable, NotStarted, PlanBlocked, RelevoError
from ordering.model import UNRESOLVED, After, Before, Claimed, Dispatch, First, Last, NewItem, OnFailure, Place, State
from tests.ordering import acts
from tests.ordering.acts import ACTOR, BROKEN, DONE, LONG_AGO, TOMORROW
from tests.ordering.line_model import LINE, OUT, Line

PICK = st.integers(0, 10**6)
PLACES = st.sampled_from(["first", "last", "after", "before"])


class Walk(RuleBasedStateMachine):
    """One plan in one transaction, rolled back afterwards."""

    engine: Engine

    @initialize(halts=st.booleans(), count=st.integers(0, 6))
    def begin(self, halts: bool, count: int) -> None:
        self.tx = self.engine.connect()
        self.tx.begin()
        acts.plan(self.tx, on_failure=OnFailure.HALT if halts else OnFailure.CONTINUE)
        self.line = Line(halts)
        self.fed: Dispatch | None = None
        self.claimed: list[Claimed] = []
        self.current: dict[int, Claimed] = {}
        for item in acts.put(self.tx, count):
            self.line.add(item, Last())

    def teardown(self) -> None:
        if hasattr(self, "tx"):
            self.tx.close()

    def any_item(self, pick: int) -> int:
        # Settled items are tried too, but seldom: all that can be done with one is to be refused.
        known = self.line.order * 4 + [each for each in self.line.states if each not in self.line.order]
        return known[pick % len(known)]

    def place(self, kind: str, pick: int) -> Place:
        match kind:
            case "after":
                return After(self.any_item(pick))
            case "before":
                return Before(self.any_item(pick))
        return First() if kind == "first" else Last()

    def refused(self, error: type[RelevoError], verb: Callable[[], object]) -> None:
        with pytest.raises(error):
            verb()

    def state(self, item: int) -> State:
        return self.line.states[item]

    @rule(kind=PLACES, pick=PICK, many=st.integers(1, 3))
    def add(self, kind: str, pick: int, many: int) -> None:
        to = self.place(kind if self.line.states else "last", pick)
        new = [NewItem("noop")] * many

        def verb() -> list[add.Added]:
            return add.add_many(self.tx, "line", new, actor=ACTOR, to=to)

        if isinstance(to, (After, Before)) and self.state(to.item) not in LINE:
            self.refused(NotInLine, verb)
            return
        for each in verb():
            self.line.add(each.id, to)
            to = After(each.id)

    @precondition(lambda self: self.line.states)
    @rule(kind=PLACES, pick=PICK, where=PICK)
    def move(self, kind: str, pick: int, where: int) -> None:
        item, to = self.any_item(pick), self.place(kind, where)

        def verb() -> object:
            return move.move(self.tx, item, to, actor=ACTOR)

        if self.state(item) not in LINE:
            self.refused(NotMovable, verb)
        elif isinstance(to, (After, Before)) and self.state(to.item) not in LINE:
            self.refused(NotInLine, verb)
        else:
            verb()
            self.line.move(item, to)

    @precondition(lambda self: self.line.states)
    @rule(pick=PICK, later=st.booleans())
    def postpone(self, pick: int, later: bool) -> None:
        item = self.any_item(pick)

        def verb() -> object:
            return items.postpone(self.tx, item, TOMORROW if later else LONG_AGO, actor=ACTOR)

        if self.state(item) in (*LINE, State.DISPATCHED):
            verb()
            self.line.to_line(item, State.POSTPONED if later else State.WAITING)
        else:
            self.refused(NotAllowed, verb)

    @precondition(lambda self: self.line.states)
    @rule(pick=PICK)
    def cancel(self, pick: int) -> None:
        item = self.any_item(pick)

        def verb() -> object:
            return items.cancel(self.tx, item, actor=ACTOR)

        match self.state(item):
            case State.RUNNING:
                verb()
                self.line.states[item] = State.CANCELLED
                self.line.order.remove(item)
                self.line.attempts[item] += 1  # and the place is kept until the body is gone
            case State.WAITING | State.POSTPONED | State.DISPATCHED:
                verb()
                self.line.settle(item, State.CANCELLED)
            case _:
                self.refused(NotAllowed, verb)

    @precondition(lambda self: self.line.states)
    @rule(pick=PICK, verb=st.sampled_from(["retry", "skip", "resolve"]))
    def decide(self, pick: int, verb: str) -> None:
        item = self.any_item(pick)
        more = {"note": "by hand"} if verb == "resolve" else {}

        def act() -> object:
            return getattr(decision, verb)(self.tx, item, actor=ACTOR, **more)

        if self.state(item) not in UNRESOLVED:
            self.refused(NotAllowed, act)
            return
        act()
        if verb == "retry":
            self.line.to_line(item, State.WAITING)
        else:
            self.line.settle(item, State.SKIPPED if verb == "skip" else State.RESOLVED)

    @rule()
    def work(self) -> None:
        """Start, hand out and claim in one step, so that walks get far."""
        self.start()
        self.feed()
        if self.line.which(State.DISPATCHED):
            self.claim()

    @rule()
    def start(self) -> None:
        if self.line.unresolved:
            self.refused(PlanBlocked, lambda: plans.start(self.tx, "line", actor=ACTOR))
        else:
            assert plans.start(self.tx, "line", actor=ACTOR).opened is not self.line.open
            self.line.open = True

    @rule()
    def pause(self) -> None:
        if self.line.open:
            plans.pause(self.tx, "line", actor=ACTOR)
            self.line.open = False
        else:
            self.refused(NotStarted, lambda: plans.pause(self.tx, "line", actor=ACTOR))

    @rule()
    def feed(self) -> None:
        fed = acts.feed(self.tx)
        assert (acts.item_of(self.tx, fed.id) if fed else None) == self.line.feed()
        self.fed = fed or self.fed

    @precondition(lambda self: self.fed)
    @rule()
    def claim(self) -> None:
        assert self.fed
        found = attempt.claim(self.tx, self.fed.id, session_id=acts.dead_session(self.tx))
        assert [each.item_id for each in found] == self.line.which(State.DISPATCHED)
        for claimed in found:
            self.line.states[claimed.item_id] = State.RUNNING
            self.claimed.append(claimed)
            self.current[claimed.item_id] = claimed

    @precondition(lambda self: self.line.which(State.RUNNING))
    @rule(counts=st.booleans())
    def lose(self, counts: bool) -> None:
        (item,) = self.line.which(State.RUNNING)
        acts.lose(self.tx, self.current[item], counts=counts)
        self.line.states[item] = State.INTERRUPTED
        self.line.attempts[item] += 1

    @precondition(lambda self: self.claimed)
    @rule(pick=PICK, how=st.sampled_from(["succeed", "fail", "retry", "already"]))
    def finish(self, pick: int, how: str) -> None:
        """By the process that claimed it, which may be late."""
        claimed = self.claimed.pop(pick % len(self.claimed))
        item = claimed.item_id
        again = Failed("E", "text", retry_in=timedelta(hours=1))
        ended: dict[str, Succeeded | Failed | AlreadyDone] = {"succeed": DONE, "fail": BROKEN, "retry": again, "already": AlreadyDone("")}
        found = finish.finish(self.tx, claimed, ended[how])
        state = self.state(item)
        if claimed is not self.current[item] or state not in (State.RUNNING, State.INTERRUPTED):
            assert found is None
            if claimed is self.current[item] and state is State.CANCELLED:
                self.line.release(item)
            return
        if state is State.INTERRUPTED:
            self.line.attempts[item] -= 1  # the process was there all the time
        self.line.attempts[item] += how != "already"
        if how == "fail" or (how == "retry" and claimed.tries + 1 >= claimed.max_attempts):
            self.line.fail(item)
        elif how == "retry":
            self.line.to_line(item, State.WAITING, delayed=True)
        else:
            self.line.settle(item, State.SUCCEEDED if how == "succeed" else State.SKIPPED)
        assert found is self.state(item)

    @precondition(lambda self: self.line.delayed)
    @rule()
    def time_passes(self) -> None:
        self.tx.execute(text("update relevo.item set not_before = now() where state = 'waiting' and not_before > now()"))
        self.line.delayed.clear()

    @precondition(lambda self: self.line.which(State.POSTPONED))
    @rule()
    def an_hour_passes(self) -> None:
        self.tx.execute(text("update relevo.item set not_before = now() where state = 'postponed'"))
        head.wake_postponed(self.tx)
        for item in self.line.which(State.POSTPONED):
            self.line.to_line(item, State.WAITING)

    @invariant()
    def the_line_is_the_models(self) -> None:
        if hasattr(self, "tx"):
            assert_same(self.tx, self.line)


def assert_same(tx: Connection, line: Line) -> None:
    acts.assert_sound(tx)
    found = tx.execute(text("select id, settled_at is null as open, attempts, at_head from relevo.item order by position")).all()
    assert [row.id for row in found if row.open] == line.order
    assert {row.id: row.attempts for row in found} == line.attempts
    assert [row.id for row in found if row.at_head] == ([line.head] if line.head is not None else [])
    states = text("select i.id, " + items.STATE + " as state from " + items.TABLES)
    assert {row.id: State(row.state) for row in tx.execute(states)} == line.states
    assert acts.open_run(tx) is line.open
    assert len(line.which(*OUT)) <= 1


@pytest.mark.timeout(900)  # a failing walk is shrunk, which takes long
def test_any_walk_over_the_verbs(shared_engine: Engine) -> None:
    machine = type("WalkHere", (Walk,), {"engine": shared_engine})
    run_state_machine_as_test(machine, settings=settings(stateful_step_count=40))
