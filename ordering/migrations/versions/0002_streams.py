"""Streams in batches, facts and who hears them, remembered steps, schedules, retention."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

EMIT = r"""
    create function relevo.emit(type text, data jsonb default '{}', key text default null) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
    #variable_conflict use_column
    declare
        made record;
        written text := emit.data::text;
    begin
        if emit.type is null or emit.type !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$' then
            raise exception 'type: % is not the name of a fact; use up to 200 letters, digits, dots, dashes and underscores.',
                coalesce(quote_literal(left(emit.type, 80)), 'null') using errcode = 'RV400';
        end if;
        if emit.data is null or octet_length(written) > 1000000 then
            raise exception 'data: is missing or longer than 1,000,000 bytes; store the fact''s large parts elsewhere and point to them.'
                using errcode = 'RV400';
        end if;
        -- Workers read it in Python, which takes no endless nesting and no number of more than 4,300 digits; short text has neither.
        if octet_length(written) > 200
            and jsonb_path_exists(emit.data, 'strict $.**{100 to last} ? (@.type() == "array" || @.type() == "object")') then
            raise exception 'data: is nested more than 100 levels deep; make it flatter.' using errcode = 'RV400';
        end if;
        if octet_length(written) > 4300 and written ~ '[0-9]{255}'
            and jsonb_path_exists(emit.data, 'strict $.** ? (@.type() == "number" && (@ >= 1e4300 || @ <= -1e4300))') then
            raise exception 'data: holds a number of more than 4,300 digits; write it as a text.' using errcode = 'RV400';
        end if;
        if emit.key = '' or length(emit.key) > 500 then
            raise exception 'key: is empty or longer than 500 characters; leave it out or use a shorter one.' using errcode = 'RV400';
        end if;
        -- One statement, one snapshot: the fact, one item per subscription, and which plans have nothing out. It locks no plan's row
        -- (the foreign key's share lock excludes nobody here), and positions come from a sequence, so it waits for no other emitter.
        with heard as (
            select plan_id, task from relevo.subscription where type = emit.type
        ), fact as (
            insert into relevo.fact (type, data, key, heard)
            values (emit.type, emit.data, emit.key, (select count(*) from heard))
            on conflict (type, key) where key is not null do nothing
            returning id
        ), item as (
            insert into relevo.item (plan_id, position, task, args, title, fact_id)
            select heard.plan_id, nextval('relevo.stream_position'), heard.task, jsonb_build_array(emit.data), emit.type, fact.id
            from heard, fact
        )
        select fact.id, array(
            select distinct plan_id from heard where not exists (
                select from relevo.dispatch d where d.plan_id = heard.plan_id and d.ended_at is null)
        ) as idle into made from fact;
        if made.id is null then
            select f.id, f.data into made from relevo.fact f where f.type = emit.type and f.key = emit.key;
            if made.id is null then
                raise exception 'key: the fact that had it was removed at this moment; try again.' using errcode = '40001';
            end if;
            if made.data <> emit.data then
                raise exception 'key: % was used for another fact of type %; use another key, or the same data.', emit.key, emit.type
                    using errcode = 'RV409';
            end if;
            return made.id;
        end if;
        -- A plan with something out is fed when that ends; a notification in each commit would cost most of the throughput.
        perform pg_notify('relevo_feed', each::text) from unnest(made.idle) each;
        return made.id;
    end
    $body$"""

# The first line that says something, without what differs from one letter of a cause to the next: what is quoted, addresses, and
# words with digits (numbers, ids, times). A class in front of a colon stays as it is, since its digits belong to its name. What is
# cut off within quotes counts as quoted.
ERROR_PATTERN = r"""
    create function relevo.error_pattern(error text) returns text language sql immutable parallel safe as $body$
        select left(class || regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(
            substr(line, length(class) + 1),
            '"[^"]*("|$)|`[^`]*(`|$)|“[^”]*(”|$)|«[^»]*(»|$)', '"…"', 'g'),
            '(^|[^[:alnum:]])''[^'']*(''|$)', '\1"…"', 'g'),
            '[^[:space:]]+@[^[:space:]]+', '#', 'g'),
            '[[:alnum:]_-]*[0-9][[:alnum:]_-]*', '#', 'g'),
            '#([][[:space:].,:;/+()-]*#)+', '#', 'g'),
            '[[:space:]]+', ' ', 'g'), 200)
        from (
            select line, coalesce(substring(line from '^[[:alpha:]_][[:alnum:]_.]*:'), '') as class
            from (
                select nullif(left(split_part(translate(ltrim(left(error, 1000), E' \t\r\n'), E'\r', E'\n'), E'\n', 1), 300), '') as line
            ) first
        ) parts
    $body$"""

# What stands for all dead letters of one cause: short enough to be typed.
ERROR_GROUP = """
    create function relevo.error_group(error text) returns text language sql immutable parallel safe as $body$
        select left(encode(sha256(convert_to(coalesce(relevo.error_pattern(error), ''), 'UTF8')), 'hex'), 12)
    $body$"""

STATEMENTS = (
    "alter table relevo.plan add column rate numeric check (rate > 0)",
    "alter table relevo.plan add column keep interval not null default '30 days' check (keep between '1 second' and '3660 days')",
    # When the next item of a plan with a rate may be handed out. Only its feeders lock it, never the plan's own row.
    "create table relevo.pace (plan_id bigint primary key references relevo.plan, free_at timestamptz not null default now())",
    "alter table relevo.task add column batch boolean not null default false",
    "alter table relevo.task add column batch_size integer check (batch_size between 1 and 10000)",
    # A task may be tried again for ever, as Celery's `max_retries=None` says.
    "alter table relevo.task drop constraint task_max_attempts_check",
    "alter table relevo.task add constraint task_max_attempts_check check (max_attempts >= 1)",
    # How many items the dispatch carried when it was fed.
    "alter table relevo.dispatch add column size integer not null default 1 check (size >= 1)",
    # How long the last ones took, which decides how many items the next ones carry.
    "create index dispatch_pace on relevo.dispatch (plan_id, task, ended_at) where ended_at is not null and claimed_at is not null",
    # For retention: the oldest that has ended, and whether anything points to a session.
    "create index dispatch_ended on relevo.dispatch (plan_id, ended_at) where ended_at is not null",
    "create index dispatch_session on relevo.dispatch (session_id) where session_id is not null",
    "create index attempt_session on relevo.attempt (session_id) where session_id is not null",
    # Positions of streams: taken without a lock, so that an open transaction that emits holds up nobody.
    "create sequence relevo.stream_position as bigint",
    """
    create table relevo.fact (
        id bigint generated always as identity primary key,
        type text not null,
        data jsonb not null,
        key text,
        heard integer not null,
        at timestamptz not null default clock_timestamp()
    )""",
    "create unique index fact_key on relevo.fact (type, key) where key is not null",
    "create index fact_at on relevo.fact (at)",
    "create index fact_type on relevo.fact (type, id)",
    "create index fact_unheard on relevo.fact (id) where heard = 0",
    # A serial plan's line changes under its plan's lock, which a foreign transaction never takes: only streams hear facts.
    "alter table relevo.plan add column stream boolean not null generated always as (concurrency > 1) stored",
    "alter table relevo.plan add constraint plan_stream unique (id, stream)",
    """
    create table relevo.subscription (
        id bigint generated always as identity primary key,
        type text not null,
        task text not null,
        plan_id bigint not null references relevo.plan,
        stream boolean not null default true check (stream),
        created_at timestamptz not null default now(),
        unique (type, task),
        foreign key (plan_id, stream) references relevo.plan (id, stream)
    )""",
    # The largest batch the item may travel in: halved when a batch died or raised, so that a culprit comes to stand alone.
    "alter table relevo.item add column batch_limit integer check (batch_limit >= 1)",
    "alter table relevo.item add column fact_id bigint references relevo.fact on delete set null",
    # Of the try that ended last. A success in a stream has no row in attempt: three row writes are all that an item costs.
    "alter table relevo.item add column started_at timestamptz",
    "alter table relevo.item add column ended_dispatch uuid",
    # How often a person let a failed item run again.
    "alter table relevo.item add column replays integer not null default 0",
    # Since when nobody has decided the item.
    "alter table relevo.item add column unresolved_at timestamptz",
    """
    update relevo.item set unresolved_at = coalesce((select max(ended_at) from relevo.attempt where item_id = item.id), created_at)
    where state in ('failed', 'interrupted')""",
    """
    alter table relevo.item add constraint item_unresolved_at check (
        state not in ('failed', 'interrupted') or unresolved_at is not null)""",
    ERROR_PATTERN,
    ERROR_GROUP,
    # Generated, so that no writer of an outcome can forget it; computed for what is unresolved and nothing else.
    """
    alter table relevo.item add column error_group text generated always as (
        case when state in ('failed', 'interrupted') then relevo.error_group(error) end) stored""",
    # The letters of one cause in their order, and all causes counted without a look at the table.
    """
    create index item_dead on relevo.item (error_group, plan_id, position, id) include (state, unresolved_at, dispatch_id)
        where state in ('failed', 'interrupted')""",
    "create index event_refused on relevo.event (id) where action = 'refuse'",
    "create index item_fact on relevo.item (fact_id) where fact_id is not null",
    # What a stream may hand out; a thousand items in backoff at its front cost its feeders nothing.
    "create index item_ready on relevo.item (plan_id, position, id) where state = 'waiting' and not_before is null",
    """
    create table relevo.step (
        item_id bigint not null references relevo.item on delete cascade,
        number integer not null check (number >= 1),
        name text not null,
        kind text not null check (kind in ('step', 'sleep')),
        done boolean not null,
        -- The text as it was written: jsonb would turn 1e22 into an integer, sort keys, and refuse U+0000.
        result json,
        wake_at timestamptz,
        failures integer not null default 0,
        error text,
        attempt integer not null,
        started_at timestamptz not null,
        ended_at timestamptz not null default now(),
        primary key (item_id, number),
        unique (item_id, name),
        check ((kind = 'sleep') = (wake_at is not null))
    )""",
    """
    create table relevo.schedule (
        id bigint generated always as identity primary key,
        name text not null unique check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
        plan_id bigint not null references relevo.plan,
        cron text not null,
        timezone text not null default 'UTC',
        missed text not null default 'one' check (missed in ('one', 'skip', 'all')),
        task text not null,
        args jsonb not null default '[]' check (jsonb_typeof(args) = 'array'),
        kwargs jsonb not null default '{}' check (jsonb_typeof(kwargs) = 'object'),
        title text not null default '',
        kind text not null default '',
        paused boolean not null default false,
        declared boolean not null default false,
        next_at timestamptz not null,
        last_at timestamptz,
        created_at timestamptz not null default now()
    )""",
    "create index schedule_due on relevo.schedule (next_at) where not paused",
    # A call over HTTP that carried an Idempotency-Key, with what was answered: the same key and content again get the same answer.
    """
    create table relevo.call (
        caller text not null,
        key text not null,
        digest text not null,
        status integer,
        answer text,
        at timestamptz not null default now(),
        primary key (caller, key)
    )""",
    "create index call_at on relevo.call (at)",
    EMIT,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
