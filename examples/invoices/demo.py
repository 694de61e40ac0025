"""`make demo-invoices`: the shop under load for a while, with faults, and then a look at whether anything was lost or done twice.

Everything that it needs it starts by itself, in a temporary folder, and ends again, whatever happens.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from sqlalchemy import Engine, create_engine, make_url

from examples.invoices import checks, faults
from examples.invoices.checks import Check
from examples.invoices.load import Load, Sent
from examples.invoices.stage import UP_WITHIN, NotUp, Stage

SECONDS = "INVOICES_DEMO_SECONDS"
RATE = 8.0  # invoices per second, and as many drafts
DRAIN_WITHIN = 90.0  # seconds: the last dead letter has been tried six times by then
FIRST_FAULT, LAST_FAULT = 0.2, 0.95  # parts of the load's time


class Ended(BaseException):
    """A signal, or the time is over. Not an Exception: nothing on the way is to make something else of it."""


def main() -> int:
    """Run the demo; 0 if everything was as it has to be, else 1."""
    parser = argparse.ArgumentParser(prog="make demo-invoices", description=__doc__)
    parser.add_argument("--seconds", type=float, default=os.environ.get(SECONDS) or "45", help=f"of load (or {SECONDS})")
    seconds = parser.parse_args().seconds
    if not 3 <= seconds <= 3600:
        parser.error(f"--seconds (or {SECONDS}) must be from 3 to 3600")
    _end_at(seconds + UP_WITHIN + 2 * DRAIN_WITHIN)
    with tempfile.TemporaryDirectory(prefix="relevo-invoices-", ignore_cleanup_errors=True) as folder:
        stage = Stage(Path(folder), trial_seconds=min(5.0, seconds / 4))
        worked = False
        try:
            worked = _play(stage, seconds)
        except (NotUp, Ended) as error:
            _say(f"\nIt has not come to its end: {error}")
        except Exception as error:  # whatever it is, it is said, and what was started is ended
            _say(f"\nIt has not come to its end: {type(error).__name__}: {error}")
        finally:
            _end_quietly()
            _say("Stopping ...")
            left = stage.stop()
        for problem in left:
            _say(f"  {problem}")
    _say("Nothing is left running." if not left else "That had to be ended by force.")
    return 0 if worked and not left else 1


def _play(stage: Stage, seconds: float) -> bool:
    began = time.monotonic()
    _say("Starting a platform with its own Postgres and Valkey, the shop, and the other side ...")
    stage.start()
    _say(f"  all is up after {time.monotonic() - began:.1f} s")
    url = stage.record.database_url
    assert url is not None
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    load = Load(stage.web_url, stage.receiver_url, seconds=seconds, customers=max(6, int(seconds * 0.8)), rate=RATE)
    try:
        _say(f"Customers join and send invoices for {seconds:g} s; meanwhile:")
        load.start()
        _inject(stage, engine, seconds)
        sent = load.join()
        counts = f"{len(sent.members)} customers, {len(sent.invoices)} invoices, {len(sent.drafts)} drafts"
        _say(f"  {counts}; {sent.asked_again} requests came twice")
        drained = _drain(engine)
        found = [drained, *checks.all_of(engine, stage.receiver_file, sent)]
        _print(found)
        for line in checks.weather(engine, stage.receiver_file):
            _say(f"  {line}")
        _print_times(sent)
        return all(each.right for each in found)
    finally:
        load.stop()
        engine.dispose()


def _inject(stage: Stage, engine: Engine, seconds: float) -> None:
    began = time.monotonic()
    # A short run has room for fewer: a worker that was killed needs some seconds to be there again.
    chosen = faults.ALL[: max(4, min(len(faults.ALL), int(seconds / 2)))]
    for number, fault in enumerate(chosen):
        part = FIRST_FAULT + (LAST_FAULT - FIRST_FAULT) * number / (len(chosen) - 1)
        time.sleep(max(0.0, began + seconds * part - time.monotonic()))
        _say(f"  {time.monotonic() - began:5.1f} s  {fault(stage, engine)}")


def _drain(engine: Engine) -> Check:
    began = time.monotonic()
    while True:
        with engine.connect() as tx:
            left = checks.unsettled(tx)
        passed = time.monotonic() - began
        if not left or passed > DRAIN_WITHIN:
            _say(f"  drained {passed:.1f} s later" if not left else f"  not drained after {passed:.0f} s")
            return Check("items that wait, sleep or run at the end", 0, left)
        time.sleep(0.2)


def _print(found: Sequence[Check]) -> None:
    width = max(len(each.what) for each in found)
    _say(f"\n{'check':{width}}  expected  found")
    for each in found:
        _say(f"{each.what:{width}}  {each.expected:8}  {each.found:5}  {'ok' if each.right else f'WRONG  {each.wrong}'}")
    _say("")


def _print_times(sent: Sent) -> None:
    for what, times in (("POST /invoices, which emits", sent.with_emit), ("POST /drafts, which does not", sent.without)):
        if len(times) > 1:
            p50, p95 = statistics.median(times) * 1000, statistics.quantiles(times, n=20)[-1] * 1000
            _say(f"  {what}: p50 {p50:.1f} ms, p95 {p95:.1f} ms (beside the consumers and the faults, on this machine)")


def _say(line: str) -> None:
    try:
        print(line, flush=True)
    except BrokenPipeError:
        # Whoever read is gone; what was started must be ended all the same.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115


def _end_at(seconds: float) -> None:
    """Raise Ended in this thread at a signal, and when `seconds` have passed."""

    def end(number: int, _: Any) -> NoReturn:
        _end_quietly()
        raise Ended("the time is over" if number == signal.SIGALRM else f"told to stop ({signal.Signals(number).name})")

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(each, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _end_quietly() -> None:
    """From now on signals change nothing: what is left to do is bounded, and leaves nothing behind."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(each, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
