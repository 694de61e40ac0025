"""Messages that somebody else's program, a bug or an attacker might put into our queue, pushed straight into the broker."""

import base64
import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import amqp
import redis
from kombu import Connection

from workers.message import BODY, headers

TASK = "probe.sleep"


class Bad(NamedTuple):
    """One bad message: a name for the report, its body, what is said beside it."""

    name: str
    body: bytes
    headers: Any
    content_type: Any = "application/json"
    content_encoding: Any = "utf-8"


def _said(name: str, **changes: Any) -> dict[str, Any]:
    said = headers(f"bad-{name}:0", TASK, "()", "{}")
    said.update(changes)
    return {key: value for key, value in said.items() if value is not Ellipsis}


def messages() -> Iterator[Bad]:
    """Bad messages that both brokers can carry."""
    bodies = {
        "empty body": b"",
        "random bytes": bytes(range(256)),
        "broken utf-8": b'["\xff\xfe", {}, {}]',
        "cut json": BODY[:-20],
        "no triple": b'{"a": 1}',
        "two parts": b"[[], {}]",
        "arguments": b'[[1], {}, {"callbacks": null}]',
        "arguments no list": b"[5, {}, {}]",
        "named arguments no table": b"[[], 7, {}]",
        "options no table": b"[[], {}, []]",
        "callbacks": b'[[], {}, {"callbacks": [{"task": "probe.sleep"}]}]',
        "deep": b"[" * 2000 + b"]" * 2000,
        "deep arguments": b'[[{"a":' * 900 + b"1" + b"}]" * 900 + b", {}, {}]",
    }
    for name, body in bodies.items():
        yield Bad(name, body, _said(name))
    changes: dict[str, dict[str, Any]] = {
        "no id": {"id": ...},
        "no task": {"task": ...},
        "id a list": {"id": ["a"]},
        "task a list": {"task": ["a"]},
        "task a table": {"task": {"a": 1}},
        "unknown task": {"task": "nobody.knows"},
        "celery's own task": {"task": "celery.chain"},
        "eta": {"eta": "2099-01-01T00:00:00+00:00"},
        "bad eta": {"eta": "tomorrow"},
        "expires": {"expires": "x"},
        "time limit": {"timelimit": ["a", "b"]},
        "retries": {"retries": "many"},
        "shadow": {"shadow": {"a": 1}},
        "stamps": {"stamped_headers": 5, "stamps": 7},
        "broken gzip": {"compression": "application/x-gzip"},
        "unknown compression": {"compression": "application/x-none"},
        "compression a list": {"compression": ["a"]},
        "record fails": {"id": "record-fails", "task": "nobody.knows"},
    }
    for name, change in changes.items():
        yield Bad(name, BODY, _said(name, **change))
    yield Bad("no headers", BODY, {})
    yield Bad("protocol 1", b'{"task": "probe.sleep", "id": "p1:0", "args": [], "kwargs": {}}', {})
    yield Bad("pickle", pickle.dumps(([], {}, {})), _said("pickle"), "application/x-python-serialize", "binary")
    yield Bad("yaml", b"[[], {}, {}]", _said("yaml"), "application/x-yaml")
    yield Bad("unknown content type", BODY, _said("unknown content type"), "text/nonsense")
    yield Bad("no content type", BODY, _said("no content type"), None)
    yield Bad("unknown encoding", BODY, _said("unknown encoding"), "application/json", "utf-99")
    yield Bad("no encoding", BODY, _said("no encoding"), "application/json", None)


def _envelope(bad: Bad) -> dict[str, Any]:
    return {
        "body": base64.b64encode(bad.body).decode(),
        "content-type": bad.content_type,
        "content-encoding": bad.content_encoding,
        "headers": bad.headers,
        "properties": {
            "correlation_id": "c",
            "reply_to": "",
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": "q"},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": f"tag {bad.name}",
        },
    }


def envelopes() -> Iterator[tuple[str, bytes]]:
    """Entries in the Redis list that are no kombu message at all, by name."""
    good = Bad("good", BODY, _said("envelope"))

    def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
        envelope = _envelope(good)
        change(envelope)
        return json.dumps(envelope).encode()

    yield "raw text", b"hello"
    yield "raw empty", b""
    yield "raw bytes", bytes(range(256))
    yield "a list", b"[1, 2]"
    yield "a number", b"17"
    yield "null", b"null"
    yield "an empty table", b"{}"
    yield "deep", b"[" * 5000 + b"]" * 5000
    yield "typed nonsense", b'{"__type__": "datetime", "__value__": 5}'
    yield "no properties", changed(lambda e: e.pop("properties"))
    yield "properties a list", changed(lambda e: e.update(properties=[1]))
    yield "no tag", changed(lambda e: e["properties"].pop("delivery_tag"))
    yield "tag a table", changed(lambda e: e["properties"].update(delivery_tag={"a": 1}))
    yield "no route", changed(lambda e: e["properties"].pop("delivery_info"))
    yield "route a text", changed(lambda e: e["properties"].update(delivery_info="x"))
    yield "no routing key", changed(lambda e: e["properties"].update(delivery_info={"exchange": ""}))
    yield "bad base64", changed(lambda e: e.update(body="%%%"))
    yield "bad base64 length", changed(lambda e: e.update(body="abcde"))
    yield "body a number", changed(lambda e: e.update(body=5))
    yield "unknown body encoding", changed(lambda e: e["properties"].update(body_encoding="rot13"))
    yield "body encoding a number", changed(lambda e: e["properties"].update(body_encoding=13))
    yield "headers a list", changed(lambda e: e.update(headers=[1]))
    yield "headers a text", changed(lambda e: e.update(headers="x"))
    yield "lone surrogate", changed(lambda e: e["headers"].update(task="\ud800"))


def push_redis(url: str, queue: str, bad: Bad) -> None:
    """Put the message into the list as kombu would."""
    push_raw(url, queue, json.dumps(_envelope(bad)).encode())


def push_raw(url: str, queue: str, entry: bytes) -> None:
    """Put raw bytes into the list."""
    client = redis.Redis.from_url(url)
    try:
        client.lpush(queue, entry)
    finally:
        client.close()


def push_amqp(url: str, queue: str, bad: Bad) -> None:
    """Publish the message to the queue."""
    said = {"content_type": bad.content_type, "content_encoding": bad.content_encoding, "correlation_id": "c"}
    with Connection(url) as connection:
        message = amqp.Message(bad.body, application_headers=bad.headers, **{k: v for k, v in said.items() if v is not None})
        connection.channel().basic_publish(message, exchange="", routing_key=queue)
