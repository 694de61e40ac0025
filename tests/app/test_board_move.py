"""Moving on the board without script: a row's own form, the dialog of one or many, and what a stale or wrong move is answered."""

import httpx
import pytest
from sqlalchemy import Engine

from ordering import move
from ordering.model import First
from tests.app.boards import Line
from tests.app.pages import alert, done, get, refused, region, sound, words


@pytest.fixture
def line(http_engine: Engine) -> Line:
    return Line(http_engine)


def button(page: str, item_id: int, word: str) -> str:
    """What the button of a row's menu sends as `to`."""
    form = region(page, f"a{item_id}")
    (found,) = [
        part.split('">')[0] for part in form.split('name="to" value="')[1:] if word in words(part.split("</button>")[0].partition('">')[2])
    ]
    return found


@pytest.mark.parametrize(
    ("place", "word", "order"),
    [
        (3, "Move up", [1, 3, 2, 4, 5]),
        (2, "Move up", [2, 1, 3, 4, 5]),
        (3, "Move down", [1, 2, 4, 3, 5]),
        (4, "Move down", [1, 2, 3, 5, 4]),
        (4, "Move to the top", [4, 1, 2, 3, 5]),
        (2, "Move to the end", [1, 3, 4, 5, 2]),
    ],
)
def test_the_buttons_of_a_row(api: httpx.Client, line: Line, place: int, word: str, order: list[int]) -> None:
    item_id = line.id_of(place)
    to = button(get(api, line.path), item_id, word)
    page = done(api, f"/items/{item_id}/move", {"to": to, "back": line.path})
    assert line.places() == order
    assert [page.index(f'id="i{line.id_of(each)}"') for each in order] == sorted(page.index(f'id="i{line.id_of(each)}"') for each in order)
    sound(page)


def test_the_first_has_no_way_up_and_the_last_none_down(api: httpx.Client, line: Line) -> None:
    page = get(api, line.path)
    assert "Move up" not in region(page, f"a{line.id_of(1)}")
    assert "Move down" not in region(page, f"a{line.id_of(5)}")


def test_a_stale_move_is_refused_with_the_fresh_order(api: httpx.Client, line: Line) -> None:
    to = button(get(api, line.path), line.id_of(4), "Move up")
    with line.engine.begin() as tx:
        move.move(tx, line.id_of(5), First(), actor="somebody else")
        move.move(tx, line.id_of(2), First(), actor="somebody else")
    page = refused(api, f"/items/{line.id_of(4)}/move", {"to": to, "back": line.path}, 409)
    assert "order has changed" in alert(page)
    assert "Nothing was moved" in alert(page)
    assert line.places() == [2, 5, 1, 3, 4]
    at = [page.index(f'id="i{line.id_of(each)}"') for each in line.places()]
    assert at == sorted(at)
    assert f'value="{line.path}"' in region(page, f"a{line.id_of(4)}")  # the fresh page's forms lead back to the plan
    sound(page)


def test_the_fields_that_a_script_sends(api: httpx.Client, line: Line) -> None:
    done(api, f"/items/{line.id_of(5)}/move", {"before": line.id_of(2), "seen": line.id_of(1), "back": line.path})
    assert line.places() == [1, 5, 2, 3, 4]
    done(api, f"/items/{line.id_of(1)}/move", {"after": line.id_of(4), "seen": "end", "back": line.path})
    assert line.places() == [5, 2, 3, 4, 1]
    page = refused(api, f"/items/{line.id_of(3)}/move", {"after": line.id_of(4), "seen": "end", "back": line.path}, 409)
    assert "order has changed" in alert(page)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"to": "sideways"},
        {"to": "before"},
        {"to": "before x"},
        {"to": "after 1 2 3"},
        {"to": "first 1"},
        {"after": "x"},
        {"after": "1", "before": "2"},
    ],
)
def test_a_move_that_says_nothing_useful(api: httpx.Client, line: Line, fields: dict[str, str]) -> None:
    page = refused(api, f"/items/{line.id_of(2)}/move", {**fields, "back": line.path}, 422)
    assert alert(page)
    assert line.places() == [1, 2, 3, 4, 5]


