"""The stream of what happens: at once, once, in order; from where one left it; while Postgres is away; and to its end."""

import re
import time
from contextlib import ExitStack

import httpx
import pytest
from sqlalchemy import Engine, text

from app import audience, live, watch
from app.caller import Caller, Role
from app.problem import Refused
from ordering import db, head, plans
from tests.app.pages import get
from tests.app.processes import until
from tests.app.sse import Stream, listening
from tests.app.web import ok, problem, serving
from tests.cases.proxy import Proxy
from tests.patience import Stopwatch
from tests.servers import fresh_name


@pytest.fixture
def line(api: httpx.Client) -> tuple[str, list[int]]:
    """A plan of this test with four items; its name and their ids."""
    name = fresh_name("line")
    ok(api.post("/api/plans", json={"name": name}), 201)
    added = ok(
        api.post(f"/api/plans/{name}/items", json=[{"task": "http", "args": {"url": "http://x"}, "title": str(n)} for n in range(4)]), 201
    )
    return name, [each["id"] for each in added["items"]]


RECORD = text("""
    insert into relevo.event (actor, action, plan_id, item_id) select 'late', 'edit', id, :item from relevo.plan where name = :name
""")
DELAY = text("update relevo.item set not_before = now() + :days * interval '1 day' where id = :id")


def settled(stream: Stream) -> None:
    """Wait until the stream has begun."""
    until(lambda: stream.place, 30, "the stream begins")


def test_a_move_is_told_at_once_and_as_the_trail_has_it(api: httpx.Client, line: tuple[str, list[int]]) -> None:
    name, items = line
    with listening(api) as one, listening(api) as other:
        for stream in (one, other):
            settled(stream)
        ok(api.post(f"/api/items/{items[3]}/move", json={"first": True}))
        for stream in (one, other):
            told = stream.wait("trail")
            assert (told["action"], told["plan"], told["item"], told["undoable"]) == ("move", name, items[3], True)
            assert told == ok(api.get("/api/events", params={"plan": name, "action": "move"}))["items"][0]
            assert int(stream.place.split("-")[0]) >= told["id"]
        # Told as it happens, and not when somebody looks: else each of these, made when the last was told, would wait for the next look.
        took = list[float]()
        while min(took, default=1.0) >= 0.5 and len(took) < 20:  # on a machine that has other work too
            number = len(took)
            began = time.monotonic()
            ok(api.post(f"/api/items/{items[3]}/move", json={"last": True} if number % 2 == 0 else {"first": True}))
            for stream in (one, other):
                stream.wait("trail", count=number + 2)
            took.append(max([each for each in stream.messages if each.event == "trail"][-1].at for stream in (one, other)) - began)
        assert min(took) < 0.5, took


def test_a_page_listens_from_where_it_was_made(api: httpx.Client, line: tuple[str, list[int]]) -> None:
    name, items = line
    with listening(api) as other:
        settled(other)
        page = get(api, f"/plans/{name}")
        ok(api.post(f"/api/items/{items[3]}/move", json={"first": True}))
        found = re.search(r'data-place="([^"]+)"', page)
        assert found is not None
        with listening(api, place=found[1]) as stream:
            assert stream.wait("trail")["item"] == items[3], "what came after the page is told"
            settled(stream)
            told = [changed for changed in stream.of("changed") if name in changed["plans"]]
            assert len(told) <= 1, "and nothing that the page has already"


