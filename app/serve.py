"""The HTTP service: `relevo serve`, and what `relevo up` runs beside feeder and worker."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import uvicorn
from anyio import to_thread

from app import listen, page, peer, probe, problem, release, web
from app.door import Door
from app.health import Readiness, Ready
from app.slow_clients import Bounded
from app.tokens import Tokens
from ordering import db
from workers import service
from workers.settings import Settings

STOP_SECONDS = 5  # for calls under way when the server is told to stop
CONNECTIONS = 1000  # of clients; more are answered 503
#: Connections that asyncio accepts in one turn; it looks at them, and closes those that are too many, some turns later.
ACCEPTED = 16
#: Open ones beside those of clients that are served: those that are refused (100), those nobody has looked at yet, Postgres.
FILES = 400

logger = logging.getLogger(__name__)


def serve(settings: Settings) -> int:
    """Serve until INT or TERM; calls under way are answered first. The exit code.

    The database may be away: calls are answered 503 until it is there. Raises SettingsError where it cannot listen, NotMigrated and
    UnknownSchema where the database has not this release's schema.
    """
    database, broker = settings.require_database(), settings.require_broker()
    known = peer.known if settings.tokens_file is None else Tokens(settings.tokens_file)
    listening = listen.inherited() or listen.listen(settings)
    engine = db.engine(database, name="relevo http", settings=web.SESSION)
    needed = {"database": partial(probe.database, database), "broker": partial(probe.broker, broker)}
    readiness = Readiness(needed, {"workers": partial(probe.workers, database)})
    try:
        service.check_schema(engine)
        shell, local = settings.shell_over_http == "on", settings.tokens_file is None
        beside = {name: url for name, url in (("Flower", settings.flower_url), ("Grafana", settings.grafana_url)) if url}
        app = web.application(
            engine, readiness, known,
            only_loopback=local, shell=shell, version=release.version(), catalogue=settings.catalogue, beside=beside,
        )  # fmt: skip

        async def look() -> Ready:
            ready = await readiness.look()
            await to_thread.run_sync(page.load)
            return ready

        run(app, listening, look)
    finally:
        engine.dispose()
    return 0


class Server(uvicorn.Server):
    """Says that it is ready, and then looks at what it needs, so that the first who asks finds everything loaded."""

    def __init__(self, config: uvicorn.Config, look: Callable[[], Coroutine[Any, Any, Ready]]) -> None:
        super().__init__(config)
        self._look = look
        self._stop = config.app.stop if isinstance(config.app, Door) else lambda: None
        self._looking: asyncio.Task[Ready] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or []:
            listening.listen(listen.BACKLOG)  # so many wait in the kernel, however few are accepted in one turn
        service.say_ready()
        self._looking = asyncio.ensure_future(self._look())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stop()  # before it waits for the calls under way
        await super().shutdown(sockets)


def configured(app: object, clients: int | None = None) -> uvicorn.Config:
    """What uvicorn is told: bounds for everything, our log, and no word of itself. `clients` are served at a time, else CONNECTIONS."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=Bounded,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=clients or CONNECTIONS,
        backlog=ACCEPTED,  # which asyncio gives to the kernel, too: see `startup`
        timeout_keep_alive=15,
        timeout_graceful_shutdown=STOP_SECONDS,
        h11_max_incomplete_event_size=problem.HEAD_LIMIT,
    )


def served() -> int:
    """How many clients may be connected: CONNECTIONS, or as many as the limit of open files allows, which is raised as far as need be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    found = CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(CONNECTIONS, soft - FILES))
    if found < CONNECTIONS:
        logger.warning("This process may open %d files, so it serves %d clients at a time instead of %d", soft, found, CONNECTIONS)
    return found


def run(app: object, listening: socket.socket, look: Callable[[], Coroutine[Any, Any, Ready]]) -> None:
    """Serve `app` on the socket until a signal asks for the end; `look` is called once it serves."""
    # uvicorn's own lines say nothing that ours do not.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    server = Server(configured(app, served()), look)

    def end(*_: object) -> None:
        server.should_exit = True

    # Until uvicorn handles them itself; it raises the signal again once it has stopped, for whoever handled it before.
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        logger.info("Serving at %s", listen.url_of(listening))
        asyncio.run(server.serve([listening]))
        logger.info("Stopped serving")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
