"""Feed a plan and publish what it gave: commit first, then tell the broker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import Connection

from ordering import head
from ordering.model import Dispatch
from workers.publish import BrokerUnavailable, Publisher, QueueRefused

logger = logging.getLogger(__name__)


class Transact(Protocol):
    """Runs a verb in a transaction of its own and commits."""

    def __call__(self, verb: Callable[[Connection], Any], /) -> Any: ...


def feed(transact: Transact, publisher: Publisher, plan_id: int, *, serial: bool) -> None:
    """Hand out what the plan may hand out now and publish it. A broker that is away costs nothing but time."""
    dispatches: list[Dispatch] = transact(lambda tx: head.feed(tx, plan_id, serial=serial))
    taken = publish(publisher, dispatches)
    if taken:
        transact(lambda tx: head.mark_published(tx, taken))


def publish(publisher: Publisher, dispatches: Iterable[Dispatch]) -> list[UUID]:
    """Send each dispatch; those that the broker took, to be noted. The rest is sent again later (rule 5).

    A queue that the broker refuses holds up no other; a broker that is away is not asked for each.
    """
    taken: list[UUID] = []
    refused: set[str] = set()
    for dispatch in dispatches:
        if dispatch.queue in refused:
            continue
        try:
            publisher.send(str(dispatch.id), dispatch.task, dispatch.queue, dispatch.argsrepr or "", dispatch.kwargsrepr or "")
        except QueueRefused as error:
            logger.warning("Queue %r is refused, and what is in it is sent again: %s", dispatch.queue, error)
            refused.add(dispatch.queue)
            continue
        except BrokerUnavailable as error:
            logger.warning("%s It is sent again when the broker is back.", error)
            break
        taken.append(dispatch.id)
    return taken
