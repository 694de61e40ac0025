"""The eight checks that run after every case, against the tables, the broker, the processes and the bodies' own notes."""

import re
from collections import Counter
from typing import Any

from ordering import history, tally, views
from ordering.model import SETTLED, UNRESOLVED, Outcome, State
from ordering.session import LOCK_CLASS
from tests.cases.kit import Kit, Note, wait_until

SETTLE = 20.0  # seconds that the dust may take
TRACEBACK = re.compile(r"Traceback \(most recent call last\)|\b[Ii]nternal [Ss]erver [Ee]rror\b")


def checks(kit: Kit, *, in_order: bool = True, tracebacks: str | None = None) -> None:
    """All eight.

    `in_order`: nobody moved or postponed, so starts follow positions. `tracebacks`: a pattern of log lines that may stand above one.
    """
    nothing_lost(kit)
    one_at_a_time(kit, in_order)
    one_end_per_attempt(kit)
    starts_are_attempts(kit)
    no_surplus_messages(kit)
    running_means_alive(kit)
    counts_agree(kit)
    clean_logs(kit, tracebacks)


STANDING = """
    select i.id, i.state, i.at_head, i.error, d.ended_at as dispatch_ended, d.id as dispatch, p.concurrency = 1 as serial,
        (select count(*) from relevo.item h where h.plan_id = p.id and h.at_head) as heads,
        exists (select from relevo.run r where r.plan_id = p.id and r.ended_at is null) as running,
        (select f.not_before > now() from relevo.item f where f.plan_id = p.id and f.state = 'waiting'
            order by f.position, f.id limit 1) as line_waits
    from relevo.item i join relevo.plan p on p.id = i.plan_id left join relevo.dispatch d on d.id = i.dispatch_id
"""


def nothing_lost(kit: Kit) -> None:
    """1: every accepted item is waiting for a reason that can be told, out, unresolved with evidence, or settled."""

    def odd() -> list[Any]:
        rows = {row.id: row for row in kit.sql(STANDING)}
        missing = [("missing", item) for item in kit.added if item not in rows]
        return missing + [row for row in rows.values() if not _told(row)]

    wait_until(lambda: not odd(), SETTLE, lambda: f"every item stands somewhere for a reason, but {odd()[:10]}")


def _told(row: Any) -> bool:
    match State(row.state):
        case State.WAITING if row.serial:
            return bool(row.heads or not row.running or row.line_waits)
        case State.DISPATCHED:
            return row.dispatch is not None and row.dispatch_ended is None
        case state if state in UNRESOLVED:
            return bool(row.error)
        case _:
            return True


def one_at_a_time(kit: Kit, in_order: bool) -> None:
    """2: the bodies of a serial plan never overlap, and they start in plan order."""
    rows = kit.sql("""
        select i.id, i.plan_id from relevo.item i join relevo.plan p on p.id = i.plan_id where p.concurrency = 1
    """)
    plan_of = {row.id: row.plan_id for row in rows}
    open_: dict[int, Note] = {}
    for note in kit.notes():
        plan = plan_of.get(note.item)
        if plan is None or note.what not in ("start", "end"):
            continue
        before = open_.get(plan)
        if note.what == "start":
            # Only a body whose process was killed has no end; two of one plan in the same process cannot overlap.
            assert before is None or not _ended_later(kit, before, note.at), f"two bodies of one plan at once: {before} and {note}"
            open_[plan] = note
        elif before is not None and (before.item, before.attempt) == (note.item, note.attempt):
            del open_[plan]
    if in_order:
        _in_plan_order(kit)


FED = """
    select i.id, i.plan_id, i.position, i.created_at, least(min(past.created_at), min(now.created_at)) as fed
    from relevo.item i join relevo.plan p on p.id = i.plan_id
    left join relevo.attempt a on a.item_id = i.id left join relevo.dispatch past on past.id = a.dispatch_id
    left join relevo.dispatch now on now.id = i.dispatch_id
    where p.concurrency = 1 group by i.id
"""


