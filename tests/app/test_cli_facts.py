"""The commands on facts: what they do, what they print, what they refuse."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from ordering import db, subscriptions
from ordering.subscriptions import Subscription
from tests import servers
from tests.app.commands import Relevo, objects, ok
from tests.ordering.acts import ACTOR


@pytest.fixture
def hearing(relevo: Relevo, engine: Engine) -> Relevo:
    """Two tasks hear `invoice.issued`, one of them in the stream `drawing`."""
    with engine.begin() as tx:
        wanted = [Subscription("invoice.issued", "draw", "drawing"), Subscription("invoice.issued", "notify")]
        subscriptions.subscribe_all(tx, wanted, actor=ACTOR)
    return relevo


def test_a_fact_is_emitted_and_heard(hearing: Relevo) -> None:
    assert ok(hearing("emit", "invoice.issued", '{"id": 7}')) == "Emitted fact 1; 2 tasks hear it.\n"
    assert ok(hearing("emit", "invoice.paid")) == "Emitted fact 2; nobody hears it.\n"
    shown = ok(hearing("fact", 1))
    assert shown.startswith('Fact 1: invoice.issued\n  data: {"id": 7}\n  emitted: 2')
    assert ", heard by 2\nItems:\n" in shown
    assert [line.split()[1:4] for line in shown.splitlines()[-2:]] == [["drawing", "draw", "waiting"], ["default", "notify", "waiting"]]
    item = shown.splitlines()[-1].split()[0]
    assert "  fact: 1\n" in ok(hearing("show", item))
    (whole,) = objects(hearing("fact", 1, "--json"))
    assert (whole["type"], whole["data"], whole["key"], [each["task"] for each in whole["items"]]) == (
        "invoice.issued",
        {"id": 7},
        None,
        ["draw", "notify"],
    )


def test_the_same_key_again_is_the_same_fact(hearing: Relevo) -> None:
    assert objects(hearing("emit", "invoice.issued", "[1]", "--key", "k", "--json")) == [{"id": 1, "heard": 2, "new": True}]
    assert objects(hearing("emit", "invoice.issued", "[1]", "--key", "k", "--json")) == [{"id": 1, "heard": 2, "new": False}]
    assert ok(hearing("emit", "invoice.issued", "[1]", "--key", "k")) == "Fact 1 has this type, key and data already.\n"
    refused = hearing("emit", "invoice.issued", "[2]", "--key", "k")
    assert (refused.code, refused.refusal()) == (
        2,
        "key: k was used for another fact of type invoice.issued; use another key, or the same data.",
    )


def test_facts_are_listed_and_filtered(hearing: Relevo) -> None:
    for number in range(3):
        ok(hearing("emit", "invoice.issued", number))
        ok(hearing("emit", "other", '"\\u001b[31mred"', "--key", number))
    header, first, *_ = ok(hearing("facts")).splitlines()
    assert header.split() == ["FACT", "TYPE", "AT", "HEARD", "KEY", "DATA"]
    assert first.split()[:2] == ["6", "other"]
    assert "\x1b" not in ok(hearing("facts"))
    assert [each["id"] for each in objects(hearing("facts", "--type", "invoice.issued", "--json"))] == [5, 3, 1]
    assert [each["id"] for each in objects(hearing("facts", "--unheard", "--json"))] == [6, 4, 2]
    assert ok(hearing("facts", "--limit", 2)).endswith("More: add --after 5\n")
    assert [each["id"] for each in objects(hearing("facts", "--limit", 2, "--after", 5, "--json"))] == [4, 3]
    assert ok(hearing("facts", "--type", "nothing", "--json")) == ""


def test_subscriptions_are_listed_and_removed(hearing: Relevo, engine: Engine) -> None:
    ok(hearing("emit", "invoice.issued"))
    header, draw, notify = ok(hearing("subscriptions")).splitlines()
    assert header.split() == ["TYPE", "TASK", "PLAN", "WAITING", "OUT", "UNRESOLVED", "LAST"]
    assert draw.split()[:6] == ["invoice.issued", "draw", "drawing", "1", "0", "0"]
    assert notify.split()[:3] == ["invoice.issued", "notify", "default"]
    said = ok(hearing("unsubscribe", "invoice.issued", "draw", "--reason", "why", "--actor", "ana"))
    assert said.startswith("draw no longer hears invoice.issued (a worker whose task still says `on=`")
    assert [each["task"] for each in objects(hearing("subscriptions", "--json"))] == ["notify"]
    with engine.begin() as tx:
        last = tx.execute(text("select actor, action, reason from relevo.event order by id desc limit 1")).one()
    assert tuple(last) == ("ana", "unsubscribe", "why")
    again = hearing("unsubscribe", "invoice.issued", "draw")
    assert (again.code, again.refusal()) == (
        2,
        "'invoice.issued' is heard by notify, not by 'draw'; the list of subscriptions says who hears what.",
    )
    assert objects(hearing("unsubscribe", "invoice.issued", "notify", "--json")) == [
        {"type": "invoice.issued", "task": "notify", "plan": "default"}
    ]


@pytest.fixture(scope="module")
def unchanged(server_url: str, template: str) -> Iterator[Engine]:
    """One database for all wrong calls, since they change nothing."""
    with servers.database(server_url, template) as url:
        made = db.engine(url)
        yield made
        made.dispose()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (("emit",), "Missing argument 'TYPE'"),
        (("emit", ""), "type: '' is not the name of a fact"),
        (("emit", "no name"), "type: 'no name' is not the name of a fact"),
        (("emit", "a", "{"), "DATA-JSON: is not JSON"),
        (("emit", "a", "[" * 100_000), "DATA-JSON: is not JSON"),
        (("emit", "a", "[" * 101 + "]" * 101), "data: is nested more than 100 levels deep"),
        (("emit", "a", "NaN"), "data: is not JSON"),
        (("emit", "a", '"\\u0000"'), "data: holds a NUL character"),
        (("emit", "a", '"\\ud83d"'), "data: holds a NUL character or half a surrogate pair"),
        (("emit", "a", '"a\udcffb"'), "The argument '\"a\\xffb\"' holds bytes that are no text"),
        (("emit", "a\udcffb"), "The argument 'a\\xffb' holds bytes that are no text"),
        (("emit", "a", "{}", "--key", ""), "key: is empty"),
        (("emit", "a", "{}", "--key", "\udcff"), "The argument of --key '\\xff' holds bytes that are no text"),
        (("facts", "--type", "a b"), "type: 'a b' is not the name of a fact"),
        (("facts", "--limit", "-1"), "Invalid value for '--limit'"),
        (("facts", "--after", "x"), "Invalid value for '--after': 'x' is not a fact's number"),
        (("fact", "99"), "There is no fact 99; the list of facts has the latest."),
        (("fact", "0"), "Invalid value for 'FACT': '0' is not a fact's number"),
        (("unsubscribe", "a", "b"), "'a' is heard by no task, not by 'b'"),
        (("unsubscribe", "a"), "Missing argument 'TASK'"),
        (("unsubscribe", "a", "\udcff"), "The argument '\\xff' holds bytes that are no text"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_one_sentence_and_changes_nothing(
    unchanged: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: tuple[str, ...], sentence: str
) -> None:
    monkeypatch.setenv("RELEVO_DATABASE_URL", unchanged.url.render_as_string(hide_password=False))
    answer = Relevo(capsys)(*call)
    assert answer.refusal().startswith(sentence)
    assert answer.code == 2
    with unchanged.begin() as tx:
        assert tx.execute(text("select (select count(*) from relevo.fact), (select count(*) from relevo.event)")).one() == (0, 0)
