"""An item's page: what it shows of each state, its forms and what they refuse."""

import re
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import Engine, text

from ordering import facts, items, plans, steps, subscriptions
from ordering.decide import Asleep, Failed
from ordering.finish import finish
from ordering.items import Edit
from ordering.model import OnInterrupt, State, StepKind
from ordering.steps import Step
from ordering.subscriptions import Subscription
from tests.app import hostile
from tests.app.pages import alert, cells, done, get, refused, region, sound, words
from tests.ordering.acts import ACTOR, bring, claim, feed, lose, plan, put, run, state
from tests.servers import fresh_name

PRINTED = text("insert into relevo.output (item_id, attempt, head, tail, left_out) values (:id, 1, :head, :tail, :left_out)")


@pytest.fixture
def line(http_engine: Engine) -> str:
    """The name of a started serial plan of this test alone."""
    name = fresh_name("line")
    with http_engine.begin() as tx:
        plan(tx, name, title="Release train")
        put(tx, plan=name, title="first", kind="fix", kwargs={"a": 1})
        plans.start(tx, name, actor=ACTOR)
    return name


def first(engine: Engine, name: str) -> int:
    query = "select min(i.id) from relevo.item i join relevo.plan p on p.id = i.plan_id where p.name = :name"
    with engine.begin() as tx:
        found: int = tx.execute(text(query), {"name": name}).scalar_one()
    return found


@pytest.mark.parametrize("wanted", list(State))
def test_an_item_in_each_state(api: httpx.Client, http_engine: Engine, wanted: State) -> None:
    name = fresh_name("line")
    with http_engine.begin() as tx:
        plan(tx, name)
        plans.start(tx, name, actor=ACTOR)
        if wanted is State.RUNNING:
            (item,) = put(tx, plan=name)
            fed = feed(tx, name)
            assert fed
            claim(tx, fed)
        else:
            item = bring(tx, wanted, name, title="The one")
    page = get(api, f"/items/{item}")
    sound(page)
    head = words(region(page, "page-head"))
    assert ("Postponed until" if wanted is State.POSTPONED else wanted.capitalize()) in head
    offered = {each for each in ("edit", "postpone", "cancel", "wake", "retry", "skip", "resolve") if f'/items/{item}/{each}"' in page}
    match wanted:
        case State.WAITING | State.DISPATCHED:
            assert offered == {"edit", "postpone", "cancel"}
        case State.POSTPONED:
            assert offered == {"edit", "postpone", "cancel", "wake"}
        case State.RUNNING:
            assert offered == {"cancel"}
        case State.FAILED | State.INTERRUPTED:
            assert offered == {"retry", "skip", "resolve"}
        case _:
            assert offered == set()


def test_facts_of_an_item(api: httpx.Client, http_engine: Engine, line: str) -> None:
    page = get(api, f"/items/{first(http_engine, line)}")
    said = cells(region(page, "facts"))
    assert "Plan Release train Position 1 Task noop Kind fix" in said
    assert "Tries 0 of 4" in said
    assert "If its process is lost a person decides" in said
    assert '"a": 1' in words(region(page, "arguments"))
    assert "It has not begun yet." in words(region(page, "attempts"))
    assert 'id="timeline"' not in page
    assert 'data-plans="' + line in page
    get(api, "/items/999999999", 404)
    get(api, "/items/x", 422)


def test_edit_postpone_wake_and_cancel(api: httpx.Client, http_engine: Engine, line: str) -> None:
    item = first(http_engine, line)
    here = f"/items/{item}"
    page = done(api, f"{here}/edit", {"back": here, "title": "second", "kind": "audit", "task": "shell", "args": '{"command": ["true"]}'})
    assert "second" in words(region(page, "page-head"))
    assert '"command"' in words(region(page, "arguments"))
    assert "edited" in words(region(page, "trail"))
    page = done(api, f"{here}/postpone", {"back": here, "when": "8h", "reason": "the mirror is down"})
    assert "Postponed until" in words(region(page, "page-head"))
    assert "the mirror is down" in words(region(page, "trail"))
    assert "Waiting" in words(region(done(api, f"{here}/wake", {"back": here}), "page-head"))
    done(api, f"{here}/postpone", {"back": here, "when": "at", "until": "2030-01-31T09:00"})
    assert "Cancelled" in words(region(done(api, f"{here}/cancel", {"back": here}), "page-head"))
    assert "cannot be edited" in alert(refused(api, f"{here}/edit", {"back": here, "title": "x"}, 409))


def test_what_is_refused_keeps_what_was_typed(api: httpx.Client, http_engine: Engine, line: str) -> None:
    item = first(http_engine, line)
    here = f"/items/{item}"
    page = refused(api, f"{here}/edit", {"back": here, "title": "<b>typed", "kind": "", "task": "noop", "args": "{nothing"}, 422)
    sound(page)
    assert "args: is not JSON" in alert(page)
    assert 'value="&lt;b&gt;typed"' in page
    assert ">{nothing</textarea>" in page
    assert re.search(r'id="act-edit" open', page)
    page = refused(api, f"{here}/postpone", {"back": here, "when": "at", "until": "", "reason": "typed"}, 422)
    assert "until: is empty" in alert(page)
    assert 'value="typed"' in page
    assert "No worker has offered a task" in alert(refused(api, f"{here}/edit", {"back": here, "task": "unknown.task"}, 422))
    with http_engine.begin() as tx:
        assert (items.get(tx, item).title, state(tx, item)) == ("first", State.WAITING)


