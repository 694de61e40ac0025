"""Declare: bring the schedules and streams that a catalogue has into the database. What it has no more stays there."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, Engine

from app import catalogue
from app.catalogue import CataloguePlan
from ordering import db, plans, schedule
from ordering.errors import PlanExists, UnknownPlan
from ordering.model import Plan


def declare_all(engine: Engine, path: Path) -> None:
    """Declare the streams and the schedules of the catalogue at `path`, if that file is there. Raises BadInput; what `put` raises."""
    if not path.exists():
        return
    declared = [plan for plan in catalogue.load(path).plans.values() if plan.schedules or plan.stream]
    for plan in declared:
        db.transact(engine, lambda tx, plan=plan: declare(tx, plan, actor="catalogue"))  # type: ignore[misc]


def declare(tx: Connection, plan: CataloguePlan, *, actor: str) -> None:
    """Create or change the schedules that `plan` has in the catalogue, and the plan if it is missing; removes nothing.

    A stream is created without any too, before a worker whose tasks hear facts there would make one without these settings.
    Another deployment may have another catalogue: neither undoes what only the other one has.
    """
    if plan.schedules or plan.stream:
        plan_of(tx, plan, actor=actor)
    for each in plan.schedules:
        schedule.put(tx, each, actor=actor)


def plan_of(tx: Connection, plan: CataloguePlan, *, actor: str) -> Plan:
    """The locked plan of this name, made with the settings of the catalogue if it is missing."""
    try:
        return plans.lock_by_name(tx, plan.name)
    except UnknownPlan:
        # Another call may create it at the same time: its commit is waited for, and then the plan is there.
        with suppress(PlanExists):
            plans.create(tx, plan.name, actor=actor, **plan.settings)
        return plans.lock_by_name(tx, plan.name)
