"""The command `show`: one item, its steps, its attempts with what they printed, and its trail."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from app import out, show
from app.cli_call import AsJson, ItemId, say, transact
from app.terminal_text import many_lines

if TYPE_CHECKING:
    from datetime import datetime

    from ordering.history import AttemptView, EventView, History, StepView


def show_(item: ItemId, as_json: AsJson = False) -> None:
    """Show one item: arguments, steps, attempts, output, trail.

    \b
    Example: relevo show 12
    """
    from ordering.history import history

    found = transact(lambda tx: history(tx, item))
    if as_json:
        show.as_json(found)
    else:
        describe(found)


def describe(found: History) -> None:
    """Print an item for people: what it is, its attempts with what they printed, its trail."""
    item = found.item
    asleep = next((step for step in found.steps if step.kind == "sleep" and not step.done), None)
    where = " at the head" if item.at_head else f", sleeps until {show.when(asleep.wake_at)}" if asleep else ""
    say(f"Item {item.id} of plan {item.plan}: {item.state}{where}")
    fields = {
        "title": item.title,
        "kind": item.kind,
        "task": item.task,
        "arguments": json.dumps(item.kwargs or item.args, ensure_ascii=False),
        "position": f"{item.position:f}",
        "key": item.key,
        "entry": item.entry,
        "repairs": item.repairs,
        "fact": item.fact,
        "not before": show.when(item.not_before),
        "on interrupt": item.on_interrupt,
        "attempts": f"{item.attempts} ({item.tries} of {item.max_attempts or 'the allowed'} tries used)" if item.attempts else "",
        "replays": item.replays or "",
        "added": show.when(item.created_at),
        "settled": show.when(item.settled_at),
        "result": "" if item.result is None else json.dumps(item.result, ensure_ascii=False),
    }
    for name, value in fields.items():
        if value not in (None, ""):
            say(f"  {name}: {value}")
    if item.error:
        say("  error:")
        _block(item.error)
    if found.steps:
        say("Steps:")
        show.table(("step", "name", "state", "attempt", "took", "result"), (_step(step, found.now) for step in found.steps))
    for attempt in found.attempts:
        _attempt(attempt, found.now)
    if found.events:
        say("Trail:")
        show.table(("event", "at", "who", "what", "before", "after", "why"), map(_event, found.events))


def _attempt(attempt: AttemptView, now: datetime) -> None:
    end = attempt.ended_at or now
    took = show.ago(attempt.started_at, end)
    where = f", on {attempt.host} by {attempt.worker} (process {attempt.pid})" if attempt.host else ""
    uncounted = "" if attempt.counts else ", not counted"
    reason = f": {attempt.reason}" if attempt.reason else ""
    say(f"Attempt {attempt.number}: {attempt.outcome or 'running'}{reason} ({took} from {show.when(attempt.started_at)}{where}{uncounted})")
    if attempt.output is not None:
        _block(attempt.output.head)
        if attempt.output.left_out:
            say(f"    [{attempt.output.left_out} bytes left out]")
        _block(attempt.output.tail)
    if attempt.error and attempt.outcome == "failed":
        say("  error:")
        _block(attempt.error)


def _step(step: StepView, now: datetime) -> tuple[object, ...]:
    if step.kind == "sleep":
        state = "slept" if step.done else f"sleeps until {show.when(step.wake_at)}"
    else:
        state = "done" if step.done and step.error is None else "failed"
        state += f", {step.failures} failures" if step.failures > 1 else ", 1 failure" if step.failures else ""
    took = show.ago(step.started_at, step.ended_at or now)
    return step.number, step.name, state, step.attempt, took, step.error.splitlines()[0] if step.error else step.result


def _block(text: str) -> None:
    for line in many_lines(text).splitlines():
        out.write(f"    {line}\n")


def _event(event: EventView) -> tuple[object, ...]:
    return event.id, show.when(event.at), event.actor, event.action, _brief(event.before), _brief(event.after), event.reason


def _brief(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)
