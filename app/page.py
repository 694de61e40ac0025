"""Pages: every answer that is HTML is rendered here, also what a browser is told when its request does not work."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sqlalchemy import Connection

from app import assets, crews, event_words, frame, language, notices, problem, refusal_words, wording
from app.api_call import Call
from app.caller import Role
from app.form import Form
from app.frame import Frame
from app.notices import Done
from app.problem import Told

TEMPLATES = Path(__file__).parent / "templates"
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
# Under no-referrer a browser says `Origin: null` with its forms, which then look like those of another site.
HEADERS = {"Content-Security-Policy": POLICY, "Referrer-Policy": "same-origin", "Vary": "Accept-Language, Cookie"}
NOT_PAGES = ("/api/", "/static/", "/healthz", "/readyz", "/favicon.ico")
# Parameters that are not part of a page's own address: what has just been done, and which dialog is open, about which items.
LOOK_AGAIN = 5  # seconds until a browser asks again for a page that was not to be had
PASSING = ("done", "left", "decided", "verb", "more")
OF_DIALOG = ("ask", "item", "schedule")


@cache
def environment() -> Environment:
    """The templates, with what all of them may use."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
        auto_reload=False,
    )
    made.install_gettext_callables(language.gettext, language.ngettext, newstyle=True)  # type: ignore[attr-defined]  # by the extension
    made.globals |= {
        "asset": assets.address,
        "languages": language.NAMES,
        "wording": wording,
        "event_words": event_words,
        "worker_named": crews.named,
        "quoted": lambda text: quote(text, safe=""),
    }
    made.filters |= {
        "number": wording.number,
        "span": wording.length,
        "exact": wording.exact,
        "iso": wording.iso,
        "cut": wording.cut,
        "state_word": wording.state,
        "state_icon": wording.icon,
        "kind_icon": wording.kind_icon,
        "plain_position": wording.plain_position,
        "percent": lambda share: f"{share:.2f}%",
    }
    return made


def load() -> None:
    """Make everything that a page needs once: templates, files, words. The first page would wait two seconds for it."""
    made = environment()
    for name in made.list_templates():
        made.get_template(name)
    assets.stamp()
    for name in language.NAMES:
        language.speak(name)
        wording.number(1234)
        language.gettext("Plans")


@dataclass(frozen=True)
class Refusal:
    """What a person asked for and did not get: a sentence, the status, the field that is to blame if one is.

    `action` is where the form was sent, `form` what was written in it.
    """

    title: str
    sentence: str
    status: int
    field: str
    action: str
    form: Form


def render(
    request: Request, call: Call | None, template: str, status: int = 200, *, here: str | None = None, **context: Any
) -> HTMLResponse:
    """The page that `template` makes of `context`. `call` is None where nobody could be asked: then the page has no figures.

    here: the page's own address, where it is another than the request's (a refused form answers the page that it came from).
    """
    language.speak(language.of(request))
    around, done = (frame.EMPTY, None) if call is None else call.read(lambda tx: _around(tx, request, call.actor))
    given = {
        "here": here or address(request),
        "frame": around,
        "person": None if call is None else call.caller,
        "may_operate": call is not None and call.caller.role >= Role.OPERATE,
        "may_shell": call is not None and call.shell and call.caller.role >= Role.ADMIN,
        "signs_in": request.app.state.signs_in,
        "place": getattr(request.state, "place", None) or "",
        "beside": request.app.state.beside,
        "language": language.spoken(),
        "refusal": None,
        "done": done,
        **context,
    }
    html = environment().get_template(template).render(given)
    # What a job wrote may hold half a surrogate pair only where Postgres was not asked; nothing of that kind is sent.
    return HTMLResponse(html.encode("utf-8", "replace"), status, HEADERS)


def _around(tx: Connection, request: Request, actor: str) -> tuple[Frame, Done | None]:
    done = notices.read(tx, request, actor)
    return frame.read(tx, request.app.state.figures, acted=done is not None or request.method == "POST"), done


def address(request: Request) -> str:
    """The page's own address: path and query without what tells of the last act or opens a dialog."""
    pairs = parse_qsl(request.url.query, keep_blank_values=True)
    passing = {*PASSING, *OF_DIALOG} if any(name == "ask" for name, _value in pairs) else {*PASSING}
    kept = [(name, value) for name, value in pairs if name not in passing]
    return request.url.path + (f"?{urlencode(kept)}" if kept else "")


def with_query(back: str, **values: str | int | None) -> str:
    """The local address `back` with these parameters in place of what it had of them."""
    path, _, query = back.partition("#")[0].partition("?")
    kept = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name not in {*values, *PASSING}]
    kept += [(name, str(value)) for name, value in values.items() if value is not None]
    return path + (f"?{urlencode(kept)}" if kept else "")


def to(back: str) -> RedirectResponse:
    """Send the browser to a local address, to be read with GET."""
    return RedirectResponse(back, 303)


def wanted(request: Request) -> bool:
    """Whether a person asked, and is answered by a page."""
    return not request.url.path.startswith(NOT_PAGES) and "text/html" in request.headers.get("accept", "")


def answering(request: Request, error: Exception) -> Response:
    """The answer to an error: a page for people, a problem for programs."""
    if not wanted(request):
        return problem.of(error)
    language.speak(language.of(request))
    said = told(error)
    if said.kind.status == 401 and "WWW-Authenticate" in said.headers:
        back = address(request) if request.method == "GET" else "/"
        return to(f"/login?back={quote(back, safe='/')}")
    more: dict[str, Any] = {"look_again": LOOK_AGAIN} if request.method == "GET" else {}
    answer = render(request, None, "refused.html", said.kind.status, told=said, again=request.method == "GET", **more)
    for name, value in said.headers.items():
        answer.headers[name] = value
    if said.kind.status == 503:
        answer.headers["Retry-After"] = str(problem.RETRY_AFTER)
        if request.method == "GET":
            answer.headers["Refresh"] = str(LOOK_AGAIN)
    return answer


def told(error: Exception) -> Told:
    """What a page says of an exception, in the language of the call."""
    said = problem.told(error)
    return said._replace(sentence=refusal_words.of(error) or said.sentence)


def refusal(told: Told, action: str, form: Form) -> Refusal:
    """A problem as the page shows it that the form came from."""
    return Refusal(told.kind.title, told.sentence, told.kind.status, str(told.more.get("field", "")), action, form)
