"""Whether the server lives, and whether what it needs answers: each look is bounded and shared by all who ask meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from app.api_call import written

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
Look = Callable[[], str | None]  # what is wrong, in one sentence, or None
router = APIRouter(tags=["health"])


class Live(BaseModel):
    """The process answers."""

    status: str


class Ready(BaseModel):
    """`ready`, `degraded` or `not ready`; of each service `ok` or `does not answer`, of the workers `none`. The log says why."""

    status: str
    services: dict[str, str]


class Readiness:
    """Looks at the services, by their names; a look returns one sentence on what is wrong, or None. It may take longer than we wait.

    Without what is `wanted` the server can still do its own work: calls are taken, and nothing becomes of them for now.
    """

    def __init__(self, looks: Mapping[str, Look], wanted: Mapping[str, Look] | None = None) -> None:
        self._needed = set(looks)
        self._looks: Mapping[str, Look] = {**looks, **(wanted or {})}
        self._last: dict[str, str] = {}
        self._under_way: dict[str, asyncio.Future[str | None]] = {}
        self._threads = CapacityLimiter(len(self._looks))

    async def look(self) -> Ready:
        """Look at all of them at once, for LOOK_SECONDS at the most."""
        said = await asyncio.gather(*(self._one(name) for name in self._looks))
        problems = {name: problem for name, problem in zip(self._looks, said, strict=True) if problem is not None}
        if problems != self._last:
            # Why is for the log: whoever may ask this need not be told where the services are.
            logger.log(logging.WARNING if problems else logging.INFO, "Readiness: %s", problems or "everything answers")
            self._last = problems
        missing = {name: "does not answer" if name in self._needed else "none" for name in problems}
        status = "not ready" if self._needed & set(problems) else "degraded" if problems else "ready"
        return Ready(status=status, services={name: missing.get(name, "ok") for name in self._looks})

    async def _one(self, name: str) -> str | None:
        # One look at a time: whoever asks a service that hangs joins the look that hangs, and no threads pile up.
        under_way = self._under_way.get(name)
        if under_way is None or under_way.done():
            under_way = asyncio.ensure_future(to_thread.run_sync(self._looks[name], limiter=self._threads))
            self._under_way[name] = under_way
        try:
            return await asyncio.wait_for(asyncio.shield(under_way), LOOK_SECONDS)
        except TimeoutError:
            return f"The {name} did not answer within {LOOK_SECONDS:g} s."


@router.get("/healthz", summary="Whether the process lives", response_model=Live)
async def healthz() -> Response:
    """It answers without asking anybody."""
    return written({"status": "ok"})


@router.get("/readyz", summary="Whether Postgres and the broker answer", response_model=Ready, responses={503: {"model": Ready}})
async def readyz(request: Request) -> Response:
    """200 when both do, `degraded` where no worker lives; else 503, and which does not answer."""
    readiness: Readiness = request.app.state.readiness
    found = await readiness.look()
    return written(found.model_dump(), 503 if found.status == "not ready" else 200)
