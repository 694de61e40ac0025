"""Tasks of the cases with batches. What each does with a message, the message says."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.cases.probe_tasks import body, note_of
from workers import celery
from workers.batch import Message

POISON = "poison"


def do(what: Any) -> None:
    """Raise, end the own process, or wait until there is a file."""
    match what:
        case "raise":
            raise ValueError("no. 7 is bad")
        case "poison":
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        case ["until", path]:
            while not Path(path).exists():
                time.sleep(0.02)


@celery.task(bind=True, name="batch.one", batch_size=10, max_retries=2, default_retry_delay=0)
def one(self: Any, what: Any) -> None:
    """One message, which travels with others."""
    with body(self):
        do(what)


@celery.task(name="batch.all", batch=True, batch_size=10, max_retries=2)
def everything(messages: list[Message]) -> None:
    """All messages of a batch, each with its own verdict as soon as it has one."""
    for message in messages:
        note_of(message.id, message.attempt, "start")
        match message.args[0]:
            case ["retry", delay] if message.attempt == 1:
                message.retry(delay)
            case ["fail", reason]:
                message.fail(reason)
                message.ack()  # too late: the first verdict wins
            case what:
                do(what)
                message.ack()
        note_of(message.id, message.attempt, "end")


@celery.task(name="batch.silent", batch=True, batch_size=10)
def silent(messages: list[Message]) -> None:
    """No verdicts at all."""
    for message in messages:
        note_of(message.id, message.attempt, "start")
        note_of(message.id, message.attempt, "end")
