"""The heart: claim, run, finish, feed. Every task of the platform is a Celery task around whose body stand these four."""

from __future__ import annotations

import logging
import os
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from celery import Task
from celery.exceptions import Ignore

from ordering import attempt, head
from ordering.decide import Ended, Failed, Succeeded
from ordering.model import Claimed, Dispatch, OnInterrupt, State
from workers import body, enqueue, pool
from workers.body import RetryIn

logger = logging.getLogger(__name__)


class AttemptFailed(Exception):
    """What Celery and Flower are shown of a failed attempt; the whole story is in the item's history."""


class PlanTask(Task):
    """Base class of all tasks. Celery's own words keep their meaning; the order, the retries and the results are in Postgres.

    `plan`: the plan that `.delay()` adds to (None: the stream `default`). `queue`: the broker's queue (None: `relevo`).
    `on_interrupt`: "hold" or "requeue".
    `precheck`: called with the task's arguments just before the body; see body.run.
    """

    abstract = True
    plan: str | None = None
    queue: str | None = None
    on_interrupt: str | None = None
    precheck: Any = None
    throws = (AttemptFailed,)
    Request = "workers.request:PlanRequest"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.request.called_directly or self.request.id is None:
            return self.run(*args, **kwargs)
        session = pool.session()
        dispatch_id = UUID(self.request.id)
        claimed = session.transact(lambda tx, session_id: attempt.claim(tx, dispatch_id, session_id=session_id))
        if claimed is None:
            # A second copy, or an item that was cancelled or decided meanwhile: nothing of it runs.
            self.send_event("task-revoked", terminated=False, signum=None, expired=False)
            raise Ignore
        try:
            with body.stoppable() as told, session.running(claimed):
                ended = self._body(claimed)
        except body.Stopped:
            # Whoever sent TERM has decided the item; the process ends, and the pool puts a clean one in its place.
            raise SystemExit(0) from None
        state, following = self._finish_and_feed(claimed, ended)
        pool.publish(following)
        if told.to_stop:
            # A body that made something else of being stopped; whoever sent TERM expects this process, and no next body, to end.
            raise SystemExit(0)
        return self._told(state, ended)

    def _body(self, claimed: Claimed) -> Ended:
        # The row says what runs, not the message (rule 6); an edit of the task takes the message back, so they agree.
        task = self.app.tasks.get(claimed.task)
        if not isinstance(task, PlanTask) or claimed.task.startswith("celery."):
            return Failed("UnknownTask", f"unknown task {claimed.task}: this worker ({self.request.hostname}) does not have it", final=True)
        args, kwargs = body.from_json(claimed.args), body.from_json(claimed.kwargs)
        self.request.update(args=args, kwargs=kwargs, retries=claimed.tries, claimed=claimed, exhausted=False)
        check = type(task).precheck if task.precheck is not None else None
        return body.run(
            lambda: task.run(*args, **kwargs),
            precheck=None if check is None else lambda: check(*args, **kwargs),
            exhausted=lambda: bool(self.request.exhausted),
        )

    def _finish_and_feed(self, claimed: Claimed, ended: Ended) -> tuple[State | None, list[Dispatch]]:
        """Record how the body ended and hand out the next head, with one wait for the disk."""
        transact = pool.session().transact
        try:
            return transact(lambda tx, _: (attempt.finish(tx, claimed, ended), head.feed(tx, claimed.plan_id, serial=claimed.serial)))
        except Exception as error:
            logger.warning("Finishing and feeding failed (%s); the outcome is recorded alone, and the feeder feeds.", type(error).__name__)
        try:
            return transact(lambda tx, _: attempt.finish(tx, claimed, ended)), []
        except Exception as error:  # what cannot be recorded is recorded as that, or the item would stay out for ever
            reason, text = body.described(error)
            failed = Failed("Unrecordable", f"The outcome could not be stored: {reason}\n\n{text}", final=True)
        try:
            return transact(lambda tx, _: attempt.finish(tx, claimed, failed)), []
        except Exception:
            # Alive, this process would vouch for an item that nobody runs; gone, it is shown as interrupted.
            logger.exception("No outcome of item %d can be stored; the process ends.", claimed.item_id)
            os._exit(1)

    def _told(self, state: State | None, ended: Ended) -> str:
        """What Celery hears, so that Flower's states agree with ours."""
        match ended:
            case Failed(retry_in=delay, reason=reason) if state is State.WAITING:
                raise RetryIn(delay or timedelta(0), None)
            case Failed(reason=reason):
                raise AttemptFailed(reason)
            case Succeeded(result=result) if state is not None:
                return repr(result)[:200]
            case _:
                return str(state or "decided meanwhile")

    def retry(
        self, args: Any = None, kwargs: Any = None, exc: BaseException | None = None, throw: bool = True,
        eta: datetime | None = None, countdown: float | None = None, max_retries: int | None = None, **options: Any,
    ) -> RetryIn:  # fmt: skip
        """Celery's retry, with the delay kept in Postgres: by `countdown` seconds, until `eta`, or `default_retry_delay`.

        Raises RetryIn (returns it when `throw` is False); `exc`, or MaxRetriesExceededError, when the retries are used up.
        """
        enqueue.refuse_options("retry", options)
        request = self.request
        if request.called_directly:
            raise exc or self.MaxRetriesExceededError(f"{self.name} was called directly, so there is nothing to retry.")
        limit = self.max_retries if max_retries is None else max_retries
        if limit is not None and request.retries + 1 > limit:
            request.exhausted = True
            raise exc or self.MaxRetriesExceededError(f"{self.name} used up its {limit} retries.")
        if eta is not None:
            delay = body.seconds_until(eta)
        else:
            delay = timedelta(seconds=max(0.0, self.default_retry_delay if countdown is None else countdown))
        new_args, new_kwargs = (None if value is None else body.to_json("retry arguments", value) for value in (args, kwargs))
        allowed = None if max_retries is None else max_retries + 1
        asked = RetryIn(min(delay, enqueue.FARTHEST), exc, new_args, new_kwargs, allowed)
        if throw:
            raise asked
        return asked

    def apply_async(self, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        """Add an item for this task to its plan, in a transaction of its own. Raises NotSupported for what would bypass the plan."""
        return enqueue.add(self, args, kwargs, options)

    def replace(self, sig: Any) -> Any:
        """Refused: it would run something outside a plan."""
        raise enqueue.NotSupported(f"{self.name}.replace() would run a task outside a plan; add an item with .delay() instead.")

    add_to_chord = replace

    @property
    def interruption(self) -> OnInterrupt | None:
        """What this task says of an interruption; None leaves it to the plan. Raises ValueError for another word."""
        return OnInterrupt(self.on_interrupt) if self.on_interrupt else None
