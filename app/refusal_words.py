"""What the board says when a verb refuses: as the verb says it, but in the reader's language and without commands to type."""

from __future__ import annotations

from app import language, wording
from app.language import gettext as _
from ordering import errors
from ordering.model import State


def of(error: Exception) -> str | None:
    """The sentence for a refusal that people meet on the board; None where the verb's own will do."""
    match error:
        case errors.PlanBlocked():
            named = ", ".join(f"{title[:80]} ({wording.state(state).lower()})" for _id, title, state in error.items[:5])
            return _("Plan %(plan)s has unresolved items: %(items)s. Decide each of them first.") % {"plan": error.plan, "items": named}
        case errors.StaleOrder():
            return _("The order has changed since you looked; here it is now. Nothing was moved.")
        case errors.NotMovable():
            return _("Item %(item)s is %(state)s; only waiting and postponed items move.") % _stated(error.item_id, error.state)
        case errors.NotInLine():
            return _("Item %(item)s cannot be the neighbour of a move: it is %(state)s.") % _stated(error.item_id, error.state)
        case errors.NotAllowed() if language.spoken() == language.SOURCE:
            return None  # its own sentence says more: what is allowed
        case errors.NotAllowed() if error.state in (State.WAITING, State.DISPATCHED):
            return _("Item %(item)s is %(state)s: it is queued already.") % _stated(error.item_id, error.state)
        case errors.NotAllowed():
            return _("Item %(item)s is %(state)s by now, so this cannot be done with it.") % _stated(error.item_id, error.state)
        case errors.MayStillRun():
            return _("Item %(item)s cannot run again yet: its process may still be running it. Try again in some seconds.") % {
                "item": error.item_id
            }
        case errors.NotStarted():
            return _("The plan is not running, so there is nothing to pause or to change.")
        case errors.UnknownItem():
            return _("There is no item of this number.")
        case errors.UnknownPlan():
            return _("There is no plan of this name.")
        case _:
            return None


def _stated(item: int, state: str) -> dict[str, object]:
    return {"item": item, "state": wording.state(state).lower()}
