"""A catalogue's schedules reach the database, and what a catalogue no longer has stays there."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from app.declare import declare_all
from app.fields import BadInput
from ordering import plans, schedule, views
from ordering.errors import UnknownPlan
from ordering.model import Missed, OnFailure
from tests.app.catalogues import line, written

PLAN = '[plans.line]\non_failure = "continue"\n'
ONE = '[[plans.line.schedules]]\nname = "one"\ncron = "30 2 * * *"\ntask = "shell"\n'
OTHER = '[[plans.other.schedules]]\nname = "other"\ncron = "0 9 * * 1-5"\ntask = "mine"\nargs = [1]\n'


@pytest.fixture
def declared(engine: Engine, tmp_path: Path) -> Engine:
    declare_all(engine, written(tmp_path, PLAN + ONE))
    return engine


def names(engine: Engine) -> list[str]:
    with engine.begin() as tx:
        return [each.name for each in schedule.list_(tx)]


def test_every_field_is_read(tmp_path: Path) -> None:
    whole = ONE + 'timezone = "Europe/Berlin"\nmissed = "skip"\nargs = { command = ["true"] }\ntitle = "T"\nkind = "K"\n'
    (found,) = line(tmp_path, PLAN + whole).schedules
    assert (found.name, found.plan, found.cron, found.timezone, found.missed) == ("one", "line", "30 2 * * *", "Europe/Berlin", Missed.SKIP)
    assert (found.task, found.args, found.kwargs) == ("shell", [], {"command": ["true"], "cwd": str(tmp_path.resolve())})
    assert (found.title, found.kind, found.declared) == ("T", "K", True)
    (least,) = line(tmp_path, ONE).schedules
    assert (least.timezone, least.missed, least.args, least.title) == ("UTC", Missed.ONE, [], "")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[plans.line]\nschedules = 1", ": plans.line: schedules: must be a list, not a number."),
        ("[plans.line]\nschedules = [1]", ": plans.line.schedules 1: must be a table, not a number."),
        ('[[plans.line.schedules]]\ncron = "* * * * *"\ntask = "a"', ": plans.line.schedules 1: name: is missing;"),
        (ONE.replace('"one"', '"One"'), ": plans.line.schedules 1 (One): name: 'One' is not a name;"),
        (ONE.replace('"one"', "1"), ": plans.line.schedules 1: name: must be a text, not a number."),
        (ONE.replace("30 2", "61 2"), ": plans.line.schedules 1 (one): cron: '61 2 * * *' has a bad minute;"),
        (ONE.replace("30 2 * * *", "0 0 30 2 *"), ": plans.line.schedules 1 (one): cron: '0 0 30 2 *' has a bad day-of-month;"),
        (ONE.replace('"30 2 * * *"', "30"), ": plans.line.schedules 1 (one): cron: must be a text, not a number."),
        (ONE.replace('cron = "30 2 * * *"\n', ""), ": plans.line.schedules 1 (one): cron: is missing; write for example cron ="),
        (ONE.replace('task = "shell"\n', ""), ": plans.line.schedules 1 (one): task: is missing;"),
        (ONE + 'timezone = "Mars"', ": plans.line.schedules 1 (one): timezone: 'Mars' is not a known time zone;"),
        (ONE + "timezone = 1", ": plans.line.schedules 1 (one): timezone: must be a text, not a number."),
        (ONE + 'missed = "some"', ': plans.line.schedules 1 (one): missed: must be "one" or "skip" or "all", not \'some\'.'),
        (ONE + 'args = "a"', ": plans.line.schedules 1 (one): args: must be a table of named arguments or a list, not a text."),
        (ONE + 'title = "\\u0000"', ": plans.line.schedules 1 (one): title: holds a NUL character"),
        (ONE + "order = 1", ": plans.line.schedules 1 (one): order: is not a field; the fields are name, cron,"),
        (ONE + ONE, ": plans.line.schedules 2 (one): name: stands twice, first in plans.line;"),
        (ONE + OTHER.replace('"other"', '"one"'), ": plans.other.schedules 1 (one): name: stands twice, first in plans.line;"),
    ],
)
def test_what_is_wrong_is_named_in_one_sentence(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(BadInput) as refusal:
        line(tmp_path, text)
    assert str(refusal.value).startswith(f"{tmp_path / 'relevo.toml'}{named}")
    assert "\n" not in str(refusal.value)


def test_a_plan_that_is_missing_is_made_with_its_settings(declared: Engine) -> None:
    assert names(declared) == ["one"]
    with declared.begin() as tx:
        assert plans.get(tx, "line").on_failure is OnFailure.CONTINUE
        assert views.plan(tx, "line").status is views.Status.NEW, "it is not started"


def test_a_plan_that_is_there_keeps_its_settings(engine: Engine, tmp_path: Path) -> None:
    with engine.begin() as tx:
        plans.create(tx, "line", actor="test")
    declare_all(engine, written(tmp_path, PLAN + ONE))
    with engine.begin() as tx:
        assert plans.get(tx, "line").on_failure is OnFailure.HALT


def test_another_catalogue_changes_its_own_and_removes_nothing(declared: Engine, tmp_path: Path) -> None:
    declare_all(declared, written(tmp_path, OTHER))
    assert names(declared) == ["one", "other"]
    declare_all(declared, written(tmp_path, ONE.replace("30 2", "45 3")))
    with declared.begin() as tx:
        assert schedule.get(tx, "one").cron == "45 3 * * *"
        assert schedule.get(tx, "other").args == [1]


def test_a_plan_without_schedules_is_not_made(engine: Engine, tmp_path: Path) -> None:
    declare_all(engine, written(tmp_path, PLAN))
    with engine.begin() as tx, pytest.raises(UnknownPlan):
        plans.get(tx, "line")


def test_no_catalogue_is_no_schedules_and_a_wrong_one_changes_nothing(declared: Engine, tmp_path: Path) -> None:
    declare_all(declared, tmp_path / "none.toml")
    with pytest.raises(BadInput):
        declare_all(declared, written(tmp_path, OTHER + ONE.replace("30 2", "61 2")))
    assert names(declared) == ["one"]


def test_a_stream_is_made_with_its_settings_and_left_as_it_is(engine: Engine, tmp_path: Path) -> None:
    path = written(tmp_path, '[plans.mails]\nconcurrency = 8\nmax_attempts = 6\n[plans.line]\ntitle = "In order"\n')
    declare_all(engine, path)
    path.write_text("[plans.mails]\nconcurrency = 3\n")
    declare_all(engine, path)
    with engine.begin() as tx:
        made = plans.get(tx, "mails")
        assert (made.concurrency, made.max_attempts) == (8, 6)
        with pytest.raises(UnknownPlan):  # a plan in order is made by who first adds to it
            plans.get(tx, "line")


@pytest.mark.parametrize("value", ["0", "10001", "1.5", "true", '"8"'])
def test_a_wrong_concurrency_is_one_sentence(tmp_path: Path, value: str) -> None:
    with pytest.raises(BadInput, match=r": plans\.line: concurrency: (must be a whole number|is out of range)"):
        line(tmp_path, f"[plans.line]\nconcurrency = {value}\n")
