"""Dead letters on the command line: what a person sees, what each decision says, and what is refused."""

import json

import pytest
from sqlalchemy import Engine, text

from ordering import audit, items
from ordering.history import history
from ordering.model import State
from tests.app.commands import Relevo, objects, ok
from tests.ordering.acts import ACTOR, put, state
from tests.ordering.letters import DIE, die, stream


@pytest.fixture
def mails(relevo: Relevo, engine: Engine) -> Relevo:
    """Of the stream `mails` the letters 1 to 3, of two causes, and item 5, which waits; of `thumbs` 4; of a serial plan the failed 6."""
    with engine.begin() as tx:
        stream(tx)
        stream(tx, "thumbs")
        die(tx, ["Refused: card 1", "Refused: card 2", "KeyError: 'x'"], title="To Ops", args=[7])
        die(tx, ["Refused: card 3"], plan="thumbs")
        put(tx, plan="mails")
    ok(relevo("plan", "create", "line"))
    with engine.begin() as tx:
        tx.execute(DIE, {"ids": put(tx), "errors": ["no"]})
        audit.record(
            tx, actor="worker w", action="refuse", reason="not JSON", after={"size": 7, "preview": "<b>", "task": "t", "dispatch": None}
        )
    return relevo


def states(engine: Engine) -> list[str]:
    with engine.begin() as tx:
        return list(tx.execute(text("select state from relevo.item order by id")).scalars())


def group_of(mails: Relevo, item: int) -> str:
    found: str = next(
        each["group"] for each in objects(mails("dead", "list", "--json")) if each.get("id") == item and each["type"] == "letter"
    )
    return found


BEFORE = ["failed"] * 4 + ["waiting", "failed"]


def test_letters_are_listed_with_the_refused_messages_beside_them(mails: Relevo) -> None:
    said = ok(mails("dead", "list"))
    header, *rows = said.splitlines()
    assert header.split() == ["ITEM", "PLAN", "STATE", "SINCE", "ATTEMPTS", "REPLAYS", "GROUP", "TITLE", "NOTE"]
    assert [row.split()[:3] for row in rows[:4]] == [[str(n), "mails" if n < 4 else "thumbs", "failed"] for n in (1, 2, 3, 4)]
    assert "To Ops" in rows[0]
    assert "Refused: card 1" in rows[0]
    assert rows[-1].split()[-5:] == ["w", "7", "not", "JSON", "<b>"]
    found = objects(mails("dead", "list", "--json"))
    assert [each["type"] for each in found] == ["letter"] * 4 + ["refused message"]
    assert (found[0]["error"], found[0]["replays"], found[4]["preview"]) == ("Refused: card 1", 0, "<b>")


def test_letters_are_listed_by_plan_group_and_page(mails: Relevo) -> None:
    group = group_of(mails, 1)
    for call, wanted in (
        (["thumbs"], [4]),
        (["mails"], [1, 2, 3]),
        (["--group", group], [1, 2, 4]),
        (["mails", "--group", group], [1, 2]),
    ):
        assert [each["id"] for each in objects(mails("dead", "list", *call, "--json"))] == wanted
    first = ok(mails("dead", "list", "mails", "--limit", 2))
    more = first.splitlines()[-1]
    assert more.startswith("More: relevo dead list mails --after ")
    rest = ok(mails(*more.removeprefix("More: relevo ").split(), "--limit", 2))
    assert rest.splitlines()[1].split()[0] == "3"
    assert "More" not in rest
    page = objects(mails("dead", "list", "--limit", 2, "--json"))
    assert [each["id"] for each in objects(mails("dead", "list", "--after", page[1]["cursor"], "--json"))] == [3, 4]


def test_causes_are_listed_the_most_frequent_first(mails: Relevo) -> None:
    rows = ok(mails("dead", "list", "--groups")).splitlines()[1:]
    assert [(row.split()[1], row.split()[2]) for row in rows[:1]] == [("mails", "2")]
    assert "Refused: card #" in rows[0]
    found = objects(mails("dead", "list", "mails", "--groups", "--json"))
    assert [(each["type"], each["count"], each["example"]) for each in found] == [("group", 2, 2), ("group", 1, 3)]


