"""Durable steps of a task's body: `self.step`, `self.sleep` and `self.idempotency_key`."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from datetime import UTC, timedelta
from typing import Any, TypeVar

from ordering.decide import Ended
from ordering.model import Claimed
from workers import pool
from workers.durable import Retries, Run
from workers.enqueue import NotSupported

T = TypeVar("T")
KEYS = uuid.UUID("5f0b6a2e-9d51-4a53-9d52-0c0b7d1a6f11")  # the namespace of all idempotency keys


class Steps:
    """What a task says inside its body. Called directly, as in a unit test, a step calls its function and a sleep does nothing."""

    request: Any
    name: str

    def step(
        self, name: str, function: Callable[..., T], /, *args: Any,
        retries: int = 0, delay: float | timedelta = 10.0, backoff: float = 2.0, **kwargs: Any,
    ) -> T:  # fmt: skip
        """Call `function(*args, **kwargs)` once and remember what it returns: a later attempt of the item gets that, without a call.

        The result comes back through JSON, so it has the same type fresh and remembered; one that cannot be stored fails the item
        here. A call that raises may be repeated `retries` times, `delay` seconds later and each time `backoff` times longer (at
        most an hour, or `delay` if that is more), while the item waits in Postgres; then its exception is raised here.
        """
        run = self._run("step")
        if run is None:
            return function(*args, **kwargs)
        result: T = run.step(name, lambda: function(*args, **kwargs), Retries(retries, delay, backoff))
        return result

    def sleep(self, name: str, /, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let the item wait in Postgres that long, at most ten years: the body ends here and the slot is free.

        When the time has come, or a person wakes the item, the body runs again from its beginning and passes this line.
        """
        run = self._run("sleep")
        if run is not None:
            run.sleep(name, {"days": days, "hours": hours, "minutes": minutes, "seconds": seconds})

    def idempotency_key(self, name: str, /) -> str:
        """A key for an effect elsewhere: the same over all attempts of the item, another one for each item and name.

        Called directly, it is new each time.
        """
        run = self._run("idempotency_key")
        if run is None:
            return str(uuid.uuid4())
        claimed = run.claimed
        # The time of its adding too: item 7 of another database must not share the key of item 7 of this one.
        return str(uuid.uuid5(KEYS, f"{claimed.item_id}/{claimed.created_at.astimezone(UTC).isoformat()}/{name}"))

    def steps_ended(self, claimed: Claimed, ended: Ended) -> Ended:
        """How the body of `claimed` ended, now that it has: what its steps say goes before what it made of that.

        Raises Stopped if the item was decided while a step ran.
        """
        run = self._current(claimed)
        if run is None and claimed.stepped:
            run = Run(claimed, pool.session())
        return ended if run is None else run.over(ended)

    def _run(self, verb: str) -> Run | None:
        """The steps of the running body; None in a direct call. Raises NotSupported where there can be none."""
        if pool.is_forked():
            raise NotSupported(f"{self.name}: {verb}() was called from a forked process; call it where the body runs.")
        request = self.request
        claimed: Claimed | None = getattr(request, "claimed", None)
        if claimed is not None:
            run = self._current(claimed)
            if run is None:
                run = Run(claimed, pool.session())
                request.update(steps=run)
            return run
        if not request.called_directly and request.id is not None:
            raise NotSupported(f"{self.name}: {verb}() has no meaning in a batch handler; let it add an item for each workflow.")
        if pool.is_begun() and threading.current_thread() is not threading.main_thread():
            raise NotSupported(f"{self.name}: {verb}() was called from another thread; call it where the body runs.")
        return None

    def _current(self, claimed: Claimed) -> Run | None:
        run: Run | None = getattr(self.request, "steps", None)
        return run if run is not None and run.claimed is claimed else None
