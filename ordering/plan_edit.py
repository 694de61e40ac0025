"""Edit a plan's settings; what runs already keeps the policy of its run."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, text

from ordering import audit, plans
from ordering.errors import Invalid, NotStarted
from ordering.model import OnFailure, Plan

EDITABLE = ("title", "concurrency", "on_failure", "on_interrupt", "max_attempts", "autostart", "stop_grace", "keep", "rate")
READ = text(f"select {', '.join(EDITABLE)} from relevo.plan where id = :id")
WRITE = text(f"update relevo.plan set {', '.join(f'{name} = :{name}' for name in EDITABLE)} where id = :id")


def settings(tx: Connection, plan_id: int) -> dict[str, Any]:
    """The settings that can be edited of the plan with this id, by their names in `plans.create`."""
    return dict(tx.execute(READ, {"id": plan_id}).one()._mapping)


def edit(tx: Connection, plan: Plan, change: dict[str, Any], *, actor: str) -> Plan:
    """Give the locked `plan` the settings in `change`, by their names in `plans.create`; the rest stays.

    An edit that changes nothing records nothing. What a stream has out already stays out when its concurrency falls below that.
    Raises Invalid for a name that is no setting, or a value that cannot be accepted.
    """
    for name in change:
        if name not in EDITABLE:
            raise Invalid(name, f"is not a setting of a plan; the settings are {', '.join(EDITABLE)}.")
    old = settings(tx, plan.id)
    changed = {name: value for name, value in change.items() if value != old[name]}
    if not changed:
        return plan
    new = {**old, **changed}
    checked = ("title", "max_attempts", "stop_grace", "keep", "rate")
    plans.check_settings(**{name: new[name] for name in checked}, serial=plan.serial)
    _check_concurrency(plan, new["concurrency"])
    tx.execute(WRITE, {**new, "id": plan.id})
    if new["rate"] is not None:
        tx.execute(plans.PACE, {"id": plan.id})
    audit.record(tx, actor=actor, action="edit", plan_id=plan.id, before={name: old[name] for name in changed}, after=changed)
    if not plan.serial:
        plans.wake(tx, plan.id)  # it may have room now
    return plans.get(tx, plan.name)


def _check_concurrency(plan: Plan, concurrency: int) -> None:
    if plan.serial and concurrency != 1:
        raise Invalid("concurrency", f"is 1, since {plan.name!r} is a serial plan; create a stream for what may run at the same time.")
    if not plan.serial and not 2 <= concurrency <= plans.MOST:
        raise Invalid("concurrency", f"{concurrency} is out of range; the stream {plan.name!r} takes 2 to {plans.MOST}.")


def change_policy(tx: Connection, name: str, on_failure: OnFailure, *, actor: str) -> plans.Run:
    """Give the open run another policy at a failure. What holds the plan already goes on holding it.

    Raises UnknownPlan; NotStarted if no run is open.
    """
    plan = plans.lock_by_name(tx, name)
    if tx.execute(plans.CURRENT_RUN, {"plan_id": plan.id}).one_or_none() is None:
        raise NotStarted(name)
    return plans.open_run(tx, plan, actor=actor, on_failure=on_failure)
