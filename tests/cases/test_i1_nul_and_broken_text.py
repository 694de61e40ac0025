"""I1: U+0000 and half characters are refused at the door by a sentence that names the field, and replaced visibly in what a body gives."""

import json
import sys
from collections.abc import Callable

import psycopg
import pytest

from ordering import add, decision, items, plans, subscriptions
from ordering.errors import Invalid
from ordering.items import Edit
from ordering.model import NewItem, State
from ordering.subscriptions import Subscription
from tests.cases import commandline
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit
from tests.cases.line import act
from workers import emit

ODD = {"nul": "a\0b", "half a pair": "a\ud83db", "both": "\udc80\0"}
SHOWN = {"nul": "a\ufffdb", "half a pair": "a\ufffdb", "both": "\ufffd\ufffd"}
FIELDS: dict[str, Callable[[str], NewItem]] = {
    "title": lambda odd: NewItem("probe.nap", title=odd),
    "args": lambda odd: NewItem("probe.give", [odd]),
    "args deep": lambda odd: NewItem("probe.give", [{"a": [{"b": odd}]}]),
    "args key": lambda odd: NewItem("probe.give", [{odd: 1}]),
    "args named": lambda odd: NewItem("probe.give", kwargs={odd: 1}),
    "key": lambda odd: NewItem("probe.nap", key=odd),
    "kind": lambda odd: NewItem("probe.nap", kind=odd),
    "task": lambda odd: NewItem(odd),
    "entry": lambda odd: NewItem("probe.nap", entry=odd),
}


@pytest.mark.parametrize("field", FIELDS)
def test_refused_at_the_door(kit: Kit, field: str) -> None:
    kit.plan("a", start=False)
    named = field.split()[0]
    for odd in ODD.values():
        new = FIELDS[field](odd)
        with pytest.raises(Invalid) as refused:
            act(kit, add.add, "a", new, actor=ACTOR)
        assert refused.value.field == named
        assert str(refused.value).startswith(f"{named}: ")
        with pytest.raises(Invalid, match=rf"^{named}: "):
            act(kit, add.add_many, "a", [NewItem("probe.nap"), new], actor=ACTOR)
    assert kit.sql("select id from relevo.item") == [], "nothing was added"
    checks(kit)


def test_refused_in_every_other_verb(kit: Kit) -> None:
    kit.plan("a", start=False)
    item = kit.add_many("a", [NewItem("probe.nap")], start=False)[0]
    before = kit.item(item)
    for odd in ODD.values():
        for field, change in {"title": Edit(title=odd), "args": Edit(args=[odd]), "task": Edit(task=odd), "kind": Edit(kind=odd)}.items():
            with pytest.raises(Invalid, match=rf"^{field}: "):
                act(kit, items.edit, item, change, actor=ACTOR)
        with pytest.raises(Invalid, match=r"^actor: "):
            act(kit, items.cancel, item, actor=odd)
        with pytest.raises(Invalid, match=r"^plan: "):
            act(kit, plans.create, odd, actor=ACTOR)
        with pytest.raises(Invalid, match=r"^title: "):
            act(kit, plans.create, "b", actor=ACTOR, title=odd)
        act(kit, plans.start, "a", actor=ACTOR)
        act(kit, plans.pause, "a", actor=ACTOR, reason=f"because of {odd}")
    assert kit.item(item) == before
    assert [event.reason for event in kit.events("pause")] == [f"because of {SHOWN[name]}" for name in ODD]
    checks(kit)


def test_refused_on_the_command_line(kit: Kit) -> None:
    kit.plan("a", start=False)
    for arguments, begin in (
        (("add", "a", "shell", '["a\\u0000b"]'), "args: "),
        (("add", "a", "shell", '{"command": ["a"], "env": {"\\u0000": "x"}}'), "args: "),
        (("add", "a", "shell", '["\\ud83d"]'), "args: "),
        # A byte that is not UTF-8, as Python hands it over.
        (("add", "a", "shell", "--title", "a\udcffb"), "The argument of --title 'a\\xffb' "),
        (("add", "a", "shell", "--key", "a\udcffb"), "The argument of --key 'a\\xffb' "),
    ):
        _, said = commandline.call(kit, *arguments, code=2)
        assert said.startswith(f"relevo: {begin}")
        assert len(said.splitlines()) == 1
    file = kit.folder / "items.jsonl"
    file.write_text('{"task": "shell"}\n' + json.dumps({"task": "shell", "title": "a\0"}) + "\n")
    _, said = commandline.call(kit, "add", "a", "--from", str(file), code=2)
    assert "line 2: title: " in said
    assert kit.sql("select id from relevo.item") == []
    checks(kit)


