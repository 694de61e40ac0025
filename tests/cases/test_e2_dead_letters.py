"""E2 with dead letters: a decision on one or on all of them counts once, however often and by how many it is pressed."""

from collections.abc import Callable
from functools import partial

from ordering import dead, dead_decision, decision
from ordering.dead import Which
from ordering.dead_decision import Decided, Verb
from ordering.errors import NotAllowed, NotDead
from ordering.model import NewItem
from tests.cases import commandline
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit, wait_until
from tests.cases.line import act, at_once, crowded
from tests.conftest import Scale


def letters(kit: Kit) -> list[int]:
    with kit.tx() as tx:
        return [each.id for each in dead.letters(tx, Which(), limit=10_000).letters]


def dying(kit: Kit, count: int, name: str = "free") -> tuple[list[int], str]:
    """That many dead letters of the stream `mails`, and the file whose presence lets them succeed."""
    free = kit.folder / name
    known = len(letters(kit))
    made = kit.add_many("mails", [NewItem("probe.fail_until", [str(free)], max_attempts=1) for _ in range(count)])
    wait_until(lambda: len(letters(kit)) == known + count, 60, f"{count} dead letters, but there are {len(letters(kit)) - known}")
    free.touch()
    return made, str(free)


def test_retry_pressed_five_times_at_once_makes_one_attempt(kit: Kit, scale: Scale) -> None:
    kit.up(workers=1, slots=2)
    kit.plan("mails", concurrency=4)
    crowded(kit)
    for number in range(scale.rounds(20, least=2)):
        (item,), _ = dying(kit, 1, f"free-{number}")
        alone = partial(act, kit, decision.retry, item, actor=ACTOR)
        among = partial(act, kit, dead_decision.decide, Verb.RETRY, [item], actor=ACTOR)
        presses: list[Callable[[], object]] = [alone, among, alone, among, alone]
        results = at_once(presses)
        assert sum(isinstance(each, (NotAllowed, NotDead)) for each in results) == 4, results
        kit.wait_done(wanted=[item])
        assert len(kit.starts(item)) == 2
        assert (kit.item(item).attempts, kit.item(item).replays) == (2, 1)
        assert len(kit.sql("select id from relevo.event where item_id = :item and action = 'retry'", item=item)) == 1
        assert letters(kit) == []
    checks(kit, in_order=False)


def test_two_people_retry_all_at_once_while_they_run(kit: Kit, scale: Scale) -> None:
    kit.up(workers=1, slots=2)
    kit.plan("mails", concurrency=4)
    crowded(kit)
    items, _ = dying(kit, scale.rounds(1000, least=50))
    chosen = [Which(), Which(group=group_of(kit, items[0]))]
    pressed = at_once([partial(dead_decision.decide_all, kit.engine, Verb.RETRY, each, actor=ACTOR) for each in chosen])
    assert sum(each.decided for each in pressed if isinstance(each, Decided)) == len(items), pressed
    kit.wait_done(seconds=120, wanted=items)
    assert {kit.item(each).replays for each in items} == {1}
    assert {len(kit.starts(each)) for each in items} == {2}
    checks(kit, in_order=False)


def test_retry_of_all_on_the_command_line_beside_one(kit: Kit) -> None:
    kit.up(workers=1, slots=2)
    kit.plan("mails", concurrency=4)
    items, _ = dying(kit, 5)
    processes = [commandline.popen(kit, "dead", "retry", "--plan", "mails"), commandline.popen(kit, "dead", "retry", str(items[0]))]
    for process in processes:
        _, err = process.communicate(timeout=commandline.LONGEST)
        assert process.returncode == 0 or b"is no dead letter: it is " in err, err
    kit.wait_done(wanted=items)
    assert {kit.item(each).replays for each in items} == {1}
    assert {len(kit.starts(each)) for each in items} == {2}
    checks(kit, in_order=False)


def group_of(kit: Kit, item: int) -> str:
    with kit.tx() as tx:
        found = dead.letter(tx, item)
    assert found is not None
    return found.group
