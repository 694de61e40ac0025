"""A worker fetches a message only when a slot is free for it and Postgres, which says what to run, is within reach.

Slots: here for RabbitMQ; on Redis Celery's own setting does it.

Celery always fetches one message more than it can run: with a long body in every slot, that message waits behind them
while another worker idles, and RabbitMQ closes the channel when it stays unacknowledged past `consumer_timeout`.
So here the prefetch is pinned to one unacknowledged message, and while all slots are taken nothing is consumed.

Without Postgres nothing can be claimed: what was fetched would be held in pool processes, out of the reach of a worker that has it.
One message that was on its way when Postgres went away may still be taken.
"""

from __future__ import annotations

import contextlib
from queue import Empty
from typing import Any

from celery import bootsteps
from celery.worker import state

_database_away = False
_hub: Any = None  # the event loop of this worker's parent


def database_away(away: bool) -> None:
    """Close the gate while Postgres is out of this worker's reach and open it again; from any thread."""
    global _database_away
    _database_away = away
    turn()


def turn() -> None:
    """Let the event loop take a turn now, in which it looks at the gate and whether to stop; from any thread but its own."""
    if _hub is not None:
        _hub.call_soon(lambda: None)


def stopping() -> bool:
    """Whether this worker has been told to stop."""
    return any(said is not None and said is not False for said in (state.should_stop, state.should_terminate))


class TakenAtOnce(bootsteps.StartStopStep):
    """Consumer step for Redis: a popped message is the worker's, with nothing kept beside the queue until an acknowledgement.

    kombu keeps one in two round trips, in the parent's loop, which all slots wait for: half of the parent's time. A message that
    is lost with a worker is sent again from its row (rule 5), and sooner than kombu would give it back.
    """

    # Hook: as for SlotGate; the event loop's `consume()` takes the flag from the consumer.
    requires = ("celery.worker.consumer.tasks:Tasks",)

    def include_if(self, consumer: Any) -> bool:
        return bool(consumer.conninfo.transport.driver_type == "redis")

    def start(self, consumer: Any) -> None:
        """Called for each connection."""
        global _hub
        _hub = consumer.hub
        consumer.task_consumer.no_ack = True
        qos = consumer.task_consumer.channel.qos
        has_room = qos.can_consume
        # Hook: kombu asks before each BRPOP; Celery's own `worker_disable_prefetch` hangs here too and stays below.
        qos.can_consume = lambda: not _database_away and has_room()
        while consumer.forgotten:
            consumer.task_consumer.channel.put_back(consumer.forgotten[-1])
            consumer.forgotten.pop()

    def stop(self, consumer: Any) -> None:
        """Called for each connection, and at the stop of the worker before its pool has ended, which may take as long as a body."""
        channel = consumer.task_consumer.channel if consumer.task_consumer else None
        if channel is None or not stopping():
            return
        # Hook: kombu would read the answer to the last BRPOP when it closes the channel, after the pool. What is in it goes back now.
        with contextlib.suppress(Empty, *consumer.connection_errors, *consumer.channel_errors):
            if channel._in_poll:
                channel._brpop_read()


class SlotGate(bootsteps.StartStopStep):
    """Consumer step that cancels the AMQP consumers when the last slot is taken or Postgres is away, and resumes them afterwards."""

    # Hook: started after Tasks has made `task_consumer` and `qos`, before the event loop calls `task_consumer.consume`.
    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: Any, **options: Any) -> None:
        super().__init__(consumer, **options)
        self._open = True

    def include_if(self, consumer: Any) -> bool:
        return bool(consumer.conninfo.transport.driver_type == "amqp")

    def start(self, consumer: Any) -> None:
        """Called for each connection: pin the prefetch, and watch slots fill and free."""
        global _hub
        _hub = consumer.hub
        self._consumer, self._tasks = consumer, consumer.task_consumer
        self._pin_prefetch(consumer.qos)
        self._consume, self._tasks.consume = self._tasks.consume, self._first_consume
        # Hooks: the first is called by the task strategy once a slot is reserved and before the message is acknowledged;
        # the second by each turn of the event loop, and the end of a body makes it turn.
        consumer.on_task_message.add(self._adjust)
        consumer.hub.on_tick.add(self._adjust)

    def stop(self, consumer: Any) -> None:
        consumer.on_task_message.discard(self._adjust)
        if consumer.hub is not None:
            consumer.hub.on_tick.discard(self._adjust)

    @staticmethod
    def _pin_prefetch(qos: Any) -> None:
        # Hook: the loop writes `basic.qos` whenever `qos.value` differs from `qos.prev`, and Celery raises the value after
        # a reconnect. Set once to 1; whatever comes later is only noted as done.
        qos.value = 1
        qos.update()

        def noted(count: int) -> int:
            qos.prev = count
            return count

        qos.set = noted

    def _free(self) -> bool:
        return not _database_away and len(state.reserved_requests) < int(self._consumer.pool.num_processes)

    def _first_consume(self, no_ack: bool | None = None) -> None:
        # Hook: the event loop calls this once per connection. Reconnected while full: take the tags, consume nothing yet.
        self._open = self._free()
        if self._open:
            self._consume(no_ack)
        else:
            for queue in self._tasks.queues:
                self._tasks._add_tag(queue)

    def _adjust(self, *_: Any) -> None:
        tags = self._tasks._active_tags
        if self._consumer.task_consumer is not self._tasks or not tags:
            return
        if self._open and not all(tag in self._tasks.channel.callbacks for tag in tags.values()):
            # The broker cancelled a consumer (its queue was deleted) and py-amqp said so by an exception, which Celery swallows
            # in the first moments of a connection (`_quick_drain`). Nothing would ever be consumed again.
            raise ConnectionResetError("the broker cancelled a consumer")
        if self._free() == self._open:
            return
        self._open = not self._open
        for queue in self._tasks.queues:
            tag = tags.get(queue.name)
            if tag is None:
                continue
            if self._open:
                queue.consume(tag, self._tasks._receive_callback, no_ack=False, nowait=True)
            else:
                # The one unacknowledged message is acknowledged only after this is written, so the broker handles the
                # cancel first and has no chance to deliver another. Without waiting: an answer is not needed.
                self._tasks.channel.basic_cancel(tag, nowait=True)
