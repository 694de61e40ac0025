"""What every case has: a plan, the services on it as processes, what the bodies noted outside the product, and waiting with a deadline."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from celery import Celery
from sqlalchemy import Connection, Row, make_url, text

from ordering import add as adding
from ordering import db, decision, history, items, move, plans, views
from ordering.model import DEFAULT_QUEUE, Item, Last, NewItem, Place, Plan, State
from tests import servers
from tests.cases import processes
from tests.cases.processes import ROOT, Service
from tests.cases.proxy import Proxy, before_broker, before_database
from tests.lines import whole_lines
from tests.patience import wait_until as wait_until
from workers.publish import Publisher

ACTOR = "case"
UNSETTLED = (State.WAITING, State.POSTPONED, State.DISPATCHED, State.RUNNING)


@dataclass(frozen=True)
class Note:
    """One line of a body: `what` is start or end, `at` the monotonic clock of the host."""

    item: int
    attempt: int
    pid: int
    what: str
    at: float


class Kit:
    """One case. `database_url` and `broker_url` are what its services connect to unless they are given others."""

    def __init__(self, database_url: str, broker_url: str, folder: Path) -> None:
        self.folder = folder
        self.services: list[Service] = []
        self.added: list[int] = []
        self.stop_patience = 60.0
        self._notes = folder / "notes.jsonl"
        self._mark = servers.fresh_name("case")
        self._stack = ExitStack()
        self._point_at(database_url, broker_url)

    def _point_at(self, database_url: str, broker_url: str) -> None:
        self.database_url, self.broker_url = database_url, broker_url
        self.engine = db.engine(database_url, name="relevo case")
        self._publisher = Publisher(Celery("case", broker=broker_url, set_as_current=False))

    def move_to(self, database_url: str, broker_url: str) -> None:
        """Look at other servers from now on, such as those that `relevo up` has started."""
        self._publisher.close()
        self.engine.dispose()
        self._point_at(database_url, broker_url)

    # Services

    def environment(self, **changes: str) -> dict[str, str]:
        """The environment of a service of this case; `changes` win."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RELEVO_")}
        ours = {
            "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", processes.MARK: self._mark, "PROBE_NOTES": str(self._notes),
            "RELEVO_DATABASE_URL": self.database_url, "RELEVO_BROKER_URL": self.broker_url,
            "RELEVO_HOME": str(self.folder / "home"), "RELEVO_CATALOGUE": str(self.catalogue()),
        }  # fmt: skip
        return {**kept, **ours, **changes}

    def catalogue(self, imports: Sequence[str] = ("tests.cases.probe_tasks",), name: str = "relevo.toml") -> Path:
        """A catalogue file with these imports."""
        path = self.folder / name
        path.write_text(f"imports = {json.dumps(list(imports))}\n")
        return path

    def feeder(self, *, ready: bool = True, **environment: str) -> Service:
        """Start a feeder; `ready` waits for it."""
        return self._start("feeder", ["-m", "workers.feeder"], environment, ready)

    def worker(
        self, slots: int = 2, *, name: str | None = None, ready: bool = True, options: Sequence[str] = (), **environment: str
    ) -> Service:
        """Start a worker with so many pool processes; `ready` waits for it."""
        named = ["--name", name] if name else []
        return self._start("worker", ["-m", "workers.worker", "--slots", str(slots), *named, *options], environment, ready)

    def up(self, workers: int = 1, slots: int = 2, **environment: str) -> list[Service]:
        """Start a feeder and so many workers at once and wait for all of them; the workers."""
        feeder = self.feeder(ready=False, **environment)
        started = [self.worker(slots, ready=False, **environment) for _ in range(workers)]
        for service in (feeder, *started):
            service.wait_ready()
        return started

    def command(self, *words: str, **environment: str) -> Service:
        """Start a command of `relevo`; whoever starts it waits for what it does."""
        return self._start("relevo", ["-c", "from app.cli import main; main()", *words], environment, ready=False)

    def start_program(self, kind: str, command: list[str], **environment: str) -> Service:
        """Start a service by another command line (of Python) and wait until it is ready."""
        return self._start(kind, command, environment, ready=True)

    def _start(self, kind: str, command: list[str], changes: dict[str, str], ready: bool) -> Service:
        label = f"{kind}{len(self.services)}"
        service = Service(label, command, self.environment(**changes), self.folder / f"{label}.log", self.folder)
        self.services.append(service)
        return service.wait_ready() if ready else service

    def database_proxy(self) -> tuple[Proxy, str]:
        """A proxy in front of the database, and the URL that leads through it."""
        made, url = before_database(self.database_url)
        self._stack.callback(made.close)
        return made, url

    def broker_proxy(self) -> tuple[Proxy, str]:
        """A proxy in front of the broker, and the URL that leads through it."""
        made, url = before_broker(self.broker_url)
        self._stack.callback(made.close)
        return made, url

    def logs(self) -> str:
        """What all services logged, each line after its service's name."""
        return "\n".join(f"{service.name}: {line}" for service in self.services for line in service.text().splitlines())

    # Plans and items

    @contextmanager
    def tx(self) -> Iterator[Connection]:
        """A transaction that is committed at the end of the block."""
        with self.engine.begin() as tx:
            yield tx

    def plan(self, name: str, *, start: bool = True, **options: Any) -> Plan:
        """Create a plan, and start it."""
        with self.tx() as tx:
            made = plans.create(tx, name, actor=ACTOR, **options)
        if start and made.serial:
            self.start(name)
        return made

    def start(self, name: str, **options: Any) -> None:
        """Start the plan."""
        with self.tx() as tx:
            plans.start(tx, name, actor=ACTOR, **options)

    def add(self, plan: str, task: str, *args: Any, to: Place = Last(), **fields: Any) -> int:  # noqa: B008 - frozen
        """Add one item and start the plan if it has drained or was never started; the item's id."""
        return self.add_many(plan, [NewItem(task, list(args), **fields)], to=to)[0]

    def add_many(self, plan: str, new: Sequence[NewItem], *, to: Place = Last(), start: bool = True) -> list[int]:  # noqa: B008 - frozen
        """Add items in their order; `start` begins a run of the plan where none is open. Their ids."""
        with self.tx() as tx:
            made = [each.id for each in adding.add_many(tx, plan, new, actor=ACTOR, to=to)]
            if start and not views.plan(tx, plan).unresolved:
                plans.start(tx, plan, actor=ACTOR)
        self.added += made
        return made

    def move(self, item: int, to: Place) -> None:
        """Move an item."""
        with self.tx() as tx:
            move.move(tx, item, to, actor=ACTOR)

    def retry(self, item: int, change: items.Edit | None = None) -> None:
        """Decide: again, edited by `change` first."""
        with self.tx() as tx:
            decision.retry(tx, item, actor=ACTOR, change=change)

    def item(self, item: int) -> Item:
        """The item now."""
        with self.tx() as tx:
            return items.get(tx, item)

    def state(self, item: int) -> State:
        """The item's state now."""
        return self.item(item).state

    def history(self, item: int) -> history.History:
        """The item's attempts and events."""
        with self.tx() as tx:
            return history.history(tx, item)

    def outcomes(self, item: int) -> list[str]:
        """How the item's attempts ended, in their order."""
        ended = f"select outcome from ({history.EVERY}) a where item_id = :item order by number"
        return [str(row[0]) for row in self.sql(ended, item=item)]

    def view(self, plan: str) -> views.PlanView:
        """The plan now."""
        with self.tx() as tx:
            return views.plan(tx, plan)

    def events(self, action: str) -> list[Row[Any]]:
        """The lines of the trail with this action."""
        return self.sql("select * from relevo.event where action = :action order by id", action=action)

    def sql(self, statement: str, **parameters: Any) -> list[Row[Any]]:
        """The rows of a query, or nothing for a command."""
        with self.tx() as tx:
            result = tx.execute(text(statement), parameters)
            return list(result.all()) if result.returns_rows else []

    def waiting(self, application: str) -> int:
        """How many connections to this case's database, of applications whose name is like that, wait for a lock."""
        found = """
            select count(*) from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock' and application_name like :application
        """
        return int(self.sql(found, application=application)[0][0])

    @contextmanager
    def psql(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection of somebody else, without any of the product's settings."""
        with psycopg.connect(make_url(self.database_url).set(drivername="postgresql").render_as_string(hide_password=False)) as connection:
            yield connection

    def sends(self, item: int) -> list[int]:
        """How often the broker was given the message of each attempt on record; more than once: it was missed."""
        found = f"select sends from ({history.EVERY}) a join relevo.dispatch d on d.id = dispatch_id where item_id = :item order by number"
        return [int(row[0]) for row in self.sql(found, item=item)]

    def dispatches(self, item: int) -> list[Row[Any]]:
        """The dispatch that the item is out with, if it is out."""
        return self.sql("select d.* from relevo.dispatch d join relevo.item i on i.dispatch_id = d.id where i.id = :item", item=item)

    def send_copy(self, item: int) -> None:
        """Put a second copy of the message of the item's dispatch into the broker."""
        (dispatch,) = self.dispatches(item)
        self._publisher.send(str(dispatch.id), dispatch.task, dispatch.queue, "", "")

    def messages(self) -> int:
        """Messages in the broker, waiting or unacknowledged."""
        return sum(self._publisher.queue_sizes([DEFAULT_QUEUE]).values())

    # What the bodies did

    def notes(self, item: int | None = None, what: str | None = None) -> list[Note]:
        """What the bodies noted, in the order of their writing."""
        if not self._notes.exists():
            return []
        all_notes = [Note(**json.loads(line)) for line in whole_lines(self._notes)]
        return [note for note in all_notes if item in (None, note.item) and what in (None, note.what)]

    def starts(self, item: int | None = None) -> list[Note]:
        """The starts of bodies."""
        return self.notes(item, "start")

    def ends(self, item: int | None = None) -> list[Note]:
        """The ends of bodies."""
        return self.notes(item, "end")

    # Waiting

    def wait_start(self, item: int, seconds: float = 30.0, number: int = 1) -> Note:
        """Wait until the item's body has started for the `number`-th time."""
        wait_until(lambda: len(self.starts(item)) >= number, seconds, f"start {number} of item {item}\n{self.logs()[-3000:]}")
        return self.starts(item)[number - 1]

    def wait_state(self, item: int, *states: State, seconds: float = 30.0) -> Item:
        """Wait until the item is in one of the states."""
        try:
            wait_until(lambda: self.state(item) in states, seconds, "")
        except AssertionError:
            raise AssertionError(f"item {item} is {self.item(item)} and not {states} within {seconds:g} s\n{self.logs()[-5000:]}") from None
        return self.item(item)

    def wait_done(self, seconds: float = 60.0, wanted: Sequence[int] | None = None) -> None:
        """Wait until every added item (or those `wanted`) has succeeded."""
        ids = self.added if wanted is None else list(wanted)

        def left() -> list[Row[Any]]:
            return self.sql("select id, state, error from relevo.item where id = any(:ids) and state <> 'succeeded'", ids=ids)

        try:
            wait_until(lambda: not left(), seconds, "", pause=0.05)
        except AssertionError:
            raise AssertionError(f"not succeeded within {seconds:g} s: {left()[:20]}\n{self.logs()[-5000:]}") from None

    def close(self) -> list[str]:
        """End what the case started; complaints about what stayed."""
        try:
            return processes.end(self.services, self._mark, self.stop_patience)
        finally:
            self._publisher.close()
            servers.close(self.engine)
            self._stack.close()

    def living(self) -> set[int]:
        """The pids of all living processes that this case started or that came of them."""
        return set(processes.marked(self._mark))
