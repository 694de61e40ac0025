"""What differs between two JSON values."""

from app.changes import MOST, Change, changes


def test_places_are_named() -> None:
    old = {"a": {"b": [1, 2]}, "gone": "x", "same": [True]}
    new = {"a": {"b": [1, 3, {"c": None}]}, "same": [True], "new": 1.5}
    assert changes(old, new) == [
        Change("a.b[1]", "2", "3"),
        Change("a.b[2]", None, '{"c": null}'),
        Change("gone", '"x"', None),
        Change("new", None, "1.5"),
    ]


def test_what_is_the_same_is_not_told_and_kinds_differ() -> None:
    assert changes({"a": 1}, {"a": 1}) == []
    assert changes({"a": 1}, {"a": True}) == [Change("a", "1", "true")]
    assert changes([], {}) == [Change("…", "[]", "{}")]


def test_long_ones_are_cut() -> None:
    (change,) = changes(["x" * 500], ["y" * 500])
    assert change.old is not None
    assert len(change.old) == 200
    assert change.old.endswith("…")
    assert len(changes(list(range(1000)), [])) == MOST
