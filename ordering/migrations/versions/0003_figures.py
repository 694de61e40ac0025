"""Figures: since when an item is due, counters and histograms per session, and one sample a minute."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

STATEMENTS = (
    # Since when the item has been due, where that is not since it was added. Without a default, so that no row is rewritten.
    "alter table relevo.item add column due_at timestamptz",
    # Depth and oldest age in one scan of an index that is there anyway: a million items are counted without a look at the table.
    "drop index relevo.item_waiting",
    """
    create index item_waiting on relevo.item (plan_id, position, id) include (not_before, created_at, due_at)
        where state = 'waiting'""",
    # An index that counts is as good as the table is vacuumed. As it comes, Postgres waits for a fifth of ten million new rows.
    "alter table relevo.item set (autovacuum_vacuum_insert_scale_factor = 0.02)",
    # What a lost session left behind.
    "create index attempt_interrupted on relevo.attempt (ended_at) where outcome = 'interrupted'",
    # What sessions have done. A session writes rows of its own, so none waits for another; when it closes they are folded into those
    # of session 0. No foreign keys and one index: an update stays in its page (HOT), and retention takes nothing away.
    f"""
    create table relevo.tally (
        session_id integer not null,
        plan_id bigint not null,
        task text not null,
        succeeded bigint not null default 0,
        failed bigint not null default 0,
        interrupted bigint not null default 0,
        retries bigint not null default 0,
        wait_seconds double precision not null default 0,
        run_seconds double precision not null default 0,
        waits bigint[] not null default '{{{", ".join("0" * 15)}}}',
        runs bigint[] not null default '{{{", ".join("0" * 15)}}}',
        primary key (session_id, plan_id, task)
    ) with (fillfactor = 50)""",
    # One row a minute and plan, for two hours, whoever writes it.
    """
    create table relevo.sample (
        minute timestamptz not null,
        plan_id bigint not null references relevo.plan,
        depth bigint not null,
        oldest_seconds double precision not null,
        attempts bigint not null,
        retries bigint not null,
        dead_letters bigint not null,
        primary key (minute, plan_id)
    )""",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
