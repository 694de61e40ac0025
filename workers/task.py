"""The heart: claim, run, finish, feed. Every task of the platform is a Celery task around whose body stand these four."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from celery import Task
from celery.exceptions import Ignore

from ordering import attempt
from ordering.decide import Ended, Failed, Succeeded
from ordering.model import Claimed, OnInterrupt, State
from workers import batch, body, enqueue, pool
from workers.body import RetryIn
from workers.outcomes import Outcomes
from workers.steps import Steps

logger = logging.getLogger(__name__)


class Told:
    """What Flower shows as a message's result, as it is: of a text, Celery would show a text in quotes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


class AttemptFailed(Exception):
    """What Celery and Flower are shown of a failed attempt; the whole story is in the item's history."""


class PlanTask(Steps, Task):
    """Base class of all tasks. Celery's own words keep their meaning; the order, the retries and the results are in Postgres.

    `plan`: the plan that `.delay()` adds to (None: the stream `default`). `queue`: the broker's queue (None: `relevo`).
    `on`: the type of the facts that the task hears, or a list of types; each becomes an item of `plan` with its data as the argument.
    `on_interrupt`: "hold" or "requeue".
    `precheck`: called with the task's arguments just before the body; see body.checked.
    `step`, `sleep` and `idempotency_key` are for use inside the body; see steps.Steps.
    `batch`: the body takes a list of batch.Message. `batch_size`: most items of a stream that travel in one message.
    """

    abstract = True
    plan: str | None = None
    queue: str | None = None
    on: str | Sequence[str] | None = None
    on_interrupt: str | None = None
    precheck: Any = None
    batch: bool = False
    batch_size: int | None = None
    throws = (AttemptFailed,)
    Request = "workers.request:PlanRequest"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.request.called_directly or self.request.id is None:
            return self.run(*args, **kwargs)
        with body.soft_limit_waits():
            return self._one_dispatch(UUID(self.request.id))

    def _one_dispatch(self, dispatch_id: UUID) -> Told:
        session = pool.session()
        runs = session.transact(lambda tx, session_id: attempt.claim(tx, dispatch_id, session_id=session_id))
        if not runs:
            # A second copy, or an item that was cancelled or decided meanwhile: nothing of it runs.
            self.send_event("task-revoked", terminated=False, signum=None, expired=False)
            raise Ignore
        outcomes = Outcomes(session, runs)
        try:
            with body.stoppable() as told, session.running(runs), outcomes.recorded(told) as each:
                self._bodies(runs, each, outcomes)
        except body.Stopped:
            # Whoever sent TERM has decided what is not over; the process ends, and the pool puts a clean one in its place.
            outcomes.give_back()
            outcomes.salvage()
            raise SystemExit(0) from None
        except Exception:
            # Ours, not a body's: no thread to be had, say. Alive, this process would vouch for items that nobody runs.
            logger.exception("What dispatch %s carries cannot be run; the process ends.", dispatch_id)
            outcomes.salvage()
            raise SystemExit(1) from None
        if told.to_stop:
            outcomes.give_back()
        with body.undisturbed(unless=session.is_cut_off):
            states, following = outcomes.close()
            pool.publish(following)
        if told.to_stop:
            # A body that made something else of being stopped; whoever sent TERM expects this process, and no next body, to end.
            raise SystemExit(0)
        return self._told(states, outcomes)

    def _bodies(self, runs: Sequence[Claimed], each: Iterator[Claimed], outcomes: Outcomes) -> None:
        """Run the bodies one after the other, or the handler of a batch once."""
        # The row says what runs, not the message (rule 6); an edit of the task takes the message back, so they agree.
        name = runs[0].task
        task = self.app.tasks.get(name)
        if not isinstance(task, PlanTask) or name.startswith("celery."):
            unknown = Failed("UnknownTask", f"unknown task {name}: this worker ({self.request.hostname}) does not have it", final=True)
            for run in each:
                outcomes.add(run, unknown)
        elif task.batch:
            self.request.update(claimed=None, retries=0, exhausted=False)
            batch.run(task.run, each, outcomes.add, check=task._check(), exhausted=self._exhausted)
        else:
            for run in each:
                outcomes.add(run, self._body(task, run))

    def _body(self, task: PlanTask, run: Claimed) -> Ended:
        args, kwargs = body.from_json(run.args), body.from_json(run.kwargs)
        self.request.update(args=args, kwargs=kwargs, retries=run.tries, claimed=run, exhausted=False)
        check = task._check()
        verdict = None if check is None else body.checked(lambda: check(*args, **kwargs))
        return verdict or task.steps_ended(run, body.run(lambda: task.run(*args, **kwargs), exhausted=self._exhausted))

    def _check(self) -> Callable[..., Any] | None:
        return type(self).precheck if self.precheck is not None else None

    def _exhausted(self) -> bool:
        return bool(self.request.exhausted)

    def _told(self, states: list[State | None], outcomes: Outcomes) -> Told:
        """What Celery hears, so that Flower's states agree with ours."""
        if len(states) > 1:
            counted = Counter(str(state or "decided meanwhile") for state in states)
            return Told(", ".join(f"{count} {state}" for state, count in counted.items()))
        state, ended = states[0], outcomes.last
        match ended:
            case Failed(retry_in=delay, reason=reason) if state is State.WAITING:
                raise RetryIn(delay or timedelta(0), None)
            case Failed(reason=reason):
                raise AttemptFailed(reason)
            case Succeeded(result=result) if state is not None:
                return Told(repr(result)[:200])
            case _:
                return Told(str(state or "decided meanwhile"))

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
            delay = enqueue.seconds_of(self.default_retry_delay if countdown is None else countdown)
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