def test_decisions_on_what_failed_at_the_head(api: httpx.Client, http_engine: Engine, line: str) -> None:
    with http_engine.begin() as tx:
        claimed = run(tx, line)
        finish(tx, claimed, Failed("ValueError", "ValueError: no such column", final=True))
    here = f"/items/{claimed.item_id}"
    page = get(api, here)
    said = words(region(page, "decide"))
    assert "It holds the plan until then." in said
    assert "ValueError: no such column" in said
    assert "attempt 2, with a fresh allowance of tries" in said
    page = refused(api, f"{here}/resolve", {"back": here, "note": " "}, 422)
    assert "note: is empty" in alert(page)
    assert "Waiting" in words(region(done(api, f"{here}/retry", {"back": here, "note": "the disk was full"}), "page-head"))
    again = refused(api, f"{here}/retry", {"back": here, "note": "typed"}, 409)
    assert "it is queued already" in alert(again)
    assert "the disk was full" in words(region(again, "trail"))


def test_attempts_say_who_ran_them_and_what_they_printed(api: httpx.Client, http_engine: Engine, line: str) -> None:
    with http_engine.begin() as tx:
        claimed = run(tx, line)
        tx.execute(PRINTED, {"id": claimed.item_id, "head": f"begin {hostile.ALL}\n", "tail": "the end", "left_out": 1_234_567})
    here = f"/items/{claimed.item_id}"
    page = get(api, here)
    sound(page)
    hostile.harmless(page)
    attempt = cells(region(page, "a1"))
    assert "Worker worker Host and process host, 4242 Session" in attempt
    shown = region(page, "o1")
    assert 'data-output="running"' in shown
    assert "1,234,567 bytes in the middle were left out" in words(shown)
    assert words(shown).endswith("the end")
    with http_engine.begin() as tx:
        lose(tx, claimed)
    page = get(api, here)
    assert 'data-output="ended"' in page
    assert "process lost" in words(region(page, "a1"))
    assert "Nobody knows how far it got." in words(region(page, "decide"))


def test_steps_stand_on_a_time_line_with_their_stored_results(api: httpx.Client, http_engine: Engine) -> None:
    name = fresh_name("flows")
    with http_engine.begin() as tx:
        plan(tx, name, concurrency=8)
        put(tx, plan=name, title="Provision", on_interrupt=OnInterrupt.HOLD)
        claimed = run(tx, name)
        steps.record(tx, claimed, Step(1, "create account", StepKind.STEP, True, '{"account": 4711}'), took=1.8)
        steps.record(tx, claimed, Step(2, "charge", StepKind.STEP, False, None, 1, f"Refused: {hostile.MARKUP}"), took=0.2)
        finish(tx, claimed, Asleep(3, "trial", timedelta(days=14)))
    here = f"/items/{claimed.item_id}"
    page = get(api, here)
    sound(page)
    hostile.harmless(page)
    assert "Sleeping until" in words(region(page, "page-head"))
    drawn = region(page, "timeline")
    assert 'class="b-ok"' in drawn
    assert 'class="b-sleep"' in drawn
    assert 'class="nowl"' in drawn
    assert 'class="cut"' in drawn
    assert "style=" not in drawn
    stored = words(region(page, "results"))
    assert '"account": 4711' in stored
    assert hostile.MARKUP in stored
    assert "It ends by itself at" in stored
    after = done(api, f"{here}/wake", {"back": here})
    assert "Waiting" in words(region(after, "page-head"))


def test_where_it_came_from(api: httpx.Client, http_engine: Engine, line: str) -> None:
    type = fresh_name("invoice.issued")
    with http_engine.begin() as tx:
        subscriptions.subscribe(tx, Subscription(type, "notify", fresh_name("mails")), actor=ACTOR)
        fact = facts.emit(tx, type, {"id": 7})
        item = tx.execute(text("select id from relevo.item where fact_id = :fact"), {"fact": fact}).scalar_one()
        repair = put(tx, plan=line, title="Repair it", repairs=first(http_engine, line), entry="audit-deps")[0]
    assert f'href="/facts/{fact}"' in region(get(api, f"/items/{item}"), "origin")
    said = cells(region(get(api, f"/items/{repair}"), "origin"))
    assert "Catalogue entry audit-deps Repairs first" in said
    assert "Repaired by Repair it" in cells(region(get(api, f"/items/{first(http_engine, line)}"), "origin"))


def test_hostile_texts_are_shown_as_they_are(api: httpx.Client, http_engine: Engine, line: str) -> None:
    item = first(http_engine, line)
    with http_engine.begin() as tx:
        change = Edit(title=hostile.ALL + hostile.LONG, kwargs={hostile.MARKUP: [hostile.ALL, hostile.LONG * 5]})
        items.edit(tx, item, change, actor=hostile.MARKUP[:190])
        items.postpone(tx, item, items.get(tx, item).created_at + timedelta(days=1), actor=ACTOR, reason=hostile.ALL)
    page = get(api, f"/items/{item}")
    sound(page)
    hostile.harmless(page)
    assert hostile.MARKUP in words(region(page, "page-head"))
    assert hostile.MARKUP in words(region(page, "trail"))
    assert "more characters are not shown" in words(region(page, "arguments"))
    assert len(page) < 300_000
