"""The commands `signals` and `workers`: each plan in figures, and who works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import show
from app.cli_call import AsJson, say, transact

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from ordering.signals import Signals
    from ordering.workforce import Work, Workforce


def signals(as_json: AsJson = False) -> None:
    """Show each plan in figures: depth, oldest age, retries, dead letters.

    \b
    Example: relevo signals
    """
    from ordering.signals import signals as read

    found = transact(read)
    if as_json:
        show.as_json(*found)
        return
    columns = ("plan", "depth", "oldest", "retries", "dead", "blocked", "handed out", "running")
    show.table(columns, (_figures(each) for each in found))


def _figures(each: Signals) -> tuple[object, ...]:
    ages = [_age(age) for age in (each.blocked, each.dispatched_age, each.running_age)]
    return each.plan, each.depth, _age(each.oldest_age), f"{each.retry_ratio:.0%}", each.dead_letters, *ages


def _age(age: timedelta) -> str:
    from datetime import UTC, datetime

    epoch = datetime.fromtimestamp(0, UTC)
    return show.ago(epoch, epoch + age) if age else "-"


def workers(as_json: AsJson = False) -> None:
    """Show the processes that work and what each runs, and those lost within a day.

    \b
    Example: relevo workers
    """
    from ordering.workforce import workforce

    found = transact(workforce)
    if as_json:
        typed = [("worker", each) for each in found.workers] + [("lost", each) for each in found.lost]
        show.as_json(*({"type": name, **show.plain(each)} for name, each in typed))
        return
    _print(found)


def _print(found: Workforce) -> None:
    if not found.workers:
        say("Nobody works: no pool process is alive.")
    else:
        rows = (
            (each.session, each.worker, each.host, each.pid, show.ago(each.since, found.now), each.runs, _items(each.items, found.now))
            for each in found.workers
        )
        show.table(("session", "worker", "host", "pid", "for", "runs", "name"), rows)
    if found.lost:
        say("")
        gone = (
            (each.session, each.worker, each.host, each.pid, show.ago(each.lost_at, found.now), each.reason, _items(each.items, found.now))
            for each in found.lost
        )
        show.table(("lost", "worker", "host", "pid", "ago", "reason", "name"), gone)


def _items(items: Sequence[Work], now: datetime) -> str:
    return ", ".join(_item(each, now) for each in items)


def _item(each: Work, now: datetime) -> str:
    return f"{each.id} {each.plan}: {each.title} ({each.state} {show.ago(each.since, now)})"
