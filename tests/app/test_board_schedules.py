"""The page of schedules: what it says of each, and its forms."""

import httpx
import pytest
from sqlalchemy import Engine, text

from app import board_schedules
from ordering import schedule
from ordering.schedule import NewSchedule
from tests.app import hostile
from tests.app.pages import alert, cells, done, get, refused, region, send, sound
from tests.ordering.acts import plan
from tests.servers import fresh_name


@pytest.fixture
def name(http_engine: Engine) -> str:
    """A schedule, and a plan of the same name."""
    name = fresh_name("nightly")
    with http_engine.begin() as tx:
        plan(tx, name)
        new = NewSchedule(name, name, "30 2 * * *", "shell", kwargs={"command": ["true"]}, title="Back up", timezone="Europe/Madrid")
        schedule.create(tx, new, actor="ops")
    return name


def card(page: str, name: str) -> str:
    return cells(region(page, f"schedule-{name}"))


def test_a_schedule_says_when_it_ticks_and_what_it_adds(api: httpx.Client, name: str) -> None:
    page = get(api, "/schedules")
    sound(page)
    said = card(page, name)
    assert "30 2 * * * every day at 02:30, Europe/Madrid" in said
    assert "Adds Back up ( shell )" in said
    assert said.count("02:30") == 6  # in words, and five ticks
    assert "none yet" in said


def test_one_is_made_paused_resumed_and_removed(api: httpx.Client, http_engine: Engine, name: str) -> None:
    other = fresh_name("weekly")
    fields = {"name": other, "plan": name, "cron": "0 9 * * 1-5", "task": "shell", "args": '{"command": ["true"]}', "missed": "skip"}
    said = card(done(api, "/schedules", fields), other)
    assert "0 9 * * 1-5 on weekdays at 09:00, UTC" in said
    assert "left out" in said
    assert "Paused" in card(done(api, f"/schedules/{other}/pause"), other)
    assert "does not tick until it is resumed" in card(get(api, "/schedules"), other)
    assert "Paused" not in card(done(api, f"/schedules/{other}/resume"), other)
    assert "is not ticked" in alert(refused(api, f"/schedules/{other}/remove", {}, 422))
    assert f"schedule-{other}" not in done(api, f"/schedules/{other}/remove", {"sure": 1})
    with http_engine.begin() as tx:
        actions = tx.execute(text("select action from relevo.event order by id desc limit 4")).scalars()
        assert list(actions) == ["remove", "resume", "pause", "create"]


def test_one_is_edited_and_only_what_was_touched_changes(api: httpx.Client, http_engine: Engine, name: str) -> None:
    page = get(api, f"/schedules?ask=edit&schedule={name}")
    sound(page)
    dialog = region(page, "ask")
    assert 'name="cron" required maxlength="200" placeholder="30 2 * * *" value="30 2 * * *"' in dialog
    assert f'name="plan" required maxlength="63" list="plans" autocomplete="off" value="{name}"' in dialog
    assert f"<option>{name}</option>" in region(page, "plans")
    was = {"was:cron": "30 2 * * *", "was:title": "Back up", "was:timezone": "Europe/Madrid", "was:missed": "one", "was:kind": ""}
    with http_engine.begin() as tx:
        schedule.edit(tx, name, {"title": "Back up all"}, actor="other")
    sent = {"cron": "0 3 * * *", "title": "Back up", "timezone": "Europe/Madrid", "missed": "skip", "kind": "fix"}
    said = card(done(api, f"/schedules/{name}/edit", {"ask": "edit", "schedule": name, **was, **sent}), name)
    assert "every day at 03:00, Europe/Madrid" in said
    assert "Adds Back up all" in said
    with http_engine.begin() as tx:
        found = schedule.get(tx, name)
        events = tx.execute(text("select count(*) from relevo.event where action = 'edit'")).scalar_one()
    assert (found.missed, found.kind, found.kwargs) == ("skip", "fix", {"command": ["true"]})
    done(api, f"/schedules/{name}/edit", {"was:cron": "0 3 * * *", "cron": "0 3 * * *"})
    with http_engine.begin() as tx:
        assert tx.execute(text("select count(*) from relevo.event where action = 'edit'")).scalar_one() == events


def test_an_edit_that_cannot_be_leaves_the_dialog_open(api: httpx.Client, http_engine: Engine, name: str) -> None:
    with http_engine.begin() as tx:
        before = schedule.get(tx, name)
    for change, status, sentence in [
        ({"cron": "99 * * * *"}, 422, "cron:"),
        ({"timezone": "Mars/Base"}, 422, "timezone:"),
        ({"plan": "nowhere"}, 404, "There is no plan"),
        ({"task": "unknown.task"}, 422, "No worker has offered a task"),
        ({"args": "[1"}, 422, "args: is not JSON"),
    ]:
        page = refused(api, f"/schedules/{name}/edit", {"ask": "edit", "schedule": name, "title": "<i>typed", **change}, status)
        assert sentence in alert(page), change
        assert 'value="&lt;i&gt;typed"' in region(page, "ask")
        assert "typed" not in region(page, "new-schedule")
    refused(api, "/schedules/no-such-one/edit", {"cron": "0 3 * * *"}, 404)
    with http_engine.begin() as tx:
        assert schedule.get(tx, name) == before


