"""Text at the door: what Postgres cannot store is refused or replaced visibly, and the rest arrives as it was."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from ordering.errors import Invalid
from ordering.text import checked, checked_json, storable, storable_json, visible

ANY_TEXT = st.text(st.characters(codec=None), max_size=40)  # lone surrogates and NUL among them
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), ANY_TEXT)
ANY_JSON = st.recursive(SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(ANY_TEXT, inner, max_size=4)))


def storable_by_postgres(tx: Connection, statement: str, value: str) -> Any:
    """What Postgres gives back, or None if it refuses the value."""
    try:
        with tx.begin_nested():
            return tx.execute(text(statement), {"value": value}).scalar_one()
    except (DBAPIError, UnicodeEncodeError):
        return None


@given(value=ANY_TEXT)
def test_what_is_accepted_is_what_postgres_stores(tx: Connection, value: str) -> None:
    found = storable_by_postgres(tx, "select cast(:value as text)", value)
    if found is None:
        with pytest.raises(Invalid, match=r"^title: holds a NUL character or half a surrogate pair"):
            checked("title", value, 40)
    else:
        assert checked("title", value, 40) == found == value


@given(value=ANY_JSON)
def test_json_that_is_accepted_comes_back_as_it_was(tx: Connection, value: Any) -> None:
    plain = storable_by_postgres(tx, "select cast(:value as jsonb)::text", json.dumps(value))
    if plain is None or _has_surrogate(value):
        with pytest.raises(Invalid, match=r"^args: "):
            checked_json("args", value, 10**6)
    else:
        written = checked_json("args", value, 10**6)
        assert storable_by_postgres(tx, "select cast(:value as jsonb)::text", written) == plain


def _has_surrogate(value: Any) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in json.dumps(value, ensure_ascii=False))


@given(value=ANY_JSON)
def test_what_a_body_produced_is_made_storable_and_changed_no_more_than_that(tx: Connection, value: Any) -> None:
    made = storable_json(value)
    checked_json("result", made, 10**6)
    assert storable_json(made) == made
    try:
        checked_json("result", value, 10**6)
    except Invalid:
        assert "\ufffd" in json.dumps(made, ensure_ascii=False)
    else:
        assert made == value


@given(value=ANY_TEXT, limit=st.integers(2, 30))
def test_an_error_is_cut_in_the_middle_and_says_so(value: str, limit: int) -> None:
    made = storable(value, limit)
    checked("error", made, 10**6)
    if len(value) > limit:
        assert f"… {len(value) - 2 * (limit // 2)} characters left out …" in made
        assert made[0] in (value[0], "\ufffd")
        assert made[-1] in (value[-1], "\ufffd")
    else:
        assert len(made) == len(value)


@pytest.mark.parametrize("value", ["\\u0000", "a\\\\u0000", "\\\\u0000\\"])
def test_a_backslash_in_front_of_u0000_is_no_nul(tx: Connection, value: str) -> None:
    written = checked_json("args", [value], 100)
    assert tx.execute(text("select cast(:value as jsonb)"), {"value": written}).scalar_one() == [value]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([object()], "is not JSON"),
        ([{1, 2}], "is not JSON"),
        ([float("nan")], "is not JSON"),
        ([float("inf")], "is not JSON"),
        ({(1, 2): 3}, "is not JSON"),
        ([b"bytes"], "is not JSON"),
        (["\x00"], "holds a NUL"),
        ({"\ud800": 1}, "holds a NUL character or half a surrogate"),
        (["x" * 99], "is larger than 100 bytes"),
        (["ü" * 49], "is larger than 100 bytes"),
        (["€" * 33], "is larger than 100 bytes"),
    ],
)
def test_what_is_no_json_or_too_large_is_refused(value: Any, problem: str) -> None:
    with pytest.raises(Invalid) as refusal:
        checked_json("args", value, 100)
    assert str(refusal.value).startswith(f"args: {problem}")


@pytest.mark.parametrize("value", [["x" * 96], ["ü" * 48], ["€" * 32], [], {}, [[]]])
def test_what_fits_exactly_is_accepted(value: Any) -> None:
    assert json.loads(checked_json("args", value, 100)) == value


def test_endless_nesting_is_refused() -> None:
    nested: list[Any] = []
    nested.append(nested)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (nested, deep):
        with pytest.raises(Invalid, match=r"^args: is not JSON"):
            checked_json("args", value, 10**6)


@pytest.mark.parametrize("value", ["\u200b", "\u00ad\u2060", " ", "\t\n", "\u3164\u200b"[1:], "\U000e0041", "\u0301"])
def test_what_cannot_be_seen_is_no_title(value: str) -> None:
    with pytest.raises(Invalid, match=r"^title: holds only invisible characters"):
        visible("title", value, 100)


@pytest.mark.parametrize("value", ["", "a", "5", "é", "漢", "😀", "-", "\u200bx", "  .", "ـ", "½"])
def test_what_can_be_seen_is_a_title(value: str) -> None:
    assert visible("title", value, 100) == value


def test_a_text_at_its_limit_is_accepted_and_one_more_is_not() -> None:
    assert checked("title", "é" * 100, 100) == "é" * 100
    with pytest.raises(Invalid, match=r"^title: has 101 characters; at most 100 are allowed"):
        checked("title", "é" * 101, 100)