def test_refused_in_facts(kit: Kit) -> None:
    before = kit.events("subscribe")
    for odd in ODD.values():
        for field, call in {
            "type": lambda tx, odd=odd: emit(tx, odd, {}),
            "data": lambda tx, odd=odd: emit(tx, "a", {"a": [odd]}),
            "data key": lambda tx, odd=odd: emit(tx, "a", {odd: 1}),
            "key": lambda tx, odd=odd: emit(tx, "a", {}, key=odd),
            "probe.nap: on": lambda tx, odd=odd: subscriptions.subscribe(tx, Subscription(odd, "probe.nap"), actor=ACTOR),
            "task": lambda tx, odd=odd: subscriptions.subscribe(tx, Subscription("a", odd), actor=ACTOR),
            "plan": lambda tx, odd=odd: subscriptions.subscribe(tx, Subscription("a", "probe.nap", odd), actor=ACTOR),
        }.items():
            with pytest.raises(Invalid, match=rf"^{field.removesuffix(' key')}: "), kit.tx() as tx:
                call(tx)
    for words, begin in (
        (("emit", "a", '["a\\u0000b"]'), "data: "),
        (("emit", "a", '{"\\ud83d": 1}'), "data: "),
        (("emit", "a\udcffb"), "The argument 'a\\xffb' "),
        (("emit", "a", "{}", "--key", "a\udcffb"), "The argument of --key 'a\\xffb' "),
    ):
        _, said = commandline.call(kit, *words, code=2)
        assert said.startswith(f"relevo: {begin}")
        assert len(said.splitlines()) == 1
    with kit.psql() as connection, pytest.raises(psycopg.errors.UntranslatableCharacter):
        connection.execute("select relevo.emit('a', %s::jsonb)", ('"a\\u0000b"',))
    assert kit.sql("select id from relevo.fact") == kit.sql("select id from relevo.subscription") == []
    assert kit.events("subscribe") == before == []
    checks(kit)


def test_replaced_in_what_a_body_gives(kit: Kit) -> None:
    catalogue = str(kit.catalogue(("tests.cases.probe_tasks", "tests.cases.text_tasks"), name="text.toml"))
    (worker,) = kit.up(workers=1, slots=1, RELEVO_CATALOGUE=catalogue)
    before = worker.pool()
    kit.plan("a")
    for name, odd in ODD.items():
        given = kit.add("a", "text.give", json.dumps([odd, {odd: odd}]))
        assert kit.wait_state(given, State.SUCCEEDED).result == [SHOWN[name], {SHOWN[name]: SHOWN[name]}]
        for task, reason in (("text.fail", "ValueError"), ("text.again", "Unrecordable")):
            failing = kit.add("a", task, json.dumps(odd))
            error = kit.wait_state(failing, State.FAILED, seconds=30).error
            assert error is not None
            assert task == "text.again" or SHOWN[name] in error
            assert kit.history(failing).attempts[0].reason == reason
            assert kit.view("a").status == "halted"
            act(kit, decision.skip, failing, actor=ACTOR)
    script = "import sys; sys.stdout.buffer.write(b'<\\x00\\xff\\xed\\xa0\\xbd>'); sys.exit(int(sys.argv[1]))"
    loud = kit.add("a", "shell", [sys.executable, "-c", script, "0"])
    kit.wait_state(loud, State.SUCCEEDED)
    output = kit.history(loud).attempts[0].output
    assert output is not None
    assert (output.head + output.tail).startswith("<\ufffd\ufffd")
    assert (output.head + output.tail).endswith(">")
    broken = kit.add("a", "shell", [sys.executable, "-c", script, "3"])
    assert "<\ufffd" in str(kit.wait_state(broken, State.FAILED).error)
    for item in (loud, broken):
        out, _ = commandline.call(kit, "show", str(item))
        assert "\ufffd" in out
    act(kit, decision.skip, broken, actor=ACTOR)
    assert worker.pool() == before, "no process was lost"
    checks(kit)
