"""A fact is fed at once also where all that a stream has out is undecided."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# The one condition of `relevo.emit` that differs: a dispatch that waits for a person only is not out.
OPEN = "d.plan_id = heard.plan_id and d.ended_at is null"
OUT = f"{OPEN} and exists (select from relevo.item i where i.dispatch_id = d.id and i.state in (''dispatched'', ''cancelled''))"


def upgrade() -> None:
    op.execute(
        f"""
        do $do$ begin
            execute replace(pg_get_functiondef('relevo.emit(text, jsonb, text)'::regprocedure), '{OPEN}', '{OUT}');
        end $do$"""
    )
