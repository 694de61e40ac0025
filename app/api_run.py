"""The catalogue over HTTP: what it has for a plan, run-all, repair-all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel
from sqlalchemy import Connection

from app import entries, repair_all, run_all
from app.api_body import body_of, takes
from app.api_call import Calling, written
from app.api_docs import problems
from app.api_plans import PlanName, RunStarted
from app.repair_all import AllRepaired, Repaired
from app.run_all import AllAdded, Left
from app.schemas_bulk import EntriesBody
from ordering import plans
from ordering.errors import UnknownPlan

router = APIRouter(prefix="/api/plans/{plan}", tags=["plans"])


@dataclass(frozen=True)
class EntryView:
    """An entry of the catalogue. `left`: why run-all would not add it now, or null."""

    key: str
    title: str
    kind: str
    task: str
    once: bool
    repair: bool
    left: str | None


class EntryList(BaseModel):
    """The entries in their preset order."""

    items: list[EntryView]


@dataclass(frozen=True)
class RunAll:
    """The ids of the added items in their order, the entries that were left out and why, and the run."""

    added: Sequence[int]
    left: Sequence[Left]
    run: plans.Run


class RepairAll(BaseModel):
    """What is repaired by which item, in the order in which it will run. `run` is null where nothing was started."""

    repaired: list[Repaired]
    run: RunStarted | None


@router.get("/entries", summary="List a plan's entries in the catalogue", response_model=EntryList, responses=problems(404, 422))
def list_(call: Calling, plan: PlanName) -> Response:
    """What the server's catalogue has for the plan, and what of it run-all would add."""
    catalogued = entries.require(call.catalogue, plan)

    def verb(tx: Connection) -> Mapping[str, str]:
        try:
            return run_all.not_again(tx, plans.get(tx, plan), catalogued.entries)
        except UnknownPlan:  # run-all makes it
            return {}

    left = call.read(verb)
    found = [
        EntryView(each.key, each.title or each.key, each.kind, each.work.task, each.once, each.repair is not None, left.get(each.key))
        for each in catalogued.entries
    ]
    return written({"items": found})


@router.post(
    "/run-all",
    summary="Add the catalogue's entries, and start",
    response_model=RunAll,
    responses=problems(404, 409, 422),
    openapi_extra=takes(EntriesBody, {}, {"entries": ["lint", "audit-deps"]}, required=False),
)
def run_all_(call: Calling, plan: PlanName, body: Annotated[EntriesBody, Depends(body_of(EntriesBody))]) -> Response:
    """Those that are not in the line, out or unresolved already, nor done by the open run. The plan is made if it is missing."""
    catalogued = entries.require(call.catalogue, plan)

    def verb(tx: Connection) -> AllAdded:
        return run_all.run_all(tx, catalogued, body.entries or (), actor=call.actor)

    return call.write(verb, body=lambda done: RunAll(done.added, done.left, done.run))


@router.post(
    "/repair-all",
    summary="Repair what is unresolved, and go on",
    response_model=RepairAll,
    responses=problems(404, 409, 422),
    openapi_extra=takes(EntriesBody, {}, {"entries": ["audit-deps"]}, required=False),
)
def repair_all_(call: Calling, plan: PlanName, body: Annotated[EntriesBody, Depends(body_of(EntriesBody))]) -> Response:
    """The repair of each is added at the front and the failed item resolved; what has none runs again itself.

    While others are unresolved that were not named, nothing is started.
    """
    catalogued = entries.plan_of(call.catalogue, plan)

    def verb(tx: Connection) -> AllRepaired:
        return repair_all.repair_all(tx, plan, catalogued, body.entries or (), actor=call.actor)

    return call.write(verb)
