"""kombu's Redis transport, with every popped entry checked before kombu looks at it.

kombu trusts the list it pops from: an entry that is no JSON, or a JSON list, ends the worker; one without its
properties makes it reconnect for ever. Here such an entry is recorded and dropped.
"""

from __future__ import annotations

from typing import Any

from kombu.transport import redis
from kombu.utils.json import loads


class Channel(redis.Channel):
    """A channel whose client hands on only envelopes that kombu can deliver."""

    def _get_client(self) -> Any:
        # Hook: kombu reads a popped entry through `client.parse_response(connection, "BRPOP")` and takes an empty answer
        # for "nothing yet". Every client of the channel is made by the factory that this method returns.
        make = super()._get_client()

        def client(**options: Any) -> Any:
            made = make(**options)
            parse = made.parse_response

            def parse_response(connection: Any, command_name: Any, **kwargs: Any) -> Any:
                reply = parse(connection, command_name, **kwargs)
                return reply if command_name != "BRPOP" or not reply or self._deliverable(reply[1]) else None

            made.parse_response = parse_response
            return made

        return client

    def _deliverable(self, entry: bytes) -> bool:
        headers: object = None
        try:
            envelope = loads(entry)
            headers = envelope.get("headers")
            properties = envelope["properties"]
            route = properties["delivery_info"]
            texts = (properties["delivery_tag"], route["exchange"], route["routing_key"])
            if all(isinstance(text, str) for text in texts) and isinstance(envelope.get("body") or "", str):
                # What kombu does at delivery: decodes the body's base64 and takes the headers apart.
                self.Message(envelope, channel=self)
                return True
        except Exception:
            # Any error at all means that kombu would fail in the same way, with the worker's loop on its stack.
            pass
        _refuse("The entry in the broker's list is not a message.", entry, headers)
        return False

    def basic_ack(self, delivery_tag: Any, multiple: bool = False) -> None:
        # What was taken without a copy beside the queue (gate.TakenAtOnce) has nothing to be acknowledged.
        if delivery_tag in self.qos._delivered:
            super().basic_ack(delivery_tag, multiple)

    def basic_reject(self, delivery_tag: Any, requeue: bool = False) -> None:
        if delivery_tag in self.qos._delivered:
            super().basic_reject(delivery_tag, requeue)

    def put_back(self, message: Any) -> None:
        """Back to the queue, as the next to be taken, with a message that was taken without a copy beside the queue."""
        self.qos.append(message, message.delivery_tag)
        super().basic_reject(message.delivery_tag, requeue=True)

    def _deliver_fanout_message(self, message: Any, exchange: str) -> Any:
        # Hook: broadcasts (remote control, events) come this way; their JSON is checked by kombu, their shape is not.
        try:
            self.Message(message, channel=self)
        except Exception:
            _refuse("The broadcast is not a message.", repr(message)[:1000])
            return False
        return super()._deliver_fanout_message(message, exchange)


class Transport(redis.Transport):
    """Redis and Valkey for Relevo; takes the place of kombu's own under the same URL schemes."""

    Channel = Channel


def _refuse(reason: str, body: object, headers: object = None) -> None:
    # Imported late: publishers use this transport too, and have no need of Celery's worker.
    from workers.consumer import refuse

    refuse(reason, body, headers)
