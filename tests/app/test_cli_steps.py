"""`relevo show` of a workflow: which steps are done, which failed, and until when it sleeps."""

from datetime import timedelta

from sqlalchemy import Engine

from ordering import plans, steps
from ordering.decide import Asleep
from ordering.finish import finish
from ordering.model import StepKind
from ordering.steps import Step
from tests.app.commands import Relevo, objects, ok
from tests.ordering.acts import ACTOR, run


def sleeping(engine: Engine) -> int:
    """The id of an item that sleeps behind three steps."""
    with engine.begin() as tx:
        plans.start(tx, "line", actor=ACTOR)
        claimed = run(tx)
        for step in (
            Step(1, "create \x1b[31m account", StepKind.STEP, True, '{"id": 7}', 0),
            Step(2, "charge", StepKind.STEP, True, '"ok"', 1),
            Step(3, "mail", StepKind.STEP, False, None, 2, "SMTPError: no\nwhere it was raised"),
        ):
            assert steps.record(tx, claimed, step, took=1.5)
        finish(tx, claimed, Asleep(4, "trial", timedelta(days=14)))
        return claimed.item_id


def test_the_steps_of_a_sleeping_item_are_shown(line: Relevo, engine: Engine) -> None:
    item = sleeping(engine)
    (found,) = objects(line("show", item, "--json"))
    wakes = found["item"]["not_before"]
    assert [(each["number"], each["done"], each["failures"], each["result"]) for each in found["steps"]] == [
        (1, True, 0, '{"id": 7}'), (2, True, 1, '"ok"'), (3, False, 2, None), (4, False, 0, None),
    ]  # fmt: skip
    assert (found["steps"][3]["kind"], found["steps"][3]["wake_at"], found["steps"][3]["ended_at"]) == ("sleep", wakes, None)
    said = ok(line("show", item))
    assert f"Item {item} of plan line: postponed, sleeps until {wakes[:19]}Z" in said
    first, second, third, fourth = said[said.index("Steps:") :].splitlines()[2:6]
    assert "\x1b" not in first
    assert first.split()[-5:] == ["done", "1", "1.5s", '{"id":', "7}"]
    assert second.split() == ["2", "charge", "done,", "1", "failure", "1", "1.5s", '"ok"']
    assert third.split() == ["3", "mail", "failed,", "2", "failures", "1", "1.5s", "SMTPError:", "no"]
    assert fourth.split()[:6] == ["4", "trial", "sleeps", "until", f"{wakes[:19]}Z", "1"]


def test_an_item_without_steps_says_nothing_of_them(line: Relevo) -> None:
    assert "Steps:" not in ok(line("show", 1))
    assert objects(line("show", 1, "--json"))[0]["steps"] == []
