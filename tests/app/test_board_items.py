"""What is done to items on the board: add, edit, postpone, cancel, undo; what was written is kept when it is refused; roles."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest
from sqlalchemy import Engine

from app.caller import Caller, Role
from ordering import items
from ordering.model import Item, State
from tests.app.boards import Line
from tests.app.pages import alert, done, get, refused, region, send, sound, words
from tests.app.web import serving
from tests.ordering import acts


@pytest.fixture
def line(http_engine: Engine) -> Line:
    return Line(http_engine, 3)


def last(line: Line) -> Item:
    with line.engine.begin() as tx:
        return items.get(tx, acts.order(tx, line.name)[-1])


FIELDS = {"task": "http", "args": '{"url": "http://127.0.0.1:1/"}', "title": "<New> & \N{PARTY POPPER}", "kind": "fix"}


def test_add(api: httpx.Client, line: Line) -> None:
    dialog = region(get(api, f"{line.path}?ask=add"), "ask")
    assert '<option value="http">' in dialog
    page = done(api, f"{line.path}/items", {**FIELDS, "max_attempts": "3", "on_interrupt": "requeue", "back": line.path, "ask": "add"})
    new = last(line)
    assert (new.title, new.kwargs, new.max_attempts, new.on_interrupt) == (FIELDS["title"], {"url": "http://127.0.0.1:1/"}, 3, "requeue")
    assert "Added <New> & " in words(region(page, "undo"))
    done(
        api,
        f"{line.path}/items",
        {**FIELDS, "title": "top", "place": "first", "args": '["http://127.0.0.1:1/"]', "delay": "15m", "back": line.path},
    )
    with line.engine.begin() as tx:
        first = items.get(tx, acts.order(tx, line.name)[0])
    assert (first.title, first.args) == ("top", ["http://127.0.0.1:1/"])
    assert first.not_before is not None
    sound(page)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"task": ""}, "task: is empty"),
        ({"task": "nobody.offers"}, "No worker has offered a task"),
        ({"args": "{"}, "args: is not JSON"),
        ({"args": "7"}, "args: must be a JSON object"),
        ({"args": '{"a": "\\u0000"}'}, "args: holds a NUL"),
        ({"title": "\N{ZERO WIDTH SPACE}"}, "title: holds only invisible"),
        ({"title": "x" * 13_000}, "title: has 13000 characters"),
        ({"max_attempts": "0"}, "max_attempts:"),
        ({"delay": "soon"}, "delay: 'soon' is not a duration"),
        ({"place": "before"}, "neighbour: is missing"),
        ({"place": "before", "neighbour": "999999999"}, "cannot be the neighbour"),
        ({"on_interrupt": "pray"}, "on_interrupt:"),
    ],
)
def test_a_refused_add_keeps_what_was_written(api: httpx.Client, line: Line, wrong: dict[str, str], sentence: str) -> None:
    page = send(api, f"{line.path}/items", {**FIELDS, **wrong, "back": line.path, "ask": "add"})
    assert page.status_code in (409, 422)
    assert alert(page.text).startswith(sentence) or sentence in alert(page.text)
    dialog = region(page.text, "ask")
    assert FIELDS["kind"] in dialog
    assert sentence.split(":")[0] not in ("args", "title") or 'aria-invalid="true"' in dialog
    assert len(line.order()) == 3
    sound(page.text)


def test_edit(api: httpx.Client, line: Line) -> None:
    path = f"/items/{line.id_of(2)}/edit"
    dialog = region(get(api, f"{line.path}?ask=edit&item={line.id_of(2)}"), "ask")
    assert 'value="Item 2"' in dialog
    assert "http://127.0.0.1:1/" in dialog
    sent = {"item": line.id_of(2), "ask": "edit", "back": line.path, "task": "http", "kind": "audit"}
    page = done(api, path, {**sent, "title": "Renamed", "args": '{"url": "http://127.0.0.1:2/"}'})
    assert (line.item(2).title, line.item(2).kind, line.item(2).kwargs) == ("Renamed", "audit", {"url": "http://127.0.0.1:2/"})
    assert "Edited Renamed" in words(region(page, "undo"))
    refusal = refused(api, path, {**sent, "title": "kept <here>", "args": "[1,"}, 422)
    assert alert(refusal).startswith("args: is not JSON")
    assert 'value="kept &lt;here&gt;"' in region(refusal, "ask")
    assert "[1,</textarea>" in region(refusal, "ask")
    same = done(api, path, {**sent, "title": "Renamed", "args": '{"url": "http://127.0.0.1:2/"}'})
    assert 'id="undo"' not in same  # nothing was changed, and nothing is said
    done(api, f"/items/{line.id_of(2)}/cancel", {"back": line.path})
    assert "is cancelled" in alert(refused(api, path, {**sent, "title": "x"}, 409))


@pytest.mark.parametrize(
    ("fields", "least", "most"),
    [
        ({"when": "4h"}, timedelta(hours=3.9), timedelta(hours=4)),
        ({"when": "at", "until": "2035-01-31T09:00"}, timedelta(days=1), timedelta(days=4000)),
        ({"until": "2035-01-31T09:00:00+02:00"}, timedelta(days=1), timedelta(days=4000)),
    ],
)
def test_postpone(api: httpx.Client, line: Line, fields: dict[str, str], least: timedelta, most: timedelta) -> None:
    sent = [("item", line.id_of(1)), ("item", line.id_of(3)), ("reason", "later <on>"), ("back", line.path), *fields.items()]
    page = done(api, f"{line.path}/postpone", sent)
    assert line.places() == [2]
    when = line.item(3).not_before
    assert when is not None
    assert least < when - datetime.now(UTC) <= most
    asleep = words(region(page, "postponed"))
    assert "2 postponed" in asleep
    assert "until" in asleep
    assert "Postponed 2 things" in words(region(page, "undo"))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "until: is empty"),
        ({"when": "at", "until": "tomorrow"}, "until: 'tomorrowZ' is not a time"),
        ({"when": "x"}, "when: 'x' is not a duration"),
        ({"when": "at", "until": "2999-01-01T00:00"}, "until: is more than ten years away"),
    ],
)
def test_a_time_that_is_none(api: httpx.Client, line: Line, fields: dict[str, str], sentence: str) -> None:
    page = refused(api, f"{line.path}/postpone", {"item": line.id_of(1), "ask": "postpone", "back": line.path, **fields}, 422)
    assert alert(page).startswith(sentence)
    assert "Item 1" in words(region(page, "ask"))
    assert line.places() == [1, 2, 3]


def test_cancel_and_undo(api: httpx.Client, line: Line) -> None:
    assert "Cancel 2 items?" in words(region(get(api, f"{line.path}?ask=cancel&item={line.id_of(1)}&item={line.id_of(2)}"), "ask"))
    page = done(api, f"{line.path}/cancel", [("item", line.id_of(1)), ("item", line.id_of(2)), ("back", line.path)])
    assert line.places() == [3]
    bar = region(page, "undo")
    events = [part.split('"')[0] for part in bar.split('name="event" value="')[1:]]
    assert len(events) == 2
    undone = done(api, "/undo", [*(("event", each) for each in events), ("back", line.path)])
    assert line.places() == [1, 2, 3]
    assert "Undid" in words(region(undone, "undo"))
    late = refused(api, "/undo", [*(("event", each) for each in events), ("back", line.path)], 409)
    assert "undone already" in alert(late)
    assert refused(api, "/undo", {"back": line.path}, 422)


def test_cancel_of_what_runs_stops_it(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, 2, start=True)
    line.run()
    dialog = words(region(get(api, f"{line.path}?ask=cancel&item={line.id_of(1)}"), "ask"))
    assert "The body is stopped" in dialog
    done(api, f"{line.path}/cancel", {"item": line.id_of(1), "reason": "wrong one", "back": line.path})
    assert line.item(1).state is State.CANCELLED


def test_a_notice_is_the_callers_own_and_no_other_text(api: httpx.Client, line: Line) -> None:
    with line.engine.begin() as tx:
        items.cancel(tx, line.id_of(1), actor="somebody else")
        from ordering import done as latest

        theirs = latest.latest(tx, "somebody else")
    for query in (f"done={theirs}", "done=999999999999", "done=x", "done=<b>", "left=1,2,x", "done=99999999999999999999"):
        page = get(api, f"{line.path}?{query}")
        assert 'id="undo"' not in page
        assert 'id="left"' not in page


ROUTES = ("start", "pause", "policy", "items", "run-all", "repair-all", "move", "postpone", "cancel", "retry", "skip", "resolve")


def test_who_may_only_view_sees_no_buttons_and_may_not_act(http_engine: Engine) -> None:
    line = Line(http_engine, 2, start=True)
    line.fail()
    with serving(http_engine, lambda request: Caller("reader", Role.VIEW)) as client:
        for path in (line.path, f"{line.path}?ask=add", f"{line.path}?ask=move&item={line.id_of(2)}", f"{line.path}?text=Item", "/"):
            page = get(client, path)
            sound(page)
            main = region(page, "main")
            assert 'method="post"' not in main
            assert "?ask=" not in main
            assert 'type="checkbox"' not in main
            assert 'class="grip"' not in main
        for route in ROUTES:
            assert "needs the role operate" in alert(refused(client, f"{line.path}/{route}", {"item": line.id_of(1)}, 403))
        for route in ("move", "edit", "postpone", "cancel", "retry", "skip", "resolve"):
            refused(client, f"/items/{line.id_of(1)}/{route}", {}, 403)
        refused(client, "/plans", {"name": "mine"}, 403)
        refused(client, "/undo", {"event": "1"}, 403)
    assert line.events() == ["create", "add", "start"]


@pytest.mark.parametrize(("role", "shell"), [(Role.OPERATE, True), (Role.ADMIN, False)])
def test_commands_are_for_admins_where_the_server_allows_them(http_engine: Engine, role: Role, shell: bool) -> None:
    line = Line(http_engine, 1, item={"task": "shell", "kwargs": {"command": ["true"]}})
    with serving(http_engine, lambda request: Caller("op", role), shell=shell) as client:
        dialog = region(get(client, f"{line.path}?ask=add"), "ask")
        assert '<option value="shell">' not in dialog
        assert "need the role admin" in words(dialog)
        sent = {"task": "shell", "args": '{"command": ["true"]}', "title": "kept", "ask": "add", "back": line.path}
        page = refused(client, f"{line.path}/items", sent, 403)
        assert 'value="kept"' in region(page, "ask")
        edit = {"item": line.id_of(1), "ask": "edit", "back": line.path, "title": "x"}
        assert "only an admin may edit it" in words(region(get(client, f"{line.path}?ask=edit&item={line.id_of(1)}"), "ask"))
        refused(client, f"/items/{line.id_of(1)}/edit", edit, 403)
        done(client, f"/items/{line.id_of(1)}/cancel", {"back": line.path})
