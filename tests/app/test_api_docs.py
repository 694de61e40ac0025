"""What the API says of itself: every route with an example, and every one of them in docs/http.md."""

import re
from pathlib import Path
from typing import Any

import httpx

from app import problem
from tests.app.web import ok

PAGE = (Path(__file__).parents[2] / "docs/http.md").read_text()


def described(api: httpx.Client) -> dict[str, dict[str, Any]]:
    """The operations by method and path."""
    told = ok(api.get("/api/openapi.json"))
    return {f"{method.upper()} {path}": each for path, methods in told["paths"].items() for method, each in methods.items()}


def test_every_route_is_in_the_page_and_every_route_of_the_page_is_there(api: httpx.Client) -> None:
    written = set[str]()
    for line in re.findall(r"^\| (`(?:GET|POST|DELETE).*?`) \|", PAGE, re.MULTILINE):
        methods = re.findall(r"GET|POST|PATCH|DELETE", line)
        paths = re.findall(r"/[a-z{}/-]+", line)
        beside = [path for path in paths[1:] if path.count("/") == 1]
        begin = paths[0].rpartition("/")[0]
        written |= {f"{method} {path}" for method in methods for path in [paths[0], *(begin + each for each in beside)]}
    assert written == set(described(api))


WITHOUT_A_BODY = {"POST /api/schedules/{schedule}/add"}


def test_every_operation_has_a_summary_its_problems_and_every_body_an_example(api: httpx.Client) -> None:
    for name, operation in described(api).items():
        assert operation["summary"], name
        if name.startswith("GET /api"):
            assert {"200", "401", "503"} <= set(operation["responses"]), name
        if not name.startswith(("GET", "DELETE")) and name not in WITHOUT_A_BODY:
            content = operation["requestBody"]["content"]["application/json"]
            assert content["examples"], name
            assert {"400", "413", "415", "422"} <= set(operation["responses"]), name


def test_every_reference_leads_somewhere(api: httpx.Client) -> None:
    response = api.get("/api/openapi.json")
    schemas = ok(response)["components"]["schemas"]
    for reference in set(re.findall(r'"\$ref": ?"([^"]+)"', response.text)):
        assert reference.removeprefix("#/components/schemas/") in schemas, reference


def test_every_type_of_problem_is_in_the_page() -> None:
    for kind in {*problem.KINDS.values(), *problem.OF_STATUS.values(), problem.DEFECT}:
        assert f"`{kind.word}`" in PAGE, kind.word


def test_nothing_is_loaded_from_elsewhere(api: httpx.Client) -> None:
    for path in ("/docs", "/redoc"):
        assert api.get(path).status_code == 404
    assert api.get("/api/docs").headers["location"] == "/api"


def test_the_page_shows_code_as_code_and_commands_that_can_be_called(api: httpx.Client) -> None:
    page = api.get("/api").text
    assert "<code>Content-Type: application/json</code>" in page
    assert "`" not in page
    assert not re.search(r"\$RELEVO[^\s\"&]*\{", page)
    answers = [answer["description"] for operation in described(api).values() for answer in operation["responses"].values()]
    assert "Successful Response" not in answers
