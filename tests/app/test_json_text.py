"""JSON as people read it."""

import json

from hypothesis import given
from hypothesis import strategies as st

from app.json_text import editable, of_text, readable


def whole(value: object) -> str:
    return "".join(piece.text for piece in readable(value, 10**9).pieces)


def test_keys_texts_and_numbers_are_told_apart() -> None:
    found = [(piece.kind, piece.text) for piece in readable({"a": "b:", "n": [1, -2.5e-3, True, None]}).pieces if piece.kind]
    assert found == [("k", '"a"'), ("s", '"b:"'), ("k", '"n"'), ("n", "1"), ("n", "-0.0025"), ("n", "true"), ("n", "null")]


def test_what_is_long_is_cut_and_says_so() -> None:
    text = readable("x" * 50, 11)
    assert ("".join(piece.text for piece in text.pieces), text.length, text.left_out) == ('"' + "x" * 10, 52, 41)
    assert of_text('{"a": 1, "b', 20).left_out == 0


def test_what_turns_its_neighbours_is_shown_as_an_escape() -> None:
    written = whole({"\u202egpj": "\u200f \u2066 \x85 \ufeff 👩‍👧"})
    assert "\\u202egpj" in written
    assert not set(written) & set("\u202e\u200f\u2066\x85\ufeff")
    assert "👩‍👧" in written
    assert json.loads(written) == {"\u202egpj": "\u200f \u2066 \x85 \ufeff 👩‍👧"}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_nothing_is_lost(value: object) -> None:
    assert json.loads(whole(value)) == value
    assert json.loads(editable(value)) == value
    assert json.loads("".join(piece.text for piece in of_text(json.dumps(value), 10**9).pieces)) == value
