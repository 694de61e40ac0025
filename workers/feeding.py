"""Feed a plan and publish what it gave: commit first, then tell the broker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import Connection

from ordering import head
from ordering.model import Dispatch
from workers.publish import BrokerUnavailable, Publisher

logger = logging.getLogger(__name__)


class Transact(Protocol):
    """Runs a verb in a transaction of its own and commits."""

    def __call__(self, verb: Callable[[Connection], Any], /) -> Any: ...


def feed(transact: Transact, publisher: Publisher, plan_id: int, *, serial: bool) -> int:
    """Hand out what the plan may hand out now and publish it; how many dispatches. A broker that is away costs nothing but time."""
    dispatches: list[Dispatch] = transact(lambda tx: head.feed(tx, plan_id, serial=serial))
    publish(transact, publisher, dispatches)
    return len(dispatches)


def publish(transact: Transact, publisher: Publisher, dispatches: Iterable[Dispatch]) -> bool:
    """Send each dispatch and note those that the broker took; whether it took all. The rest is sent again later (rule 5)."""
    taken: list[UUID] = []
    complete = True
    for dispatch in dispatches:
        try:
            publisher.send(str(dispatch.id), dispatch.task, dispatch.queue, dispatch.argsrepr or "", dispatch.kwargsrepr or "")
        except BrokerUnavailable as error:
            logger.warning("%s It is sent again when the broker is back.", error)
            complete = False
            break
        taken.append(dispatch.id)
    if taken:
        transact(lambda tx: head.mark_published(tx, taken))
    return complete
