"""The commands on schedules."""

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from app import cli
from tests.app.commands import Relevo, objects, ok

CREATE = ("schedule", "create", "backup", "line", "30 2 * * *", "shell", '{"command": ["true"]}')


@pytest.fixture
def scheduled(line: Relevo) -> Relevo:
    ok(line(*CREATE, "--timezone", "America/New_York", "--title", "Back up", "--kind", "care"))
    return line


def test_create_tells_the_next_five_ticks(line: Relevo) -> None:
    said = ok(line(*CREATE, "--timezone", "Asia/Tokyo")).splitlines()
    assert said[0] == "Created schedule backup."
    assert said[1].split() == ["NEXT", "TICKS", "ASIA/TOKYO"]
    assert len(said) == 7
    for tick in said[2:]:
        assert "T17:30:00Z" in tick
        assert tick.endswith("02:30 JST")


def test_create_answers_in_json(line: Relevo) -> None:
    (made,) = objects(line(*CREATE, "--missed", "all", "--json"))
    assert (made["name"], made["plan"], made["cron"], made["timezone"], made["missed"]) == ("backup", "line", "30 2 * * *", "UTC", "all")
    assert (made["task"], made["args"], made["kwargs"]) == ("shell", [], {"command": ["true"]})
    assert len(made["ticks"]) == 5
    assert made["ticks"][0] == made["next_at"]


def test_list_and_show(scheduled: Relevo) -> None:
    (found,) = objects(scheduled("schedule", "list", "--json"))
    assert objects(scheduled("schedule", "show", "backup", "--json")) == [found]
    listed = ok(scheduled("schedule", "list")).splitlines()
    assert listed[1].startswith("backup    line  30 2 * * *  America/New_York  ")
    shown = ok(scheduled("schedule", "show", "backup"))
    assert "Schedule backup: 30 2 * * * (America/New_York) to plan line" in shown
    for part in ("task: shell", 'arguments: {"command": ["true"]}', "title: Back up", "kind: care", "missed: one", "NEXT TICKS"):
        assert part in shown


def test_pause_resume_remove(scheduled: Relevo, engine: Engine) -> None:
    assert ok(scheduled("schedule", "pause", "backup", "--reason", "full")) == "Schedule backup is paused.\n"
    assert "paused" in ok(scheduled("schedule", "list"))
    assert ok(scheduled("schedule", "resume", "backup")).startswith("Schedule backup ticks.\nNEXT TICKS")
    assert ok(scheduled("schedule", "remove", "backup", "--actor", "eve")) == "Removed schedule backup.\n"
    assert ok(scheduled("schedule", "list", "--json")) == ""
    with engine.begin() as tx:
        trail = tx.execute(text("select action, actor, reason from relevo.event order by id desc limit 3")).all()
    assert [(row.action, row.reason) for row in trail] == [("remove", ""), ("resume", ""), ("pause", "full")]
    assert trail[0].actor == "eve"


def test_edit_changes_what_is_named(scheduled: Relevo, engine: Engine) -> None:
    ok(scheduled("plan", "create", "other"))
    other = ("--plan", "other", "--cron", "0 3 * * *", "--timezone", "Asia/Tokyo", "--missed", "skip")
    said = ok(scheduled("schedule", "edit", "backup", *other))
    assert said.startswith("Schedule backup is changed.\nNEXT TICKS")
    assert said.count("03:00 JST") == 5
    (found,) = objects(scheduled("schedule", "edit", "backup", "--args", "[1]", "--title", "", "--kind", "fix", "--task", "http", "--json"))
    assert (found["plan"], found["cron"], found["timezone"], found["missed"]) == ("other", "0 3 * * *", "Asia/Tokyo", "skip")
    assert (found["task"], found["args"], found["kwargs"], found["title"], found["kind"]) == ("http", [1], {}, "", "fix")
    with engine.begin() as tx:
        after = tx.execute(text("select after from relevo.event where action = 'edit' order by id")).scalars().all()
    assert after[0] == {"schedule": "backup", "plan": "other", "cron": "0 3 * * *", "timezone": "Asia/Tokyo", "missed": "skip"}


def test_add_adds_its_item_now(scheduled: Relevo) -> None:
    said = ok(scheduled("schedule", "add", "backup"))
    (item,) = [each for each in objects(scheduled("plan", "show", "line", "--json"))[0]["line"] if each["title"] == "Back up"]
    assert said == f"Added item {item['id']} to line.\n"
    assert objects(scheduled("schedule", "add", "backup", "--json"))[0]["new"]


def test_the_list_says_what_is_overdue_and_whose_task_nobody_has(scheduled: Relevo, engine: Engine) -> None:
    with engine.begin() as tx:
        tx.execute(text("update relevo.schedule set next_at = '2026-01-01T00:00:00Z', task = 'gone.task'"))
    note = "due since 2026-01-01T00:00:00Z, and no feeder ticks or its plan is locked; no worker has offered its task"
    assert ok(scheduled("schedule", "list")).splitlines()[1].endswith(f"gone.task  {note}")
    assert f"note: {note}\n" in ok(scheduled("schedule", "show", "backup"))
    (found,) = objects(scheduled("schedule", "list", "--json"))
    assert found["overdue"]
    ok(scheduled("schedule", "pause", "backup"))
    assert "due since" not in ok(scheduled("schedule", "list"))


