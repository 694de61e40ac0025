"""The bodies of calls. What a value may hold beyond its type is checked by the verbs, the same for every door."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema

from app import given
from app.api_body import Body
from ordering import rate
from ordering.dead_decision import MOST
from ordering.errors import Invalid
from ordering.items import FARTHEST
from ordering.model import Json, Missed, NewItem, OnFailure, OnInterrupt
from ordering.move import Seen
from ordering.plans import KEEP, NAME

BIGGEST_ID = 2**63 - 1


def _moment(value: Any) -> datetime:
    if not isinstance(value, str):
        raise ValueError('must be a time as a text, for example "2030-01-31T09:00:00Z"')
    try:
        return given.moment("", value)
    except Invalid as error:
        raise ValueError(str(error).removeprefix(": ")) from None


def _arguments(value: Any) -> Any:
    if not isinstance(value, (list, dict)):
        raise ValueError("must be an object of named arguments or a list of positional ones")
    return value


def _plan_name(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    if not NAME.fullmatch(value):
        raise ValueError(f"{value[:80]!r} is not a plan name; use up to 63 of a-z, 0-9, dot, dash and underscore, a letter or digit first")
    return value


def _rate(value: Any) -> Decimal | None:
    if not isinstance(value, str):
        raise ValueError('must be a text, for example "10/s"')
    try:
        return rate.parse(value)
    except Invalid as error:
        raise ValueError(str(error).removeprefix("rate: ")) from None


def _seen(value: Any) -> Seen:
    if value == "end":
        return Seen(None)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= BIGGEST_ID:
        raise ValueError('must be an item\'s id, or "end" where nothing was there')
    return Seen(value)


def _seconds(value: Any) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("must be a number of seconds")
    if not 0 <= value <= FARTHEST.total_seconds():
        raise ValueError("is negative or more than ten years; use another one")
    return timedelta(seconds=value)


Moment = Annotated[datetime, PlainValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
SECONDS = {"type": "number", "minimum": 0, "maximum": FARTHEST.total_seconds()}
Seconds = Annotated[timedelta, PlainValidator(_seconds), WithJsonSchema(SECONDS)]

PlanName = Annotated[str, PlainValidator(_plan_name), WithJsonSchema({"type": "string", "pattern": f"^{NAME.pattern}$"})]
ItemId = Annotated[int, Field(ge=1, le=BIGGEST_ID)]
Rate = Annotated[Decimal | None, PlainValidator(_rate), WithJsonSchema({"type": "string"})]
Tries = Annotated[int, Field(ge=1, le=1000)]
ARGUMENTS = {"type": ["object", "array"], "description": "The task's arguments: an object of named ones, or a list of positional ones."}
Arguments = Annotated[list[Json] | dict[str, Json], PlainValidator(_arguments), WithJsonSchema(ARGUMENTS)]
SEEN = {"oneOf": [{"type": "integer", "minimum": 1, "maximum": BIGGEST_ID}, {"const": "end"}]}
SeenThere = Annotated[Seen, PlainValidator(_seen), WithJsonSchema(SEEN)]


class PlanBody(Body):
    """A plan to be made. Concurrency 1 is a serial plan; more is a stream."""

    name: PlanName
    title: str = ""
    concurrency: int = Field(1, ge=1, le=10_000)
    on_failure: OnFailure = Field(OnFailure.HALT, strict=False)
    on_interrupt: OnInterrupt | None = Field(None, strict=False)
    max_attempts: Tries | None = None
    autostart: bool = False
    stop_grace: Seconds = Field(timedelta(seconds=10), description="Seconds that a stopping worker lets a body go on.")
    keep: Seconds = Field(KEEP, description="Seconds that what is settled stays.")
    rate: Rate | None = Field(None, description="How many items a stream hands out: 10/s, 100/m, 5/h, or none.")


class PlanEditBody(Body):
    """What to change; what is left out stays as it is. A run that is on keeps its policy at a failure."""

    title: str = ""
    concurrency: int = Field(1, ge=1, le=10_000, description="A stream's; a serial plan stays at 1.")
    on_failure: OnFailure = Field(OnFailure.HALT, strict=False)
    on_interrupt: OnInterrupt | None = Field(None, strict=False)
    max_attempts: Tries | None = None
    autostart: bool = False
    stop_grace: Seconds = timedelta(seconds=10)
    keep: Seconds = KEEP
    rate: Rate | None = None


class StartBody(Body):
    """How a run treats a failure; the plan's own policy where it is left out."""

    on_failure: OnFailure | None = Field(None, strict=False)


