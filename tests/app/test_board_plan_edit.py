"""The settings of a plan on its page: what the dialog shows, what it changes, what it refuses."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from ordering import plan_edit, plans
from ordering.model import OnFailure
from tests.app.boards import Line
from tests.app.pages import alert, done, get, refused, region, send, sound, words
from tests.ordering.acts import plan
from tests.servers import fresh_name


def settings(engine: Engine, name: str) -> dict[str, Any]:
    with engine.begin() as tx:
        return plan_edit.settings(tx, plans.get(tx, name).id)


def form(name: str, **fields: str) -> dict[str, str]:
    """The dialog as a browser sends it: what it was opened with, and these changes of it."""
    opened = {
        "title": "",
        "concurrency": "4",
        "on_failure": "halt",
        "on_interrupt": "",
        "max_attempts": "",
        "autostart": "",
        "stop_grace": "10s",
        "keep": "30d",
        "rate": "",
    }
    now = {key: value for key, value in {**opened, **fields}.items() if key != "autostart" or value}
    return {"ask": "settings", "back": f"/plans/{name}", **{f"was:{key}": value for key, value in opened.items()}, **now}


def test_a_serial_plans_settings_are_shown_and_changed(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine)
    page = get(api, f"{line.path}?ask=settings")
    sound(page)
    dialog = region(page, "ask")
    for value in ('name="keep" id="ask-keep" value="30d"', 'name="was:stop_grace" value="10s"', 'name="autostart"'):
        assert value in dialog
    assert 'name="rate"' not in dialog
    change = {
        "title": "Every <night>",
        "on_failure": "continue",
        "max_attempts": "7",
        "autostart": "on",
        "keep": "1d12h",
        "on_interrupt": "requeue",
    }
    after = done(api, f"{line.path}/edit", form(line.name, **change))
    assert "Every <night>" in words(region(after, "page-head"))
    found = settings(http_engine, line.name)
    assert (found["title"], found["on_failure"], found["on_interrupt"]) == ("Every <night>", "continue", "requeue")
    assert (found["max_attempts"], found["autostart"], found["keep"]) == (7, True, timedelta(hours=36))
    opened = {f"was:{name}": value for name, value in change.items()}
    done(
        api, f"{line.path}/edit", {**opened, **change, "max_attempts": "", "on_interrupt": ""} | {"was:autostart": "on", "autostart": "on"}
    )
    found = settings(http_engine, line.name)
    assert (found["max_attempts"], found["on_interrupt"], found["autostart"]) == (None, None, True)
    done(api, f"{line.path}/edit", {"was:autostart": "on"})  # the box was unticked
    assert settings(http_engine, line.name)["autostart"] is False


def test_a_streams_rate_is_changed_and_taken_away(api: httpx.Client, http_engine: Engine) -> None:
    name = fresh_name("mails")
    with http_engine.begin() as tx:
        plan(tx, name, concurrency=4)
    dialog = region(get(api, f"/plans/{name}?ask=settings"), "ask")
    assert 'name="rate"' in dialog
    assert 'name="on_failure"' not in dialog
    assert 'name="concurrency" id="ask-concurrency" value="4"' in dialog
    done(api, f"/plans/{name}/edit", form(name, concurrency="16"))
    assert settings(http_engine, name)["concurrency"] == 16
    for wrong in ("", "1", "10001", "many"):
        assert alert(refused(api, f"/plans/{name}/edit", form(name, concurrency=wrong), 422)).startswith("concurrency:")
    done(api, f"/plans/{name}/edit", form(name, rate="100/m"))
    assert round(settings(http_engine, name)["rate"], 6) == round(Decimal(100) / 60, 6)
    assert 'value="100/m"' in region(get(api, f"/plans/{name}?ask=settings"), "ask")
    done(api, f"/plans/{name}/edit", {"was:rate": "100/m", "rate": ""})
    assert settings(http_engine, name)["rate"] is None


def test_what_somebody_else_has_changed_meanwhile_stays(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine)
    with http_engine.begin() as tx:
        plan_edit.edit(tx, plans.lock_by_name(tx, line.name), {"on_failure": OnFailure.CONTINUE}, actor="other")
    done(api, f"{line.path}/edit", form(line.name, keep="7d"))
    found = settings(http_engine, line.name)
    assert (found["on_failure"], found["keep"]) == ("continue", timedelta(days=7))
    events = line.events().count("edit")
    done(api, f"{line.path}/edit", form(line.name))
    assert line.events().count("edit") == events, "nothing was changed, so nothing is told"


@pytest.mark.parametrize(
    ("field", "value"),
    [("keep", "soon"), ("keep", ""), ("keep", "9999d"), ("stop_grace", "2d"), ("max_attempts", "0"),
     ("rate", "1/s"), ("on_failure", "stop"), ("title", "x" * 501)],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_the_dialog_open(api: httpx.Client, http_engine: Engine, field: str, value: str) -> None:
    line = Line(http_engine)
    before = settings(http_engine, line.name)
    page = refused(api, f"{line.path}/edit", form(line.name, **{"title": "typed", field: value}), 422)
    assert alert(page).startswith(f"{field}:")
    if field != "title":
        assert 'value="typed"' in region(page, "ask")
        assert 'name="was:title" value=""' in region(page, "ask")
    assert settings(http_engine, line.name) == before


def test_an_unknown_plan(api: httpx.Client) -> None:
    assert send(api, "/plans/nowhere/edit", form("nowhere", keep="7d")).status_code == 404
