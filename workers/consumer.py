"""The consuming side of a worker: refuses what is not ours, survives its broker, and is installed by one call."""

from __future__ import annotations

import contextlib
import logging
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from celery import Celery
from celery.exceptions import CPendingDeprecationWarning
from celery.worker import state
from celery.worker.consumer import Consumer
from kombu.transport import TRANSPORT_ALIASES

from ordering.model import DEFAULT_QUEUE
from workers import gate, last_resort
from workers.broker_wire import queue
from workers.celery_events import PromptDispatcher
from workers.gate import SlotGate, TakenAtOnce
from workers.refusal import body_fault, fault, refusal

logger = logging.getLogger(__name__)

#: The longest wait for one answer of the broker, in seconds, on every connection of a worker.
SOCKET_SECONDS = 3.0

#: Seconds between attempts to reconnect: the first, and the most. Celery's own rise to 30.
RETRY_SECONDS = (0.5, 2.0)

#: RabbitMQ: a connection silent for twice this is given up, in seconds.
HEARTBEAT_SECONDS = 5

#: Redis: an unanswered BRPOP is given up after this plus its own second; also how often that is looked at.
HEALTH_SECONDS = 3

#: After an error that ends the worker's loop, in seconds: how long its stop may last.
FATAL_SECONDS = 5.0

#: Redis: a message taken and not acknowledged for so long (its worker died in between) goes back, in seconds. Messages
#: are acknowledged as soon as a pool process takes them, and a second copy of one finds nothing to claim.
VISIBILITY_SECONDS = 10


def _log_refusal(reason: str, body_size: int, preview: str, task_id: str | None, task_name: str | None) -> None:
    logger.error("Refused a message of %d bytes: %s task=%s id=%s preview=%r", body_size, reason, task_name, task_id, preview)


#: Called once for each refused message, in the worker's parent process; set by whoever records them. It blocks the
#: worker's event loop, so it has to be bounded in time; what it raises is logged.
on_refused: Callable[[str, int, str, str | None, str | None], None] = _log_refusal


def refuse(reason: str, body: object, headers: object = None) -> None:
    """Hand one refused message to `on_refused`; never raises."""
    described = refusal(reason, body, headers)
    try:
        on_refused(*described)
    except Exception:
        logger.exception("A refused message could not be recorded.")
        _log_refusal(*described)


class Guarded(Consumer):
    """Celery's consumer, for which no message is a reason to fail and no outage a reason to stay away."""

    _lost_at = -RETRY_SECONDS[0]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        #: Redis: what was taken and given to no process when its connection was lost. RabbitMQ delivers such messages again by itself.
        self.forgotten: list[Any] = []
        super().__init__(*args, **kwargs)

    def start(self) -> None:
        try:
            super().start()
        except Exception:
            # Hook: Celery now stops warmly, which may wait for ever for a pool whose loop is gone (seen: alive and deaf to TERM).
            # What ran is found by its session, and whoever supervises starts a new worker.
            last_resort.end_in(FATAL_SECONDS)
            raise

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        # Hook: called once per connection by the event loop; what it returns gets every message that kombu could take apart.
        handle = super().create_task_handler(*args, **kwargs)
        broken = tuple(kind for kind in self._broken if not issubclass(kind, LookupError))

        def guarded(message: Any) -> Any:
            if gate.stopping():
                return _put_back(message)
            reason = self._fault(message)
            if reason is not None:
                return self._refuse(message, reason)
            try:
                return handle(message)
            except broken:
                raise
            except Exception as error:
                # Above all KeyError, which kombu's Redis transport counts as a lost connection: it would reconnect for ever.
                logger.exception("Celery could not take a message.")
                return self._refuse(message, f"The message cannot be handled: {type(error).__name__}.")

        return guarded

    def on_close(self) -> None:
        # Hook: Celery now forgets what it has taken and no pool process has confirmed.
        for request in set(state.reserved_requests) - set(state.active_requests):
            job = request._apply_result and request._apply_result()
            if job is not None and job._write_to is not None:
                if gate.stopping():
                    request.acknowledge()  # a process has it and runs it
            elif job is not None or request._apply_result is None:
                if gate.stopping():
                    with contextlib.suppress(*self._broken):
                        _put_back(request.message)
                elif hasattr(request.message.channel, "put_back"):
                    # The connection is lost, and before this was called kombu has read and handed on what had come with it.
                    self.forgotten.append(request.message)
        super().on_close()

    # Hooks: what Celery calls for messages that it finds wrong by itself. kombu calls the first also for a message that it
    # could not even take apart (broken compression), before the handler above is reached.
    def on_decode_error(self, message: Any, exc: Exception) -> None:
        self._refuse(message, f"The message cannot be decoded: {type(exc).__name__}.")

    def on_unknown_message(self, body: Any, message: Any) -> None:
        self._refuse(message, "The message is not a task.")

    def on_unknown_task(self, body: Any, message: Any, exc: Exception) -> None:
        self._refuse(message, "The task is unknown to this worker.")

    def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:
        self._refuse(message, "The message is not a valid task.")

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        with warnings.catch_warnings():
            # Eight lines at each lost connection about tasks with late acknowledgement, which there are none of.
            warnings.simplefilter("ignore", CPendingDeprecationWarning)
            super().on_connection_error_after_connected(exc)
        self._pause()

    def on_connection_error_before_connected(self, exc: Exception) -> None:
        super().on_connection_error_before_connected(exc)
        self._pause()

    def _pause(self) -> None:
        # A broker that takes each connection and answers it with an error (a replica, which is read-only) would be asked
        # again at once; Celery logs a traceback after five times in a second.
        pause = self._lost_at + RETRY_SECONDS[0] - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        self._lost_at = time.monotonic()

    @property
    def _broken(self) -> tuple[type[Exception], ...]:
        return (*self.connection_errors, *self.channel_errors)

    def _fault(self, message: Any) -> str | None:
        wrong = fault(message.headers, message.properties, message.content_type, message.content_encoding)
        wrong = wrong or body_fault(message.body)
        if wrong is None:
            name = message.headers["task"]
            # Celery's own tasks (chords, maps, clean-up) are registered in every application and never asked for here.
            if name not in self.strategies or name.startswith("celery."):
                return "The task is unknown to this worker."
        return wrong

    def _refuse(self, message: Any, reason: str) -> None:
        refuse(reason, getattr(message, "body", None), getattr(message, "headers", None))
        if not message.acknowledged:
            message.reject_log_error(logger, self._broken)

    def ensure_connected(self, conn: Any) -> Any:
        # Hook: every connection of the worker passes here. Celery waits longer and longer between attempts (up to 30 s) and
        # stands still meanwhile; time limits of running bodies are timers of the hub, so they are fired in the pauses.
        ensure = conn.ensure_connection

        def patiently(errback: Any, max_retries: Any, callback: Callable[[], None]) -> Any:
            def between() -> None:
                callback()
                if self.hub is not None:
                    self.hub.fire_timers(propagate=())

            first, most = RETRY_SECONDS
            return ensure(errback, max_retries, callback=between, interval_start=first, interval_step=first, interval_max=most)

        conn.ensure_connection = patiently
        conn = super().ensure_connected(conn)
        if conn.transport.driver_type == "amqp":
            # py-amqp waits without limit for answers and for room in the socket's buffer (a broker in alarm reads nothing).
            conn.connection.transport.sock.settimeout(SOCKET_SECONDS)
        return conn


