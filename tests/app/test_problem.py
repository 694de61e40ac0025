"""The table of problems: every refusal has an entry of its own, and every type one meaning."""

import importlib
import pkgutil

import httpx
import pytest

import ordering
from app import problem
from ordering.errors import RelevoError
from tests.app.web import problem as problem_of

#: Refusals that never leave a call: they are about starting and the command line.
ELSEWHERE = {"Pooled", "NotMigrated", "UnknownSchema"}


def test_every_refusal_of_the_plan_has_a_problem() -> None:
    for module in pkgutil.iter_modules(ordering.__path__):
        importlib.import_module(f"ordering.{module.name}")
    kinds = {kind for kind in RelevoError.__subclasses__() if kind.__module__.startswith("ordering.")}
    assert len(kinds) > 20
    assert {kind.__name__ for kind in kinds if kind not in problem.KINDS} == ELSEWHERE


def test_a_type_has_one_status() -> None:
    kinds = [*problem.KINDS.values(), *problem.OF_STATUS.values(), problem.DEFECT]
    assert len({kind.word for kind in kinds}) == len({(kind.word, kind.status) for kind in kinds})
    assert all(kind.status == status for status, kind in problem.OF_STATUS.items())


@pytest.mark.parametrize(
    ("method", "path", "body", "sentence"),
    [
        ("POST", "/api/items/1_0/cancel", {}, "item: must be a whole number."),
        ("GET", "/api/items/1.0", None, "item: must be a whole number."),
        ("GET", "/api/items/%201", None, "item: must be a whole number."),
        ("GET", "/api/items/0", None, "item: must be at least 1."),
        ("GET", "/api/plans?limit=1_0", None, "limit: must be a whole number."),
        ("GET", "/api/plans?limit=0", None, "limit: must be at least 1."),
        ("GET", "/api/plans?limit=100000", None, "limit: must be at most 500."),
        ("GET", f"/api/facts?type={'x' * 300}", None, "type: must have at most 200 characters."),
        ("POST", "/api/events/undo", {"events": []}, "events: must have at least 1."),
        ("POST", "/api/plans", {"name": "a", "on_failure": "stop"}, "on_failure: must be 'halt' or 'continue'."),
    ],
)
def test_what_is_wrong_with_a_field_is_said_in_our_words(api: httpx.Client, method: str, path: str, body: object, sentence: str) -> None:
    assert problem_of(api.request(method, path, json=body), 422, "invalid")["detail"] == sentence


def test_a_number_of_thousands_of_digits_is_said_to_be_too_long(api: httpx.Client) -> None:
    said = problem_of(api.post("/api/plans/a/items", content=f'{{"args": [{"7" * 5000}]}}'), 400, "bad-request")
    assert said["detail"] == "The body is not JSON: a number of 5000 digits is too long."
