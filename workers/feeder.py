"""The feeder service: feeds on NOTIFY and every second, reconciles, wakes the postponed, sends again what was lost.

Any number of them at once is safe. `python -P -m workers.feeder`.
"""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Iterable
from typing import Any

from psycopg import Connection as Listener
from psycopg import Notify, OperationalError
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from ordering import db, head, reconcile
from ordering.model import DEFAULT_QUEUE
from ordering.plans import WAKE_CHANNEL
from workers import feeding, process, service
from workers.celeryapp import celery
from workers.listening import listening
from workers.pruning import Pruner
from workers.publish import BrokerUnavailable, Publisher
from workers.sampling import Sampler
from workers.settings import Settings
from workers.ticking import Ticker

logger = logging.getLogger(__name__)
TICK = 1.0  # seconds between rounds when nothing is heard


def run(settings: Settings) -> int:
    """Feed until TERM or INT."""
    engine = service.engine(settings, "relevo feeder")
    celery.conf.broker_url = settings.require_broker()
    feeder = Feeder(engine, Publisher(celery))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, feeder.stop)
    service.say_ready()
    feeder.run()
    return 0


class Feeder:
    """One feeder: a listening connection, an engine and a publisher."""

    def __init__(self, engine: Engine, publisher: Publisher) -> None:
        self._engine, self._publisher = engine, publisher
        self._stopping = False
        self._broker_away = self._postgres_away = False
        self._ticker = Ticker()

    def stop(self, *_: object) -> None:
        """Let `run` return within a second."""
        self._stopping = True

    def run(self) -> None:
        """Listen and make rounds until stopped; a database or broker that is away is waited for."""
        logger.info("ready: feeding")
        self._look_at_policy()
        with Pruner(self._engine), Sampler(self._engine):
            self._feed_on()
        logger.info("stopped")

    def _feed_on(self) -> None:
        while not self._stopping:
            try:
                with listening(self._engine, WAKE_CHANNEL) as listener:
                    if self._postgres_away:
                        logger.info("Postgres is back.")
                    self._postgres_away = False
                    self._listen(listener)
            except (OperationalError, DBAPIError) as error:
                if isinstance(error, DBAPIError) and not db.is_disconnect(error):
                    logger.exception("A round failed; the next one is in a second.")
                elif not self._postgres_away:
                    logger.warning("Postgres is out of reach and is tried again every second: %s", db.said(error))
                    self._postgres_away = True
                time.sleep(TICK)

    def _look_at_policy(self) -> None:
        try:
            warning = self._publisher.policy_warning()
        except BrokerUnavailable:
            return  # the first round says so
        if warning is not None:
            logger.warning("%s", warning)

    def _listen(self, listener: Listener[Any]) -> None:
        due = time.monotonic()
        while not self._stopping:
            wait = max(0.0, due - time.monotonic())
            heard = _plans(listener.notifies(timeout=wait, stop_after=1))
            if time.monotonic() >= due:
                due = time.monotonic() + TICK
                self.round()
            elif heard:
                heard |= _plans(listener.notifies(timeout=0))
                self._feed_named(heard)

    def round(self) -> None:
        """What happens every second: reconcile, wake the postponed, tick the schedules, feed what is ready, send again what was lost."""
        reconcile.reconcile(self._engine, process.alive)
        self._transact(head.wake_postponed)
        self._transact(head.release_due)
        self._ticker.tick(self._transact)
        for plan_id, serial in self._transact(head.ready):
            self._feed(plan_id, serial)
        self._send_again()

    def _feed_named(self, plan_ids: set[int]) -> None:
        for row in self._transact(lambda tx: tx.execute(NAMED, {"ids": list(plan_ids)}).all()):
            self._feed(row.id, row.serial)

    def _feed(self, plan_id: int, serial: bool) -> None:
        try:
            feeding.feed(self._transact, self._publisher, plan_id, serial=serial)
        except DBAPIError as error:
            # A plan that somebody holds (a long bulk add) starves no other; its turn comes again in a second.
            if not db.is_locked(error):
                raise

    def _send_again(self) -> None:
        try:
            held = self._transact(head.outstanding)
            sizes = self._publisher.queue_sizes([DEFAULT_QUEUE, *held])
        except BrokerUnavailable as error:
            if not self._broker_away:
                logger.warning("%s What is due is published when it is back.", error)
            self._broker_away = True
            return
        if self._broker_away:
            logger.info("The broker is back.")
        self._broker_away = False
        # What is held is counted again after the broker's answer: a worker may have claimed some. Of nothing, nothing is lost.
        unsent = self._transact(lambda tx: head.take_unsent(tx, sizes if held else {}))
        if unsent:
            logger.info("Sending %d dispatches again that the broker does not hold.", len(unsent))
            taken = feeding.publish(self._publisher, unsent)
            self._transact(lambda tx: head.mark_published(tx, taken))

    def _transact(self, verb: Any) -> Any:
        return db.transact(self._engine, verb)


def _plans(notices: Iterable[Notify]) -> set[int]:
    # Anybody who may connect may notify; what is no plan's id is nobody's business here.
    return {int(notice.payload) for notice in notices if notice.payload.isdecimal() and len(notice.payload) < 19}


NAMED = text("select id, concurrency = 1 as serial from relevo.plan where id = any(:ids)")

if __name__ == "__main__":
    service.main(run)
