"""I3: neither large arguments nor many items at once meet the limit of a notification (8,000 bytes)."""

import json

from ordering import items, move
from ordering.model import Before, NewItem, State
from tests.cases import commandline
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit, wait_until
from tests.cases.line import act, shown

MANY = 600


def test_large_arguments_and_titles(kit: Kit) -> None:
    kit.up(workers=1, slots=1)
    kit.plan("a")
    text = "x" * 20_000
    large = kit.add("a", "probe.give", text, title="\N{OPEN FILE FOLDER}" * 3000)
    nested = kit.add("a", "probe.give", {"\N{OPEN FILE FOLDER}" * 500: [text] * 10})
    kit.wait_done()
    assert kit.item(large).result == text
    assert kit.item(nested).args == [kit.item(nested).result]
    act(kit, items.cancel, kit.add("a", "probe.nap", 30, title="\N{OPEN FILE FOLDER}" * 3000), actor=ACTOR, reason="y" * 9000)
    no_complaint(kit)
    checks(kit)


def test_600_items_created_moved_and_cancelled_each_in_one_call(kit: Kit) -> None:
    kit.up(workers=1, slots=1)
    kit.plan("a")
    release = kit.folder / "release"
    line = kit.add_many("a", [NewItem("probe.wait_for", [str(release)], title="\N{OPEN FILE FOLDER}" * 100) for _ in range(MANY)])
    kit.wait_start(line[0])
    with kit.tx() as tx:
        for item in line[2:]:
            move.move(tx, item, Before(line[1]), actor=ACTOR)
    assert shown(kit, "a") == [*line[2:], line[1]]
    with kit.tx() as tx:
        for item in line[1:-1]:
            items.cancel(tx, item, actor=ACTOR)
    assert shown(kit, "a") == [line[-1]]
    release.touch()
    kit.wait_done(wanted=[line[0], line[-1]])
    assert {kit.state(item) for item in line[1:-1]} == {State.CANCELLED}
    no_complaint(kit)
    checks(kit)


def test_600_items_by_the_command_line(kit: Kit) -> None:
    kit.up(workers=1, slots=1)
    kit.plan("a")
    file = kit.folder / "items.jsonl"
    file.write_text("".join(json.dumps({"task": "probe.give", "args": ["x" * 20_000]}) + "\n" for _ in range(MANY)))
    added = [row["id"] for row in commandline.rows(kit, "add", "a", "--from", str(file))]
    kit.added += added
    assert len(added) == MANY
    commandline.call(kit, "move", str(added[-1]), "--first")
    assert shown(kit, "a")[0] == added[-1]
    out, _ = commandline.call(kit, "cancel", *map(str, added[:-1]))
    assert out.startswith("Cancelled items ")
    commandline.call(kit, "start", "a")
    kit.wait_done(wanted=[added[-1]])
    no_complaint(kit)
    checks(kit)


def no_complaint(kit: Kit) -> None:
    """The services said nothing of payloads, and none of the connections that listen has fallen behind."""
    assert "payload" not in kit.logs()
    wait_until(lambda: kit.sql("select pg_notification_queue_usage() as used")[0].used < 0.01, 30, "notifications are read")
