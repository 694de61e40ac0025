"""Batch handlers: a task with `batch=True` gets the whole list and gives each message its own verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from ordering.decide import Ended, Failed, PutBack, Succeeded
from ordering.items import FARTHEST
from ordering.model import Claimed
from workers import body


class Message:
    """One message of a batch. Its first verdict wins; without one it is acknowledged when the handler returns.

    `id`: the item's. `args`, `kwargs`: what it was added with (a fact's data is `args[0]`). `attempt`: 1 at the first try.
    """

    def __init__(self, run: Claimed) -> None:
        self._run = run
        self.id, self.attempt = run.item_id, run.attempt
        self.args: list[Any] = body.from_json(run.args)
        self.kwargs: dict[str, Any] = body.from_json(run.kwargs)
        self.verdict: Ended | None = None

    def ack(self) -> None:
        """It is done."""
        self._say(Succeeded(None))

    def retry(self, delay: float | None = None) -> None:
        """It is to be tried again in `delay` seconds (None: the platform's backoff), until its tries are used up."""
        if delay is not None and not 0 <= delay <= FARTHEST.total_seconds():
            raise ValueError(f"delay: {delay!r} is out of range; use 0 to ten years, in seconds.")
        self._say(Failed("Retry", "The task asked for a retry.", retry_in=None if delay is None else timedelta(seconds=delay)))

    def fail(self, reason: str) -> None:
        """It cannot succeed: no more tries, a person decides."""
        self._say(Failed("Failed", str(reason) or "The task gave no reason.", final=True))

    def _say(self, verdict: Ended) -> None:
        if self.verdict is None:
            self.verdict = verdict


def run(
    handler: Callable[[list[Message]], Any], runs: Sequence[Claimed], *, check: Callable[..., Any] | None, exhausted: Callable[[], bool]
) -> Iterable[tuple[Claimed, Ended]]:
    """Call `handler` once with all messages that `check` lets go, and give each item's verdict. Raises body.Stopped only.

    When the handler raises and several messages have no verdict, nobody knows whose fault it was: they go out again in batches of
    half the size, until the culprit stands alone.
    """
    messages = []
    for each in runs:
        message = Message(each)
        if check is not None:
            message.verdict = body.checked(lambda m=message: check(*m.args, **m.kwargs))  # type: ignore[misc]
        if message.verdict is None:
            messages.append(message)
        else:
            yield each, message.verdict
    if not messages:
        return
    ended = body.run(lambda: handler(list(messages)), exhausted=exhausted)
    open_ = [message for message in messages if message.verdict is None]
    for message in messages:
        yield message._run, message.verdict or _unsaid(ended, len(open_), len(runs))


def _unsaid(ended: Ended, open_: int, size: int) -> Ended:
    match ended:
        case Succeeded():
            return Succeeded(None)
        case Failed(retry_in=None, reason=reason, error=error) if size > 1:
            return PutBack(max(1, min(open_, size // 2)), reason, error)
        case _:
            return ended
