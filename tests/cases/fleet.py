"""Many feeders and workers on many plans, watched: every feed by a trigger in the database, every moment by a sampler."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import text

from ordering import db
from tests.cases.kit import Kit
from tests.conftest import Scale

# Whoever is handed out in a serial plan must be the first of what waits, as it stands in the moment of the write, under the plan's lock.
WATCH = """
create schema watch;
create table watch.fed (id bigserial, plan_id bigint, item_id bigint, dispatch_id uuid);
create table watch.passed (plan_id bigint, fed bigint, stood_before bigint);
create function watch.fed() returns trigger language plpgsql as $$
begin
    if (select concurrency from relevo.plan where id = new.plan_id) > 1 then return null; end if;
    insert into watch.fed (plan_id, item_id, dispatch_id) values (new.plan_id, new.id, new.dispatch_id);
    insert into watch.passed select new.plan_id, new.id, i.id from relevo.item i
        where i.plan_id = new.plan_id and i.state = 'waiting' and (i.position, i.id) < (new.position, new.id);
    return null;
end $$;
create trigger watch after update of state on relevo.item for each row
    when (old.state = 'waiting' and new.state = 'dispatched') execute function watch.fed();
"""


def up(kit: Kit, scale: Scale) -> None:
    """Four feeders and eight pool processes: in full each in a worker of its own, else in two workers."""
    kit.sql(WATCH)
    workers, slots = (8, 1) if scale.factor >= 1 else (2, 4)
    feeders = 4 if scale.factor >= 1 else 2
    services = [kit.feeder(ready=False) for _ in range(feeders)]
    services += [kit.worker(slots, ready=False) for _ in range(workers)]
    for service in services:
        service.wait_ready()


OUT = text("""
    with serial as (select id from relevo.plan where concurrency = 1)
    select plan_id, count(*) as out from relevo.item join serial on serial.id = plan_id
    where state = 'dispatched' group by plan_id having count(*) > 1
    union all
    select plan_id, count(*) from relevo.dispatch join serial on serial.id = plan_id
    where ended_at is null group by plan_id having count(*) > 1
""")


@contextmanager
def sampler(kit: Kit, least: int = 20) -> Iterator[None]:
    """Look all the time whether a serial plan has more than one item, or more than one message, out; fails if it ever had."""
    wrong: list[object] = []
    looks = 0
    over = threading.Event()

    def look() -> None:
        nonlocal looks
        engine = db.engine(kit.database_url, name="relevo case sampler", pooled=False)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as tx:
            while not over.wait(0.01):
                wrong.extend(tx.execute(OUT).all())
                looks += 1

    thread = threading.Thread(target=look, name="sampler")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)
    assert not thread.is_alive()
    assert looks >= least
    assert not wrong, f"more than one out at a time: {wrong[:10]}"


def fed_in_order(kit: Kit) -> None:
    """No feed passed an item, and the bodies of each serial plan started in the order of the feeds that were not taken back."""
    assert kit.sql("select * from watch.passed") == []
    kept = kit.sql("""
        select f.plan_id, f.item_id from watch.fed f join relevo.dispatch d on d.id = f.dispatch_id
        where d.claimed_at is not null order by f.id
    """)
    plan_of = {row.item_id: row.plan_id for row in kept}
    starts = kit.starts()
    for plan in set(plan_of.values()):
        started = [note.item for note in starts if plan_of.get(note.item) == plan]
        fed = [row.item_id for row in kept if row.plan_id == plan]
        assert started == [item for item in fed if item in set(started)], f"plan {plan} did not start as it was fed"