def test_what_is_out_does_not_move(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, start=True)
    line.run()
    page = refused(api, f"/items/{line.id_of(1)}/move", {"to": "last", "back": line.path}, 409)
    assert "is running" in alert(page)
    neighbour = refused(api, f"/items/{line.id_of(3)}/move", {"to": f"before {line.id_of(1)}", "back": line.path}, 409)
    assert "cannot be the neighbour" in alert(neighbour)
    head = region(page, f"i{line.id_of(1)}")
    assert "grip" not in head
    assert "Keeps its place while it is out." in words(head)


def test_the_dialog_moves_many_in_their_order(api: httpx.Client, line: Line) -> None:
    ids = [line.id_of(5), line.id_of(3)]
    page = get(api, f"{line.path}?ask=move&item={ids[0]}&item={ids[1]}")
    dialog = words(region(page, "ask"))
    assert "Move 2 items" in dialog
    assert dialog.index("Item 3") < dialog.index("Item 5")
    sound(page)
    sent = [("item", each) for each in ids]
    done(api, f"{line.path}/move", [*sent, ("place", "first"), ("back", line.path)])
    assert line.places() == [3, 5, 1, 2, 4]
    done(api, f"{line.path}/move", [*sent, ("place", "after"), ("neighbour", line.id_of(2)), ("back", line.path)])
    assert line.places() == [1, 2, 3, 5, 4]
    done(api, f"{line.path}/move", [*sent, ("place", "before"), ("neighbour", line.id_of(1)), ("back", line.path)])
    assert line.places() == [3, 5, 1, 2, 4]
    done(api, f"{line.path}/move", [*sent, ("place", "last"), ("back", line.path)])
    assert line.places() == [1, 2, 4, 3, 5]


@pytest.mark.parametrize(
    ("position", "order"),
    [("2", [1, 5, 2, 3, 4]), ("2.5", [1, 2, 5, 3, 4]), ("2,5", [1, 2, 5, 3, 4]), ("0", [5, 1, 2, 3, 4]), ("99", [1, 2, 3, 4, 5])],
)
def test_to_a_position(api: httpx.Client, line: Line, position: str, order: list[int]) -> None:
    done(api, f"{line.path}/move", {"item": line.id_of(5), "place": "position", "position": position, "back": line.path})
    assert line.places() == order


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"place": "position", "position": "x"}, "position"),
        ({"place": "position", "position": "9" * 40}, "position"),
        ({"place": "position"}, "position"),
        ({"place": "after"}, "neighbour"),
        ({"place": "after", "neighbour": "x"}, "neighbour"),
        ({"place": "nowhere"}, "place"),
        ({}, "place"),
    ],
)
def test_a_refused_dialog_stays_open_with_what_was_written(api: httpx.Client, line: Line, fields: dict[str, str], field: str) -> None:
    sent = {"item": line.id_of(2), "ask": "move", "back": line.path, **fields}
    page = refused(api, f"{line.path}/move", sent, 422)
    assert alert(page).startswith(f"{field}:")
    dialog = region(page, "ask")
    assert "Item 2" in words(dialog)
    assert f'value="{fields["position"]}"' in dialog if fields.get("position") else True
    sound(page)
    assert line.places() == [1, 2, 3, 4, 5]


def test_part_of_them_is_done_and_the_rest_named(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, start=True)
    line.run()
    page = done(api, f"{line.path}/move", [("item", line.id_of(1)), ("item", line.id_of(4)), ("place", "first"), ("back", line.path)])
    assert line.places() == [4, 2, 3, 5]
    assert "Item 1" in words(region(page, "left"))
    assert "running" in words(region(page, "left"))


def test_nothing_is_ticked_or_too_much(api: httpx.Client, line: Line) -> None:
    assert alert(refused(api, f"{line.path}/move", {"place": "first", "back": line.path}, 422)).startswith("item:")
    many = [("item", each) for each in range(1, 502)]
    assert "at most 500" in alert(refused(api, f"{line.path}/move", [*many, ("place", "first"), ("back", line.path)], 422))


def test_an_item_of_another_plan_is_left(api: httpx.Client, line: Line) -> None:
    other = Line(line.engine, 1)
    page = refused(api, f"{line.path}/move", {"item": line.id_of(1), "place": "after", "neighbour": other.id_of(1), "back": line.path}, 409)
    assert "cannot be the neighbour" in alert(page)


def test_moves_of_a_stream(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, concurrency=4)
    to = button(get(api, line.path), line.id_of(3), "Move up")
    done(api, f"/items/{line.id_of(3)}/move", {"to": to, "back": line.path})
    assert line.places() == [1, 3, 2, 4, 5]
