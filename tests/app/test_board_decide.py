"""Decisions on the board: the card of what holds a plan, its three choices, the list of what is unresolved, and refusals."""

import httpx
import pytest
from sqlalchemy import Engine

from ordering import attempt
from ordering.decide import Failed
from ordering.model import OnFailure, State
from tests.app.boards import Line
from tests.app.pages import alert, done, get, refused, region, sound, words
from tests.ordering import acts


def test_the_card_has_the_evidence(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, start=True, item={"max_attempts": 3})
    with http_engine.begin() as tx:
        claimed = acts.run(tx, line.name)
        attempt.write_output(tx, claimed.item_id, claimed.attempt, head="entity 1: <posted>\n", tail="", left_out=0)
        acts.lose(tx, claimed)
    page = get(api, line.path)
    sound(page)
    card = words(region(page, "decide"))
    for told in (
        "Interrupted",
        "4 items wait behind it",
        "Item 1",
        "Nobody knows how far it got",
        "worker · host · pid 4242",
        "process lost",
        "entity 1: <posted>",
        "1 of 3 tries",
        "Not declared",
        "Last finished step",
    ):
        assert told in card
    assert "attempt 2, with a fresh allowance of tries" in card
    assert "The plan goes on with 2" in card
    assert "Halted" in words(region(page, "page-head"))
    assert "Held here. Nothing below runs until somebody decides." in words(region(page, "barrier"))


def test_safe_to_repeat_is_said_where_it_is_declared(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, start=True, item={"on_interrupt": "requeue", "max_attempts": 1})
    line.lose()
    assert "Declared safe to repeat" in words(region(get(api, line.path), "decide"))


@pytest.mark.parametrize(("verb", "state"), [("retry", State.WAITING), ("skip", State.SKIPPED), ("resolve", State.RESOLVED)])
def test_each_choice(api: httpx.Client, http_engine: Engine, verb: str, state: State) -> None:
    line = Line(http_engine, start=True)
    line.fail()
    page = done(api, f"/items/{line.id_of(1)}/{verb}", {"note": "looked at it", "back": line.path})
    assert line.item(1).state is state
    assert "Item 1" in words(region(page, "undo"))
    assert "decide" not in page.split('id="items"')[1].split('id="line"')[0]


def test_resolve_needs_a_note_and_keeps_what_was_written(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, start=True)
    line.fail()
    page = refused(api, f"/items/{line.id_of(1)}/resolve", {"note": "   ", "back": line.path}, 422)
    assert alert(page).startswith("note:")
    assert line.item(1).state is State.FAILED
    done(api, f"/items/{line.id_of(1)}/skip", {"note": "", "back": line.path})
    again = refused(api, f"/items/{line.id_of(1)}/retry", {"note": "twice", "back": line.path}, 409)
    assert "is skipped" in alert(again)


def test_what_may_still_run_is_not_run_twice(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, start=True)
    line.lose(closed=False)
    page = refused(api, f"/items/{line.id_of(1)}/retry", {"note": "a note <kept>", "back": line.path}, 409)
    assert "may still be running it" in alert(page)
    assert "a note &lt;kept&gt;</textarea>" in region(page, "decide")
    assert "not proved gone yet" in words(region(page, "decide"))


def test_a_plan_that_goes_on_lists_what_is_unresolved(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, start=True, on_failure=OnFailure.CONTINUE)
    line.fail(Failed("E", "E: <b>one</b>"))
    line.fail()
    line.run()
    page = get(api, line.path)
    sound(page)
    listed = region(page, "unresolved")
    assert "2 unresolved" in words(listed)
    assert "E: <b>one</b>" in words(listed)
    assert 'id="decide"' not in page
    assert "Keeps its place" in words(region(page, "head"))
    done(api, f"{line.path}/retry", [("item", line.id_of(1)), ("item", line.id_of(2)), ("back", line.path)])
    assert [line.item(place).state for place in (1, 2)] == [State.WAITING, State.WAITING]


def test_the_dialog_of_resolve(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, start=True, on_failure=OnFailure.CONTINUE)
    line.fail()
    page = get(api, f"{line.path}?ask=resolve&item={line.id_of(1)}")
    assert "How was it done?" in words(region(page, "ask"))
    sent = {"item": line.id_of(1), "ask": "resolve", "back": line.path}
    again = refused(api, f"{line.path}/resolve", {**sent, "note": ""}, 422)
    assert "Item 1" in words(region(again, "ask"))
    done(api, f"{line.path}/resolve", {**sent, "note": "by hand"})
    assert line.item(1).state is State.RESOLVED