def test_where_there_are_none_it_says_so(relevo: Relevo, engine: Engine) -> None:
    with engine.begin() as tx:
        stream(tx)
    for call in (["list"], ["list", "mails"], ["list", "--groups"]):
        assert ok(relevo("dead", *call)) == "There are no dead letters here.\n"
        assert ok(relevo("dead", *call, "--json")) == ""
    assert ok(relevo("dead", "retry", "--plan", "mails")) == "To run again: 0 dead letters.\n"


def test_one_is_shown_with_its_whole_history(mails: Relevo) -> None:
    said = ok(mails("dead", "show", 1))
    assert f"group {group_of(mails, 1)} (2 of this cause in mails)" in said.splitlines()[0]
    for line in ("Item 1 of plan mails: failed", "  arguments: [7]", "Attempt 1: failed: Refused", "    Refused: card 1"):
        assert line in said
    (found,) = objects(mails("dead", "show", 1, "--json"))
    assert (found["item"]["id"], found["alike"], found["attempts"][0]["outcome"]) == (1, 2, "failed")


def test_named_letters_run_again_and_replays_are_shown(mails: Relevo, engine: Engine) -> None:
    assert ok(mails("dead", "retry", 2, 1, 2, "--note", "again")) == "To run again: items 1, 2.\n"
    assert states(engine) == ["waiting", "waiting", "failed", "failed", "waiting", "failed"]
    assert "  replays: 1\n" in ok(mails("show", 1))
    with engine.begin() as tx:
        assert history(tx, 1).events[-1].reason == "again"
        tx.execute(DIE, {"ids": [1], "errors": ["no"]})
    assert objects(mails("dead", "list", "--json"))[0]["replays"] == 1
    assert objects(mails("dead", "retry", 1, "--json")) == [{"verb": "retry", "decided": 1, "meanwhile": 0}]


@pytest.mark.parametrize(("verb", "said"), [("retry", "To run again"), ("skip", "Skipped"), ("resolve", "Resolved")])
def test_all_of_a_group_are_decided_at_once(mails: Relevo, engine: Engine, verb: str, said: str) -> None:
    group = group_of(mails, 1)
    to = {"retry": "waiting", "skip": "skipped", "resolve": "resolved"}[verb]
    assert ok(mails("dead", verb, "--plan", "mails", "--group", group, "--note", "n")) == f"{said}: 2 dead letters.\n"
    assert states(engine) == [to, to, "failed", "failed", "waiting", "failed"]
    assert ok(mails("dead", verb, "--group", group, "--note", "n")) == f"{said}: 1 dead letter.\n"
    assert ok(mails("dead", verb, "--plan", "mails", "--note", "n")) == f"{said}: 1 dead letter.\n"
    assert states(engine) == [to] * 4 + ["waiting", "failed"]
    assert mails("dead", verb, "--group", group, "--note", "n").refusal().startswith("group: there are no dead letters of group ")


