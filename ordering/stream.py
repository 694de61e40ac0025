"""Feeding a stream: as many dispatches as its concurrency, each with as many items of one task as take about a second."""

from __future__ import annotations

import math

from sqlalchemy import Connection, text

from ordering.model import DEFAULT_QUEUE, Dispatch
from ordering.roundtrip import together

BATCH_SIZE = 100  # most items of a dispatch whose task does not say; a batch this size costs each item a tenth of a commit's wait
BATCH_SECONDS = 1.0  # of recent work in one dispatch
FEED_CLASS = 0x72656C66  # 'relf': the first half of the lock of whoever feeds a stream

# One feeder of a stream at a time, or two would each fill the whole window. Not the plan's row: a bulk add holds that for seconds.
LOCK = text(f"select pg_advisory_xact_lock({FEED_CLASS}, cast(:plan_id % 2147483647 as integer))")
# What may go out (dispatches, and items where the plan has a rate), what is due per task, and how long an item took lately.
# A rate is kept by the time at which the next item is free (the generic cell rate algorithm), with a burst of one second or one item.
# The 2 µs: times are whole microseconds, and 3.333333 s at 0.3 items per second are not quite the one item that is due.
LOOK = text(f"""
    with room as (
        select p.concurrency - (
                select count(*) from relevo.dispatch d where d.plan_id = p.id and d.ended_at is null
                and exists (select from relevo.item i where i.dispatch_id = d.id and i.state in ('dispatched', 'cancelled'))
            ) as dispatches,
            floor(p.rate * (0.000002 + extract(epoch from
                now() + greatest(1, 1 / p.rate) * interval '1 second' - greatest(coalesce(pace.free_at, now()), now())))) as items
        from relevo.plan p left join relevo.pace on pace.plan_id = p.id
        where p.id = :plan_id and exists (select from relevo.run r where r.plan_id = p.id and r.ended_at is null)
    ), due as (
        select task, count(*) as items from (
            select task from relevo.item where plan_id = :plan_id and state = 'waiting' and not_before is null
            order by position, id
            limit (select greatest(0, dispatches) * (select greatest({BATCH_SIZE}, max(batch_size)) from relevo.task) from room)
        ) x group by task
    )
    select room.dispatches, room.items as allowed, due.task, due.items as due, coalesce(t.batch_size, {BATCH_SIZE}) as most, (
        select cast(sum(extract(epoch from ended_at - claimed_at)) / sum(size) as float) from (
            select ended_at, claimed_at, size from relevo.dispatch d
            where d.plan_id = :plan_id and d.task = due.task and d.ended_at is not null and d.claimed_at is not null
            order by d.ended_at desc limit 5) x
        ) as seconds
    from room, due left join relevo.task t on t.name = due.task
""")
# What wishes to be requeued ends its process when Postgres is away for too long, and neighbours that wish otherwise with it: never in
# one dispatch.
FEED = text(f"""
    with due as materialized (
        select id, task, position, args, kwargs, least(coalesce(batch_limit, size), size) as most, coalesce(on_interrupt, '') as wish
        from relevo.item join unnest(cast(:tasks as text[]), cast(:sizes as integer[])) as given (name, size) on name = task
        where plan_id = :plan_id and state = 'waiting' and not_before is null
        order by position, id limit :items for no key update of item skip locked
    ), placed as (
        select due.*, (row_number() over (partition by task, most, wish order by position, id) - 1) / most as number from due
    ), batch as materialized (
        select task, most, wish, number, count(*) as size, gen_random_uuid() as dispatch_id
        from placed group by task, most, wish, number order by min(position) limit :dispatches
    ), d as (
        insert into relevo.dispatch (id, plan_id, queue, task, size, sends, sent_at)
        select dispatch_id, :plan_id, coalesce(t.queue, '{DEFAULT_QUEUE}'), task, size, 1, now()
        from batch left join relevo.task t on t.name = batch.task
        returning id, plan_id, queue, task, size
    ), fed as (
        update relevo.item set state = 'dispatched', dispatch_id = batch.dispatch_id
        from placed join batch using (task, most, wish, number)
        where item.id = placed.id and item.state = 'waiting'
        returning item.dispatch_id, item.position, left(item.args::text, 500) as args, left(item.kwargs::text, 500) as kwargs
    )
    select distinct on (d.id) d.id, d.plan_id, d.queue, d.task, d.size,
        case when d.size > 1 then d.size || ' items, the first: ' else '' end || fed.args as argsrepr, fed.kwargs as kwargsrepr
    from d join fed on fed.dispatch_id = d.id order by d.id, fed.position
""")
SPEND = text("""
    insert into relevo.pace (plan_id, free_at)
    select id, now() + :items / rate * interval '1 second' from relevo.plan where id = :plan_id and rate is not null
    on conflict (plan_id) do update set free_at = greatest(pace.free_at, now()) + (excluded.free_at - now())
""")


def batch_size(due: int, dispatches: int, most: int, seconds: float | None) -> int:
    """How many items of a task one dispatch carries.

    `due` items share the `dispatches` that may go out: under light load each carries one. `most` is the task's own limit, and
    `seconds` what an item took lately (None: not known, so one by one until it is).
    """
    by_time = 1 if seconds is None else int(BATCH_SECONDS / max(seconds, 1e-6))
    return max(1, min(math.ceil(due / dispatches), most, by_time))


def feed(tx: Connection, plan_id: int) -> list[Dispatch]:
    """Hand out what the stream may hand out now; the dispatches to publish after the commit. Any number of callers at once is safe."""
    _, looked = together(tx, (LOCK, {"plan_id": plan_id}), (LOOK, {"plan_id": plan_id}))
    if not looked or looked[0].dispatches <= 0 or (looked[0].allowed is not None and looked[0].allowed < 1):
        return []
    dispatches, allowed = looked[0].dispatches, looked[0].allowed
    sizes = {row.task: batch_size(row.due, dispatches, row.most, row.seconds) for row in looked}
    items = sum(min(row.due, dispatches * sizes[row.task]) for row in looked)
    fed = tx.execute(
        FEED,
        {
            "plan_id": plan_id,
            "tasks": list(sizes),
            "sizes": list(sizes.values()),
            "items": items if allowed is None else min(items, int(allowed)),
            "dispatches": dispatches,
        },
    ).all()
    if allowed is not None and fed:
        tx.execute(SPEND, {"plan_id": plan_id, "items": sum(row.size for row in fed)})
    return [Dispatch(row.id, row.plan_id, row.queue, row.task, row.argsrepr, row.kwargsrepr) for row in fed]
