"""The HTTP server's application: the door, the routes, and what they share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from anyio import CapacityLimiter
from fastapi import FastAPI
from sqlalchemy import Engine

from app import (
    api_bulk,
    api_dead,
    api_docs,
    api_facts,
    api_item,
    api_items,
    api_plans,
    api_run,
    api_schedules,
    api_signals,
    assets,
    board,
    board_add,
    board_all,
    board_home,
    board_item,
    board_items,
    board_plan,
    board_plan_edit,
    board_run,
    health,
    live,
    login,
    page,
    problem,
    records,
)
from app.api_call import Server
from app.audience import Live
from app.caller import Known
from app.door import Door
from app.figures import Shared
from app.health import Readiness
from app.refusals import Refusals
from app.tokens import Tokens

CONNECTIONS = 15  # to Postgres, at the most; more calls wait for one
#: Of a call's statements. A plan that somebody holds for long is answered as busy, and nothing is in a transaction for long.
SESSION = {"statement_timeout": "15000", "lock_timeout": "3000", "idle_in_transaction_session_timeout": "20000"}
ROUTERS = (
    api_bulk.router,
    api_run.router,
    api_schedules.router,
    api_plans.router,
    api_items.router,
    api_item.router,
    api_dead.router,
    api_facts.router,
    api_signals.router,
    live.router,
    health.router,
)
PAGES = (
    assets.router,
    board.router,
    login.router,
    board_home.router,
    board_plan.router,
    board_plan_edit.router,
    board_run.router,
    board_items.router,
    board_item.router,
    board_add.router,
    board_all.router,
)


def application(
    engine: Engine,
    readiness: Readiness,
    known: Known,
    *,
    only_loopback: bool,
    shell: bool = True,
    version: str = "0",
    catalogue: Path | None = None,
    beside: Mapping[str, str] = MappingProxyType({}),
) -> Door:
    """The application on `engine`, whose sessions should have SESSION; `known` tells who calls.

    only_loopback: nobody is asked for a token, so only names of this machine are served. shell: whether an admin may let the
    workers run commands. catalogue: the file with what run-all adds. beside: the addresses of other tools, by
    their names, to which the board links.
    """
    app = FastAPI(
        title="Relevo", version=version, openapi_url="/api/openapi.json", docs_url=None, redoc_url=None, redirect_slashes=False
    )  # the framework's pages load scripts from elsewhere
    app.state.server = Server(engine, known, shell, CapacityLimiter(CONNECTIONS), CapacityLimiter(CONNECTIONS), catalogue)
    app.state.readiness = readiness
    app.state.signs_in = isinstance(known, Tokens)
    app.state.beside = beside
    app.state.live = Live(engine)
    app.state.figures = Shared(engine)
    for router in (*ROUTERS, *PAGES, *records.ROUTERS):
        app.include_router(router)
    app.state.wrong_tokens = login.wrong_tokens()
    answering = Refusals(page.answering)
    problem.install(app, answering)
    api_docs.install(app)

    def stop() -> None:
        app.state.live.stop()
        app.state.figures.stop()

    return Door(app, answering, only_loopback=only_loopback, stop=stop)
