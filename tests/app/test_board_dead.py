"""The page of dead letters: groups, letters, filters, decisions on one, several and all, and what is refused."""

import re
from urllib.parse import quote

import httpx
import pytest
from sqlalchemy import Engine, text

from app import board_dead, board_dead_acts
from tests.app import hostile
from tests.app.pages import alert, done, get, refused, region, send, sound, words
from tests.ordering.letters import die, stream
from tests.servers import fresh_name

N = "\u2039n\u203a"  # what differs from letter to letter
NO_CURRENCY = "ValueError: row 7: currency 'XBT' is not in ISO 4217"


@pytest.fixture
def mails(http_engine: Engine) -> str:
    """The name of a stream of this test alone, with five letters of one cause and one of another."""
    name = fresh_name("mails")
    with http_engine.begin() as tx:
        stream(tx, name)
        die(tx, [NO_CURRENCY] * 5, plan=name, title="Partner 017", kwargs={"row": 7})
        die(tx, ["Refused: no"], plan=name, title="The other")
    return name


def ids(engine: Engine, plan: str, state: str = "failed") -> list[int]:
    query = "select i.id from relevo.item i join relevo.plan p on p.id = i.plan_id where p.name = :plan and i.state = :state order by 1"
    with engine.begin() as tx:
        return list(tx.execute(text(query), {"plan": plan, "state": state}).scalars())


def opened(page: str, index: int = 0) -> str:
    """The address of the page with the group of this number open."""
    found: list[str] = re.findall(r'class="grp-sum" data-visit href="([^"#]*)', page)
    return found[index].replace("&amp;", "&")


def test_letters_are_grouped_by_cause(api: httpx.Client, mails: str) -> None:
    page = get(api, f"/dead-letters?plan={mails}")
    sound(page)
    said = words(region(page, "groups"))
    assert f"5 ValueError row {N}: currency {N.replace('n', 'text')} is not in ISO {N}" in said
    assert "1 Refused no" in said
    assert "6 match the filter" in words(region(page, "page-head"))
    assert f"{mails} · noop · first" in said
    assert 'class="msgs"' not in region(page, "groups")


