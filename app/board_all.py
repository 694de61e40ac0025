"""Run-all and repair-all of several plans at once, from the overview: all of the ticked ones, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import entries
from app.act import act
from app.api_call import Call, Calling
from app.catalogue import CataloguePlan
from app.fields import BadInput
from app.form import Fields, Form
from app.repair_all import repair_all
from app.run_all import run_all
from ordering import needs
from ordering.errors import Invalid

router = APIRouter(include_in_schema=False)
MOST = 200  # plans of one act


@dataclass(frozen=True)
class PlanOffer:
    """A plan that the dialog lists: how many entries or unresolved items it has; `why` it cannot be chosen, if it cannot."""

    name: str
    called: str
    count: int
    why: str | None = None


def asked(call: Call, tx: Connection, ask: str) -> dict[str, Any]:
    """What the overview's dialog of run-all or of repair-all shows."""
    if ask == "repair-all":
        return {"offers": [PlanOffer(each.plan, each.called, each.count) for each in needs.unresolved(tx, limit=MOST)], "problem": ""}
    try:
        loaded = entries.load(call.catalogue)
    except BadInput as error:
        return {"offers": [], "problem": str(error)}
    if loaded is None:
        return {"offers": [], "problem": entries.NONE}
    blocked = {each.plan for each in needs.unresolved(tx, limit=MOST)}
    return {"offers": [_offer(plan, blocked) for plan in loaded.plans.values() if plan.entries][:MOST], "problem": ""}


def _offer(plan: CataloguePlan, blocked: set[str]) -> PlanOffer:
    return PlanOffer(
        plan.name, str(plan.settings.get("title") or plan.name), len(plan.entries), "unresolved" if plan.name in blocked else None
    )


def _chosen(form: Form) -> list[str]:
    chosen = list(dict.fromkeys(form.texts("plan")))
    if not chosen:
        raise Invalid("plan", "is missing; tick at least one.")
    if len(chosen) > MOST:
        raise Invalid("plan", f"{len(chosen)} are ticked; take at most {MOST} at a time.")
    return chosen


@router.post("/run-all")
def run_all_(request: Request, call: Calling, form: Fields) -> Response:
    """Add what the catalogue has for each of the ticked plans, and start them."""

    def verb(tx: Connection) -> None:
        for name in _chosen(form):
            run_all(tx, entries.require(call.catalogue, name), actor=call.actor)

    return act(request, call, form, verb)


@router.post("/repair-all")
def repair_all_(request: Request, call: Calling, form: Fields) -> Response:
    """Repair what is unresolved in each of the ticked plans."""

    def verb(tx: Connection) -> None:
        for name in _chosen(form):
            repair_all(tx, name, entries.plan_of(call.catalogue, name), actor=call.actor)

    return act(request, call, form, verb)
