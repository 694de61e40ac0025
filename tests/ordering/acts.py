"""The verbs in short forms for tests: what a person or a worker does, one call each, and what must hold whatever was done."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from ordering import add, attempt, decision, finish, head, history, items, plans, reconcile, session
from ordering.decide import Ended, Failed, Succeeded
from ordering.model import Claimed, Dispatch, Last, NewItem, Outcome, Place, Plan, State
from ordering.session import Process

ACTOR = "test"
PROCESS = Process("worker", "host", "boot", 1, 4242, 99)
BROKEN = Failed("ValueError", "it broke")
DONE = Succeeded(None)
TOMORROW = datetime.now(UTC) + timedelta(days=1)  # later than any run of the tests lasts
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def plan(tx: Connection, name: str = "line", **settings: Any) -> Plan:
    """A new plan."""
    return plans.create(tx, name, actor=ACTOR, **settings)


def put(tx: Connection, count: int = 1, *, plan: str = "line", to: Place = Last(), **fields: Any) -> list[int]:  # noqa: B008 - frozen
    """The ids of that many new items, in their order."""
    return [each.id for each in add.add_many(tx, plan, [NewItem("noop", **fields) for _ in range(count)], actor=ACTOR, to=to)]


def order(tx: Connection, plan: str = "line") -> list[int]:
    """What waits, in its order."""
    found = "select id from relevo.item where plan_id = :plan and state = 'waiting' order by position"
    return list(tx.execute(text(found), {"plan": plans.get(tx, plan).id}).scalars())


def feed(tx: Connection, plan: str = "line") -> Dispatch | None:
    """The dispatch that feeding gives, if any."""
    known = plans.get(tx, plan)
    fed = head.feed(tx, known.id, serial=known.serial)
    assert len(fed) <= 1
    return fed[0] if fed else None


def item_of(tx: Connection, dispatch_id: UUID) -> int:
    """The item that the dispatch carries."""
    found: int = tx.execute(text("select id from relevo.item where dispatch_id = :id"), {"id": dispatch_id}).scalar_one()
    return found


def dead_session(tx: Connection) -> int:
    """An open session whose lock nobody holds: its process is gone."""
    found: int = tx.execute(session.INSERT, vars(PROCESS)).scalar_one()
    return found


def run(tx: Connection, plan: str = "line") -> Claimed:
    """Feed and claim the next item."""
    fed = feed(tx, plan)
    assert fed is not None
    return claim(tx, fed)


def claim(tx: Connection, fed: Dispatch) -> Claimed:
    (claimed,) = attempt.claim(tx, fed.id, session_id=dead_session(tx))
    return claimed


def end(tx: Connection, ended: Ended = DONE, plan: str = "line") -> int:
    """Run the next item to this end; its id."""
    claimed = run(tx, plan)
    assert finish.finish(tx, claimed, ended) is not None
    return claimed.item_id


def lose(tx: Connection, claimed: Claimed, *, counts: bool = True, closed: bool = True) -> None:
    """Mark the claimed item as interrupted; `closed`: the time that its process had to come back is over."""
    session_id = tx.execute(text("select session_id from relevo.dispatch where id = :id"), {"id": claimed.dispatch_id}).scalar_one()
    (known,) = [each for each in session.unlocked(tx) if each.id == session_id]
    reconcile.interrupt(tx, known, reason="process lost", counts=counts)
    if closed:
        tx.execute(reconcile.CLOSE, {"id": session_id})


def bring(tx: Connection, state: State, plan: str = "line", **fields: Any) -> int:
    """A new first item of a started plan, brought to `state` by the verbs that lead there."""
    (item_id,) = put(tx, plan=plan, **fields)
    if state is State.WAITING:
        return item_id
    if state is State.POSTPONED:
        return items.postpone(tx, item_id, TOMORROW, actor=ACTOR).id
    if state is State.CANCELLED:
        return items.cancel(tx, item_id, actor=ACTOR).id
    fed = feed(tx, plan)
    assert fed is not None
    assert item_of(tx, fed.id) == item_id
    if state is State.DISPATCHED:
        return item_id
    claimed = claim(tx, fed)
    match state:
        case State.INTERRUPTED:
            lose(tx, claimed)
        case State.SUCCEEDED:
            finish.finish(tx, claimed, DONE)
        case State.FAILED | State.SKIPPED | State.RESOLVED:
            finish.finish(tx, claimed, BROKEN)
    match state:
        case State.SKIPPED:
            decision.skip(tx, item_id, actor=ACTOR)
        case State.RESOLVED:
            decision.resolve(tx, item_id, actor=ACTOR, note="by hand")
    return item_id


def state(tx: Connection, item_id: int) -> State:
    return items.get(tx, item_id).state


def events(tx: Connection, item_id: int | None = None) -> list[str]:
    """The actions of the trail, of one item or of all, oldest first."""
    where = "" if item_id is None else f"where item_id = {item_id}"
    return list(tx.execute(text(f"select action from relevo.event {where} order by id")).scalars())


def outcomes(tx: Connection, item_id: int) -> list[Outcome]:
    """How the item's attempts ended, in their order."""
    found = tx.execute(text(f"select outcome from ({history.EVERY}) a where item_id = :id order by number"), {"id": item_id}).scalars()
    return [Outcome(each) for each in found]


