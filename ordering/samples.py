"""Samples: one row a minute for each plan, exactly one however many feeders write it; the last hour of them for sparklines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from ordering import signals

MINUTES = 60
BACK = MINUTES - 1 + signals.RATIO_MINUTES  # the first minute's ratio looks five minutes back
TAKEN = text("select exists (select from relevo.sample where minute = date_trunc('minute', now()))")
TAKE = text(f"""
    insert into relevo.sample (minute, plan_id, depth, oldest_seconds, attempts, retries, dead_letters)
    select date_trunc('minute', now()), id, depth, date_part('epoch', oldest_age), attempts, retries, dead_letters
    from ({signals.EVERY.text}) as every order by id
    on conflict do nothing returning plan_id
""")
PRUNE = text("delete from relevo.sample where minute < now() - interval '2 hours'")
NEXT = text("select 60 - date_part('second', clock_timestamp())")


def take(tx: Connection) -> bool:
    """Write this minute's sample of every plan if nobody has, and let go of the old ones; whether it was written here."""
    if tx.execute(TAKEN).scalar_one():
        return False
    written = signals.read(tx, TAKE)
    tx.execute(PRUNE)
    return bool(written)


def seconds_to_next(tx: Connection) -> float:
    """How long until the next minute begins, by the database's clock."""
    left: float = tx.execute(NEXT).scalar_one()
    return left


@dataclass(frozen=True)
class Past:
    """A plan's last 60 minutes, the latest last; None where no feeder was there to take the sample.

    `until`: the minute of the last entry. `oldest_age` in seconds; `retry_ratio` over the five minutes before each.
    """

    until: datetime
    depth: Sequence[int | None]
    oldest_age: Sequence[float | None]
    retry_ratio: Sequence[float | None]
    dead_letters: Sequence[int | None]


# The latest minute with a sample ends the hour, so that the current one is no gap before it is taken.
PAST = text(f"""
    with span as (
        select greatest(max(minute), date_trunc('minute', now()) - interval '1 minute') as until from relevo.sample
    )
    select p.name as plan, span.until, array_agg(s.depth order by m.minute) as depth,
        array_agg(s.oldest_seconds order by m.minute) as oldest_age, array_agg(s.dead_letters order by m.minute) as dead_letters,
        array_agg(s.attempts order by m.minute) as attempts, array_agg(s.retries order by m.minute) as retries
    from span cross join relevo.plan p
    cross join generate_series(span.until - interval '{BACK} minutes', span.until, interval '1 minute') as m (minute)
    left join relevo.sample s on s.minute = m.minute and s.plan_id = p.id
    where cast(:plans as text[]) is null or p.name = any(:plans)
    group by p.id, p.name, span.until order by p.name
""")


def past(tx: Connection, plans: Sequence[str] | None = None) -> Mapping[str, Past]:
    """The last hour of the named plans (None: of all), by their names."""
    return {
        row.plan: Past(
            until=row.until,
            depth=row.depth[-MINUTES:],
            oldest_age=row.oldest_age[-MINUTES:],
            retry_ratio=_ratios(row.attempts, row.retries),
            dead_letters=row.dead_letters[-MINUTES:],
        )
        for row in tx.execute(PAST, {"plans": None if plans is None else list(plans)})
    }


def _ratios(attempts: Sequence[int | None], retries: Sequence[int | None]) -> list[float | None]:
    return [_ratio(attempts, retries, at) for at in range(len(attempts) - MINUTES, len(attempts))]


def _ratio(attempts: Sequence[int | None], retries: Sequence[int | None], at: int) -> float | None:
    there, again = attempts[at], retries[at]
    if there is None or again is None:
        return None
    for begin in range(at - signals.RATIO_MINUTES, at):
        before, again_before = attempts[begin], retries[begin]
        if before is not None and again_before is not None:
            return signals.ratio(there - before, again - again_before)
    return 0.0
