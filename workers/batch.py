"""Batch handlers: a task with `batch=True` gets the whole list and gives each message its own verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from ordering.decide import Ended, Failed, PutBack, Succeeded
from ordering.items import FARTHEST
from ordering.model import Claimed
from workers import body

Record = Callable[[Claimed, Ended], None]


class Message:
    """One message of a batch. Its first verdict wins; without one it is acknowledged when the handler returns.

    `id`: the item's. `args`, `kwargs`: what it was added with (a fact's data is `args[0]`). `attempt`: 1 at the first try.
    """

    def __init__(self, run: Claimed, record: Record) -> None:
        self._run, self._record = run, record
        self.id, self.attempt = run.item_id, run.attempt
        self.args: list[Any] = body.from_json(run.args)
        self.kwargs: dict[str, Any] = body.from_json(run.kwargs)
        self.verdict: Ended | None = None

    def ack(self) -> None:
        """It is done."""
        self._say(Succeeded(None))

    def retry(self, delay: float | None = None) -> None:
        """It is to be tried again in `delay` seconds (None: the platform's backoff), until its tries are used up."""
        if delay is not None and not (isinstance(delay, (int, float)) and 0 <= delay <= FARTHEST.total_seconds()):
            raise ValueError(f"delay: {delay!r} is out of range; use 0 to ten years, in seconds.")
        self._say(Failed("Retry", "The task asked for a retry.", retry_in=None if delay is None else timedelta(seconds=delay)))

    def fail(self, reason: str) -> None:
        """It cannot succeed: no more tries, a person decides."""
        self._say(Failed("Failed", str(reason) or "The task gave no reason.", final=True))

    def _say(self, verdict: Ended) -> None:
        # Given and not noted, by a limit that comes in between, it would be neither recorded nor taken for missing.
        with body.undisturbed():
            if self.verdict is None:
                self.verdict = verdict
                self._record(self._run, verdict)


def run(
    handler: Callable[[list[Message]], Any],
    runs: Iterable[Claimed],
    record: Record,
    *,
    check: Callable[..., Any] | None,
    exhausted: Callable[[], bool],
) -> None:
    """Call `handler` once with all messages that `check` lets go, and `record` each verdict as it is given. Raises body.Stopped only.

    When the handler raises and several messages have no verdict, nobody knows whose fault it was: they go out again in batches of
    half the size, until the culprit stands alone.
    """
    messages = [Message(each, record) for each in runs]
    if check is not None:
        for message in messages:
            verdict = body.checked(lambda m=message: check(*m.args, **m.kwargs))  # type: ignore[misc]
            if verdict is not None:
                message._say(verdict)
    let_go = [message for message in messages if message.verdict is None]
    if not let_go:
        return
    ended = body.run(lambda: handler(list(let_go)), exhausted=exhausted)
    silent = [message for message in let_go if message.verdict is None]
    for message in silent:
        message._say(_unsaid(ended, len(silent), len(messages)))


def _unsaid(ended: Ended, silent: int, size: int) -> Ended:
    match ended:
        case Succeeded():
            return Succeeded(None)
        case Failed(retry_in=None, reason=reason, error=error) if size > 1:
            return PutBack(max(1, min(silent, size // 2)), reason, error)
        case _:
            return ended
