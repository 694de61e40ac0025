"""One platform from its start to its end, in the process that holds the home's lock."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app import catalogue, environment, listen
from app.child import Service, end_leftovers
from app.declare import declare_all
from app.embedded import EmbeddedError, Postgres, Server, Valkey
from app.home import Home, PlatformError, made_record
from app.servicelog import ServiceLog
from app.supervise import UNKILLABLE, ServiceFailed, StopAsked, Supervisor
from ordering import db
from ordering.errors import DatabaseUnreachable, Invalid, RelevoError, UnknownSchema
from workers import process
from workers.settings import Settings, SettingsError

READY_WITHIN = 60.0  # seconds for a server, and for the services, whose imports may be slow
POSTGRES, VALKEY, FEEDER, WORKER, WEB, EXPORTER = "postgres", "valkey", "feeder", "worker", "web", "exporter"
SERVING = Path(__file__).with_name("serving.py")
EXPORTING = Path(__file__).with_name("exporting.py")
#: Seconds that each has to end; the worker has its plans' longest stop_grace on top, for which bodies may go on.
STOP_WITHIN = {POSTGRES: 20.0, VALKEY: 10.0, FEEDER: 10.0, WORKER: 30.0, WEB: 10.0, EXPORTER: 10.0}
USUAL_GRACE = 10.0  # seconds, where the database cannot be asked


class StartFailed(PlatformError):
    """The platform did not come up, and nothing of it is left running. `lines` is what was said last."""

    def __init__(self, sentence: str, exit_code: int = 3, lines: list[str] | None = None) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code
        self.lines = lines or []


class Platform:
    """What `relevo up` runs: the servers that are not given, then feeder, worker, the HTTP server and the exporter."""

    def __init__(self, settings: Settings, home: Home, log: ServiceLog, log_file: Path | None) -> None:
        self._settings = settings
        self._home = home
        self._log = log
        self._log_file = log_file
        self._since = datetime.now(UTC).isoformat(timespec="seconds")
        self._state = "starting"
        self._postgres = None if settings.database_url else Postgres(home.path / "postgres")
        self._valkey = None if settings.broker_url else Valkey(home.path / "valkey")
        self._told_broker_url: str | None = None
        self._listening: socket.socket | None = None
        self._scraped: socket.socket | None = None
        self._grace = USUAL_GRACE
        self._supervisor = Supervisor(log, self._record)

    def run(self, came_up: Callable[[], None]) -> int:
        """Run until a signal asks for the end; `came_up` is called when everything is ready. The caller holds the home.

        Returns 0, or 1 when something had to be killed. Raises StartFailed, with nothing left running.
        """
        self._end_leftovers()
        self._record()
        try:
            with self._supervisor:
                try:
                    self._start()
                    self._state = "up"
                    self._record()
                    self._log.note(f"everything is up; the home is {self._home.path}")
                    came_up()
                    self._supervisor.run()
                except StopAsked:
                    self._log.note("asked to stop while starting")
                if self._state == "up":
                    self._grace = self._longest_grace()
                self._state = "stopping"
                self._record()
                gracefully = self._supervisor.stop()
                self._log.note("everything has stopped" if gracefully else "everything has stopped, some of it by force")
                return 0 if gracefully else 1
        except ServiceFailed as error:
            told = error.exit_code in (2, 3) and error.last_lines
            # With these codes a service ends by a sentence of its own.
            raise StartFailed(error.last_lines[-1] if told else str(error), 2 if error.exit_code == 2 else 3, error.last_lines) from error
        finally:
            if self._postgres is not None:
                self._postgres.tidy()
            for listening in (self._listening, self._scraped):
                if listening is not None:
                    listening.close()
            self._home.forget()

    def _start(self) -> None:
        # What is given is looked at first: nothing is started for a platform that cannot come up.
        listening, scraped = self._listen()
        self._check_catalogue()
        with self._supervisor.interruptible():
            if self._valkey is None:
                self._check_broker()
            if self._postgres is None:
                self._migrate()
        for server, name in ((self._postgres, POSTGRES), (self._valkey, VALKEY)):
            if server is not None:
                self._supervisor.start([self._server(name, server)], READY_WITHIN)
        if self._postgres is not None:
            with self._supervisor.interruptible():
                self._migrate()
        self._declare()
        web, exporter = self._listener(WEB, SERVING, listening), self._listener(EXPORTER, EXPORTING, scraped)
        self._supervisor.start([self._service(FEEDER), self._service(WORKER), web, exporter], READY_WITHIN)

    def _listen(self) -> tuple[socket.socket, socket.socket]:
        # Held here, so that two platforms cannot meet on a port and a server that is restarted refuses nobody.
        try:
            self._listening = listen.listen(self._settings, any_port=True)
            self._scraped = listen.listen_for_scrapes(self._settings, any_port=True)
        except SettingsError as error:
            raise StartFailed(str(error), 2) from error
        return self._listening, self._scraped

    def _migrate(self) -> None:
        try:
            db.migrate(self._database_url())
        except DatabaseUnreachable as error:
            raise StartFailed(str(error)) from error
        except (Invalid, UnknownSchema) as error:
            raise StartFailed(str(error), 2) from error
        except DBAPIError as error:
            raise StartFailed(f"The database refuses Relevo's schema: {db.said(error)}.") from error

    def _check_catalogue(self) -> None:
        try:
            if self._settings.catalogue.exists():
                catalogue.load(self._settings.catalogue)
        except RelevoError as error:
            raise StartFailed(str(error), 2) from error

    def _declare(self) -> None:
        with self._supervisor.interruptible():
            engine = db.engine(self._database_url(), name="relevo up", pooled=False)
            try:
                declare_all(engine, self._settings.catalogue)
            except RelevoError as error:
                raise StartFailed(str(error), 2) from error
            except DBAPIError as error:
                raise StartFailed(f"The schedules of the catalogue were not taken: {db.said(error)}.") from error
            finally:
                engine.dispose()

    def _check_broker(self) -> None:
        # Here, because it loads Celery.
        from app import probe

        problem = probe.broker(self._broker_url())
        if problem is not None:
            raise StartFailed(problem)

    def _longest_grace(self) -> float:
        engine = db.engine(self._database_url(), name="relevo up", pooled=False, settings={"statement_timeout": "3000"})
        try:
            with engine.connect() as connection:
                longest = connection.execute(text("select extract(epoch from max(stop_grace)) from relevo.plan")).scalar()
        except DBAPIError:
            return USUAL_GRACE
        finally:
            engine.dispose()
        return USUAL_GRACE if longest is None else float(longest)

    def _database_url(self) -> str:
        return self._postgres.url if self._postgres is not None else self._settings.require_database()

    def _broker_url(self) -> str:
        return self._valkey.url if self._valkey is not None else self._settings.require_broker()

    def _server(self, name: str, server: Server) -> Service:
        def prepare() -> None:
            try:
                server.prepare()
            except EmbeddedError as error:
                raise ServiceFailed(str(error)) from error
            if server is self._valkey:
                self._broker_may_have_moved(server.url)

        def ready() -> bool:
            try:
                return server.ready()
            except EmbeddedError as error:
                raise ServiceFailed(str(error)) from error

        def command() -> list[str]:
            words = server.command()
            # Changing the user clears the death signal unless it is told to keep it.
            return [words[0], "--pdeathsig", "keep", *words[1:]] if Path(words[0]).name == "setpriv" else words

        # Immediate shutdown: PostgreSQL ends its own processes, and recovers from its log at the next start.
        death = signal.SIGQUIT if server is self._postgres else signal.SIGKILL
        within = STOP_WITHIN[name]
        return Service(name, command, server.env, None, prepare, ready, server.stop_signal, death, lambda: within)

    def _broker_may_have_moved(self, url: str) -> None:
        # The port is another one when somebody took it while the server was down: only a new process learns that.
        if self._told_broker_url not in (None, url):
            self._supervisor.restart(FEEDER)
            self._supervisor.restart(WORKER)
            self._supervisor.restart(WEB)
            self._supervisor.restart(EXPORTER)
        self._told_broker_url = url

    def _service(self, name: str) -> Service:
        return Service(
            name,
            lambda: [sys.executable, "-P", "-m", f"workers.{name}"],
            lambda: environment.of_service(self._settings, self._database_url(), self._broker_url()),
            self._settings.catalogue.parent,
            stop_within=lambda: STOP_WITHIN[name] + (self._grace if name == WORKER else 0),
        )

    def _listener(self, name: str, script: Path, listening: socket.socket) -> Service:
        number = listening.fileno()
        return Service(
            name,
            lambda: [sys.executable, "-P", str(script)],
            lambda: {**environment.of_service(self._settings, self._database_url(), self._broker_url()), listen.LISTEN_FD: str(number)},
            self._settings.catalogue.parent,
            stop_within=lambda: STOP_WITHIN[name],
            inherits=[number],
        )

    def _end_leftovers(self) -> None:
        # The embedded servers end their own, more gently.
        last = self._home.read()
        if last is not None and last.boot == process.boot_id():
            services = [known for known in last.services if known.name not in (POSTGRES, VALKEY)]
            leaders = {known.pid: known.pid_started for known in services if known.pid and known.pid_started}
            end_leftovers(leaders, "RELEVO_HOME", str(self._home.path))

    def _record(self) -> None:
        known = self._state != "starting"
        try:
            record = made_record(
                since=self._since,
                state=self._state,
                database_url=self._database_url() if known else None,
                broker_url=self._broker_url() if known else None,
                log=str(self._log_file) if self._log_file else None,
                url=listen.url_of(self._listening) if known and self._listening is not None else None,
                metrics_url=f"{listen.url_of(self._scraped)}/metrics" if known and self._scraped is not None else None,
                stop_within=sum(STOP_WITHIN.values()) + self._grace + UNKILLABLE,
                services=self._supervisor.states(),
            )
            self._home.write(record)
        except (OSError, EmbeddedError) as error:
            # It only informs: a full disk must not take the platform down.
            self._log.note(f"the record in {self._home.path} could not be written: {error}")
