"""E1: one key and one content make one item, at the same moment, with another content, and after a crash between doing and answering."""

import random
import time

import pytest

from ordering import add
from ordering.errors import KeyConflict
from ordering.model import NewItem
from tests.cases import commandline
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit, wait_until
from tests.cases.line import act, at_once, crowded
from tests.conftest import Scale

NEW = NewItem("probe.nap", [0], title="a charge", key="charge-1")


def added(kit: Kit, new: NewItem) -> add.Added:
    return act(kit, add.add, "a", new, actor=ACTOR)


def keyed(kit: Kit, key: str) -> list[int]:
    return [row.id for row in kit.sql("select id from relevo.item where key = :key", key=key)]


def test_fifty_at_once_make_one(kit: Kit) -> None:
    crowded(kit)
    kit.plan("a", start=False)

    def alone() -> add.Added:
        return added(kit, NEW)

    def in_bulk() -> add.Added:
        return act(kit, add.add_many, "a", [NEW], actor=ACTOR)[0]

    results = at_once([alone, in_bulk] * 25)
    answers = [each for each in results if isinstance(each, add.Added)]
    assert len(answers) == 50, [each for each in results if isinstance(each, Exception)]
    assert {each.id for each in answers} == set(keyed(kit, "charge-1"))
    assert sum(each.new for each in answers) == 1
    checks(kit)


def test_another_content_is_refused_and_changes_nothing(kit: Kit) -> None:
    kit.plan("a", start=False)
    first = added(kit, NEW).id
    before = kit.item(first)
    for other in (
        NewItem("probe.nap", [1], title="a charge", key="charge-1"),
        NewItem("probe.nap", [0], title="another", key="charge-1"),
        NewItem("probe.give", [0], title="a charge", key="charge-1"),
        NewItem("probe.nap", [0], title="a charge", kind="fix", key="charge-1"),
        NewItem("probe.nap", [0], title="a charge", key="charge-1", max_attempts=2),
    ):
        with pytest.raises(KeyConflict, match=rf"charge-1.*item {first}\b"):
            added(kit, other)
        with pytest.raises(KeyConflict):
            act(kit, add.add_many, "a", [NewItem("probe.nap"), other], actor=ACTOR)
    assert kit.item(first) == before
    assert len(kit.sql("select id from relevo.item")) == 1
    kit.plan("b", start=False)
    with kit.tx() as tx:
        assert add.add(tx, "b", NEW, actor=ACTOR).new, "a key belongs to its plan"
    checks(kit)


def test_an_item_that_has_ended_still_answers_to_its_key(kit: Kit) -> None:
    kit.up(workers=1, slots=1)
    kit.plan("a")
    (item,) = kit.add_many("a", [NEW])
    kit.wait_done()
    assert added(kit, NEW) == add.Added(item, new=False)
    assert len(kit.starts()) == 1
    checks(kit)


def test_killed_between_doing_and_answering(kit: Kit, scale: Scale) -> None:
    chance = random.Random()
    kit.plan("a", start=False)
    with kit.tx() as tx:
        tx.exec_driver_sql("insert into relevo.task (name, queue) values ('probe.nap', 'relevo')")
    for number in range(scale.rounds(20, least=2)):
        key = f"key-{number}"
        with kit.psql() as other:
            other.execute("select from relevo.plan for update")
            process = commandline.popen(kit, "add", "a", "probe.nap", "[0]", "--key", key)
            wait_until(lambda: kit.waiting("relevo%"), 30, "the command waits for the plan")
        if number:
            time.sleep(chance.uniform(0, 0.03))
        else:
            wait_until(lambda: keyed(kit, "key-0"), 30, "the item is committed", pause=0)
        process.kill()
        process.communicate()
        (answer,) = commandline.rows(kit, "add", "a", "probe.nap", "[0]", "--key", key)
        assert keyed(kit, key) == [answer["id"]], "the repeat names the one item, whether the first call came through or not"
    assert commandline.rows(kit, "add", "a", "probe.nap", "[0]", "--key", "key-0")[0]["new"] is False
    _, said = commandline.call(kit, "add", "a", "probe.nap", "[1]", "--key", "key-0", code=2)
    assert "key-0" in said
    assert "another content" in said
    checks(kit)
