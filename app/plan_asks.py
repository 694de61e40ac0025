"""What the dialogs of a plan's page show beside the plan: tasks to choose from, an item as it is, the catalogue's entries."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from app import board_plan_edit, entries
from app.api_call import Call
from app.caller import Role
from app.catalogue import CataloguePlan
from app.fields import BadInput
from app.known_tasks import BUILT_IN
from app.plan_query import Query
from app.run_all import not_again
from ordering import glance, items, lines, plans, tasks
from ordering.glance import Glance
from ordering.lines import ItemLine
from ordering.model import Item, Json

MENDED = 200  # unresolved items that the dialog of repair-all lists


@dataclass(frozen=True)
class Offer:
    """An entry of the catalogue: `number` is its place in the preset order, `why` why it is not added now, if it is not."""

    number: int
    key: str
    title: str
    kind: str
    why: str | None


@dataclass(frozen=True)
class Mending:
    """An unresolved item and the title of what mends it; None where it runs again itself."""

    item: ItemLine
    by: str | None


def asked(call: Call, tx: Connection, plan: Glance, query: Query) -> dict[str, Any]:
    """What the dialog that is open shows."""
    match query.ask:
        case "move" | "postpone" | "cancel" | "resolve":
            return {"asked": glance.asked(tx, plan.id, query.items)}
        case "edit" if query.items:
            item = items.get(tx, query.items[0])
            return {"edited": item, "args": written(item), "tasks": known(call, tx)}
        case "add":
            return {"tasks": known(call, tx)}
        case "settings":
            return {"settings": board_plan_edit.written(tx, plan.id)}
        case "run-all":
            return _run_all(call, tx, plan)
        case "repair-all":
            return _repair_all(call, tx, plan)
        case _:
            return {}


def known(call: Call, tx: Connection) -> list[str]:
    """The tasks that the caller may add, the built-in ones first."""
    may = call.shell and call.caller.role >= Role.ADMIN
    offered = [each for each in tasks.names(tx) if each not in BUILT_IN]
    return [*(each for each in sorted(BUILT_IN) if may or each != "shell"), *offered]


def written(item: Item) -> str:
    """The item's arguments as JSON to edit: an object of named ones, a list of positional ones, or both in an object."""
    value: Json = {"args": item.args, "kwargs": item.kwargs} if item.args and item.kwargs else item.args or item.kwargs
    return json.dumps(value, ensure_ascii=False, indent=2)


def _catalogue(call: Call, name: str) -> tuple[CataloguePlan | None, str]:
    try:
        return entries.require(call.catalogue, name), ""
    except BadInput as error:
        return None, str(error)


def _run_all(call: Call, tx: Connection, plan: Glance) -> dict[str, Any]:
    found, problem = _catalogue(call, plan.name)
    if found is None:
        return {"offers": [], "problem": problem}
    why = not_again(tx, plans.get(tx, plan.name), found.entries)
    offers = [Offer(number, each.key, each.title or each.key, each.kind, why.get(each.key)) for number, each in enumerate(found.entries, 1)]
    return {"offers": offers, "problem": ""}


def _repair_all(call: Call, tx: Connection, plan: Glance) -> dict[str, Any]:
    try:
        found, problem = entries.plan_of(call.catalogue, plan.name), ""
    except BadInput as error:
        found, problem = None, str(error)
    repairs = {each.key: each.repair for each in found.entries} if found else {}
    unresolved = lines.unresolved(tx, plan.id, limit=MENDED)
    named = {item.id: repairs.get(item.entry or "") for item in unresolved}
    return {"mendings": [Mending(item, work.task if (work := named[item.id]) else None) for item in unresolved], "problem": problem}