def test_the_list_of_one_plan(scheduled: Relevo) -> None:
    ok(scheduled("plan", "create", "other"))
    ok(scheduled("schedule", "create", "hourly", "other", "0 * * * *", "shell"))
    assert [each["name"] for each in objects(scheduled("schedule", "list", "--plan", "other", "--json"))] == ["hourly"]
    ok(scheduled("schedule", "pause", "hourly"))
    assert ok(scheduled("schedule", "list", "--plan", "other")).splitlines()[1].split() == (
        ["hourly", "other", *["0", "*", "*", "*", "*"], "UTC", "one", "shell", "paused"]
    ), "a paused one has no next tick"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["create", "b", "line", "61 * * * *", "shell"], 2, "cron: '61 * * * *' has a bad minute; write minute, hour,"),
        (["create", "b", "line", "0 0 31 2 *", "shell"], 2, "cron: '0 0 31 2 *' has a bad day-of-month;"),
        (["create", "b", "line", "* * * * *", "shell", "--timezone", "Mars"], 2, "timezone: 'Mars' is not a known time zone;"),
        (["create", "B!", "line", "* * * * *", "shell"], 2, "schedule: 'B!' is not the name of one;"),
        (["create", "b", "nowhere", "* * * * *", "shell"], 2, "There is no plan 'nowhere';"),
        (["create", "b", "line", "* * * * *", "nothing"], 2, "No worker has offered a task 'nothing'"),
        (["create", "b", "line", "* * * * *", "shell", "{"], 2, "ARGS-JSON: is not JSON"),
        (["create", "b", "line", "* * * * *", "shell", "--missed", "some"], 2, "Invalid value for '--missed'"),
        (["create", "backup", "line", "* * * * *", "shell"], 2, "There is a schedule 'backup' already;"),
        (["show", "nobody"], 2, "There is no schedule 'nobody';"),
        (["remove", "nobody"], 2, "There is no schedule 'nobody';"),
        (["add", "nobody"], 2, "There is no schedule 'nobody';"),
        (["list", "--plan", "nowhere"], 2, "There is no plan 'nowhere';"),
        (["edit", "nobody", "--title", "x"], 2, "There is no schedule 'nobody';"),
        (["edit", "backup"], 2, "edit: changes nothing; give at least one of --plan,"),
        (["edit", "backup", "--cron", "* * * *"], 2, "cron: '* * * *' does not have five fields;"),
        (["edit", "backup", "--timezone", "Mars"], 2, "timezone: 'Mars' is not a known time zone;"),
        (["edit", "backup", "--plan", "nowhere"], 2, "There is no plan 'nowhere';"),
        (["edit", "backup", "--task", "nothing"], 2, "No worker has offered a task 'nothing'"),
        (["edit", "backup", "--args", "7"], 2, "--args: must be a JSON object"),
    ],
)
def test_what_is_wrong_is_one_sentence(scheduled: Relevo, words: list[str], code: int, said: str) -> None:
    answer = scheduled("schedule", *words)
    assert answer.code == code
    assert answer.refusal().startswith(said)


@pytest.mark.parametrize("name", cli.SCHEDULE)
def test_each_command_has_a_help_with_an_example(relevo: Relevo, name: str) -> None:
    assert f"relevo schedule {name}" in ok(relevo("schedule", name, "--help")).split("Example")[1]


CATALOGUE = """
[[plans.line.schedules]]
name = "backup"
cron = "30 2 * * *"
task = "shell"
args = { command = ["true"] }
"""


def test_a_catalogues_schedules_come_with_run_all_and_stay(relevo: Relevo, tmp_path: Path) -> None:
    (tmp_path / "relevo.toml").write_text(CATALOGUE)
    ok(relevo("run-all"))
    (found,) = objects(relevo("schedule", "list", "--json"))
    assert (found["name"], found["plan"], found["declared"]) == ("backup", "line", True)
    assert "not in the catalogue" not in ok(relevo("schedule", "list"))
    assert "what stands there counts again" in ok(relevo("schedule", "edit", "backup", "--title", "x"))
    said = ok(relevo("schedule", "remove", "backup"))
    assert "The catalogue still has it" in said
    ok(relevo("run-all"))
    (tmp_path / "relevo.toml").write_text(CATALOGUE.replace("backup", "save"))
    ok(relevo("run-all"))
    assert [each["name"] for each in map(json.loads, relevo("schedule", "list", "--json").out.splitlines())] == ["backup", "save"]
    (backup, save) = ok(relevo("schedule", "list")).splitlines()[1:]
    assert backup.endswith("not in the catalogue any more")
    assert "catalogue" not in save
    (tmp_path / "relevo.toml").unlink()
    assert "catalogue" not in ok(relevo("schedule", "list"))