def _in_plan_order(kit: Kit) -> None:
    starts = kit.starts()  # before the rows, so that each of them is on record there
    rows = {row.id: row for row in kit.sql(FED)}
    lines: dict[int, list[Any]] = {}
    for item in dict.fromkeys(note.item for note in starts):
        if item in rows:
            lines.setdefault(rows[item].plan_id, []).append(rows[item])
    for line in lines.values():
        for number, row in enumerate(line):
            # An emptied line begins at its first position again, so only what was there when the other was handed out counts.
            passed = [late for late in line[number:] if (late.position, late.id) < (row.position, row.id) and late.created_at < row.fed]
            assert not passed, f"item {row.id} started before {passed}, which stand in front of it: {[each.id for each in line]}"


def _ended_later(kit: Kit, body: Note, at: float) -> bool:
    return any(end.attempt == body.attempt and end.at > at for end in kit.ends(body.item))


def one_end_per_attempt(kit: Kit) -> None:
    """3: attempts are numbered without gap or double, and an item has succeeded exactly if its last attempt has, once."""
    for row in kit.sql(f"""
        select i.id, i.state, i.attempts, array_agg(a.number order by a.number) filter (where a.number is not null) as numbers,
            array_agg(a.outcome order by a.number) filter (where a.number is not null) as outcomes,
            count(distinct a.dispatch_id) as dispatches
        from relevo.item i left join ({history.EVERY}) a on a.item_id = i.id group by i.id
    """):
        numbers, outcomes = row.numbers or [], row.outcomes or []
        assert numbers == list(range(1, row.attempts + 1)), f"attempts of {row}"
        assert row.dispatches == len(numbers), f"two attempts of one dispatch: {row}"
        assert outcomes.count("succeeded") == (row.state == State.SUCCEEDED), f"outcomes of {row}"
        assert not outcomes or row.state != State.SUCCEEDED or outcomes[-1] == "succeeded", f"outcomes of {row}"


ENDED = f"select a.item_id, a.number, a.outcome, a.reason, i.task from ({history.EVERY}) a join relevo.item i on i.id = a.item_id"


def starts_are_attempts(kit: Kit) -> None:
    """4: a body starts once for each attempt; only one cut before its body, or never a task of ours, has no start."""
    starts = [(note.item, note.attempt) for note in kit.starts()]
    assert len(starts) == len(set(starts)), f"started twice: {sorted(start for start in set(starts) if starts.count(start) > 1)}"
    with kit.engine.connect().execution_options(isolation_level="REPEATABLE READ") as tx, tx.begin():
        rows = tx.exec_driver_sql(ENDED).all()
        out = tx.exec_driver_sql("select id, attempts from relevo.item where state = 'dispatched'").all()
    recorded, running = {(row.item_id, row.number) for row in rows}, {(row.id, row.attempts + 1) for row in out}
    assert set(starts) <= recorded | running, f"started and not on record: {set(starts) - recorded - running}"
    later = {(note.item, note.attempt) for note in kit.starts()}  # a body may have begun and ended since
    silent = [
        row for row in rows
        if (row.item_id, row.number) not in later
        and row.task.startswith("probe.") and row.outcome != "interrupted" and row.reason != "UnknownTask"
    ]  # fmt: skip
    assert not silent, f"on record and never started: {silent}"


def no_surplus_messages(kit: Kit) -> None:
    """5: the broker holds no more messages than there are heads to be run."""
    outstanding = "select count(*) from relevo.dispatch where claimed_at is null and ended_at is null"
    wait_until(lambda: kit.messages() <= kit.sql(outstanding)[0][0], SETTLE, "the broker holds no message without a dispatch")


