"""Find over all plans, by id, key and title."""

import pytest
from sqlalchemy import Connection

from ordering import find
from ordering.errors import Invalid
from tests.ordering.acts import plan, put


@pytest.fixture
def ids(tx: Connection) -> list[int]:
    """Two plans with three items."""
    plan(tx, "line", title="Release train")
    plan(tx, "mails", concurrency=4)
    return [
        *put(tx, title="Rotate the signing key", key="rotate-2030"),
        *put(tx, plan="mails", title="Rotate the logs 🪵", key="other"),
        *put(tx, plan="mails", title="100% _sure_", key="rotate-2030"),
    ]


def found(tx: Connection, wanted: str, limit: int = 10) -> list[int]:
    return [each.id for each in find.find(tx, wanted, limit=limit).items]


def test_an_id_comes_first_then_keys_then_titles(tx: Connection, ids: list[int]) -> None:
    assert found(tx, f" {ids[1]} ")[0] == ids[1]
    assert found(tx, f"#{ids[0]}")[0] == ids[0]
    assert found(tx, "rotate-2030") == [ids[2], ids[0]]
    assert found(tx, "ROTATE the") == [ids[1], ids[0]]
    assert found(tx, "🪵") == [ids[1]]
    assert found(tx, "% _sure_") == [ids[2]]
    assert found(tx, "nowhere") == []
    assert found(tx, str(2**63)) == []
    assert found(tx, "9" * 19) == []


def test_plans_by_name_and_title(tx: Connection, ids: list[int]) -> None:
    assert [each.name for each in find.find(tx, "TRAIN", limit=10).plans] == ["line"]
    assert [each.name for each in find.find(tx, "ail", limit=10).plans] == ["mails"]


def test_it_is_bounded_and_says_so(tx: Connection, ids: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    result = find.find(tx, "rotate", limit=1)
    assert ([each.id for each in result.items], result.more, result.scanned) == ([ids[2]], True, False)
    monkeypatch.setattr(find, "SCAN", 2)
    assert found(tx, "signing") == []
    assert find.find(tx, "signing", limit=1).scanned


@pytest.mark.parametrize("wanted", ["", "  ", "nul\0", "x" * 501])
def test_what_cannot_be_looked_for(tx: Connection, wanted: str) -> None:
    with pytest.raises(Invalid) as caught:
        find.find(tx, wanted, limit=10)
    assert caught.value.field == "q"
