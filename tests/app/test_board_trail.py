"""The trail as a page: words, filters, pages and undo."""

import httpx
import pytest
from sqlalchemy import Engine, text

from ordering import items, move, plans
from ordering.model import First, State
from tests.app import hostile
from tests.app.pages import alert, cells, done, get, refused, region, sound, words
from tests.ordering.acts import TOMORROW, order, plan, put, state
from tests.servers import fresh_name


@pytest.fixture
def line(http_engine: Engine) -> str:
    """A plan of this test alone whose three items a person has touched."""
    name = fresh_name("line")
    with http_engine.begin() as tx:
        plan(tx, name)
        ids = put(tx, 3, plan=name, title="Rotate the key")
        move.move(tx, ids[2], First(), actor="ops")
        items.postpone(tx, ids[1], TOMORROW, actor="deputy", reason="the mirror is down")
        items.cancel(tx, ids[0], actor="ops", reason=hostile.ALL)
    return name


def test_each_event_is_told_in_words(api: httpx.Client, line: str) -> None:
    page = get(api, f"/trail?plan={line}")
    sound(page)
    hostile.harmless(page)
    said = cells(region(page, "events"))
    assert f"ops moved Rotate the key from 3 to 0.5 in {line}" in said or f"ops moved Rotate the key from 3 to 0 in {line}" in said
    assert "deputy postponed Rotate the key until" in said
    assert "the mirror is down" in said
    assert "ops cancelled Rotate the key" in said
    assert f"test added 3 items to plan {line}" in said
    assert f"test created plan {line}" in said
    assert said.index("cancelled") < said.index("postponed") < said.index("moved") < said.index("created")


def test_filters(api: httpx.Client, http_engine: Engine, line: str) -> None:
    with http_engine.begin() as tx:
        item = order(tx, line)[0]

    def events(query: str) -> str:
        return cells(region(get(api, f"/trail?plan={line}&{query}"), "events"))

    assert "postponed" not in events("actor=ops")
    assert "moved" in events("actor=ops")
    assert "moved" not in events("action=cancel")
    assert "moved" not in events("text=mirror")
    assert "postponed" in events("text=MIRROR")
    assert "cancelled" not in events(f"item={item}")
    assert "moved" in events(f"item={item}")
    assert "No event matches the filter." in events("actor=nobody")
    get(api, "/trail?plan=nowhere", 404)
    for query in ("item=x", "cursor=x", "text=%00", "actor=%00"):
        get(api, f"/trail?{query}", 422)


def test_pages_go_on_where_the_one_before_ended(api: httpx.Client, http_engine: Engine, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setattr("app.board_trail.ROWS", 2)
    first = get(api, f"/trail?plan={line}")
    following = first.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
    second = get(api, following)
    assert "cancelled" in region(first, "events")
    assert "moved" not in region(first, "events")
    assert "moved" in region(second, "events")


def test_undo_where_it_still_has_had_no_effect(api: httpx.Client, http_engine: Engine, line: str) -> None:
    here = f"/trail?plan={line}"
    query = "select e.id, e.item_id from relevo.event e join relevo.plan p on p.id = e.plan_id where p.name = :plan and e.action = :action"
    with http_engine.begin() as tx:
        found = {each: tx.execute(text(query), {"plan": line, "action": each}).one() for each in ("move", "postpone", "cancel")}
    page = get(api, here)
    assert all(f'action="/events/{each.id}/undo"' in page for each in found.values())
    after = done(api, f"/events/{found['postpone'].id}/undo", {"back": here})
    assert f'action="/events/{found["postpone"].id}/undo"' not in after
    assert "undid" in words(region(after, "events"))
    with http_engine.begin() as tx:
        assert state(tx, found["postpone"].item_id) is State.WAITING
        plans.start(tx, line, actor="ops")
    page = refused(api, f"/events/{found['postpone'].id}/undo", {"back": here}, 409)
    assert "undone" in alert(page)
    assert "postponed" in words(region(page, "events"))
    refused(api, "/events/999999999/undo", {"back": here}, 404)
