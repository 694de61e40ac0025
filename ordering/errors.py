"""Every refusal, named for its condition. The message is one sentence that a person can act on."""

from __future__ import annotations

from collections.abc import Sequence


class RelevoError(Exception):
    """Base of all refusals. `str()` is the sentence shown to the user."""


class Invalid(RelevoError):
    """A value cannot be accepted; `field` names it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


class UnknownPlan(RelevoError):
    """No plan has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no plan {name!r}; create it, or look for its name in the list of plans.")


class UnknownItem(RelevoError):
    """No item has this id."""

    def __init__(self, item_id: int) -> None:
        super().__init__(f"There is no item {item_id}; the list of its plan has those that there are.")


class UnknownEvent(RelevoError):
    """No event has this id."""

    def __init__(self, event_id: int) -> None:
        super().__init__(f"There is no event {event_id} in the trail.")


class NotUndoable(RelevoError):
    """The event cannot be undone (any more); `why` completes the sentence."""

    def __init__(self, event_id: int, why: str) -> None:
        super().__init__(f"Event {event_id} cannot be undone: {why}.")
        self.event_id = event_id


class UnknownTask(RelevoError):
    """No worker has ever offered a task of this name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        offered = ", ".join(known) or "none yet"
        super().__init__(
            f"No worker has offered a task {name!r} (known: {offered}); name its module under `imports` in relevo.toml and start a worker."
        )


class PlanExists(RelevoError):
    """The name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is a plan {name!r} already; choose another name.")


class PlanBlocked(RelevoError):
    """A serial plan has failed or interrupted items that nobody has decided."""

    def __init__(self, plan: str, items: Sequence[tuple[int, str, str]]) -> None:
        named = ", ".join(f"{item_id} {title!r} ({state})" for item_id, title, state in items)
        super().__init__(f"Plan {plan!r} has unresolved items: {named}; retry, skip or resolve each of them first.")
        self.plan = plan
        self.items = list(items)


class NotStarted(RelevoError):
    """Pause was asked of a plan that has no run."""

    def __init__(self, plan: str) -> None:
        super().__init__(f"Plan {plan!r} is not running, so there is nothing to pause.")


class NotMovable(RelevoError):
    """Only waiting and postponed items move."""

    def __init__(self, item_id: int, state: str) -> None:
        super().__init__(f"Item {item_id} is {state}; only waiting and postponed items move.")
        self.item_id, self.state = item_id, state


class NotInLine(RelevoError):
    """The neighbour named in a move is not in the line."""

    def __init__(self, item_id: int, state: str) -> None:
        super().__init__(
            f"Item {item_id} cannot be the neighbour of a move: it is {state}; name a waiting or postponed item of the same plan."
        )
        self.item_id, self.state = item_id, state


class StaleOrder(RelevoError):
    """The order changed since the person looked; `order` holds the ids around the gap as they are now."""

    def __init__(self, order: Sequence[int]) -> None:
        shown = ", ".join(str(item_id) for item_id in order) or "empty"
        super().__init__(f"The order has changed since you looked; here it is now: {shown}. Nothing was moved.")
        self.order = list(order)


class NotAllowed(RelevoError):
    """The item's state does not allow this verb."""

    def __init__(self, item_id: int, verb: str, state: str, allowed: str) -> None:
        super().__init__(f"Item {item_id} is {state}, so it cannot be {verb}; {allowed}.")
        self.item_id, self.state = item_id, state


class MayStillRun(RelevoError):
    """An interrupted item's process is not proved gone, and the time that it has to come back is not over."""

    def __init__(self, item_id: int, host: str, pid: int) -> None:
        super().__init__(
            f"Item {item_id} cannot run again yet: its process {pid} on {host} may still be running it; try again in some seconds."
        )
        self.item_id = item_id


class NotDead(RelevoError):
    """The item is no dead letter; `why` says what it is and what helps."""

    def __init__(self, item_id: int, why: str) -> None:
        super().__init__(f"Item {item_id} is no dead letter: {why}.")
        self.item_id = item_id


class NotStream(RelevoError):
    """Dead letters were asked of a serial plan."""

    def __init__(self, plan: str) -> None:
        super().__init__(
            f"Plan {plan!r} is a serial plan, so it has no dead letters: what is unresolved stands in the plan itself, and each item is "
            "retried, skipped or resolved there."
        )


class UnknownGroup(RelevoError):
    """No dead letter is of this group."""

    def __init__(self, group: str) -> None:
        super().__init__(f"group: there are no dead letters of group {group!r} there; list the groups to see those that there are.")


class KeyConflict(RelevoError):
    """The idempotency key was used for another body."""

    def __init__(self, key: str, item_id: int) -> None:
        super().__init__(f"key: {key!r} was already used for item {item_id} with another content; use a new key or send the same content.")
        self.item_id = item_id


class CallConflict(RelevoError):
    """The idempotency key of a call was used for another call."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"Idempotency-Key: {key!r} was already used for another call; use a new key, or send the same method, path and body."
        )


class EntryOut(RelevoError):
    """An unsettled item of this catalogue entry exists already."""

    def __init__(self, entry: str) -> None:
        super().__init__(f"entry: {entry!r} has an item that is not settled yet; decide or cancel it first.")


class UnknownSchedule(RelevoError):
    """No schedule has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no schedule {name[:80]!r}; the list of schedules has those that there are.")


class ScheduleExists(RelevoError):
    """The name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is a schedule {name!r} already; choose another name, or remove that one first.")


class FactKeyConflict(RelevoError):
    """The key of a fact was used for another fact of its type."""


class UnknownFact(RelevoError):
    """No fact has this id."""

    def __init__(self, fact_id: int) -> None:
        super().__init__(f"There is no fact {fact_id}; the list of facts has the latest.")


class UnknownSubscription(RelevoError):
    """The task does not hear facts of this type."""

    def __init__(self, type: str, task: str, known: Sequence[str]) -> None:
        heard_by = f"is heard by {', '.join(known)}" if known else "is heard by no task"
        super().__init__(f"{type!r} {heard_by}, not by {task!r}; the list of subscriptions says who hears what.")


class NotAStream(RelevoError):
    """Facts become items of streams only: a serial plan's line changes under a lock that a foreign transaction must not take."""

    def __init__(self, plan: str, task: str, type: str) -> None:
        super().__init__(
            f"plan: {plan!r} is a serial plan, so the task {task!r} cannot hear {type!r} there; name a stream (a plan with a concurrency "
            "above 1), or leave plan out for the stream 'default'."
        )


class NotMigrated(RelevoError):
    """The database has no schema of ours, or that of an older release."""

    def __init__(self) -> None:
        super().__init__("The database is not prepared for this version; run `relevo migrate`.")


class UnknownSchema(RelevoError):
    """The database was migrated by a newer release."""

    def __init__(self) -> None:
        super().__init__("The database has a schema that is unknown here, so a newer Relevo has prepared it: install that one.")


class DatabaseUnreachable(RelevoError):
    """Postgres does not answer, or refuses us."""


class Pooled(RelevoError):
    """Sessions do not last: the connection goes through a transaction pooler."""

    def __init__(self) -> None:
        super().__init__(
            "RELEVO_DATABASE_URL leads through a transaction pooler, where a session's lock would belong to somebody else; "
            "give workers a direct or session-pooled connection."
        )
