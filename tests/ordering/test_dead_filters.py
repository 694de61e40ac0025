"""Dead letters of one task, or that hold a text: listed, counted, grouped and decided alike."""

import pytest
from sqlalchemy import Connection

from ordering import clock, dead, dead_decision
from ordering.dead_decision import Verb
from ordering.errors import Invalid
from tests.ordering.acts import ACTOR, ids
from tests.ordering.letters import die, stream


@pytest.fixture
def letters(tx: Connection) -> list[int]:
    stream(tx)
    return [
        *die(tx, ["ValueError: row 7", "ValueError: row 8", "Refused: no"], title="To Ops"),
        *die(tx, ["Refused: no"], title="To Deputy", kwargs={"to": "ZOË"}),
    ]


def found(tx: Connection, **filters: str) -> list[int]:
    chosen = dead.which(tx, **filters)
    listed = ids(dead.letters(tx, chosen, limit=10).letters)
    assert dead.count(tx, chosen) == len(listed) == sum(each.count for each in dead.groups(tx, chosen, limit=10))
    return listed


def test_a_text_is_looked_for_in_error_title_and_arguments_in_any_case(tx: Connection, letters: list[int]) -> None:
    assert found(tx, containing="valueerror") == letters[:2]
    assert found(tx, containing="row 8") == [letters[1]]
    assert found(tx, containing="to deputy") == [letters[3]]
    assert found(tx, containing="zoË") == [letters[3]]
    assert found(tx, containing="%") == []
    assert found(tx, containing="refused", plan="mails") == letters[2:]


def test_a_task(tx: Connection, letters: list[int]) -> None:
    assert found(tx, task="noop") == letters
    assert found(tx, task="other") == []


def test_all_of_a_filter_are_decided(tx: Connection, letters: list[int]) -> None:
    chosen = dead.which(tx, containing="ValueError", task="noop")
    batch = dead_decision.decide_batch(tx, Verb.RETRY, chosen, until=clock.now(tx), after=None, actor=ACTOR)
    assert (list(batch.done), batch.next) == (letters[:2], None)
    assert found(tx) == letters[2:]


@pytest.mark.parametrize("filters", [{"containing": "nul\0"}, {"containing": "x" * 201}, {"task": "x" * 201}, {"task": "\0"}])
def test_what_cannot_be_looked_for(tx: Connection, filters: dict[str, str]) -> None:
    with pytest.raises(Invalid) as caught:
        dead.which(tx, **filters)
    assert caught.value.field == ("text" if "containing" in filters else "task")
