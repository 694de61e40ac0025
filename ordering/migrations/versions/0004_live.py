"""What people do is told at once to whoever looks at the board."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# One notification for each statement that writes the trail, with the highest id. A notification costs every commit a lock that all
# share, so what workers and programs write by the thousand is left out and found by the look that comes once a second: sleeps and
# prechecks (by `task ...`), refused messages (by `worker ...`), items added one by one to a stream (`.delay()`).
TELL = """
    create function relevo.tell_event() returns trigger language plpgsql as $body$
    begin
        perform pg_catalog.pg_notify('relevo_event', pg_catalog.max(made.id)::text)
        from made left join relevo.plan p on p.id = made.plan_id
        where made.actor not like 'task %' and made.actor not like 'worker %'
            and not (made.action = 'add' and made.item_id is not null and p.stream)
        having pg_catalog.count(*) > 0;
        return null;
    end
    $body$"""
TRIGGER = """
    create trigger event_told after insert on relevo.event
    referencing new table as made for each statement execute function relevo.tell_event()"""


def upgrade() -> None:
    for statement in (TELL, TRIGGER):
        op.execute(statement)
