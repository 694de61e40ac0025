"""A catalogue is read whole or refused in one sentence that names file, entry and field."""

from datetime import timedelta
from pathlib import Path

import pytest

from app import catalogue
from app.fields import BadInput
from ordering.model import OnFailure, OnInterrupt
from tests.app.catalogues import THREE, line, loaded, written

ITEM = '[[plans.line.items]]\nkey = "k"\ntask = "shell"\n'


def test_every_field_is_read(tmp_path: Path) -> None:
    text = """
        imports = ["examples.tasks", "more"]
        [plans.line]
        title = "Title"
        on_failure = "continue"
        on_interrupt = "requeue"
        autostart = true
        max_attempts = 5
        stop_grace = 1.5
        keep = "7d"
        rate = "none"
        [[plans.line.items]]
        key = "k"
        kind = "audit"
        title = "Item"
        task = "mine"
        args = { a = [1, "x"] }
        order = 1.5
        once = true
        max_attempts = 2
        on_interrupt = "hold"
        repair = { task = "mend", args = [1] }
        [plans.empty]
    """
    found = loaded(tmp_path, text)
    assert found.imports == ["examples.tasks", "more"]
    assert found.plan("empty").entries == []
    assert found.plan("line").settings == {
        "title": "Title",
        "on_failure": OnFailure.CONTINUE,
        "on_interrupt": OnInterrupt.REQUEUE,
        "autostart": True,
        "max_attempts": 5,
        "stop_grace": timedelta(seconds=1.5),
        "keep": timedelta(days=7),
        "rate": None,
    }
    (entry,) = found.plan("line").entries
    assert (entry.key, entry.kind, entry.title, entry.order, entry.once) == ("k", "audit", "Item", 1.5, True)
    assert (entry.work.task, entry.work.args, entry.work.kwargs) == ("mine", [], {"a": [1, "x"]})
    assert entry.repair is not None
    assert (entry.repair.task, entry.repair.args, entry.repair.kwargs) == ("mend", [1], {})
    item = entry.item()
    assert (item.entry, item.max_attempts, item.on_interrupt) == ("k", 2, OnInterrupt.HOLD)


def test_entries_stand_in_their_order_and_ties_as_the_file_has_them(tmp_path: Path) -> None:
    assert [entry.key for entry in line(tmp_path).entries] == ["a", "b", "c"]


def test_an_entry_without_a_title_is_called_by_its_key(tmp_path: Path) -> None:
    assert line(tmp_path, ITEM).entries[0].item().title == "k"


def test_an_empty_file_is_an_empty_catalogue(tmp_path: Path) -> None:
    assert loaded(tmp_path, "").plans == {}


@pytest.mark.parametrize(
    ("given", "runs_in"), [("", "."), (', cwd = "sub"', "sub"), (', cwd = "../other"', "../other"), (', cwd = "/usr"', "/usr")]
)
def test_commands_run_in_the_folder_of_the_file(tmp_path: Path, given: str, runs_in: str) -> None:
    entry = line(tmp_path, f'{ITEM}args = {{ command = ["true"]{given} }}\n').entries[0]
    assert Path(entry.work.kwargs["cwd"]) == (tmp_path / runs_in).resolve()


def test_arguments_of_other_tasks_are_left_as_they_are(tmp_path: Path) -> None:
    assert line(tmp_path, '[[plans.line.items]]\nkey = "k"\ntask = "mine"\nargs = { a = 1 }\n').entries[0].work.kwargs == {"a": 1}


