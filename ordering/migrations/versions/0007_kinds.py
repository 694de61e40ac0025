"""A plan stays a serial plan or a stream, and a few values that nothing could ever do anything with are refused."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# A serial plan's items are at its head and its lock guards its line; a stream's are not. Neither can be made the other under way.
KIND = """
    create function relevo.refuse_kind() returns trigger language plpgsql as $body$
    begin
        raise exception 'plan % is % and stays one', old.name, case when old.stream then 'a stream' else 'a serial plan' end
            using errcode = 'check_violation', constraint = 'plan_kind', table = 'plan', schema = 'relevo';
    end
    $body$"""

STATEMENTS = (
    KIND,
    """
    create trigger plan_kind before update of concurrency on relevo.plan for each row
        when (old.stream <> (new.concurrency > 1)) execute function relevo.refuse_kind()""",
    # Work without a name is nobody's; a time that never comes would hold up a line for ever.
    "alter table relevo.item add constraint item_task check (task <> '')",
    "alter table relevo.item add constraint item_not_before check (isfinite(not_before))",
    "alter table relevo.step add constraint step_wake_at check (isfinite(wake_at))",
    "alter table relevo.schedule add constraint schedule_task check (task <> '')",
    "alter table relevo.schedule add constraint schedule_next_at check (isfinite(next_at))",
    "alter table relevo.subscription add constraint subscription_task check (task <> '')",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