class ReasonBody(Body):
    """Why, for the trail."""

    reason: str = ""


class NoteBody(Body):
    """Why, or how, for the trail."""

    note: str = ""


class ItemBody(Body):
    """An item to be added. `key`: the same key and content again give the same item. `delay` in seconds from now."""

    task: str
    args: Arguments = Field(default_factory=list)
    title: str = ""
    kind: str = ""
    key: str | None = None
    not_before: Moment | None = None
    delay: Seconds | None = None
    on_interrupt: OnInterrupt | None = Field(None, strict=False)
    max_attempts: Tries | None = None

    def new(self) -> NewItem:
        """The item as `ordering` adds it."""
        return NewItem(
            task=self.task,
            args=self.args if isinstance(self.args, list) else [],
            kwargs=self.args if isinstance(self.args, dict) else {},
            title=self.title,
            kind=self.kind,
            key=self.key,
            not_before=self.not_before,
            delay=self.delay,
            on_interrupt=self.on_interrupt,
            max_attempts=self.max_attempts,
        )


class EditBody(Body):
    """What to change; what is left out stays as it is."""

    task: str | None = None
    args: Arguments | None = None
    title: str | None = None
    kind: str | None = None
    on_interrupt: OnInterrupt | None = Field(None, strict=False)
    max_attempts: Tries | None = None


class ItemEditBody(EditBody):
    """As for a retry, and when an item that waits may start."""

    not_before: Moment | None = Field(None, description="An item that waits keeps its place until then; a past time lets it go now.")


class RetryBody(NoteBody):
    """Why, and what to change in the item before it runs again."""

    change: EditBody | None = None


class LettersBody(NoteBody):
    """Which dead letters: `items` by their ids, those of a `plan` or a `group` or both, or `all`."""

    items: list[ItemId] | None = Field(None, min_length=1, max_length=MOST)
    plan: str | None = None
    group: str | None = None
    all: bool = False
    cursor: str | None = Field(None, description="`next` of the call before, which decided a part of them.")
    until: Moment | None = Field(None, description="`until` of the call before: what died later is left alone.")


class ScheduleBody(Body):
    """A schedule to be made: a cron expression with a time zone, and the item that it adds to the plan at each tick."""

    name: PlanName
    plan: PlanName
    cron: str
    task: str
    args: Arguments = Field(default_factory=list)
    title: str = ""
    kind: str = ""
    timezone: str = "UTC"
    missed: Missed = Field(Missed.ONE, strict=False)


class ScheduleEditBody(Body):
    """What to change; what is left out stays as it is. Another `cron` or `timezone` counts from now."""

    plan: PlanName = ""
    cron: str = ""
    task: str = ""
    args: Arguments = Field(default_factory=list)
    title: str = ""
    kind: str = ""
    timezone: str = "UTC"
    missed: Missed = Field(Missed.ONE, strict=False)


class FactBody(Body):
    """Something that happened. `key`: the same type, key and data again are the same fact."""

    type: str
    data: Any = Field(default_factory=dict, description="Any JSON; what the subscribed tasks get as their argument.")
    key: str | None = None


class MoveBody(Body):
    """Where to: one of the four. `seen`: the item that was seen on the other side of the gap, or "end" for nothing there."""

    first: bool = False
    last: bool = False
    after: ItemId | None = None
    before: ItemId | None = None
    seen: SeenThere | None = None


class PostponeBody(Body):
    """Until when, or for how many seconds: one of the two. A past time brings the item back now."""

    until: Moment | None = None
    delay: Seconds | None = None
    reason: str = ""
