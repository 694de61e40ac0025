"""D2, E2 and I4 over HTTP: many people at one line, a retry pressed often, and titles of every kind."""

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import httpx
from sqlalchemy import Engine

from app.web import CONNECTIONS
from ordering import finish, head, plans
from tests.app.web import ok, problem
from tests.cases.test_i4_names import INVISIBLE, NAMES
from tests.conftest import Scale
from tests.ordering.acts import BROKEN, claim
from tests.patience import Stopwatch, wait_until
from tests.servers import fresh_name

WORK = {"task": "http", "args": {"url": "http://x"}}


def new_plan(api: httpx.Client, count: int) -> tuple[str, list[int]]:
    name = fresh_name("crowd")
    ok(api.post("/api/plans", json={"name": name}), 201)
    return name, [each["id"] for each in ok(api.post(f"/api/plans/{name}/items", json=[WORK] * count), 201)["items"]]


def order(api: httpx.Client, name: str) -> list[int]:
    return [each["id"] for each in ok(patiently(lambda: api.get(f"/api/plans/{name}/items?state=waiting&limit=500")))["items"]]


def patiently(call: Callable[[], httpx.Response]) -> httpx.Response:
    """The answer of a client that calls again as long as a busy server asks it to."""
    answers: list[httpx.Response] = []

    def answered() -> bool:
        answers.append(call())
        return answers[-1].status_code != 503

    wait_until(answered, 60, "the server has time", pause=0.5)
    return answers[-1]


def test_d2_twenty_people_at_one_line(api: httpx.Client, scale: Scale) -> None:
    name, begun = new_plan(api, 30)
    requests = scale.rounds(25, least=4)

    def person(number: int) -> list[tuple[str, int]]:
        chance, done, seen = random.Random(number), list[tuple[str, int]](), order(api, name)
        for turn in range(requests):
            if turn % 3:
                seen = order(api, name)
            match chance.randrange(4):
                case 0:
                    answer = patiently(lambda: api.post(f"/api/plans/{name}/items?first=true", json=WORK))
                    done.append(("added", answer.status_code))
                case 1:
                    item = chance.choice(seen)
                    answer = patiently(partial(api.post, f"/api/items/{item}/cancel", json={}))
                    done.append(("cancelled", answer.status_code))
                case _:
                    gap = chance.randrange(len(seen) - 1)
                    body = {"after": seen[gap], "seen": seen[gap + 1]}
                    answer = patiently(partial(api.post, f"/api/items/{chance.choice(seen)}/move", json=body))
                    if answer.status_code == 409 and answer.json()["type"].endswith("stale-order"):
                        assert answer.json()["order"], "the fresh order"
                    done.append(("moved", answer.status_code))
        return done

    with ThreadPoolExecutor(20) as pool:
        done = [each for one in pool.map(person, range(20)) for each in one]
    assert {status for _, status in done} <= {200, 201, 409}
    assert ("moved", 200) in done
    added, cancelled = (sum(what == word and status < 300 for what, status in done) for word in ("added", "cancelled"))
    last = order(api, name)
    assert len(last) == len(set(last)) == len(begun) + added - cancelled
    assert order(api, name) == last


def test_more_callers_at_once_than_connections_have_their_turn(api: httpx.Client) -> None:
    """As many as hold a connection and as many as wait for one in a thread, and more: those that are done must get theirs back."""
    _, begun = new_plan(api, 3)
    crowd = 4 * CONNECTIONS
    begin = Barrier(crowd)

    def move(number: int) -> int:
        begin.wait()
        return api.post(f"/api/items/{begun[number % 3]}/move", json={"last": True}, timeout=60).status_code

    # A machine that stands still in the middle says nothing of whose turn it was.
    for _ in range(5):
        with Stopwatch() as watch, ThreadPoolExecutor(crowd) as pool:
            codes = Counter(pool.map(move, range(crowd)))
        if watch.stood_still < 1:
            break
    assert set(codes) <= {200, 503}, "on a busy machine somebody may be told to try again"
    assert codes[200] > 2 * CONNECTIONS


def test_e2_a_retry_pressed_often_is_one(api: httpx.Client, http_engine: Engine) -> None:
    name, items = new_plan(api, 2)
    ok(api.post(f"/api/plans/{name}/start"))
    with http_engine.begin() as tx:
        (fed,) = head.feed(tx, plans.get(tx, name).id, serial=True)
        finish.finish(tx, claim(tx, fed), BROKEN)
    one = [lambda: api.post(f"/api/items/{items[0]}/retry")] * 5
    with ThreadPoolExecutor(6) as pool:
        many = [*one, lambda: api.post(f"/api/plans/{name}/items/retry", json={"items": [items[0]]})]
        presses = [pool.submit(patiently, each) for each in many]
    codes = sorted(each.result().status_code for each in presses)
    assert codes == [200, 409, 409, 409, 409, 409]
    events = ok(api.get("/api/events", params={"item": items[0], "action": "retry"}))["items"]
    assert len(events) == 1
    assert ok(api.get(f"/api/items/{items[0]}"))["item"]["replays"] == 1
    refused = problem(api.post(f"/api/items/{items[1]}/retry"), 409, "not-allowed")
    assert refused["state"] == "waiting"
    assert "queued already" in refused["detail"]


def test_i4_titles_come_back_as_they_were_given(api: httpx.Client) -> None:
    name, _ = new_plan(api, 1)
    for title in NAMES.values():
        added = ok(api.post(f"/api/plans/{name}/items", json={**WORK, "title": title}), 201)
        assert added["title"] == title
        assert ok(api.get(f"/api/items/{added['id']}"))["item"]["title"] == title
        if len(title) < 200:
            found = ok(api.get(f"/api/plans/{name}/items", params={"text": title}))["items"]
            assert added["id"] in [each["id"] for each in found]
    for title in INVISIBLE:
        assert problem(api.post(f"/api/plans/{name}/items", json={**WORK, "title": title}), 422, "invalid")["field"] == "title"
