"""The built-in tasks: `shell` runs a command, `http` sends one request."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ordering import attempt
from ordering.model import Claimed, Json
from workers import pool, settings
from workers import shell as commands
from workers.body import TimedOut
from workers.celeryapp import celery


@celery.task(bind=True, name="shell", batch_size=1)
def shell(
    self: Any, command: list[str], unless: list[str] | None = None, cwd: str | None = None,
    env: dict[str, str] | None = None, timeout: float | None = None,
) -> Json:  # fmt: skip
    """Run `command` (a list of strings) and keep what it prints; its whole process tree ends with it.

    `unless`: a command that exits 0 when the work is already done. `cwd`: a folder, by default the catalogue's, and below that
    when it is relative. `env`: variables on top of the worker's. `timeout`: seconds after which it is killed and has failed.
    Returns how long it took, in seconds.
    """
    claimed: Claimed = self.request.claimed

    def store(head: str, tail: str, dropped: int) -> None:
        pool.session().try_transact(
            lambda tx, _: attempt.write_output(tx, claimed.item_id, claimed.attempt, head=head, tail=tail, left_out=dropped)
        )

    # The worker's own folder would be wherever it was started.
    folder = settings.load().catalogue.parent
    with _timeout(timeout):
        seconds = commands.run(command, unless=unless, cwd=_below(folder, cwd), env=env, on_change=store)
    return {"seconds": round(seconds, 3)}


@celery.task(bind=True, name="http", batch_size=1)
def http(
    self: Any, url: str, method: str = "POST", json: Json = None, body: str | None = None,
    headers: dict[str, str] | None = None, timeout: float = 30.0,
) -> Json:  # fmt: skip
    """Send one request with an Idempotency-Key that stays the same for all attempts of the item; an answer other than 2xx fails.

    Returns the status, the content type and the beginning of the answer's body.
    """
    from workers import webhook  # its client is costly to import, and most workers never send a request

    key = self.idempotency_key("http")
    return webhook.request(method, url, json=json, body=body, headers=headers, timeout=timeout, idempotency_key=key)


def _below(folder: Path, cwd: object) -> object:
    if cwd is None:
        return str(folder)
    return os.path.join(folder, cwd) if isinstance(cwd, str) else cwd  # what is no text is refused by name


@contextmanager
def _timeout(seconds: float | None) -> Iterator[None]:
    if seconds is None:
        yield
        return
    if not isinstance(seconds, (int, float)) or not 0 < seconds < 10_000_000:
        raise commands.BadCommand("timeout must be a number of seconds above 0 and below ten million")

    def over(*_: object) -> None:
        raise TimedOut(f"The command was still running after its timeout of {seconds:g} s and was killed.")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
