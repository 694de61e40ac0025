"""The language of a page: English, or one that has a catalogue of messages; by the cookie `lang`, else by Accept-Language."""

from __future__ import annotations

from contextvars import ContextVar
from functools import cache
from io import BytesIO
from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.support import NullTranslations, Translations
from starlette.requests import Request

LOCALE = Path(__file__).parent / "locale"
SOURCE = "en"
NAMES = {"en": "English", "es": "Español"}
COOKIE = "lang"

_current: ContextVar[str] = ContextVar("language", default=SOURCE)


def of(request: Request) -> str:
    """The language that the request asks for, one of NAMES."""
    chosen = request.cookies.get(COOKIE, "")
    if chosen in NAMES:
        return chosen
    best, weight = SOURCE, 0.0
    for part in request.headers.get("accept-language", "")[:500].split(","):
        tag, _, quality = part.strip().partition(";")
        name = tag.partition("-")[0].lower()
        wanted = _quality(quality)
        if name in NAMES and wanted > weight:
            best, weight = name, wanted
    return best


def _quality(written: str) -> float:
    value = written.strip().removeprefix("q=")
    try:
        return float(value) if value else 1.0
    except ValueError:
        return 0.0


def speak(language: str) -> None:
    """From now on, in this call, words are of this language."""
    _current.set(language)


def spoken() -> str:
    """The language of this call."""
    return _current.get()


@cache
def _words(language: str) -> NullTranslations:
    file = LOCALE / language / "LC_MESSAGES" / "relevo.po"
    if language == SOURCE or not file.exists():
        return NullTranslations()
    with file.open("rb") as source:
        messages = read_po(source, locale=language)
    compiled = BytesIO()
    write_mo(compiled, messages)
    compiled.seek(0)
    return Translations(compiled)


def gettext(message: str) -> str:
    """`message` in the language of this call."""
    return str(_words(_current.get()).gettext(message)) if message else ""


def ngettext(one: str, many: str, number: int) -> str:
    """`one` or `many`, whichever `number` asks for, in the language of this call."""
    return str(_words(_current.get()).ngettext(one, many, number))


def pgettext(context: str, message: str) -> str:
    """`message` as it is said in this context, where one word of English is several of another language."""
    return str(_words(_current.get()).pgettext(context, message))
