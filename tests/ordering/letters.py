"""Dead letters for tests, many at once: as a worker's attempts leave them, written straight into the tables."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

from ordering import plans
from tests.ordering.acts import plan, put

DIE = text("""
    with dead as (
        update relevo.item set state = 'failed', attempts = attempts + 1, tries = tries + 1, unresolved_at = now(), error = said.error
        from unnest(cast(:ids as bigint[]), cast(:errors as text[])) as said (id, error)
        where item.id = said.id returning item.id, item.attempts, said.error
    )
    insert into relevo.attempt (item_id, number, dispatch_id, started_at, outcome, counts, reason, error)
    select id, attempts, gen_random_uuid(), now(), 'failed', true, 'Refused', error from dead
""")


def stream(tx: Connection, name: str = "mails", **settings: Any) -> int:
    """The id of a new stream whose items have one try."""
    return plan(tx, name, concurrency=4, max_attempts=1, **settings).id


def die(tx: Connection, errors: Sequence[str], *, plan: str = "mails", **fields: Any) -> list[int]:
    """The ids of that many new dead letters of the stream, one for each error."""
    assert not plans.get(tx, plan).serial
    ids = put(tx, len(errors), plan=plan, **fields)
    tx.execute(DIE, {"ids": ids, "errors": list(errors)})
    return ids