def open_run(tx: Connection, plan: str = "line") -> bool:
    """Whether a run of the plan is open."""
    found = "select exists (select from relevo.run r join relevo.plan p on p.id = r.plan_id where name = :p and ended_at is null)"
    return bool(tx.execute(text(found), {"p": plan}).scalar_one())


# Each query finds what must never be.
NEVER = {
    "two heads of a serial plan": "select plan_id from relevo.item where at_head group by 1 having count(*) > 1",
    "a head in a stream": "select 1 from relevo.item i join relevo.plan p on p.id = i.plan_id where at_head and concurrency > 1",
    "two unsettled items at one position": """
        select 1 from relevo.item where settled_at is null group by plan_id, position having count(*) > 1""",
    "a position that is too long": "select 1 from relevo.item where scale(position) > 24 or length(position::text) > 41",
    "settled without its time": """
        select 1 from relevo.item where (settled_at is null) = (state in ('succeeded', 'skipped', 'resolved', 'cancelled'))""",
    "attempts that are not the history": f"""
        with a as materialized ({history.EVERY})
        select 1 from relevo.item i where attempts <> (select count(*) from a where a.item_id = i.id)
            or attempts <> (select coalesce(max(number), 0) from a where a.item_id = i.id)""",
    "out without an open dispatch": """
        select 1 from relevo.item i join relevo.dispatch d on d.id = i.dispatch_id
        where i.state = 'dispatched' and d.ended_at is not null""",
    "an open dispatch without its item": """
        select 1 from relevo.dispatch d where ended_at is null and not exists (select from relevo.item where dispatch_id = d.id)""",
    "two open dispatches of a serial plan": """
        select 1 from relevo.dispatch d join relevo.plan p on p.id = d.plan_id
        where p.concurrency = 1 and d.ended_at is null group by p.id having count(*) > 1""",
    "a drained run with work left": """
        select 1 from relevo.run r join relevo.plan p on p.id = r.plan_id join relevo.item i on i.plan_id = p.id
        where r.id = (select max(id) from relevo.run where plan_id = p.id) and r.ended_as = 'drained' and not p.autostart
            and i.at_head""",
}


def assert_sound(tx: Connection) -> None:
    """Assert what holds after every verb."""
    broken = [name for name, query in NEVER.items() if tx.execute(text(query)).first() is not None]
    assert not broken, broken


def ids(rows: Sequence[Any]) -> list[int]:
    return [row.id for row in rows]