def test_a_plan_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no plan 'nobody' in this catalogue \(it has: line\)"):
        loaded(tmp_path).plan("nobody")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("x = 1", ": x: is not a field; the fields are imports, plans."),
        ("imports = 1", ": imports: must be a list, not a number."),
        ('imports = ["a b"]', ": imports: 'a b' is not a module"),
        ("imports = [1]", ": imports: '1' is not a module"),
        ("plans = 1", ": plans: must be a table, not a number."),
        ("plans.line = 1", ": plans.line: must be a table, not a number."),
        ('[plans."Not a name"]', ": plans.Not a name: is not a plan name"),
        ("[plans.line]\nx = 1", ": plans.line: x: is not a field; the fields are title,"),
        ("[plans.line]\ntitle = 1", ": plans.line: title: must be a text, not a number."),
        ('[plans.line]\non_failure = "stop"', ': plans.line: on_failure: must be "halt" or "continue", not \'stop\'.'),
        ("[plans.line]\non_interrupt = 1", ': plans.line: on_interrupt: must be "hold" or "requeue", not \'1\'.'),
        ('[plans.line]\nautostart = "yes"', ": plans.line: autostart: must be true or false, not a text."),
        ("[plans.line]\nmax_attempts = 0", ": plans.line: max_attempts: is out of range; use 1 to 1000."),
        ("[plans.line]\nmax_attempts = true", ": plans.line: max_attempts: must be a whole number, not true or false."),
        ("[plans.line]\nstop_grace = -1", ": plans.line: stop_grace: is out of range; use 0 to 86400 seconds."),
        ("[plans.line]\nkeep = -1", ": plans.line: keep: '-1' is not a duration;"),
        ('[plans.line]\nkeep = "long"', ": plans.line: keep: 'long' is not a duration; write for example 90s, 15m, 1h30m or 2d."),
        ("[plans.line]\nkeep = true", ": plans.line: keep: must be a number, not true or false."),
        ('[plans.line]\nrate = "fast"', ": plans.line: rate: 'fast' is not a rate; write for example 10/s, 100/m, 5/h, or none."),
        ("[plans.line]\nrate = 0", ": plans.line: rate: is out of range;"),
        ("[plans.line]\nrate = []", ": plans.line: rate: must be a number, not a list."),
        ("[plans.line]\nitems = 1", ": plans.line: items: must be a list, not a number."),
        ("[plans.line]\nitems = [1]", ": plans.line.items 1: must be a table, not a number."),
        ('[[plans.line.items]]\ntask = "shell"', ": plans.line.items 1: key: is missing; write for example key = "),
        ('[[plans.line.items]]\nkey = ""\ntask = "shell"', ": plans.line.items 1: key: is empty."),
        ('[[plans.line.items]]\nkey = 1\ntask = "shell"', ": plans.line.items 1: key: must be a text, not a number."),
        ('[[plans.line.items]]\nkey = "k"', ": plans.line.items 1 (k): task: is missing"),
        (ITEM + ITEM, ": plans.line.items 2 (k): key: stands twice in this plan"),
        (ITEM + "colour = 1", ": plans.line.items 1 (k): colour: is not a field; the fields are key,"),
        (ITEM + "title = 1", ": plans.line.items 1 (k): title: must be a text"),
        (ITEM + 'title = "\\u0000"', ": plans.line.items 1 (k): title: holds a NUL character"),
        (ITEM + 'title = "\\u200b"', ": plans.line.items 1 (k): title: holds only invisible characters"),
        (ITEM + 'order = "first"', ": plans.line.items 1 (k): order: must be a number, not a text."),
        (ITEM + "order = nan", ": plans.line.items 1 (k): order: is out of range"),
        (ITEM + "once = 1", ": plans.line.items 1 (k): once: must be true or false"),
        (ITEM + "max_attempts = 1.5", ": plans.line.items 1 (k): max_attempts: must be a whole number"),
        (ITEM + 'args = "make"', ": plans.line.items 1 (k): args: must be a table of named arguments or a list, not a text."),
        (ITEM + "args = { a = nan }", ": plans.line.items 1 (k): args: is not JSON"),
        (ITEM + "args = { a = 2020-01-01 }", ": plans.line.items 1 (k): args: is not JSON"),
        (ITEM + "repair = 1", ": plans.line.items 1 (k): repair: must be a table, not a number."),
        (ITEM + "repair = { args = {} }", ": plans.line.items 1 (k): repair: task: is missing"),
        (
            ITEM + 'repair = { task = "a", title = "b" }',
            ": plans.line.items 1 (k): repair: title: is not a field; the fields are task, args.",
        ),
        ("[plans", ": is not TOML: "),
        ("a = " + "[" * 10_000, ": is nested too deeply."),
    ],
)
def test_what_is_wrong_is_named_in_one_sentence(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(BadInput) as refusal:
        loaded(tmp_path, text)
    assert str(refusal.value).startswith(f"{tmp_path / 'relevo.toml'}{named}")
    assert "\n" not in str(refusal.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.toml: there is no such file"):
        catalogue.load(tmp_path / "none.toml")


def test_a_folder_is_no_catalogue(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        catalogue.load(tmp_path)


def test_a_file_that_is_not_utf_8_is_named_with_the_place(tmp_path: Path) -> None:
    path = tmp_path / "relevo.toml"
    path.write_bytes(b'imports = ["\xff"]')
    with pytest.raises(BadInput, match="byte 12 is not UTF-8"):
        catalogue.load(path)


def test_a_file_is_named_as_seen_from_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "x = 1")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=r"^relevo\.toml: x: "):
        catalogue.load(tmp_path / "relevo.toml")


@pytest.mark.parametrize("path", ["relevo.toml", "examples/broken/relevo.toml"])
def test_the_catalogues_that_come_with_the_project_are_right(path: str) -> None:
    found = catalogue.load(Path(__file__).parents[2] / path)
    assert all(plan.entries for plan in found.plans.values())


def test_loading_reads_and_nothing_else(tmp_path: Path) -> None:
    path = written(tmp_path, THREE)
    before = path.stat()
    catalogue.load(path)
    assert path.stat() == before
    assert list(tmp_path.iterdir()) == [path]
