"""`relevo undo`: what was done is taken back by the number that `relevo show` lists."""

import json
from typing import Any

from tests.app.commands import Relevo, ok


def events(line: Relevo, item: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ok(line("show", item, "--json")))["events"]
    return found


def test_a_move_and_a_cancel_are_undone(line: Relevo) -> None:
    ok(line("move", 3, "--first"))
    moved = events(line, 3)[-1]["id"]
    assert f"{moved} " in ok(line("show", 3))
    ok(line("cancel", 2))
    cancelled = events(line, 2)[-1]["id"]
    said = ok(line("undo", moved, cancelled, "--reason", "slipped", "--actor", "ana"))
    assert said == "Item 2 is waiting at 2 of plan line.\nItem 3 is waiting at 3 of plan line.\n"
    told = events(line, 3)[-1]
    assert (told["actor"], told["action"], told["reason"]) == ("ana", "undo", "slipped")


def test_what_cannot_be_undone_says_why(line: Relevo) -> None:
    added = events(line, 1)[-1]["id"]
    refused = line("undo", added)
    assert refused.code == 2
    assert refused.refusal() == f"Event {added} cannot be undone: only a person's move, postpone and cancel can, and this is an add."
    assert line("undo", 10**9).refusal() == "There is no event 1000000000 in the trail."
    assert line("undo", "x").code == 2