def test_an_open_group_shows_its_letters_page_by_page(
    api: httpx.Client, http_engine: Engine, mails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.board_dead.LETTERS", 3)
    first = get(api, opened(get(api, f"/dead-letters?plan={mails}")))
    sound(first)
    following = re.search(r'class="more" rel="next" data-visit href="([^"#]*)', first)
    assert following
    second = get(api, following[1].replace("&amp;", "&"))
    shown = re.findall(r'<li id="i(\d+)"', first) + re.findall(r'<li id="i(\d+)"', second)
    assert [int(each) for each in shown] == ids(http_engine, mails)[:5]
    assert 'rel="next"' not in second


def test_filters_and_open_groups_stay_after_an_act(api: httpx.Client, http_engine: Engine, mails: str) -> None:
    here = opened(get(api, f"/dead-letters?plan={mails}&text=currency"))
    example = re.search(r'name="item" value="(\d+)"><button class="btn btn-s">', get(api, here))
    assert example
    answer = send(api, "/dead-letters/retry", {"back": here, "item": example[1]})
    assert answer.status_code == 303
    location = httpx.URL(answer.headers["location"])
    assert dict(location.params)["plan"] == mails
    assert dict(location.params)["text"] == "currency"
    assert dict(location.params)["open"].startswith(f"{mails}~")
    page = get(api, str(location))
    assert "Retry all 4" in words(region(page, "groups"))
    assert ids(http_engine, mails, "waiting") == [int(example[1])]


def test_a_stream_beyond_those_offered_stays_the_filter(api: httpx.Client, mails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"<option>{mails}</option>" in region(get(api, "/dead-letters"), "filters")
    monkeypatch.setattr(board_dead, "STREAMS", 0)
    assert mails not in region(get(api, "/dead-letters"), "filters")
    assert f"<option selected>{mails}</option>" in region(get(api, f"/dead-letters?plan={mails}"), "filters")


def test_all_of_a_group_are_retried(api: httpx.Client, http_engine: Engine, mails: str) -> None:
    page = get(api, opened(get(api, f"/dead-letters?plan={mails}")))
    group = re.search(r'name="group" value="([0-9a-f]{12})"', page)
    assert group
    after = done(api, "/dead-letters/retry", {"back": f"/dead-letters?plan={mails}", "all": 1, "plan": mails, "group": group[1]})
    assert "5 letters were retried." in words(region(after, "notices"))
    assert len(ids(http_engine, mails, "waiting")) == 5
    assert "1 Refused no" in words(region(after, "groups"))


def test_all_of_a_filter_are_skipped_or_resolved(api: httpx.Client, http_engine: Engine, mails: str) -> None:
    after = done(api, "/dead-letters/skip", {"back": f"/dead-letters?plan={mails}", "all": 1, "plan": mails, "text": "currency"})
    assert "5 letters were skipped." in words(region(after, "notices"))
    fields = {"back": f"/dead-letters?plan={mails}", "all": 1, "plan": mails, "task": "noop", "note": "by hand"}
    assert "1 letter was resolved." in words(region(done(api, "/dead-letters/resolve", fields), "notices"))
    assert (len(ids(http_engine, mails, "skipped")), len(ids(http_engine, mails, "resolved"))) == (5, 1)


def test_a_press_that_runs_out_of_time_says_that_there_are_more(api: httpx.Client, mails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_dead_acts, "SECONDS", -1.0)
    monkeypatch.setattr(board_dead_acts, "BATCH", 4)
    fields = {"back": f"/dead-letters?plan={mails}", "all": 1, "plan": mails}
    said = words(region(done(api, "/dead-letters/retry", fields), "bulk-done"))
    assert said == "4 letters were retried. There are more; press again for the rest."
    assert words(region(done(api, "/dead-letters/retry", fields), "bulk-done")) == "2 letters were retried."


def test_several_are_ticked_and_decided(api: httpx.Client, http_engine: Engine, mails: str) -> None:
    letters = ids(http_engine, mails)
    back = ("back", f"/dead-letters?plan={mails}")
    done(api, "/dead-letters/retry", [back, ("item", letters[0]), ("item", letters[1])])
    done(api, "/dead-letters/resolve", [back, ("item", letters[2]), ("note", "sent by hand")])
    assert ids(http_engine, mails, "waiting") == letters[:2]
    assert ids(http_engine, mails, "resolved") == [letters[2]]


def test_what_is_refused_says_why_and_changes_nothing(api: httpx.Client, http_engine: Engine, mails: str) -> None:
    letters, back = ids(http_engine, mails), f"/dead-letters?plan={mails}"
    page = refused(api, "/dead-letters/resolve", {"back": back, "item": letters[0], "note": " "}, 422)
    assert alert(page) == "note: is empty; say how it was resolved."
    assert "The other" in page or "Refused" in page
    page = refused(api, "/dead-letters/resolve", {"back": back, "all": 1, "plan": mails}, 422)
    assert "note: is empty" in alert(page)
    assert "tick at least one" in alert(refused(api, "/dead-letters/retry", {"back": back}, 422))
    done(api, "/dead-letters/skip", {"back": back, "item": letters[0]})
    assert "is no dead letter" in alert(refused(api, "/dead-letters/skip", {"back": back, "item": letters[0]}, 409))
    assert "not a whole number" in alert(refused(api, "/dead-letters/skip", {"back": back, "item": "7x"}, 422))
    assert ids(http_engine, mails) == letters[1:]
    assert send(api, "/dead-letters/forget", {"back": back}).status_code in (404, 405, 422)
    get(api, "/dead-letters?plan=nowhere", 404)
    get(api, "/dead-letters?letter=x", 422)
    get(api, "/dead-letters?text=%00", 422)


def test_one_letter_is_shown_beside_them(api: httpx.Client, http_engine: Engine, mails: str) -> None:
    letter = ids(http_engine, mails)[0]
    page = get(api, f"/dead-letters?plan={mails}&letter={letter}")
    sound(page)
    shown = words(region(page, "detail"))
    assert NO_CURRENCY in shown
    assert '"row" : 7' in shown or '"row": 7' in shown
    assert f'href="/items/{letter}"' in region(page, "detail")
    assert "Choose a letter" in words(region(get(api, "/dead-letters?letter=999999999"), "detail"))


def test_edit_and_retry_is_checked_first_and_says_what_changes(api: httpx.Client, http_engine: Engine, mails: str) -> None:
    letter = ids(http_engine, mails)[0]
    back = f"/dead-letters?plan={mails}&letter={letter}"
    typed = '{"row": 8, "currency": "XAF"}'
    answer = send(api, f"/dead-letters/{letter}/edit", {"back": back, "args": typed, "note": "by ticket", "check": 1})
    assert answer.status_code == 200
    sound(answer.text)
    said = words(region(answer.text, "edit-retry"))
    assert "row 7 → 8" in said
    assert 'currency nothing → "XAF"' in said
    assert "XAF&#34;}</textarea>" in answer.text
    assert ids(http_engine, mails)[0] == letter
    page = done(api, f"/dead-letters/{letter}/edit", {"back": back, "args": typed, "note": "by ticket"})
    assert "It is no dead letter any more." in words(region(page, "detail"))
    with http_engine.begin() as tx:
        assert tx.execute(text("select kwargs from relevo.item where id = :id"), {"id": letter}).scalar_one() == {
            "row": 8,
            "currency": "XAF",
        }


def test_json_that_is_none_is_refused_with_what_was_typed(api: httpx.Client, http_engine: Engine, mails: str) -> None:
    letter = ids(http_engine, mails)[0]
    back = f"/dead-letters?plan={mails}&letter={letter}"
    for extra in ({}, {"check": 1}):
        page = refused(api, f"/dead-letters/{letter}/edit", {"back": back, "args": '{"row": 8', "note": "why <b>", **extra}, 422)
        assert "args: is not JSON" in alert(page)
        assert "{&#34;row&#34;: 8</textarea>" in page
        assert 'value="why &lt;b&gt;"' in page
    same = refused(api, f"/dead-letters/{letter}/edit", {"back": back, "args": '{"row": 7}'}, 422)
    assert "are as before" in alert(same)
    assert ids(http_engine, mails)[0] == letter


def test_hostile_texts_are_shown_as_they_are(api: httpx.Client, http_engine: Engine) -> None:
    name = fresh_name("hostile")
    with http_engine.begin() as tx:
        stream(tx, name)
        (letter, _long) = die(tx, [hostile.ALL, hostile.LONG], plan=name, title=hostile.ALL, kwargs={hostile.MARKUP: hostile.ALL})
        tx.execute(
            text("""insert into relevo.event (actor, action, after, reason)
            values ('worker', 'refuse', jsonb_build_object('size', 7, 'preview', cast(:text as text)), :text)"""),
            {"text": hostile.ALL},
        )
    page = get(api, opened(get(api, f"/dead-letters?plan={name}"), 0) + f"&letter={letter}")
    sound(page)
    hostile.harmless(page)
    assert hostile.MARKUP in words(region(page, "detail"))
    assert hostile.MARKUP in words(region(page, "refused"))
    assert len(page) < 300_000
    typed = send(api, f"/dead-letters/{letter}/edit", {"args": hostile.ALL, "back": f"/dead-letters?letter={letter}"})
    assert typed.status_code == 422
    hostile.harmless(typed.text)
    looked = get(api, f"/dead-letters?text={quote(hostile.MARKUP[:150])}")
    sound(looked)
    hostile.harmless(looked)