def test_the_page_goes_on_behind_the_last_name(api: httpx.Client, http_engine: Engine) -> None:
    word = fresh_name("pages")
    names = [f"{word}-{number:02}" for number in range(26)]
    with http_engine.begin() as tx:
        plan(tx, word)
        for each in names:
            schedule.create(tx, NewSchedule(each, word, "0 0 1 1 *", "http"), actor="ops")
    first = get(api, f"/schedules?plan={word}")
    sound(first)
    assert [each for each in names if f'id="schedule-{each}"' in first] == names[:24]
    following = f"/schedules?after={names[23]}&plan={word}"
    assert following.replace("&", "&amp;") in first
    page = get(api, following)
    assert [each for each in names if f'id="schedule-{each}"' in page] == names[24:]
    assert "More schedules" not in page
    assert [each for each in names if f'id="schedule-{each}"' in get(api, f"/schedules?text={names[25].upper()}")] == names[25:]
    opened = get(api, f"{following}&ask=edit&schedule={names[24]}")
    assert f'action="/schedules/{names[24]}/edit"' in region(opened, "ask")
    back = following.replace("&", "&amp;")
    assert f'name="back" value="{back}"' in region(opened, "ask"), "the page that the person came from"
    assert "No schedule matches" in get(api, f"/schedules?plan={word}&text=nothing-of-the-kind")
    assert "No schedule matches" in get(api, "/schedules?plan=no-such-plan")
    page = refused(api, f"/schedules/{names[24]}/edit", {"ask": "edit", "schedule": names[24], "cron": "x", "back": following}, 422)
    assert f'id="schedule-{names[24]}"' in page


def test_a_plan_beyond_those_offered_can_be_written(api: httpx.Client, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_schedules, "PLANS", 0)
    assert "<option>" not in region(get(api, "/schedules"), "plans")
    other = fresh_name("beyond")
    said = card(done(api, "/schedules", {"name": other, "plan": name, "cron": "0 9 * * 1-5", "task": "http", "args": "{}"}), other)
    assert f"To plan {name}" in said
    assert f'value="{name}"' in region(get(api, f"/schedules?ask=edit&schedule={other}"), "ask")


def test_one_of_a_task_that_is_offered_no_more_is_edited(api: httpx.Client, http_engine: Engine, name: str) -> None:
    with http_engine.begin() as tx:
        schedule.edit(tx, name, {"task": "gone.task"}, actor="ops")
    sent = {"was:title": "Back up", "title": "Save", "was:task": "gone.task", "task": "gone.task"}
    assert "Adds Save ( gone.task )" in card(done(api, f"/schedules/{name}/edit", sent), name)


def test_what_keeps_one_from_its_work_is_said(api: httpx.Client, http_engine: Engine, name: str) -> None:
    assert "Due since" not in card(get(api, "/schedules"), name)
    with http_engine.begin() as tx:
        late = text("update relevo.schedule set next_at = now() - interval '2 minutes', task = 'gone.task' where name = :name")
        tx.execute(late, {"name": name})
    said = card(get(api, "/schedules"), name)
    assert "Due since" in said
    assert "No worker has offered the task gone.task" in said
    with http_engine.begin() as tx:
        tx.execute(text("update relevo.schedule set timezone = 'Mars/Olympus' where name = :name"), {"name": name})
    page = get(api, "/schedules")
    sound(page)
    assert "The time zone Mars/Olympus is not known" in card(page, name)
    assert "Due since" not in card(page, name)


def test_the_next_ticks_name_the_year_where_it_is_another(api: httpx.Client, http_engine: Engine, name: str) -> None:
    with http_engine.begin() as tx:
        ticks = schedule.edit(tx, name, {"cron": "0 0 2 1 *"}, actor="ops").ticks
    assert f"2 Jan {ticks[1]:%Y} 00:00" in card(get(api, "/schedules"), name)


def test_run_now_adds_its_item(api: httpx.Client, http_engine: Engine, name: str) -> None:
    done(api, f"/schedules/{name}/now")
    with http_engine.begin() as tx:
        (title,) = tx.execute(
            text("select i.title from relevo.item i join relevo.plan p on p.id = i.plan_id where p.name = :name"), {"name": name}
        ).scalars()
    assert title == "Back up"


def test_what_cannot_be_made_is_refused_with_what_was_typed(api: httpx.Client, name: str) -> None:
    good = {"name": fresh_name("x"), "plan": name, "cron": "* * * * *", "task": "shell", "args": "{}", "title": "<i>typed"}
    for change, status, sentence in [
        ({"cron": "99 * * * *"}, 422, "cron:"),
        ({"cron": "0 0 30 2 *"}, 422, "cron:"),
        ({"timezone": "Mars/Base"}, 422, "timezone:"),
        ({"name": "No Name"}, 422, "is not the name of one"),
        ({"name": name}, 409, "There is a schedule"),
        ({"plan": "nowhere"}, 404, "There is no plan"),
        ({"task": "unknown.task"}, 422, "No worker has offered a task"),
        ({"args": "[1"}, 422, "args: is not JSON"),
        ({"missed": "never"}, 422, "missed:"),
    ]:
        page = refused(api, "/schedules", {**good, **change}, status)
        assert sentence in alert(page), change
        assert 'value="&lt;i&gt;typed"' in page
        sound(page)
    assert "There is no schedule" in alert(refused(api, "/schedules/nowhere/pause", {}, 404))
    assert send(api, f"/schedules/{name}/explode").status_code in (404, 422)


def test_hostile_texts_are_shown_as_they_are(api: httpx.Client, http_engine: Engine, name: str) -> None:
    with http_engine.begin() as tx:
        schedule.put(tx, NewSchedule(name, name, "0 0 1 * *", "shell", title=hostile.ALL), actor="ops")
    page = get(api, "/schedules")
    sound(page)
    hostile.harmless(page)
    assert "alert('x')" in card(page, name)
    assert "on day 1 of each month at 00:00" in card(page, name)
