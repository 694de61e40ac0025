"""The plan: items in a curated order, dispatches, attempts, sessions and the trail."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    create table relevo.plan (
        id bigint generated always as identity primary key,
        name text not null unique check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
        title text not null default '',
        concurrency integer not null default 1 check (concurrency between 1 and 10000),
        on_failure text not null default 'halt' check (on_failure in ('halt', 'continue')),
        on_interrupt text check (on_interrupt in ('hold', 'requeue')),
        max_attempts integer check (max_attempts between 1 and 1000),
        autostart boolean not null default false,
        stop_grace interval not null default '10 seconds' check (stop_grace between '0 seconds' and '1 day'),
        created_at timestamptz not null default now()
    )""",
    """
    create table relevo.run (
        id bigint generated always as identity primary key,
        plan_id bigint not null references relevo.plan,
        on_failure text not null check (on_failure in ('halt', 'continue')),
        started_at timestamptz not null default now(),
        started_by text not null,
        ended_at timestamptz,
        ended_as text check (ended_as in ('drained', 'paused')),
        check ((ended_at is null) = (ended_as is null))
    )""",
    # At most one run of a plan is open.
    "create unique index run_open on relevo.run (plan_id) where ended_at is null",
    "create index run_of_plan on relevo.run (plan_id, id)",
    "create sequence relevo.session_id as integer",
    """
    create table relevo.session (
        id integer primary key default nextval('relevo.session_id'),
        worker text not null,
        host text not null,
        boot_id text not null,
        pid_namespace bigint not null,
        pid integer not null,
        pid_started bigint not null,
        opened_at timestamptz not null default now(),
        lost_at timestamptz,
        closed_at timestamptz
    )""",
    "create index session_open on relevo.session (id) where closed_at is null",
    """
    create table relevo.task (
        name text primary key,
        queue text not null,
        plan text,
        on_interrupt text check (on_interrupt in ('hold', 'requeue')),
        max_attempts integer check (max_attempts between 1 and 1000),
        registered_at timestamptz not null default now()
    )""",
    """
    create table relevo.dispatch (
        id uuid primary key default gen_random_uuid(),
        plan_id bigint not null references relevo.plan,
        queue text not null,
        task text not null,
        created_at timestamptz not null default clock_timestamp(),
        published_at timestamptz,
        sends integer not null default 0,
        sent_at timestamptz,
        claimed_at timestamptz,
        session_id integer references relevo.session,
        copies_dropped integer not null default 0,
        cut text,
        ended_at timestamptz,
        check ((claimed_at is null) = (session_id is null))
    )""",
    "create index dispatch_outstanding on relevo.dispatch (created_at) where claimed_at is null and ended_at is null",
    "create index dispatch_claimed on relevo.dispatch (session_id) where claimed_at is not null and ended_at is null",
    "create index dispatch_of_plan on relevo.dispatch (plan_id) where ended_at is null",
    """
    create table relevo.item (
        id bigint generated always as identity primary key,
        plan_id bigint not null references relevo.plan,
        position numeric not null check (scale(position) <= 24 and abs(position) < 1e15),
        state text not null default 'waiting' check (state in ('waiting', 'postponed', 'dispatched', 'failed',
            'interrupted', 'succeeded', 'skipped', 'resolved', 'cancelled')),
        at_head boolean not null default false,
        task text not null,
        args jsonb not null default '[]' check (jsonb_typeof(args) = 'array'),
        kwargs jsonb not null default '{}' check (jsonb_typeof(kwargs) = 'object'),
        title text not null default '',
        kind text not null default '',
        key text,
        digest text,
        entry text,
        repairs bigint references relevo.item on delete set null,
        not_before timestamptz,
        on_interrupt text check (on_interrupt in ('hold', 'requeue')),
        max_attempts integer check (max_attempts between 1 and 1000),
        dispatch_id uuid references relevo.dispatch,
        attempts integer not null default 0,
        tries integer not null default 0 check (tries between 0 and attempts),
        error text,
        result jsonb,
        created_at timestamptz not null default clock_timestamp(),
        settled_at timestamptz,
        constraint item_settled check (
            (settled_at is not null) = (state in ('succeeded', 'skipped', 'resolved', 'cancelled'))),
        constraint item_out check (
            case state
                when 'waiting' then dispatch_id is null and not at_head
                when 'postponed' then dispatch_id is null and not at_head and not_before is not null
                when 'dispatched' then dispatch_id is not null
                when 'interrupted' then dispatch_id is not null
                when 'failed' then true
                when 'cancelled' then true
                else not at_head
            end),
        constraint item_key_digest check ((key is null) = (digest is null))
    )""",
    # Rule 1: one head per serial plan. `at_head` stays set while the item is out, and under `halt` while it is failed.
    "create unique index item_head on relevo.item (plan_id) where at_head",
    # The line: two unsettled items never share a place. Deferrable, so that one statement may tidy many positions.
    """
    alter table relevo.item add constraint item_line
        exclude using btree (plan_id with =, position with =) where (settled_at is null)
        deferrable initially immediate""",
    "create index item_waiting on relevo.item (plan_id, position, id) where state = 'waiting'",
    "create index item_unresolved on relevo.item (plan_id, position) where state in ('failed', 'interrupted')",
    "create index item_postponed on relevo.item (plan_id, not_before) where state = 'postponed'",
    "create index item_wake on relevo.item (not_before) where not_before is not null and state in ('waiting', 'postponed')",
    "create index item_dispatch on relevo.item (dispatch_id) where dispatch_id is not null",
    "create index item_settled_at on relevo.item (plan_id, settled_at) where settled_at is not null",
    "create index item_repairs on relevo.item (repairs) where repairs is not null",
    "create unique index item_key on relevo.item (plan_id, key) where key is not null",
    "create index item_entry on relevo.item (plan_id, entry) where entry is not null",
    # Run-all called twice adds nothing twice: one unsettled item per catalogue entry.
    "create unique index item_entry_open on relevo.item (plan_id, entry) where entry is not null and settled_at is null",
    """
    create table relevo.attempt (
        id bigint generated always as identity primary key,
        item_id bigint not null references relevo.item on delete cascade,
        number integer not null,
        dispatch_id uuid not null,
        session_id integer,
        started_at timestamptz not null,
        ended_at timestamptz not null default now(),
        outcome text not null check (outcome in ('succeeded', 'failed', 'interrupted')),
        counts boolean not null,
        reason text not null default '',
        error text,
        unique (item_id, number)
    )""",
    """
    create table relevo.output (
        item_id bigint not null references relevo.item on delete cascade,
        attempt integer not null,
        head text not null default '',
        tail text not null default '',
        left_out bigint not null default 0,
        updated_at timestamptz not null default now(),
        primary key (item_id, attempt)
    )""",
    """
    create table relevo.event (
        id bigint generated always as identity primary key,
        at timestamptz not null default now(),
        actor text not null,
        action text not null,
        plan_id bigint references relevo.plan,
        item_id bigint,
        before jsonb,
        after jsonb,
        reason text not null default ''
    )""",
    "create index event_of_plan on relevo.event (plan_id, id)",
    "create index event_of_item on relevo.event (item_id, id) where item_id is not null",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
