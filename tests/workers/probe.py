"""A tiny application for worker processes under test. A message has no arguments, so the dispatch id says what to do."""

import json
import os
import time
from pathlib import Path
from typing import Any

from celery import Celery

from workers import consumer

HOME = Path(os.environ["PROBE_HOME"])

app = Celery("probe", broker=os.environ["PROBE_BROKER"])
consumer.install(app, [os.environ["PROBE_QUEUE"]])


def note(name: str, **fields: Any) -> None:
    with open(HOME / f"{name}.jsonl", "a") as lines:
        lines.write(json.dumps({**fields, "at": time.time(), "pid": os.getpid()}) + "\n")


def refused(reason: str, body_size: int, preview: str, task_id: str | None, task_name: str | None) -> None:
    note("refused", reason=reason, size=body_size, preview=preview, id=task_id, task=task_name)
    if task_id == "record-fails":
        raise RuntimeError("the record cannot be written")


consumer.on_refused = refused


def _sleep(dispatch_id: str) -> None:
    note("bodies", id=dispatch_id, what="start")
    length = dispatch_id.rpartition(":")[2]
    if length == "held":
        while not (HOME / "let-go").exists():
            time.sleep(0.02)
    else:
        time.sleep(float(length))
    note("bodies", id=dispatch_id, what="end")


@app.task(bind=True, name="probe.sleep")
def sleep(self: Any) -> None:
    """Sleeps for the seconds that the id ends with, as in `name:2.5`; with `name:held`, until it is let go."""
    _sleep(self.request.id)


@app.task(bind=True, name="probe.limited", time_limit=3)
def limited(self: Any) -> None:
    """Like `probe.sleep`, with a hard time limit of 3 s."""
    _sleep(self.request.id)
