"""The board links to the tools beside it, where it is told of them."""

from sqlalchemy import Engine

from tests.app.web import serving


def test_the_menu_links_to_what_is_set_and_to_nothing_else(engine: Engine) -> None:
    with serving(engine, beside={"Flower": 'https://flower.example/?a=1&b="x"'}) as client:
        page = client.get("/").text
    assert '<a href="https://flower.example/?a=1&amp;b=&#34;x&#34;" rel="noreferrer">' in page
    assert "Grafana" not in page
    with serving(engine) as client:
        assert "flower.example" not in client.get("/").text
