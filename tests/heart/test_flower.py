"""Flower, real, beside a worker: real names, readable arguments, states that agree with ours, and nobody without the password."""

import base64
import json
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import pytest

from ordering import items
from ordering.model import State
from tests.cases.kit import Kit, wait_until
from tests.cases.processes import ROOT
from tests.ports import free_port

LOGIN = "looks:at-it"


class Flower:
    """What a browser with the password gets."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, path: str, login: str | None = LOGIN, method: str = "GET") -> tuple[int, str]:
        """Status and body of one answer."""
        request = urllib.request.Request(self.url + path, method=method)
        if login:
            request.add_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def tasks(self) -> list[dict[str, Any]]:
        """Every message that Flower has heard of."""
        status, body = self.ask("/api/tasks?limit=1000")
        assert status == 200, body
        return list(json.loads(body).values())

    def of(self, name: str, args: str) -> list[dict[str, Any]]:
        """The messages of a task with these arguments."""
        return [each for each in self.tasks() if each["name"] == name and each["args"] == args]


@pytest.fixture(scope="module")
def flower(up: Kit) -> Flower:
    """Flower, once the worker tells it what it does."""
    port = free_port()
    up.start_program("flower", ["-m", "workers.flower", "--port", str(port)], RELEVO_FLOWER_AUTH=LOGIN)
    made = Flower(port)
    up.plan("warm")

    def heard() -> bool:
        # It asks for events every five seconds; what ran before is not told.
        up.wait_state(up.add("warm", "heart.changed", 0), State.SUCCEEDED)
        return any(each["name"] == "heart.changed" for each in made.tasks())

    wait_until(heard, 90, "Flower hears of a task", pause=0.5)
    return made


def states(flower: Flower, name: str, args: str) -> list[str]:
    return sorted(str(each["state"]) for each in flower.of(name, args))


def test_names_arguments_and_states_agree(up: Kit, flower: Flower) -> None:
    up.plan("shown")
    # Twice tried and then fine; each try is a message.
    item = up.add("shown", "heart.auto", 2)
    up.wait_state(item, State.SUCCEEDED, seconds=60)
    wait_until(lambda: states(flower, "heart.auto", "[2]") == ["RETRY", "RETRY", "SUCCESS"], 60, "three tries")
    done = next(each for each in flower.of("heart.auto", "[2]") if each["state"] == "SUCCESS")
    assert (done["result"], done["kwargs"]) == ("2", "{}")
    assert done["worker"].startswith("relevo-")

    # Used up.
    failed = up.add("shown", "heart.auto", 9, max_attempts=1)
    assert up.wait_state(failed, State.FAILED, seconds=60).error
    wait_until(lambda: states(flower, "heart.auto", "[9]") == ["FAILURE"], 60, "a failure")
    assert "ConnectionError" in str(flower.of("heart.auto", "[9]")[0]["exception"])


def test_what_was_cancelled_before_it_was_claimed_is_revoked(up: Kit, flower: Flower) -> None:
    up.plan("full", concurrency=4)
    # Both slots are taken, so the third message lies there.
    release = up.folder / "full"
    busy = [up.add("full", "probe.wait_for", str(release)) for _ in range(2)]
    up.wait_state(busy[0], State.RUNNING)
    up.wait_state(busy[1], State.RUNNING)
    late = up.add("full", "heart.changed", 0, title="never")
    up.wait_state(late, State.DISPATCHED)
    before = {each["uuid"] for each in flower.tasks()}
    with up.engine.begin() as tx:
        items.cancel(tx, late, actor="test")
    release.touch()
    wait_until(
        lambda: [each for each in flower.tasks() if each["uuid"] not in before and each["state"] == "REVOKED"], 60, "the message is revoked"
    )


def test_a_body_whose_process_is_gone_is_revoked_and_not_failed(up: Kit, flower: Flower) -> None:
    up.plan("cut")
    cancelled = up.add("cut", "probe.nap", 60.0)
    up.wait_state(cancelled, State.RUNNING, seconds=60)
    wait_until(lambda: states(flower, "probe.nap", "[60.0]") == ["STARTED"], 60, "it is shown as started")
    with up.engine.begin() as tx:
        items.cancel(tx, cancelled, actor="test")
    wait_until(lambda: states(flower, "probe.nap", "[60.0]") == ["REVOKED"], 60, "a body that was cancelled is revoked")

    up.plan("killed")
    up.wait_state(up.add("killed", "probe.die"), State.INTERRUPTED, seconds=60)
    wait_until(lambda: states(flower, "probe.die", "[]") == ["REVOKED"], 60, "a body whose process was killed is revoked")


def test_nobody_without_the_password_and_nothing_to_act_with(flower: Flower) -> None:
    assert flower.ask("/healthcheck", login=None) == (200, "OK")
    for path in ("/", "/tasks", "/broker", "/api/tasks", "/api/workers"):
        assert flower.ask(path, login=None)[0] == 401, path
        assert flower.ask(path, login="looks:elsewhere")[0] == 401, path
        assert flower.ask(path)[0] == 200, path
    worker = flower.tasks()[0]["worker"]
    for path in (f"/api/worker/shutdown/{worker}", "/api/task/async-apply/shell", f"/api/task/revoke/{flower.tasks()[0]['uuid']}"):
        assert flower.ask(path, method="POST")[0] == 403, path


@pytest.mark.parametrize(
    ("options", "environment", "said"),
    [
        (["--host", "0.0.0.0"], {}, "others can reach: set RELEVO_FLOWER_AUTH"),
        ([], {"RELEVO_FLOWER_AUTH": "secret-without-user"}, "RELEVO_FLOWER_AUTH is not user:password."),
        ([], {"RELEVO_BROKER_URL": ""}, "RELEVO_BROKER_URL is not set"),
    ],
)
def test_what_is_set_wrongly_is_one_sentence(up: Kit, options: list[str], environment: dict[str, str], said: str) -> None:
    command = [sys.executable, "-P", "-m", "workers.flower", *options]
    done = subprocess.run(command, env=up.environment(**environment), cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr
