"""The trail as it is read: the latest first, page by page, by plan, item, actor, action and text, long values cut."""

import pytest
from sqlalchemy import Connection, text

from ordering import audit, items, move, plans, trail
from ordering.errors import Invalid, UnknownEvent
from ordering.model import First
from tests.ordering.acts import ACTOR, TOMORROW, plan, put


@pytest.fixture
def acted(tx: Connection) -> list[int]:
    """Two plans and some acts of two people; the items of the first."""
    plan(tx)
    plan(tx, "other")
    line = put(tx, 2, title="Audit the dependencies")
    move.move(tx, line[1], First(), actor="ana")
    items.postpone(tx, line[0], TOMORROW, actor="ben", reason="the MIRROR is down")
    (elsewhere,) = put(tx, plan="other")
    items.cancel(tx, elsewhere, actor="ana", reason="100% not needed")
    return line


def actions(tx: Connection, **filters: object) -> list[str]:
    return [each.action for each in trail.events(tx, limit=100, **filters).events]  # type: ignore[arg-type]


def test_the_latest_first_with_plan_and_title(tx: Connection, acted: list[int]) -> None:
    found = trail.events(tx, limit=100)
    assert [each.action for each in found.events] == ["cancel", "add", "postpone", "move", "add", "create", "create"]
    assert found.next is None
    moved = found.events[3]
    assert (moved.actor, moved.plan, moved.item, moved.title) == ("ana", "line", acted[1], "Audit the dependencies")
    assert moved.before == {"position": "2", "after": acted[0], "before": None}
    assert [each.undoable for each in found.events] == [True, False, True, True, False, False, False]
    assert found.events[1].title is None


def test_by_plan_item_actor_action_and_text(tx: Connection, acted: list[int]) -> None:
    assert actions(tx, plan_id=plans.get(tx, "other").id) == ["cancel", "add", "create"]
    assert actions(tx, item=acted[0]) == ["postpone"]
    assert actions(tx, actor="ana") == ["cancel", "move"]
    assert actions(tx, action="add") == ["add", "add"]
    assert actions(tx, containing="mirror") == ["postpone"]
    assert actions(tx, containing="0% N") == ["cancel"]
    assert actions(tx, actor="ana", plan_id=plans.get(tx, "line").id) == ["move"]
    assert actions(tx, actor="nobody") == []


@pytest.mark.parametrize("filters", [{}, {"actor": ACTOR}, {"containing": "t"}])
def test_page_by_page_each_once(tx: Connection, acted: list[int], filters: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trail, "SCAN", 3)
    whole = [each.id for each in trail.events(tx, limit=100).events] if not filters else None
    seen, before, pages = list[int](), None, 0
    while True:
        page = trail.events(tx, limit=2, before=before, **filters)  # type: ignore[arg-type]
        seen += [each.id for each in page.events]
        pages += 1
        assert pages < 20
        if page.next is None:
            break
        before = page.next
    assert seen == sorted(set(seen), reverse=True)
    assert whole is None or seen == whole
    if "actor" in filters:
        assert len(seen) == 4


def test_long_values_are_cut_in_the_list_and_whole_alone(tx: Connection) -> None:
    held = plan(tx)
    before = {"title": "short", "args": ["x" * 5000], "n": 7}
    audit.record(tx, actor=ACTOR, action="edit", plan_id=held.id, before=before, after={"title": "y" * 100})
    shown = trail.events(tx, limit=1).events[0]
    assert shown.before["title"] == "short"
    assert shown.before["n"] == 7
    assert shown.before["args"] == '["' + "x" * 498 + "…"
    assert shown.after == {"title": "y" * 100}
    assert trail.event(tx, shown.id).before == before


def test_an_unknown_event_and_a_cursor_that_is_none(tx: Connection) -> None:
    with pytest.raises(UnknownEvent, match="There is no event 4127"):
        trail.event(tx, 4127)
    for cursor in ("", "x", "-1", "9" * 19, "\N{FULLWIDTH DIGIT ONE}"):
        with pytest.raises(Invalid, match="cursor"):
            trail.parsed(cursor)


def test_the_latest_of_an_item(tx: Connection, acted: list[int]) -> None:
    assert trail.latest(tx, acted[1], "move") == trail.events(tx, limit=1, item=acted[1]).events[0].id
    assert trail.latest(tx, acted[1], "cancel") is None


WIDE = "insert into relevo.event (actor, action, plan_id, item_id) select 'a', 'move', :plan, n % 1000 from generate_series(1, 30000) n"


@pytest.mark.parametrize("of", ["plan_id", "item_id", None])
def test_a_page_reads_a_range_of_an_index(tx: Connection, of: str | None) -> None:
    held = plan(tx)
    tx.execute(text(WIDE), {"plan": held.id})
    tx.execute(text("analyze relevo.event"))
    values = {"plan_id": held.id, "item_id": 7, "before": 2**62, "scan": 101, "limit": 101, "actor": None, "action": None, "text": None}
    statement = text("explain " + trail._look([of] if of else []))
    lines = "\n".join(tx.execute(statement, {name: value for name, value in values.items() if f":{name}" in statement.text}).scalars())
    assert "Seq Scan" not in lines
    assert {"plan_id": "event_", "item_id": "event_of_item", None: "event_pkey"}[of] in lines
