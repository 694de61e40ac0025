"""The one message Relevo sends: a pointer to a dispatch, in Celery's protocol 2 and with no arguments.

Flower and `celery inspect` read the headers, so they show the task's real name and readable arguments;
a worker reads nothing but the dispatch id and takes the rest from the database.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import uuid
from functools import cache
from typing import Any

#: args, kwargs and embedded callbacks: always empty, so encoded once.
BODY = b'[[], {}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]'
_BODY_IN_ENVELOPE = base64.b64encode(BODY).decode()

#: Longest representation of arguments carried for display, in characters.
REPR_LIMIT = 1024

#: 1 = not written to the broker's disk: the row in Postgres is the durable copy, and waiting for a disk here
#: would be paid at every hand-off.
DELIVERY_MODE = 1


@cache
def _origin(pid: int) -> str:
    return f"{pid}@{socket.gethostname()}"


def _shown(text: str) -> str:
    # AMQP refuses lone surrogates and Flower refuses nothing: make it encodable here, once for both brokers.
    return text[:REPR_LIMIT].encode("utf-8", "backslashreplace").decode()


def headers(dispatch_id: str, task: str, argsrepr: str, kwargsrepr: str) -> dict[str, Any]:
    """The headers of protocol 2 for one dispatch; `argsrepr` and `kwargsrepr` are for display only."""
    return {
        "lang": "py",
        "task": task,
        "id": dispatch_id,
        "root_id": dispatch_id,
        "parent_id": None,
        "group": None,
        "group_index": None,
        "shadow": None,
        "eta": None,
        "expires": None,
        "retries": 0,
        "timelimit": [None, None],
        "argsrepr": _shown(argsrepr),
        "kwargsrepr": _shown(kwargsrepr),
        "origin": _origin(os.getpid()),
        "ignore_result": True,
        "replaced_task_nesting": 0,
        "stamped_headers": None,
        "stamps": {},
    }


def redis_envelope(queue: str, message_headers: dict[str, Any]) -> bytes:
    """What kombu's Redis transport expects to pop from the list of `queue`."""
    return json.dumps(
        {
            "body": _BODY_IN_ENVELOPE,
            "content-encoding": "utf-8",
            "content-type": "application/json",
            "headers": message_headers,
            "properties": {
                "correlation_id": message_headers["id"],
                "reply_to": "",
                "delivery_mode": DELIVERY_MODE,
                "delivery_info": {"exchange": "", "routing_key": queue},
                "priority": 0,
                "body_encoding": "base64",
                # Not the dispatch id: two copies of one dispatch may be in flight, and kombu acknowledges by tag.
                "delivery_tag": str(uuid.uuid4()),
            },
        }
    ).encode()
