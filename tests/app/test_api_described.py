"""The API against its own description: whatever is sent to a route, it answers as it says, and never by a defect."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as some
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks
from sqlalchemy import Engine

from tests.app.web import ok, serving
from tests.conftest import Scale

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
#: What there is, and takes the place of what was made up in half of the addresses.
THERE = {"plan": "line", "item": 3, "event": 3, "schedule": "hourly"}
ENDLESS = "/api/events/stream"


@pytest.fixture(scope="module")
def api(http_engine: Engine) -> Iterator[httpx.Client]:
    """A server with something of each kind."""
    with serving(http_engine) as client:
        ok(client.post("/api/plans", json={"name": "line"}), 201)
        ok(client.post("/api/plans", json={"name": "mails", "concurrency": 4}), 201)
        work = {"task": "http", "args": {"url": "http://x"}}
        ok(client.post("/api/plans/line/items", json=[work] * 20), 201)
        ok(client.post("/api/items/2/move", json={"first": True}))
        ok(client.post("/api/schedules", json={"name": "hourly", "plan": "line", "cron": "0 * * * *", **work}), 201)
        yield client


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: str(mode.value))
@pytest.mark.timeout(900)
def test_every_operation_answers_as_it_says(api: httpx.Client, mode: GenerationMode, scale: Scale) -> None:
    base = str(api.base_url).rstrip("/")
    calls = 0
    schema = schemathesis.openapi.from_url(f"{base}/api/openapi.json")
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        if operation.path == ENDLESS:
            continue

        @seed(2030)
        @settings(
            max_examples=scale.rounds(40, least=2 if mode is GenerationMode.POSITIVE else 1),
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode), there=some.booleans())
        def answers(case: schemathesis.Case[Any], there: bool) -> None:
            nonlocal calls
            if there:
                case.path_parameters = {name: THERE.get(name, value) for name, value in (case.path_parameters or {}).items()}
            calls += 1
            case.call_and_validate(base_url=base, headers={"Content-Type": "application/json"}, checks=CHECKS)

        try:
            answers()
        except Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE, operation.label  # nothing can be wrong about it
    assert calls > 50
