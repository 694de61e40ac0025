"""The command that takes back what a person did: undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from app import show
from app.cli_call import BIGGEST_ID, Actor, AsJson, Reason, actor, say, transact

if TYPE_CHECKING:
    from ordering.model import Item

EventIds = Annotated[
    list[int], typer.Argument(metavar="EVENT...", min=1, max=BIGGEST_ID, help="One or more events' numbers, as `relevo show` lists them.")
]


def undo(event: EventIds, reason: Reason = "", by: Actor = None, as_json: AsJson = False) -> None:
    """Take back a move, a postponement, or the cancel of what had not started.

    Several are undone latest first, all or none. What has had an effect already stays, and the answer says why.

    \b
    Example: relevo undo 4127
    """
    from ordering import undo

    done: list[Item] = transact(lambda tx: undo.undo_many(tx, event, actor=actor(by), reason=reason))
    if as_json:
        show.as_json(*done)
        return
    for item in done:
        say(f"Item {item.id} is {item.state} at {item.position:f} of plan {item.plan}.")
