"""The pages of facts: list, one fact, the form that emits, and who hears what."""

import httpx
from sqlalchemy import Engine, text

from ordering import facts, subscriptions
from ordering.subscriptions import Subscription
from tests.app import hostile
from tests.app.pages import alert, cells, done, get, refused, region, send, sound, words
from tests.servers import fresh_name


def subscribed(engine: Engine) -> tuple[str, str]:
    """A type of this test alone and the stream that hears it."""
    type, plan = fresh_name("invoice.issued"), fresh_name("mails")
    with engine.begin() as tx:
        subscriptions.subscribe(tx, Subscription(type, "notify", plan), actor="w")
    return type, plan


def test_a_fact_is_emitted_and_shown_with_the_items_it_became(api: httpx.Client, http_engine: Engine) -> None:
    type, plan = subscribed(http_engine)
    page = done(api, "/facts", {"type": type, "data": '{"invoice": 4711}', "key": "4711"})
    sound(page)
    assert "1 subscription" in words(region(page, "facts"))
    assert '"invoice": 4711' in words(region(page, "data"))
    assert plan in words(region(page, "items"))
    again = send(api, "/facts", {"type": type, "data": '{"invoice": 4711}', "key": "4711"})
    assert again.status_code == 303
    assert region(get(api, again.headers["location"]), "facts") == region(page, "facts")


def test_facts_are_listed_by_type_and_unheard_ones_are_marked(api: httpx.Client, http_engine: Engine) -> None:
    type, plan = subscribed(http_engine)
    lonely = fresh_name("user.left")
    with http_engine.begin() as tx:
        heard, unheard = facts.emit(tx, type, {"a": 1}, key="k7"), facts.emit(tx, lonely, {})
    page = get(api, "/facts")
    sound(page)
    assert f'id="f{heard}"' in page
    assert "Unheard" in words(region(page, f"f{unheard}"))
    assert "Unheard" not in words(region(page, f"f{heard}"))
    assert "key k7" in words(region(page, f"f{heard}"))
    of_type = get(api, f"/facts?type={lonely}")
    assert f'id="f{heard}"' not in of_type
    assert f'id="f{unheard}"' in of_type
    assert f'id="f{heard}"' not in get(api, "/facts?unheard=1")
    assert "no task had subscribed" in words(get(api, f"/facts/{unheard}"))
    assert f"{type} notify {plan} 1 0 0" in cells(region(page, "subscriptions"))


def test_pages_go_on_where_the_one_before_ended(api: httpx.Client, http_engine: Engine) -> None:
    type = fresh_name("tick")
    with http_engine.begin() as tx:
        ids = [facts.emit(tx, type, n) for n in range(60)]
    page = get(api, f"/facts?type={type}")
    assert f'id="f{ids[10]}"' in page
    assert f'id="f{ids[9]}"' not in page
    assert f"cursor={ids[10]}" in page
    rest = get(api, f"/facts?type={type}&cursor={ids[10]}")
    assert f'id="f{ids[9]}"' in rest
    assert 'rel="next"' not in rest


def test_what_cannot_be_emitted_is_refused_with_what_was_typed(api: httpx.Client) -> None:
    page = refused(api, "/facts", {"type": "no type", "data": "{}", "key": "<b>"}, 422)
    assert "is not the name of a fact" in alert(page)
    assert 'value="no type"' in page
    assert 'value="&lt;b&gt;"' in page
    page = refused(api, "/facts", {"type": "ok", "data": "{nothing"}, 422)
    assert alert(page).startswith("data: is not JSON")
    assert ">{nothing</textarea>" in page
    sound(page)
    type = fresh_name("once")
    done(api, "/facts", {"type": type, "data": "1", "key": "k"})
    assert "was used for another fact" in alert(refused(api, "/facts", {"type": type, "data": "2", "key": "k"}, 409))
    get(api, "/facts/999999999", 404)
    get(api, "/facts?type=no%20type", 422)
    get(api, "/facts?cursor=x", 422)


def test_a_subscription_is_removed_only_by_somebody_who_is_sure(api: httpx.Client, http_engine: Engine) -> None:
    type, _plan = subscribed(http_engine)
    fields = {"type": type, "task": "notify", "back": "/facts"}
    assert "is not ticked" in alert(refused(api, "/subscriptions/remove", fields, 422))
    assert type in words(region(get(api, "/facts"), "subscriptions"))
    page = done(api, "/subscriptions/remove", {**fields, "sure": 1})
    assert type not in words(region(page, "subscriptions"))
    assert "is heard by no task" in alert(refused(api, "/subscriptions/remove", {**fields, "sure": 1}, 404))
    with http_engine.begin() as tx:
        event = tx.execute(text("select action, actor from relevo.event order by id desc limit 1")).one()
    assert event.action == "unsubscribe"


def test_hostile_texts_are_shown_as_they_are(api: httpx.Client) -> None:
    type = fresh_name("hostile")
    for data in (hostile.ALL, {hostile.MARKUP: [hostile.ALL, hostile.LONG * 3]}):
        answer = api.post("/api/facts", json={"type": type, "data": data, "key": hostile.ALL if isinstance(data, str) else None})
        assert answer.status_code == 201
        page = get(api, f"/facts/{answer.json()['id']}")
        sound(page)
        hostile.harmless(page)
        assert "alert('x')" in words(region(page, "data"))
        assert len(page) < 100_000
    assert "more characters are not shown" in words(page)
    listed = get(api, f"/facts?type={type}")
    sound(listed)
    hostile.harmless(listed)
