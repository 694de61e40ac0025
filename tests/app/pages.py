"""Pages as tests read them: a browser's requests without a browser, and what they find in the HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import httpx

HTML = {"Accept": "text/html"}
VOID = frozenset({"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "use", "path", "circle", "rect"})


def get(client: httpx.Client, path: str, status: int = 200, headers: Mapping[str, str] | None = None) -> str:
    """The page at `path`."""
    response = client.get(path, headers={**HTML, **(headers or {})})
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    return response.text


def send(client: httpx.Client, path: str, fields: Mapping[str, Any] | Sequence[tuple[str, Any]] = (), **headers: str) -> httpx.Response:
    """What a form answers that a page of ours sends; nothing is followed."""
    pairs = list(fields.items()) if isinstance(fields, Mapping) else list(fields)
    content = urlencode([(name, str(value)) for name, value in pairs])
    own = {"Content-Type": "application/x-www-form-urlencoded", "Origin": str(client.base_url).rstrip("/"), **HTML}
    return client.post(path, content=content, headers={**own, **headers})


def done(client: httpx.Client, path: str, fields: Mapping[str, Any] | Sequence[tuple[str, Any]] = ()) -> str:
    """The page after a form that worked."""
    response = send(client, path, fields)
    assert response.status_code == 303, response.text
    return get(client, response.headers["location"])


def refused(client: httpx.Client, path: str, fields: Mapping[str, Any] | Sequence[tuple[str, Any]], status: int) -> str:
    """The page that a refused form is answered with, which says why in an alert."""
    response = send(client, path, fields)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert alert(response.text)
    return response.text


def alert(page: str) -> str:
    """The sentence of the page's alert."""
    found = re.search(r'role="alert"(?! data-keep)[^>]*>.*?<p[^>]*>(.*?)</p>', page, re.S)
    assert found is not None, page
    return words(found[1])


def words(html: str) -> str:
    """What a person reads: the text without markup, spaces made one."""
    reader = _Reader()
    reader.feed(html)
    return " ".join("".join(reader.found).split())


def cells(html: str) -> str:
    """As `words`, with a space wherever a tag stands: cells of a table do not run into each other."""
    return words(re.sub("(<[^>]*>)", r" \1", html))


def region(page: str, id: str) -> str:
    """The element with this id, from its tag to its end tag."""
    start = re.search(rf'<(\w+)[^>]*\bid="{re.escape(id)}"', page)
    assert start is not None, f"there is no #{id}"
    tag, depth = start[1], 0
    for each in re.finditer(rf"<(/?){tag}\b", page[start.start() :]):
        depth += -1 if each[1] else 1
        if depth == 0:
            return page[start.start() : start.start() + each.end()]
    raise AssertionError(f"#{id} does not end")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)


class Balance(HTMLParser):
    """Finds tags that are not closed in their order, and ids that stand twice."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: set[str] = set()
        self.forms = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if (given := named.get("id")) is not None:
            if given in self.ids:
                self.wrong.append(f"id {given} stands twice")
            self.ids.add(given)
        if tag == "form" and "form" in self.open:
            self.wrong.append(f"a form inside a form, at {self.getpos()}")
        if "style" in named or any(name.startswith("on") for name in named):
            self.wrong.append(f"an inline style or handler at {self.getpos()}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")


def sound(page: str) -> None:
    """Assert that the page's tags are closed in order, that no id stands twice, and that no form is inside another."""
    reader = Balance()
    reader.feed(page)
    assert reader.wrong == []
    assert reader.open == []
