"""The worker service: a Celery worker with the platform's consumer, session and warden. `python -P -m workers.worker`."""

from __future__ import annotations

import argparse
import gc
import os
import re
import socket
import warnings
from typing import Any

from celery import signals
from celery.exceptions import SecurityWarning
from sqlalchemy import Connection

from ordering import db, plans, session, subscriptions, tasks
from ordering.errors import Invalid, Pooled, RelevoError
from ordering.model import DEFAULT_QUEUE
from ordering.subscriptions import Subscription
from ordering.tasks import NO_LIMIT, TaskInfo
from workers import consumer, drain, imports, last_resort, log, pool, process, remote_control, request, service, time_limits
from workers.celeryapp import celery
from workers.settings import Settings
from workers.task import PlanTask
from workers.warden import Warden

DEFAULT_SLOTS = 4
EXIT_SECONDS = 10.0  # for the exit of the interpreter once the stop is over
NAME = re.compile(r"[A-Za-z0-9._-]{1,60}")
PREFORK = ("prefork", "processes", "celery.concurrency.prefork:TaskPool")  # Celery's words for it


class OnlyPrefork(RelevoError):
    """Another pool was asked for."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The pool {name} cannot be used: only prefork knows time limits and can stop one body; start the worker with `relevo worker`."
        )


def run(settings: Settings) -> int:
    """Start the worker and run it until it is told to stop."""
    options = _options()
    database = settings.require_database()
    engine = service.engine(settings, "relevo worker")
    refuse_pooler(database)
    imports.load(settings.catalogue)
    for name in (options.pool, celery.conf.worker_pool):  # a project's module may have set the second
        if name not in PREFORK:
            raise OnlyPrefork(str(name))
    celery.conf.broker_url = settings.require_broker()
    pool.worker_name = f"{options.name or 'relevo'}@{socket.gethostname()}/{os.getpid()}"
    db.transact(engine, register)
    # Only the queues of its own tasks: a message for a task that it does not have would fail the item.
    own = [DEFAULT_QUEUE, *(task.queue for task in offered())]
    consumer.install(celery, options.queues.split(",") if options.queues else own)
    warden = Warden(engine, process.myself(pool.worker_name))
    _connect(warden, settings)
    # What is loaded stays: a collection in a pool process would write to each of these objects and so copy their memory (46 MB, not 24).
    gc.collect()
    gc.freeze()
    celery.worker_main(
        ["--quiet", "worker", "--pool=prefork", f"--concurrency={options.slots}", f"--hostname={options.name or 'relevo'}-{os.getpid()}@%h",
         "--without-gossip", "--without-mingle", "--loglevel=INFO"]
    )  # fmt: skip
    return 0


def parser() -> argparse.ArgumentParser:
    """The options of `relevo worker`."""
    made = argparse.ArgumentParser(prog="relevo worker", description="Run the items that feeders hand out.")
    made.add_argument("--slots", type=int, default=DEFAULT_SLOTS, help="how many bodies run at once, each in a process of its own")
    made.add_argument("--queues", help="comma-separated queues to take from; by default those of its own tasks")
    made.add_argument("--name", help="the worker's name, as shown in histories")
    # Celery's option: whoever knows it hears why there is no choice.
    made.add_argument("-P", "--pool", default="prefork", help=argparse.SUPPRESS)
    return made


def _options() -> argparse.Namespace:
    checks = parser()
    options = checks.parse_args()
    if not 1 <= options.slots <= 1000:
        checks.error("--slots must be from 1 to 1000")
    if options.name is not None and not NAME.fullmatch(options.name):
        checks.error("--name must be up to 60 letters, digits, dots, dashes and underscores")
    return options


def refuse_pooler(url: str) -> None:
    """Raise Pooled if the URL leads through a transaction pooler, where a session's lock would belong to somebody else."""
    engine = db.engine(url, name="relevo probe", pooled=False)
    with db.reachable(), engine.connect() as first, engine.connect() as second:
        if session.is_pooled(first, second):
            raise Pooled


def offered() -> list[TaskInfo]:
    """What this worker's tasks say of themselves, for the feeders and the command line."""
    return [
        TaskInfo(
            name=name,
            queue=task.queue or DEFAULT_QUEUE,
            plan=task.plan,
            on_interrupt=task.interruption,
            max_attempts=tries(task),
            batch=task.batch,
            batch_size=_batch_size(task),
        )
        for name, task in celery.tasks.items()
        if isinstance(task, PlanTask) and not name.startswith("celery.")  # Celery's own are made with our base class too
    ]


def tries(task: PlanTask) -> int | None:
    """How many tries the task asks for by `max_retries`, its own or a base class's of its project; None if neither says anything."""
    kind = type(task)
    said = kind.__mro__[: kind.__mro__.index(PlanTask)]
    # Looked for where it is written: said aloud, Celery's default is a wish like any other.
    if "max_retries" not in vars(task) and not any("max_retries" in vars(each) for each in said):
        return None
    # Celery counts retries, the platform tries; None is Celery's word for no limit.
    return NO_LIMIT if task.max_retries is None else min(NO_LIMIT, max(1, task.max_retries + 1))


def _batch_size(task: PlanTask) -> int | None:
    if task.batch_size is not None and not 1 <= task.batch_size <= 1000:
        raise Invalid("batch_size", f"{task.batch_size} of task {task.name} is out of range; use 1 to 1000.")
    # Celery's time limits count for a message: with several bodies in it, they would share one body's limit.
    limited = not task.batch and (task.time_limit or task.soft_time_limit)
    return 1 if limited and task.batch_size is None else task.batch_size


def register(tx: Connection) -> None:
    """Tell the database what this worker's tasks are and which facts they hear, all or nothing.

    Adds and updates, never removes: another worker may have other tasks. Raises Invalid, NotAStream.
    """
    tasks.register(tx, offered())
    subscriptions.subscribe_all(tx, heard(), actor=pool.worker_name)


def heard() -> list[Subscription]:
    """Which facts this worker's tasks hear. Raises Invalid for an `on` that is no type or list of types."""
    found = []
    for name, task in celery.tasks.items():
        if not isinstance(task, PlanTask) or task.on is None:
            continue
        types = [task.on] if isinstance(task.on, str) else task.on
        if not isinstance(types, (list, tuple, set, frozenset)) or not all(isinstance(each, str) for each in types):
            raise Invalid("on", f"{task.on!r} of the task {name!r} is neither the type of a fact nor a list of types.")
        found += [Subscription(each, name, task.plan or plans.DEFAULT_STREAM) for each in types]
    return found


def _connect(warden: Warden, settings: Settings) -> None:
    # Celery warns whoever runs as root because of pickle; only JSON is accepted here (rule 13).
    warnings.filterwarnings("ignore", category=SecurityWarning)
    consumer.on_refused = warden.refused
    request.announce_cut = warden.announce_cut
    request.watch_exits(warden.child_died)
    drain.install()
    time_limits.install()
    remote_control.install()

    def ready(**_: Any) -> None:
        warden.start()  # after the first forks: a thread's lock must not be held in a child
        service.say_ready()

    def over(**_: Any) -> None:
        warden.end()
        last_resort.end_in(EXIT_SECONDS)  # a project's module may have left a thread that does not end

    signals.setup_logging.connect(lambda **_: log.configure(settings.log), weak=False)
    signals.worker_process_init.connect(pool.begin, weak=False)
    signals.worker_ready.connect(ready, weak=False)
    signals.worker_shutting_down.connect(lambda **_: warden.stopping(), weak=False)
    signals.worker_shutdown.connect(over, weak=False)


if __name__ == "__main__":
    service.main(run)
