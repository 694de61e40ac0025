"""Tables as they are some time after they were filled: analyzed, and every page known to be visible to all."""

import time

from sqlalchemy import Engine, text

# A walk over an index alone is cheap, and chosen, where pages are known to be visible.
VISIBLE = text("select relpages > 0 and relallvisible = relpages from pg_class where oid = cast(:table as regclass)")
DEADLINE = 60.0  # seconds


def vacuum(engine: Engine, *tables: str) -> None:
    """Vacuum and analyze these tables of the schema until their pages are visible.

    Somebody's open snapshot (an autovacuum's that analyzes) and a page that is just being written put that off by a moment.
    """
    deadline = time.monotonic() + DEADLINE
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as tx:
        for table in tables:
            tx.execute(text(f"vacuum analyze relevo.{table}"))
            while not tx.execute(VISIBLE, {"table": f"relevo.{table}"}).scalar_one():
                assert time.monotonic() < deadline, f"pages of {table} are not visible to all"
                time.sleep(0.1)
                tx.execute(text(f"vacuum analyze relevo.{table}"))
