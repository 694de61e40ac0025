"""The board while Postgres is away: each page says so in time, looks again by itself, and is back when Postgres is."""

import httpx

from tests.app.pages import alert, get, region, send, sound, words
from tests.app.processes import until
from tests.cases.proxy import Proxy
from tests.patience import Stopwatch

PAGES = ("/", "/plans/line", "/items/1", "/dead-letters", "/trail")


def test_every_page_says_so_within_3_s_and_comes_back(behind_proxy: tuple[httpx.Client, Proxy]) -> None:
    client, proxy = behind_proxy
    assert "Refresh" not in client.get("/", headers={"Accept": "text/html"}).headers
    for path in PAGES:  # a page's first time compiles its template, which is no matter of an outage
        client.get(path, headers={"Accept": "text/html"})
    proxy.refusing = True
    proxy.cut()
    for path in PAGES:
        with Stopwatch() as watch:
            answer = client.get(path, headers={"Accept": "text/html"})
        assert watch.seconds < 3 + 4
        assert (answer.status_code, answer.headers["refresh"]) == (503, "5")
        sound(answer.text)
        assert "Postgres" in alert(answer.text)
        assert words(region(answer.text, "look-again")) == "This page looks again by itself every 5 seconds."
    sent = send(client, "/plans/line/pause", {"back": "/"})
    assert sent.status_code == 503
    assert "refresh" not in sent.headers  # what was sent is not sent again
    proxy.refusing = False
    until(lambda: client.get("/", headers={"Accept": "text/html"}).status_code == 200, 30, "the board is back")
    assert "Plans" in words(get(client, "/"))
