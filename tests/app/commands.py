"""Commands called by tests: in this process, or in one of their own where streams and signals matter; and a worker to wait for."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from app import cli
from ordering import finish, head
from tests.ordering.acts import BROKEN, DONE, claim

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Answer:
    """What a command said and its exit code."""

    code: int
    out: str
    err: str

    def refusal(self) -> str:
        """The one sentence of a command that did not work and changed nothing; asserts that it is one."""
        assert self.code != 0
        assert self.out == ""
        assert self.err.startswith("relevo: ")
        assert self.err.count("\n") == 1
        assert "Traceback" not in self.err
        return self.err.removeprefix("relevo: ").rstrip("\n")


class Relevo:
    """Calls commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | int) -> Answer:
        self._capsys.readouterr()
        code = cli.run([str(each) for each in arguments])
        said = self._capsys.readouterr()
        return Answer(code, said.out, said.err)


def environment(database_url: str, home: Path, **more: str) -> dict[str, str]:
    """The variables of a command on this database, with a broker that nobody asks."""
    ours = {"RELEVO_DATABASE_URL": database_url, "RELEVO_BROKER_URL": "redis://127.0.0.1:1/0", "RELEVO_HOME": str(home / "home")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RELEVO_")}
    return {**kept, "PYTHONPATH": str(ROOT), **ours, **more}


def command(*arguments: str | bytes, env: Mapping[str, str], cwd: Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own to its end."""
    whole = [sys.executable, "-m", "app.cli", *arguments]
    return subprocess.run(whole, env=env, cwd=cwd, input=stdin, capture_output=True, timeout=60, check=False)


@contextmanager
def working(engine: Engine) -> Iterator[None]:
    """Feed and run what every plan gives, as feeder and worker would; an item with `break` in its title fails."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.02):
            with engine.begin() as tx:
                fed = [each for plan_id, serial in head.ready(tx) for each in head.feed(tx, plan_id, serial=serial)]
            for dispatch in fed:
                with engine.begin() as tx:
                    claimed = claim(tx, dispatch)
                    title = tx.execute(text("select title from relevo.item where id = :id"), {"id": claimed.item_id}).scalar_one()
                with engine.begin() as tx:
                    finish.finish(tx, claimed, BROKEN if "break" in title else DONE)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()


def ok(answer: Answer) -> str:
    """What a command that worked said."""
    assert (answer.code, answer.err) == (0, "")
    return answer.out


def objects(answer: Answer) -> list[Any]:
    return [json.loads(each) for each in ok(answer).splitlines()]