def test_one_listens_for_all_and_nobody_when_nobody_does(
    api: httpx.Client, http_engine: Engine, line: tuple[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audience, "LINGER", 0.0)
    connections = text("select count(*) from pg_stat_activity where application_name = 'relevo live' and datname = current_database()")

    def count() -> int:
        with http_engine.connect() as tx:
            found: int = tx.execute(connections).scalar_one()
            return found

    with listening(api) as one, listening(api) as two, listening(api) as three:
        for stream in (one, two, three):
            settled(stream)
        until(lambda: count() == 1, 15, "one listens for all")  # the watch of a test before may have its last moment
    until(lambda: count() == 0, 30, "the watch ends")
    with listening(api) as again:
        settled(again)
        ok(api.post(f"/api/items/{line[1][0]}/move", json={"last": True}))
        again.wait("trail")


def test_a_machine_s_doing_is_told_once_a_second_and_no_oftener(
    api: httpx.Client, http_engine: Engine, line: tuple[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "SIGNALS_SECONDS", 1.0)
    name, items = line
    with listening(api) as stream:
        settled(stream)
        until(lambda: any(name in each["plans"] for each in stream.of("changed")), 30, "a first stream knows of no plan")
        before, began = len(stream.of("changed")), time.monotonic()
        ok(api.post(f"/api/plans/{name}/start"))
        stream.wait("trail")
        with http_engine.begin() as tx:
            held = plans.get(tx, name)
            assert head.feed(tx, held.id, serial=True)
        assert stream.wait("changed", count=before + 1)["plans"] == [name]
        for number in range(20):
            with http_engine.begin() as tx:
                tx.execute(DELAY, {"days": number, "id": items[1]})
            time.sleep(0.05)
        assert len(stream.of("changed")) <= before + 2 + (time.monotonic() - began)
        assert len(stream.of("trail")) == 1
        stream.wait("signals")


@pytest.mark.parametrize("how", ["by the browser", "by the page", "by an event's id"])
def test_resumed_from_where_it_was_left(api: httpx.Client, line: tuple[str, list[int]], how: str) -> None:
    name, items = line
    with listening(api) as stream:
        settled(stream)
        ok(api.post(f"/api/items/{items[0]}/move", json={"last": True}))
        stream.wait("trail")
        place = stream.place
    for each in (items[1], items[2]):
        ok(api.post(f"/api/items/{each}/move", json={"last": True}))
    with {
        "by the browser": lambda: listening(api, place=place),
        "by the page": lambda: listening(api, path=f"/api/events/stream?after={place}"),
        "by an event's id": lambda: listening(api, place=place.split("-")[0]),
    }[how]() as stream:
        stream.wait("trail", count=2)
        settled(stream)
        assert [each["item"] for each in stream.of("trail")] == [items[1], items[2]]
        ok(api.post(f"/api/plans/{name}/items", json={"task": "http"}), 201)
        assert stream.wait("trail", count=3)["action"] == "add"
        assert not stream.of("reset")


def test_an_event_that_is_committed_late_is_not_passed_over(api: httpx.Client, http_engine: Engine, line: tuple[str, list[int]]) -> None:
    name, items = line
    with listening(api) as stream, http_engine.connect() as late:
        settled(stream)
        late.begin()
        late.execute(RECORD, {"item": items[0], "name": name})
        ok(api.post(f"/api/items/{items[3]}/move", json={"first": True}))
        moved = stream.wait("trail")
        assert int(stream.place.split("-")[0]) < moved["id"], "the place is not behind what may still come"
        place = stream.place
        late.commit()
        assert stream.wait("trail", count=2)["actor"] == "late"
    with listening(api, place=place) as stream:
        stream.wait("trail", count=2)
        assert [each["action"] for each in stream.of("trail")] == ["edit", "move"]


def test_too_much_missed_is_a_reset(api: httpx.Client, http_engine: Engine, line: tuple[str, list[int]]) -> None:
    many = text(f"insert into relevo.event (actor, action) select 'many', 'add' from generate_series(1, {watch.MOST + 1})")
    with listening(api) as stream:
        settled(stream)
        place = stream.place
        with http_engine.begin() as tx:
            tx.execute(many)
        stream.wait("reset")
        assert not stream.of("trail")
        ok(api.post(f"/api/items/{line[1][3]}/move", json={"first": True}))
        stream.wait("trail")
    for lost in (place, str(10**15), "nonsense", "-1", "9" * 30, "1-ffffffff-x"):
        with listening(api, place=lost) as stream:
            stream.wait("reset")
            assert not stream.of("trail")


def test_a_line_says_that_the_stream_lives(api: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "COMMENT_SECONDS", 0.2)
    with listening(api) as stream:
        until(lambda: stream.comments >= 4, 30, "comments")


def test_no_more_listeners_than_so_many(http_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audience, "MOST", 1)
    with serving(http_engine) as client:  # of its own: no stream of another test has yet to be missed there
        with listening(client) as stream:
            settled(stream)
            refused = client.get("/api/events/stream")
            assert "streams are open" in problem(refused, 503, "busy")["detail"]
            assert refused.headers["retry-after"]
        until(lambda: _opens(client), 30, "the place is free again")


def _opens(api: httpx.Client) -> bool:
    with api.stream("GET", "/api/events/stream") as response:
        return response.status_code == 200


def test_a_token_that_is_taken_back_listens_no_more(http_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "COMMENT_SECONDS", 0.1)
    valid = True

    def known(request: object) -> Caller:
        if not valid:
            raise Refused(401, "A token is needed.")
        return Caller("ana", Role.VIEW)

    with serving(http_engine, known) as client, listening(client) as stream:
        settled(stream)
        valid = False
        until(lambda: stream.ended, 30, "the stream ends")
        problem(client.get("/api/events/stream"), 401, "unauthenticated")


def test_the_server_stops_at_once_with_streams_open(http_engine: Engine) -> None:
    with ExitStack() as streams:
        with serving(http_engine) as client:
            opened = [streams.enter_context(listening(client)) for _ in range(3)]
            for stream in opened:
                settled(stream)
            watch = streams.enter_context(Stopwatch())
        assert watch.seconds < 4, "within less than calls under way are waited for"
        until(lambda: all(stream.ended for stream in opened), 30, "the streams end")


@pytest.mark.parametrize("how", ["refusing", "swallowing"])
def test_postgres_away_is_said_and_the_stream_goes_on(behind_proxy: tuple[httpx.Client, Proxy], database_url: str, how: str) -> None:
    client, proxy = behind_proxy
    with listening(client) as stream:
        settled(stream)
        setattr(proxy, how, True)
        if how == "refusing":
            proxy.cut()
        stream.wait("away")
        with listening(client) as late:
            late.wait("away")
            beside = db.engine(database_url)
            with beside.begin() as tx:
                plans.start(tx, "line", actor="ana")
            beside.dispose()
            assert not stream.of("trail")
            proxy.cut()  # before it lets anybody through: what comes back is not cut again
            setattr(proxy, how, False)
            assert stream.wait("trail")["action"] == "start"
            late.wait("changed")
        assert [each.event for each in stream.messages if each.event in ("away", "back", "trail")] == ["away", "back", "trail"]
        assert not stream.of("reset")
        assert not stream.ended
