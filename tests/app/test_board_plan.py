"""A plan's page as it is read: parts of a long line, filters, postponed and settled items, and what jobs wrote as nothing but text."""

from datetime import timedelta

import httpx
import pytest
from sqlalchemy import Engine, text

from ordering import decision, head
from ordering.decide import Failed
from ordering.model import OnFailure, State
from tests.app.boards import Line
from tests.app.pages import get, region, sound, words
from tests.ordering import acts

HOSTILE = {
    "markup": "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&",
    "long": "x" * 10_000,
    "bidi": "abc\N{RIGHT-TO-LEFT OVERRIDE}def\N{RIGHT-TO-LEFT ISOLATE}ghi",
    "emoji": "\N{BROOM}\N{PARTY POPPER}",
    "template": "{{ 7 * 7 }}{% raw %}${x}",
    "lines": "one\r\ntwo\ttab",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_titles_are_text(api: httpx.Client, http_engine: Engine, name: str) -> None:
    line = Line(http_engine, [HOSTILE[name], "neighbour"], start=True)
    with http_engine.begin() as tx:
        tx.execute(text("update relevo.plan set title = left(:title, 500) where id = :id"), {"title": HOSTILE[name], "id": line.id})
    line.fail(Failed("E", HOSTILE[name]))
    for path in (line.path, f"{line.path}?ask=resolve&item={line.id_of(1)}", f"{line.path}?text=neighbour", f"/?text={line.name}"):
        page = get(api, path)
        sound(page)
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "neighbour" in words(page)
    assert len(get(api, line.path)) < 60_000
    shown = words(region(get(api, line.path), f"t{line.id_of(1)}"))
    assert shown.rstrip("…") in " ".join(HOSTILE[name].split())
    assert shown


def test_a_long_line_comes_in_parts(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, 230)
    page = get(api, line.path)
    sound(page)
    assert region(page, "line").count("<li ") == 100
    assert f'data-next="{line.id_of(101)}"' in page
    assert f"after {line.id_of(101)}" in region(page, f"a{line.id_of(100)}")
    assert f'{line.path}?rows=200"' in region(page, "more")
    more = get(api, f"{line.path}?rows=200")
    assert region(more, "line").count("<li ") == 200
    rest = get(api, f"{line.path}?rows=300")
    assert region(rest, "line").count("<li ") == 230
    assert 'id="more"' not in rest
    behind = get(api, f"{line.path}?after=150:{line.id_of(150)}")
    rows = region(behind, "line")
    assert rows.count("<li ") == 80
    assert "data-later" in rows
    assert "Move up" not in region(behind, f"a{line.id_of(151)}")
    assert "From the top" in words(region(behind, "items"))
    assert "Nothing waits behind" in words(get(api, f"{line.path}?after=999:999"))


@pytest.mark.parametrize(
    "query", ["rows=0", "rows=301", "rows=x", "after=x", "after=NaN:1", "state=nothing", "item=x", "text=%00", "kind=" + "x" * 101]
)
def test_a_query_that_is_none(api: httpx.Client, http_engine: Engine, query: str) -> None:
    line = Line(http_engine, 1)
    page = get(api, f"{line.path}?{query}", 422)
    sound(page)


def test_filters(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, ["Alpha", "beta alpha", "gamma"], item={"kind": "audit"}, start=True)
    line.fail()
    page = get(api, f"{line.path}?text=ALPHA")
    sound(page)
    found = region(page, "line")
    assert found.count("<li ") == 2
    assert f'action="/items/{line.id_of(1)}/retry"' in found
    assert 'class="grip"' not in found
    assert 'value="ALPHA"' in region(page, "filter")
    assert region(get(api, f"{line.path}?kind=audit&state=waiting"), "line").count("<li ") == 2
    none = get(api, f"{line.path}?kind=fix")
    assert "No item matches" in words(region(none, "items"))
    with http_engine.begin() as tx:
        decision.skip(tx, line.id_of(1), actor="x")
    settled = get(api, f"{line.path}?state=settled")
    assert "Skipped" in words(region(settled, f"i{line.id_of(1)}"))
    assert '<option value="settled" selected>' in region(settled, "filter")


def test_every_state_has_its_place(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, 0, start=True, on_failure=OnFailure.CONTINUE)
    ids = {}
    with http_engine.begin() as tx:
        for state in (State.SUCCEEDED, State.SKIPPED, State.RESOLVED, State.CANCELLED, State.FAILED, State.POSTPONED, State.RUNNING):
            ids[state] = acts.bring(tx, state, line.name, title=f"the {state} one", max_attempts=1)
        (ids[State.WAITING],) = acts.put(tx, plan=line.name, title="the waiting one")
    page = get(api, line.path)
    sound(page)
    for state, place in [(State.FAILED, "unresolved"), (State.RUNNING, "head"), (State.WAITING, "line"), (State.POSTPONED, "asleep")]:
        assert f"the {state} one" in words(region(page, place))
    done = words(region(page, "settled"))
    assert "4 settled in the latest run: 1 succeeded, 1 skipped, 1 resolved, 1 cancelled" in done
    assert "1 waiting · 1 postponed" in words(region(page, "counts"))
    trail = words(region(page, "trail"))
    assert "cancelled the cancelled one" in trail


def test_a_delayed_first_item_says_until_when(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, 2, start=True, item={"delay": timedelta(hours=3)})
    head = words(region(get(api, line.path), "head"))
    assert "The line waits for its first item, until" in head
    assert "Moving another one in front lets that one go." in head


def test_a_stream_shows_what_is_out(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, 6, concurrency=3)
    with http_engine.begin() as tx:
        head.feed(tx, line.id, serial=False)
    page = get(api, line.path)
    sound(page)
    out = words(region(page, "out-now"))
    assert "concurrency 3" in out
    assert "handed to the broker" in out
    assert 'id="head"' not in page
    assert 'id="decide"' not in page
    assert "data-stream" in page
