"""What a dispatch's bodies came to: recorded together at the end, or 200 ms after the first that is not recorded yet."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from ordering import finish, head
from ordering.decide import Ended, Failed, PutBack
from ordering.finish import Verdict
from ordering.model import Claimed, Dispatch, State
from workers import body
from workers.session import PoolSession

logger = logging.getLogger(__name__)

UNRECORDED_SECONDS = 0.2  # how long an outcome waits for its neighbours, so that a kill costs no more than that is worth
LATE_SECONDS = 2.0  # a batch is about a second of work: what it has not come to by then goes back, for whoever is free


class Outcomes:
    """The bodies of one dispatch, one after the other, and what became of each. One thread runs them; another records meanwhile."""

    def __init__(self, session: PoolSession, runs: Sequence[Claimed]) -> None:
        self._session, self._first = session, runs[0]
        self._todo = deque(runs)
        self._ended: list[Verdict] = []
        self._states: list[State | None] = []
        self._began = self._claimed = time.monotonic()
        self._guard = threading.Lock()  # over the two lists
        self._recording = threading.Lock()  # over a write, so that the last one waits for the one before
        self._over = threading.Event()
        self.last: Ended | None = None  # how the last body ended

    @contextmanager
    def recorded(self, told: body.Told) -> Iterator[Iterator[Claimed]]:
        """The block in which the bodies run; gives them one by one, and no more once `told` to stop.

        What ended is recorded meanwhile, where there are several.
        """
        if len(self._todo) > 1:
            threading.Thread(target=self._record_meanwhile, name="relevo-outcomes", daemon=True).start()
        try:
            yield self._each(told)
        finally:
            self._over.set()

    def _each(self, told: body.Told) -> Iterator[Claimed]:
        while not told.to_stop:
            with self._guard:
                if not self._todo:
                    return
                run = self._todo.popleft()
                if run.item_id in self._session.decided:
                    self._states.append(None)
                    continue
            self._began = time.monotonic()
            yield run

    def add(self, run: Claimed, ended: Ended) -> None:
        """The body of `run`, the last one given, `ended`."""
        self.last = ended
        self._session.ended(run.item_id)
        with self._guard:
            began, took = self._began - self._claimed, time.monotonic() - self._began
            self._ended.append(Verdict(run, ended, timedelta(seconds=began), timedelta(seconds=took)))

    def give_back(self) -> None:
        """What no body has begun goes back, for whoever is free; to be recorded with the rest."""
        with self._guard:
            self._ended += [Verdict(run, PutBack()) for run in self._todo]
            self._todo.clear()

    def close(self) -> tuple[list[State | None], list[Dispatch]]:
        """Record what is not recorded yet and feed the plan, with one wait for the disk; the items' states, and what to publish."""
        self._over.set()
        with self._recording:
            verdicts = self._take()
            first = self._first
            if not verdicts:
                return self._states, self._session.transact(lambda tx, _: head.feed(tx, first.plan_id, serial=first.serial))
            try:
                states, following = self._session.transact(lambda tx, _: finish.finish_and_feed(tx, verdicts))
            except Exception as error:
                logger.warning("Finishing and feeding failed (%s); what ended is recorded alone.", type(error).__name__)
                states, following = self._record(verdicts), []
            return self._states + states, following

    def salvage(self) -> None:
        """Record what has ended, once and without waiting: this process is told to end, and somebody else does the rest."""
        with self._recording:
            verdicts = self._take()
            if verdicts and not self._session.try_transact(lambda tx, _: finish.finish_all(tx, verdicts)):
                for each in verdicts:  # one that cannot be stored harms no neighbour
                    self._session.try_transact(lambda tx, _, each=each: finish.finish_all(tx, [each]))  # type: ignore[misc]

    def _record_meanwhile(self) -> None:
        while not self._over.wait(UNRECORDED_SECONDS):
            with self._recording:
                if time.monotonic() - self._claimed > LATE_SECONDS:
                    self.give_back()
                verdicts = self._take()
                if verdicts:
                    self._states += self._record(verdicts)

    def _take(self) -> list[Verdict]:
        with self._guard:
            taken, self._ended = self._ended, []
        return taken

    def _record(self, verdicts: list[Verdict]) -> list[State | None]:
        try:
            return self._session.transact(lambda tx, _: finish.finish_all(tx, verdicts))
        except Exception as error:
            if len(verdicts) > 1:  # one that cannot be stored harms no neighbour
                return [state for each in verdicts for state in self._record([each])]
            # What cannot be recorded is recorded as that, or the item would stay out for ever.
            run, (reason, text) = verdicts[0].run, body.described(error)
            failed = Failed("Unrecordable", f"The outcome could not be stored: {reason}\n\n{text}", final=True)
        try:
            return [self._session.transact(lambda tx, _: finish.finish(tx, run, failed))]
        except Exception:
            # Alive, this process would vouch for an item that nobody runs; gone, it is shown as interrupted.
            logger.exception("No outcome of item %d can be stored; the process ends.", run.item_id)
            os._exit(1)
