"""The board's words: each has its translation, with the same places to fill in, and pages speak the reader's language."""

import subprocess
import sys
from pathlib import Path

import httpx
from sqlalchemy import Engine

from app import event_words, language
from ordering import plans
from ordering.decide import Failed
from tests.app.pages import cells, done, get, region, sound, words
from tests.ordering.acts import end, plan, put
from tests.servers import fresh_name

SCRIPT = Path(__file__).parents[2] / "scripts" / "words.py"
SPANISH = {"Accept-Language": "es-AR,es;q=0.9,en;q=0.5"}


def test_every_word_of_pages_and_code_has_its_translation() -> None:
    checked = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, timeout=120)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_one_word_of_english_may_be_two() -> None:
    language.speak("es")
    assert (event_words.verb("move"), event_words.yours("move")) == ("movió", "Moviste")
    language.speak("en")
    assert (event_words.verb("move"), event_words.yours("move")) == ("moved", "Moved")
    assert event_words.yours("declare") == "Declared"


def test_every_page_speaks_spanish(api: httpx.Client, http_engine: Engine) -> None:
    name = fresh_name("tren")
    with http_engine.begin() as tx:
        plan(tx, name)
        plans.start(tx, name, actor="ops")
        put(tx, plan=name, title="Rotar la clave")
        item = end(tx, Failed("ValueError", "no", final=True), name)
    pages = {
        "/": "Planes",
        f"/plans/{name}": "Tiene que decidir una persona.",
        f"/items/{item}": "El cuerpo terminó con un error.",
        "/dead-letters": "Fallidos",
        "/steps": "Tareas con pasos",
        "/facts": "Quién escucha qué",
        "/schedules": "Programaciones",
        "/workers": "Tasks",
        "/trail": "Quién hizo qué, y por qué.",
        "/find?q=rotar": "Rotar la clave",
        "/api": "La API",
    }
    for path, sentence in pages.items():
        page = get(api, path, headers=SPANISH)
        sound(page)
        assert '<html lang="es">' in page
        assert sentence in words(page), path
        assert "Saltar" not in words(region(page, "top"))
    assert "no hay nada en esta dirección" in words(get(api, "/nothing", 404, headers=SPANISH)).lower()
    assert "1 intento" in cells(get(api, f"/items/{item}", headers=SPANISH))


def test_the_switch_goes_before_what_the_browser_asks_for(api: httpx.Client) -> None:
    page = done(api, "/language", {"lang": "es", "back": "/facts"})
    try:
        assert "Hechos" in words(region(page, "page-head"))
        done(api, "/language", {"lang": "en", "back": "/facts"})
        assert "Facts" in words(region(get(api, "/facts", headers=SPANISH), "page-head"))
    finally:
        api.cookies.clear()
    assert "Hechos" in words(region(get(api, "/facts", headers=SPANISH), "page-head"))
