"""Whether the services of one host do their work, as Postgres sees it: what their health checks ask."""

from __future__ import annotations

from sqlalchemy import Connection, text

from ordering.session import LOCK_CLASS

WITHIN = 30.0  # seconds; a feeder asks every second, and waits for up to half a second for each plan that somebody holds
# By address and not by name: that is what Postgres knows of a client. On one machine they share it, in a container it is its own.
FEEDS = text("""
    select exists(
        select from pg_stat_activity
        where datname = current_database() and application_name = 'relevo feeder'
            and client_addr is not distinct from inet_client_addr()
            and query_start > clock_timestamp() - make_interval(secs => :within))
""")


def feeds(tx: Connection, *, within: float = WITHIN) -> bool:
    """Whether a feeder at this connection's own address has asked for something during the last `within` seconds."""
    return bool(tx.execute(FEEDS, {"within": within}).scalar_one())


WORKS = text(f"""
    select exists(
        select from relevo.session s join pg_locks l on l.locktype = 'advisory' and l.granted
            and l.classid = {LOCK_CLASS} and l.objid = s.id and l.objsubid = 2
            and l.database = (select oid from pg_database where datname = current_database())
        where s.host = :host and s.closed_at is null)
""")


def works(tx: Connection, host: str) -> bool:
    """Whether a pool process of a worker on `host` lives: it holds its session's lock."""
    return bool(tx.execute(WORKS, {"host": host}).scalar_one())
