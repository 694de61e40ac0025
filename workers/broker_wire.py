"""One open connection to the broker, as the publisher uses it: put a message, count messages, let go.

Two kinds, because the cheap way differs: on Redis and Valkey one LPUSH of a ready envelope, on RabbitMQ one confirmed
basic.publish. Every call is bounded by `STEP_SECONDS` per round trip; errors are whatever the client library raises.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol

import amqp
from kombu.connection import Connection
from kombu.entity import Exchange, Queue

from workers import message

#: The longest wait for one answer of the broker, in seconds. A call makes at most three such waits in a row
#: (a kept connection that has died, a new connection, the call again), which keeps `send` under 3 s.
STEP_SECONDS = 0.8

#: Unacknowledged entries looked at when counting on Redis; more than that are somebody else's late acknowledgements.
UNACKED_LIMIT = 10_000

#: kombu options for a connection that only publishes. The health check would cost a PING after each pause;
#: a stale connection is found by the call itself and replaced.
REDIS_OPTIONS: dict[str, Any] = {
    "socket_timeout": STEP_SECONDS,
    "socket_connect_timeout": STEP_SECONDS,
    "health_check_interval": 0,
    "retry_on_timeout": False,
}


def queue(name: str) -> Queue:
    """The declaration of the durable, classic queue `name`, reached through the default exchange on both brokers.

    Classic is said aloud because a virtual host may default to quorum queues, whose prefetch is not per channel.
    """
    return Queue(name, Exchange(""), routing_key=name, durable=True, queue_arguments={"x-queue-type": "classic"})


def _errors(connection: Connection) -> tuple[type[Exception], ...]:
    return (*connection.connection_errors, *connection.channel_errors, OSError)


class Wire(Protocol):
    """What the publisher needs from a broker."""

    errors: tuple[type[Exception], ...]
    blocked: bool

    def put(self, queue_name: str, headers: dict[str, Any]) -> None: ...

    def sizes(self, names: Iterable[str]) -> dict[str, int]: ...

    def eviction_policy(self) -> str | None: ...

    def drop(self) -> None: ...

    def forget(self) -> None: ...


class RedisWire:
    """Redis and Valkey: kombu's channel opens the connection (URL forms, TLS, key prefix), we speak to its client."""

    blocked = False

    def __init__(self, connection: Connection) -> None:
        self.errors = _errors(connection)
        self._transport = connection.transport
        # Not connection.connect(): that retries with pauses of 2 s and more.
        self._channel = self._transport.create_channel(self._transport.establish_connection())
        self._client = self._channel.client

    def put(self, queue_name: str, headers: dict[str, Any]) -> None:
        self._client.execute_command("LPUSH", queue_name, message.redis_envelope(queue_name, headers))

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        names, channel = list(names), self._channel
        keys = [(name, channel._q_for_pri(name, step)) for name in names for step in channel.priority_steps]
        with self._client.pipeline(transaction=False) as pipe:
            for _, key in keys:
                pipe.llen(key)
            pipe.hlen(channel.unacked_key)
            *lengths, unacked = pipe.execute(raise_on_error=False)
        if isinstance(unacked, Exception):
            raise unacked
        sizes = Counter(dict.fromkeys(names, 0))
        for (name, _), length in zip(keys, lengths, strict=True):
            if isinstance(length, Exception):
                sizes.pop(name, None)  # a key of that name is no queue: it hides no other
            elif name in sizes:
                sizes[name] += length
        if unacked:
            sizes.update(name for name in self._unacked() if name in sizes)
        return dict(sizes)

    def _unacked(self) -> list[str]:
        # HSCAN is not among the commands that kombu prefixes by itself.
        key = f"{self._channel.global_keyprefix}{self._channel.unacked_key}"
        cursor = 0
        found: list[str] = []
        while len(found) < UNACKED_LIMIT:
            cursor, entries = self._client.execute_command("HSCAN", key, cursor, "COUNT", 1000)
            for entry in entries.values():
                try:
                    found.append(str(json.loads(entry)[2]))
                except (ValueError, LookupError, TypeError):
                    continue  # another program's entry: not one of our queues
            if not cursor:
                break
        return found

    def eviction_policy(self) -> str | None:
        # INFO and not CONFIG GET: hosted servers forbid the latter.
        policy = self._client.info("memory").get("maxmemory_policy")
        return None if policy is None else str(policy)

    def drop(self) -> None:
        self._transport.close_connection(self._transport)  # sockets only, no round trip: nothing is consumed here

    def forget(self) -> None:
        """Nothing to do: redis-py knows the pid that opened a socket and never shuts another process's one down."""


class AmqpWire:
    """RabbitMQ: one channel in confirm mode, so that a broker in alarm or gone is noticed by the call."""

    def __init__(self, connection: Connection) -> None:
        self.errors = _errors(connection)
        self.blocked = False
        connection.transport_options = {
            **(connection.transport_options or {}),
            "confirm_publish": True,
            "on_blocked": self._on_blocked,
            "on_unblocked": self._on_unblocked,
        }
        self._transport = connection.transport
        self._link = self._transport.establish_connection()
        # A plain socket timeout bounds each read and write; py-amqp's read_timeout does not (it retries EAGAIN).
        self._link.transport.sock.settimeout(STEP_SECONDS)
        self._channel = self._link.channel()
        self._declared: set[str] = set()

    def _on_blocked(self, _reason: str) -> None:
        self.blocked = True

    def _on_unblocked(self) -> None:
        self.blocked = False

    def put(self, queue_name: str, headers: dict[str, Any]) -> None:
        if queue_name not in self._declared:
            queue(queue_name)(self._channel).declare()
            self._declared.add(queue_name)
        # mandatory: a queue deleted since then raises here, and the next attempt declares it again.
        self._channel.basic_publish(
            amqp.Message(
                message.BODY,
                content_type="application/json",
                content_encoding="utf-8",
                delivery_mode=message.DELIVERY_MODE,
                correlation_id=headers["id"],
                application_headers=headers,
            ),
            exchange="",
            routing_key=queue_name,
            mandatory=True,
            timeout=STEP_SECONDS,
        )

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        sizes = {}
        for name in names:
            try:
                sizes[name] = self._channel.queue_declare(name, passive=True).message_count
            except amqp.ChannelError as error:  # the broker closes the channel with this answer, which hides no other queue
                if isinstance(error, amqp.NotFound):
                    sizes[name] = 0
                self._declared.discard(name)
                self._channel = self._link.channel()
        return sizes

    def eviction_policy(self) -> str | None:
        return None

    def drop(self) -> None:
        self._link.collect()  # closes the socket without the goodbye that a dead broker never answers

    def forget(self) -> None:
        # Closing would send a FIN-by-shutdown on a socket that the parent still uses; close only our descriptor.
        transport = self._link.transport
        if transport is not None and transport.sock is not None:
            transport.sock.close()
            transport.sock = None


def open_wire(connection: Connection) -> Wire:
    """Connect now. Raises the client library's own errors, within about two steps."""
    if connection.transport.driver_type == "redis":
        return RedisWire(connection)
    return AmqpWire(connection)
