"""The head: feed hands out the next one; what the broker lost or never got is found here and sent again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from ordering import plans, stream
from ordering.model import DEFAULT_QUEUE, Dispatch
from ordering.roundtrip import together

OUT = "d.id, d.plan_id, d.queue, d.task, left(item.args::text, 500) as argsrepr, left(item.kwargs::text, 500) as kwargsrepr"

# Rule 2: the first waiting item of the line, never a later one; if it is not due yet, the line waits for it.
FEED_SERIAL = text(f"""
    with first as (
        select id, task, not_before from relevo.item
        where plan_id = :plan_id and state = 'waiting' order by position, id limit 1
    ), due as (
        select id, task from first
        where (not_before is null or not_before <= now())
          and exists (select from relevo.run where plan_id = :plan_id and ended_at is null)
          and not exists (select from relevo.item where plan_id = :plan_id and at_head)
    ), d as (
        insert into relevo.dispatch (plan_id, queue, task, sends, sent_at)
        select :plan_id, coalesce(t.queue, '{DEFAULT_QUEUE}'), due.task, 1, now()
        from due left join relevo.task t on t.name = due.task
        returning id, plan_id, queue, task
    )
    update relevo.item set state = 'dispatched', at_head = true, dispatch_id = d.id, not_before = null,
        due_at = coalesce(item.not_before, due_at)
    from due, d where item.id = due.id and item.state = 'waiting'
    returning {OUT}
""")


def _dispatch(row: Row[tuple[object, ...]]) -> Dispatch:
    return Dispatch(**row._mapping)


def feed(tx: Connection, plan_id: int, *, serial: bool) -> list[Dispatch]:
    """Hand out what the plan may hand out now, or end its run when nothing is left; the dispatches to publish after the commit.

    A serial plan gives at most one. Any number of callers at once is safe.
    """
    if not serial:
        return stream.feed(tx, plan_id)
    _, fed = together(tx, (plans.LOCK, {"id": plan_id}), (FEED_SERIAL, {"plan_id": plan_id}))
    if not fed:
        plans.close_if_drained(tx, plan_id)
    return dispatches(fed)


def dispatches(fed: Iterable[Any]) -> list[Dispatch]:
    """What the rows of a feeding statement hand out."""
    return [Dispatch(**row._asdict()) for row in fed]


# One head is chosen per plan before any limit, so that a blocked plan starves nobody. A plan appears only if feeding it
# would do something: a first item that is due, or nothing left.
READY = text("""
    select p.id, p.concurrency = 1 as serial
    from relevo.run r join relevo.plan p on p.id = r.plan_id
    left join lateral (
        select true as found, i.not_before from relevo.item i
        where i.plan_id = p.id and i.state = 'waiting' order by i.position, i.id limit 1
    ) first on true
    where r.ended_at is null and case when p.concurrency > 1 then (
            select true from relevo.item i
            where i.plan_id = p.id and i.state = 'waiting' and i.not_before is null order by i.position, i.id limit 1)
        when exists (select from relevo.item i where i.plan_id = p.id and i.at_head) then false
        when first.found then first.not_before is null or first.not_before <= now()
        else (
            select true from relevo.item i where i.plan_id = p.id and i.state = 'postponed' order by i.not_before limit 1
        ) is null end
""")


def ready(tx: Connection) -> list[tuple[int, bool]]:
    """The plans for which `feed` has something to do now, each with whether it is serial."""
    return [(row.id, row.serial) for row in tx.execute(READY)]


# The line changes, so the plan's lock comes first (rule 1). A plan that is busy right now is woken by the next round: waiting
# for one plan's lock with others in hand would hold up all of them.
LOCK_TO_WAKE = text("""
    select id from relevo.plan
    where id in (select plan_id from relevo.item where state = 'postponed' and not_before <= now())
    order by id for no key update skip locked
""")
WAKE_POSTPONED = text("""
    update relevo.item set state = 'waiting', due_at = not_before, not_before = null
    where id in (select id from relevo.item where state = 'postponed' and not_before <= now() and plan_id = any(:plans)
                 order by not_before limit :limit for no key update skip locked) and state = 'postponed'
    returning plan_id
""")


def wake_postponed(tx: Connection, limit: int = 1000) -> set[int]:
    """Put up to `limit` postponed items whose time has come back into the line, at their old positions; their plans' ids.

    Those of a plan that another transaction holds are left for the next call.
    """
    held = list(tx.execute(LOCK_TO_WAKE).scalars())
    return set(tx.execute(WAKE_POSTPONED, {"plans": held, "limit": limit}).scalars()) if held else set()


RELEASE = text("""
    update relevo.item set due_at = not_before, not_before = null
    where id in (
        select i.id from relevo.item i join relevo.plan p on p.id = i.plan_id and p.concurrency > 1
        where i.state = 'waiting' and i.not_before <= now() order by i.not_before limit :limit for no key update of i skip locked
    ) and state = 'waiting'
    returning plan_id
""")


def release_due(tx: Connection, limit: int = 5000) -> set[int]:
    """Make up to `limit` items of streams whose backoff or delay is over ready to be fed; their plans' ids."""
    return set(tx.execute(RELEASE, {"limit": limit}).scalars())


MARK_PUBLISHED = text("""
    update relevo.dispatch set published_at = now()
    where id = any(:ids) and published_at is null and claimed_at is null and set_config('synchronous_commit', 'off', true) = 'off'
""")


def mark_published(tx: Connection, ids: list[UUID]) -> None:
    """Note that the broker took these messages. A claimed dispatch needs no such note."""
    tx.execute(MARK_PUBLISHED, {"ids": ids})


OUTSTANDING = text("""
    select queue, count(*) as dispatches from relevo.dispatch
    where claimed_at is null and ended_at is null and published_at is not null group by queue
""")


def outstanding(tx: Connection) -> dict[str, int]:
    """Per queue, how many published dispatches nobody has claimed."""
    return {row.queue: row.dispatches for row in tx.execute(OUTSTANDING)}


# Rule 5: never marked published: after 2 s. Published, but the broker holds fewer messages than it was given: after 10 s,
# doubling to 5 min, so that an absent worker piles up no copies.
TAKE_UNSENT = text(f"""
    with lost as (
        select id from relevo.dispatch
        where claimed_at is null and ended_at is null and case
            when published_at is null then coalesce(sent_at, created_at) < now() - interval '2 seconds'
            else queue = any(:short) and sent_at < now() - least(interval '10 seconds' * 2 ^ (sends - 1), interval '5 minutes')
        end
        order by created_at limit :limit for no key update skip locked
    ), d as (
        update relevo.dispatch set sends = sends + 1, sent_at = now() from lost where dispatch.id = lost.id
        returning dispatch.id, plan_id, queue, task
    )
    select {OUT} from d left join lateral (
        select args, kwargs from relevo.item where dispatch_id = d.id and settled_at is null order by position limit 1) item on true
""")


def take_unsent(tx: Connection, sizes: Mapping[str, int], limit: int = 500) -> list[Dispatch]:
    """Dispatches to be sent (again), at most `limit`, marked as sent now; `sizes` are the messages per queue in the broker.

    A queue missing from `sizes` (the broker did not answer) is taken for complete.
    """
    short = [queue for queue, count in outstanding(tx).items() if sizes.get(queue, count) < count] if sizes else []
    return [_dispatch(row) for row in tx.execute(TAKE_UNSENT, {"short": short, "limit": limit})]