@pytest.mark.parametrize(
    ("options", "args", "kwargs"),
    [
        (["--args", "[1, 2]"], [1, 2], {}),
        (["--args", '{"to": "b"}'], [], {"to": "b"}),
        (["--kwargs", '{"to": "b"}'], [7], {"to": "b"}),
        (["--args", "[1]", "--kwargs", '{"to": "b"}'], [1], {"to": "b"}),
        (["--args", "[]", "--kwargs", "{}"], [], {}),
    ],
)
def test_one_runs_again_with_other_arguments(mails: Relevo, engine: Engine, options: list[str], args: object, kwargs: object) -> None:
    assert ok(mails("dead", "retry", 1, *options)) == "To run again: item 1.\n"
    with engine.begin() as tx:
        item = items.get(tx, 1)
    assert (item.state, item.args, item.kwargs, item.replays) == (State.WAITING, args, kwargs, 1)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("retry 1 99", "There is no item 99"),
        ("skip 99", "There is no item 99"),
        ("show 99", "There is no item 99"),
        ("retry 1 5", "Item 5 is no dead letter: it is waiting, so it is queued already."),
        ("resolve 1 5 --note n", "Item 5 is no dead letter: it is waiting."),
        ("skip 1 6", "Item 6 is no dead letter: it belongs to the serial plan 'line'; skip it as an item of that plan."),
        ("show 6", "Item 6 is no dead letter: it belongs to the serial plan 'line'; retry, skip or resolve it as an item of that plan."),
        ("show 5", "Item 5 is no dead letter: it is waiting."),
        ("retry x", "Invalid value for '[ITEM...]': 'x' is not an item's number"),
        ("retry", "letters: must be named in one way"),
        ("retry 1 --plan mails", "letters: must be named in one way"),
        ("skip --plan nobody", "There is no plan 'nobody'"),
        ("skip --plan line", "Plan 'line' is a serial plan, so it has no dead letters"),
        ("list line", "Plan 'line' is a serial plan, so it has no dead letters"),
        ("list nobody", "There is no plan 'nobody'"),
        ("list --group x", "group: 'x' is none"),
        ("list --after x", "cursor: 'x' is none"),
        ("list --groups --after 1:1", "--after: does not go with --groups"),
        ("list --limit 0", "Invalid value for '--limit'"),
        ("skip --group 000000000000", "group: there are no dead letters of group '000000000000' there"),
        ("resolve 1", "Missing option '--note'"),
        ("resolve 1 --note ", "note: is empty"),
        ("skip 1 --actor ", "actor: is empty"),
        ("retry 1 --args {", "--args: is not JSON"),
        ("retry 1 --args 3", "--args: must be a JSON object"),
        ("retry 1 --kwargs [1]", "--kwargs: must be a JSON object"),
        ("retry 1 --kwargs []", "--kwargs: must be a JSON object"),
        ('retry 1 --args {"a":1} --kwargs {}', "--kwargs: does not go with an object in --args"),
        ('retry 1 --args ["\\u0000"]', "args: holds a NUL character"),
        ("retry 1 2 --args []", "--args: goes with one item"),
        ("retry --plan mails --kwargs {}", "--kwargs: goes with one item"),
        ("retry 6 --args []", "Item 6 is no dead letter: it belongs to the serial plan 'line'; retry it as an item of that plan."),
    ],
)  # fmt: skip
def test_a_wrong_call_is_one_sentence_and_changes_nothing(mails: Relevo, engine: Engine, call: str, sentence: str) -> None:
    with engine.begin() as tx:
        before = tx.execute(text("select count(*) from relevo.event")).scalar_one()
    answer = mails("dead", *call.split(" "))
    assert answer.refusal().startswith(sentence)
    assert answer.code == 2
    assert states(engine) == BEFORE
    with engine.begin() as tx:
        assert tx.execute(text("select count(*) from relevo.event")).scalar_one() == before


HOSTILE = (
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")
    + "[red]x[/red] \u202etxt\x1b[2J\x07 <b>&amp; $(id) %s {} "
    + "y" * 9_950
)


def test_what_letters_hold_is_shown_literally(relevo: Relevo, engine: Engine) -> None:
    with engine.begin() as tx:
        stream(tx)
        hostile, neighbour = die(tx, [f"Odd: {HOSTILE}", "KeyError: 'x'"], title=HOSTILE, args=[HOSTILE], kwargs={HOSTILE: "v"})
        audit.record(tx, actor="worker w", action="refuse", reason=HOSTILE, after={"size": 1, "preview": HOSTILE + "\0\ud83d"})
    for call in (["list"], ["list", "--groups"], ["show", str(hostile)]):
        said = ok(relevo("dead", *call))
        number = "#" if "--groups" in call else "2J"
        assert f"[red]x[/red] \\u202etxt\\x1b[{number}\\x07 <b>&amp; $(id)" in said
        assert not {"\x1b", "\u202e", "\x07"} & set(said)
    found = objects(relevo("dead", "list", "--json"))
    assert found[0]["title"] == HOSTILE[:500]
    assert found[-1]["preview"] == HOSTILE + "\ufffd\ufffd"
    assert json.loads(json.dumps(objects(relevo("dead", "show", hostile, "--json"))[0]["item"]["kwargs"])) == {HOSTILE: "v"}
    ok(relevo("dead", "retry", hostile, "--note", HOSTILE))
    with engine.begin() as tx:
        assert (state(tx, hostile), state(tx, neighbour)) == (State.WAITING, State.FAILED)
        assert history(tx, hostile).events[-1].actor != ACTOR
