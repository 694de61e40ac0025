"""What every page of the board shares: headers, static files, the language, and what a browser is told that is refused."""

import httpx
import pytest

from app import assets, page
from tests.app.pages import alert, get, region, send, sound, words
from tests.app.web import problem


def test_a_page_has_its_policy_and_loads_nothing_from_elsewhere(api: httpx.Client) -> None:
    response = api.get("/", headers={"Accept": "text/html"})
    assert response.headers["content-security-policy"] == page.POLICY
    assert "unsafe" not in page.POLICY
    assert response.headers["referrer-policy"] == "same-origin"
    assert response.headers["cache-control"] == "no-store"
    assert "http://" not in response.text
    assert "https://" not in response.text
    sound(response.text)


def test_static_files_may_be_kept_for_ever_at_an_address_of_their_content(api: httpx.Client) -> None:
    answer = api.get(assets.address("tokens.css"))
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in answer.headers["cache-control"]
    old = api.get("/static/000000000000/tokens.css")
    assert old.text == answer.text
    assert old.headers["cache-control"] == "no-cache"
    problem(api.get(f"/static/{assets.stamp()}/nothing.css"), 404, "not-found")
    for path in ("/static/x/..%2fweb.py", "/static/x/%2e%2e/web.py", "/static/x/"):
        assert api.get(path).status_code == 404


def test_every_file_that_a_page_names_is_there(api: httpx.Client) -> None:
    html = get(api, "/")
    named = [part.split('"')[0] for part in html.split('href="/static/')[1:]] + [
        part.split('"')[0] for part in html.split('src="/static/')[1:]
    ]
    assert len(named) > 5
    for each in named:
        assert api.get(f"/static/{each}").status_code == 200


def test_nothing_is_there_for_people_and_for_programs(api: httpx.Client) -> None:
    html = get(api, "/nothing", 404)
    assert "nothing at this address" in alert(html)
    sound(html)
    problem(api.get("/nothing"), 404, "not-found")
    problem(api.get("/api/nothing", headers={"Accept": "text/html"}), 404, "not-found")
    assert "There is no plan" in alert(get(api, "/plans/nowhere", 404))


def test_a_form_says_where_it_comes_from(api: httpx.Client) -> None:
    for origin in ("https://example.org", "null", "http://localhost:1"):
        answer = send(api, "/language", {"lang": "es"}, Origin=origin)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
    silent = api.post("/language", content="lang=es", headers={"Content-Type": "application/x-www-form-urlencoded"})
    problem(silent, 403, "forbidden")
    own = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    assert api.post("/language", content="lang=es", headers=own).status_code == 303
    assert api.post("/language", content="lang=es", headers={**own, "Sec-Fetch-Site": "same-site"}).status_code == 403


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data; boundary=x"])
def test_a_form_is_urlencoded(api: httpx.Client, kind: str) -> None:
    problem(api.post("/language", content="lang=es", headers={"Content-Type": kind}), 415, "wrong-content-type")


@pytest.mark.parametrize("body", [b"lang=\xff", b"lang=%ff", b"x=1&" * 6000])
def test_a_form_that_cannot_be_read(api: httpx.Client, body: bytes) -> None:
    own = {"Content-Type": "application/x-www-form-urlencoded", "Origin": str(api.base_url).rstrip("/")}
    problem(api.post("/language", content=body, headers=own), 400, "bad-request")


@pytest.mark.parametrize(
    "back",
    [
        "https://example.org/",
        "//example.org/",
        "/\\example.org",
        "\\\\example.org",
        "javascript:alert(1)",
        "/\r\nX: y",
        "/%0a" * 900,
        "",
        "/api/plans",
    ],
)
def test_nobody_is_sent_to_another_site(api: httpx.Client, back: str) -> None:
    answer = send(api, "/language", {"lang": "en", "back": back})
    assert answer.headers["location"] == "/"


def test_the_language_is_the_browsers_unless_somebody_chose(api: httpx.Client) -> None:
    api.cookies.clear()
    assert '<html lang="en">' in get(api, "/")
    assert '<html lang="es">' in get(api, "/", headers={"Accept-Language": "fr;q=0.9, es-AR;q=0.8, en;q=0.7"})
    assert '<html lang="en">' in get(api, "/", headers={"Accept-Language": "zz, en;q=x, es;q=0"})
    answer = send(api, "/language", {"lang": "es", "back": "/plans/x?state=waiting"})
    assert answer.headers["location"] == "/plans/x?state=waiting"
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert '<html lang="es">' in get(api, "/", headers={"Cookie": "lang=es"})
    assert '<html lang="en">' in get(api, "/", headers={"Cookie": "lang=xx"})
    api.cookies.clear()
    assert send(api, "/language", {"lang": "xx"}).status_code == 422


def test_the_frame_names_the_caller(api: httpx.Client) -> None:
    assert "http · admin" in words(region(get(api, "/"), "who-menu"))