RUNNING = f"""
    select i.id, s.pid, exists (select from pg_locks l where l.locktype = 'advisory' and l.granted
        and l.classid = {LOCK_CLASS} and l.objid = s.id and l.objsubid = 2
        and l.database = (select oid from pg_database where datname = current_database())) as held
    from relevo.item i join relevo.dispatch d on d.id = i.dispatch_id join relevo.session s on s.id = d.session_id
    where i.state = 'dispatched' and d.ended_at is null
"""


def running_means_alive(kit: Kit) -> None:
    """6: behind every running item stands a living process with its session, and before every living body a running item."""

    def odd() -> list[Any]:
        living = kit.living()
        rows = kit.sql(RUNNING)
        ended = {(note.item, note.attempt) for note in kit.ends()}
        bodies = {note.item for note in kit.starts() if note.pid in living and (note.item, note.attempt) not in ended}
        dead = [("no process behind", row) for row in rows if not row.held or row.pid not in living]
        return dead + [("not running, yet a body lives", item) for item in bodies - {row.id for row in rows}]

    wait_until(lambda: not odd(), SETTLE, f"running means alive, but {odd()[:10]}", pause=0.1)


def counts_agree(kit: Kit) -> None:
    """7: what the read models count is what the tables hold, and nothing is negative."""

    def pairs() -> list[tuple[str, Any, Any]]:
        with kit.engine.connect().execution_options(isolation_level="REPEATABLE READ") as tx, tx.begin():
            found: list[tuple[str, Any, Any]] = []
            for view in views.plans(tx):
                rows = tx.exec_driver_sql(
                    "select case when i.state = 'dispatched' and d.claimed_at is not null then 'running' else i.state end, count(*) "
                    "from relevo.item i left join relevo.dispatch d on d.id = i.dispatch_id "
                    "where i.plan_id = %s and (i.settled_at is null or i.settled_at >= %s) group by 1",
                    (view.id, view.run.started_at if view.run else "-infinity"),
                )
                table: dict[State, int] = {State(state): count for state, count in rows}
                found += [(f"{view.name} {state}", view.counts[state], table.get(state, 0)) for state in (*SETTLED, *State)]
            return found

    wrong = [pair for pair in pairs() if pair[1] != pair[2] or pair[1] < 0]
    assert not wrong, f"(what, shown, counted): {wrong}"
    totals_agree(kit)


RECORDED = f"""
    select p.name, a.outcome, count(*) from ({history.EVERY}) a join relevo.item i on i.id = a.item_id
    join relevo.plan p on p.id = i.plan_id group by 1, 2
"""


def totals_agree(kit: Kit) -> None:
    """7, of what is counted: each attempt on record, once. Only an interruption that its own process took back is not on record."""
    with kit.engine.connect().execution_options(isolation_level="REPEATABLE READ") as tx, tx.begin():
        counted = Counter[tuple[str, str]]()
        for total in tally.totals(tx):
            counted.update({(total.plan, outcome): getattr(total, outcome) for outcome in Outcome})
        recorded = {(name, outcome): count for name, outcome, count in tx.exec_driver_sql(RECORDED)}
        taken_back = tx.exec_driver_sql("select count(*) from relevo.event where action = 'retake'").scalar_one()
    more = {key: counted[key] - recorded.get(key, 0) for key in {*counted, *recorded} if counted[key] != recorded.get(key, 0)}
    wrong = {key: count for key, count in more.items() if key[1] != Outcome.INTERRUPTED or count < 0}
    assert not wrong, f"counted more or less than is on record: {wrong}"
    assert not more or taken_back, f"interruptions that are not on record, and nobody took one back: {more}"


def clean_logs(kit: Kit, tracebacks: str | None) -> None:
    """8: no unhandled traceback in any log."""
    for service in kit.services:
        lines = service.text().splitlines()
        for number, line in enumerate(lines):
            above = "\n".join(lines[max(0, number - 3) : number + 1])
            if TRACEBACK.search(line) and not (tracebacks and re.search(tracebacks, above)):
                raise AssertionError(f"{service.name} logged a traceback:\n" + "\n".join(lines[max(0, number - 5) : number + 40]))
