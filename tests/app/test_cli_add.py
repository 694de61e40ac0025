"""Adding many items from a file: all or none, in its order, each fault named by its line."""

import io
import json
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from app import item_lines
from app.fields import BadInput
from ordering.model import NewItem, OnInterrupt
from tests.app.commands import Relevo, objects, ok
from tests.ordering.acts import order


@pytest.fixture
def line(relevo: Relevo) -> Relevo:
    """Commands, and an empty plan `line`."""
    relevo("plan", "create", "line")
    return relevo


def file(folder: Path, *lines: object) -> str:
    path = folder / "items.jsonl"
    path.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in lines), encoding="utf-8")
    return str(path)


def test_items_are_added_in_the_order_of_the_file(line: Relevo, engine: Engine, tmp_path: Path) -> None:
    given = file(tmp_path, *({"task": "shell", "title": f"item {number}"} for number in range(2000)))
    assert ok(line("add", "line", "--from", given)) == "Added 2000 items (1 to 2000) to line.\n"
    with engine.begin() as tx:
        titles = list(tx.execute(text("select title from relevo.item order by position")).scalars())
    assert titles == [f"item {number}" for number in range(2000)]


def test_the_same_file_again_adds_nothing_twice(line: Relevo, tmp_path: Path) -> None:
    given = file(tmp_path, {"task": "shell", "key": "a"}, "", {"task": "shell", "key": "b"})
    ok(line("add", "line", "--from", given))
    assert ok(line("add", "line", "--from", given)) == "Added 0 items to line; 2 were there already.\n"
    assert [(each["id"], each["new"]) for each in objects(line("add", "line", "--from", given, "--json"))] == [(1, False), (2, False)]


def test_they_are_put_where_one_says(line: Relevo, engine: Engine, tmp_path: Path) -> None:
    ok(line("add", "line", "shell"))
    ok(line("add", "line", "--from", file(tmp_path, {"task": "shell"}, {"task": "shell"}), "--first"))
    with engine.begin() as tx:
        assert order(tx) == [2, 3, 1]


def test_an_empty_file_adds_nothing(line: Relevo, tmp_path: Path) -> None:
    assert ok(line("add", "line", "--from", file(tmp_path))) == "Added 0 items to line.\n"


@pytest.mark.parametrize(
    ("last", "sentence"),
    [
        ({"task": "nothing"}, "No worker has offered a task 'nothing'"),
        ({"task": 3}, "items.jsonl: line 3: task: must be a text, not a number."),
        ({"task": "shell", "key": "a", "title": "other"}, "key: 'a' stands twice"),
    ],
)
def test_one_fault_and_none_is_added(line: Relevo, engine: Engine, tmp_path: Path, last: object, sentence: str) -> None:
    file(tmp_path, {"task": "shell", "key": "a"}, {"task": "shell"}, last)
    answer = line("add", "line", "--from", "items.jsonl")
    assert answer.code == 2
    assert answer.refusal().startswith(sentence)
    with engine.begin() as tx:
        assert order(tx) == []


def test_every_field_of_a_line_is_read() -> None:
    written = {
        "task": "mine",
        "args": {"a": 1},
        "title": "T",
        "kind": "fix",
        "key": "k",
        "not_before": "2030-01-31T10:00:00+01:00",
        "on_interrupt": "hold",
        "max_attempts": 3,
    }
    found = item_lines.item("f: line 1", json.dumps(written).encode())
    assert found.not_before is not None
    assert found.not_before.isoformat() == "2030-01-31T09:00:00+00:00"
    assert found == NewItem("mine", [], {"a": 1}, "T", "fix", "k", found.not_before, on_interrupt=OnInterrupt.HOLD, max_attempts=3)
    assert item_lines.item("f: line 1", b'{"task": "mine", "args": [1], "key": null}') == NewItem("mine", [1])


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        (b"x", "is not JSON (Expecting value"),
        (b"[1]", "must be a table, not a list."),
        (b"{}", "task: is missing; write for example"),
        (b'{"task": ""}', "task: is empty."),
        (b'{"task": "t", "args": 1}', "args: must be a table of named arguments or a list, not a number."),
        (b'{"task": "t", "args": [NaN]}', "args: is not JSON"),
        (b'{"task": "t", "args": ["\\u0000"]}', "args: holds a NUL character"),
        (b'{"task": "t", "title": "\\ud800"}', "title: holds a NUL character or half a surrogate pair"),
        (b'{"task": "t", "not_before": 5}', "not_before: must be a time as a text"),
        (b'{"task": "t", "not_before": "soon"}', "not_before: 'soon' is not a time"),
        (b'{"task": "t", "on_interrupt": "x"}', 'on_interrupt: must be "hold" or "requeue"'),
        (b'{"task": "t", "max_attempts": "3"}', "max_attempts: must be a whole number, not a text."),
        (b'{"task": "t", "entry": "e"}', "entry: is not a field; the fields are task, args,"),
        (b'{"task": "\xff"}', "is not UTF-8."),
        (b"[" * 100_000, "is not JSON (maximum recursion depth"),
    ],
)
def test_a_fault_is_named_by_its_line_and_field(written: bytes, problem: str) -> None:
    with pytest.raises(BadInput) as refusal:
        list(item_lines.read(io.BytesIO(b'\n{"task": "t"}\n' + written + b"\n"), "f"))
    assert str(refusal.value).startswith(f"f: line 3: {problem}")


def test_a_line_without_end_is_refused_and_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_lines, "LINE_LIMIT", 100)
    with pytest.raises(BadInput, match="f: line 1: is longer than 100 bytes"):
        list(item_lines.read(io.BytesIO(b"x" * 1000), "f"))