def _put_back(message: Any) -> None:
    # A message that dies with its worker is missed after 10 s only (rule 5).
    if hasattr(message.channel, "put_back"):
        message.channel.put_back(message)
    elif not message.acknowledged:
        message.requeue()


def install(app: Celery, queues: Iterable[str] = (DEFAULT_QUEUE,)) -> None:
    """Make `app` a Relevo worker's application: settings, consumer, transport and gate. Call once `broker_url` is set.

    `queues` are the names that a worker consumes from when its command line names none.
    """
    TRANSPORT_ALIASES["redis"] = TRANSPORT_ALIASES["rediss"] = "workers.redis_transport:Transport"
    amqp = str(app.conf.broker_read_url or app.conf.broker_url).startswith(("amqp", "pyamqp"))
    app.conf.update(
        worker_consumer="workers.consumer:Guarded",
        task_default_queue=DEFAULT_QUEUE,
        task_queues=[queue(name) for name in dict.fromkeys(queues)],
        task_serializer="json",
        result_serializer="json",
        accept_content=["json"],
        # Fetched only for a free slot, acknowledged before the body runs: see workers/gate.py.
        task_acks_late=False,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=not amqp,  # Redis only; Celery warns and ignores it elsewhere
        worker_enable_prefetch_count_reduction=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        # Without these a worker gives up: at its start, after 100 attempts, or at an error that the broker answers
        # (a Redis that has become a read-only replica).
        broker_connection_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_channel_error_retry=True,
        broker_connection_timeout=SOCKET_SECONDS,
        broker_heartbeat=HEARTBEAT_SECONDS,
        broker_transport_options={} if amqp else dict(_REDIS_OPTIONS),
    )
    app.events.dispatcher_cls = PromptDispatcher
    app.steps["consumer"].update((SlotGate, TakenAtOnce))


_REDIS_OPTIONS: dict[str, Any] = {
    # BRPOP is not bitten by it: it is read only once its answer is there, and the server answers after 1 s at the latest.
    "socket_timeout": SOCKET_SECONDS,
    "socket_connect_timeout": SOCKET_SECONDS,
    "socket_keepalive": True,
    "health_check_interval": HEALTH_SECONDS,
    "retry_on_timeout": False,
    "visibility_timeout": VISIBILITY_SECONDS,
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,  # look each time, not each tenth time
}
