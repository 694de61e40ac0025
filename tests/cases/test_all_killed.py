"""kill -9 of everything at once, servers too, and a new start: what was cut is marked, the order is the same, the rest runs."""

import json
from pathlib import Path

import pytest

from tests.cases.kit import wait_until
from tests.cases.project import Project, project

pytestmark = pytest.mark.timeout(240)


def wait_ran(theirs: Project, *words: str) -> None:
    file = theirs.folder / "ran"
    wait_until(lambda: file.exists() and file.read_text().split() == list(words), 60, f"{words} ran; {theirs.items()} {theirs.log()}")


def test_everything_killed_in_the_middle_of_a_plan(tmp_path: Path) -> None:
    with project(tmp_path / "theirs", "") as theirs:
        theirs.relevo("up", "--detach")
        theirs.relevo("plan", "create", "work")
        lines = []
        for word in ("zero", "one", "two", "three", "four"):
            command = ["sh", "-c", f"echo {word} >>ran; test {word} != one -o -e let-go || sleep 60"]
            lines.append(json.dumps({"task": "shell", "args": {"command": command}, "title": word}))
        (theirs.folder / "items.jsonl").write_text("\n".join(lines))
        theirs.relevo("add", "work", "--from", "items.jsonl")
        added = theirs.items()
        theirs.relevo("move", str(added["four"].id), "--after", str(added["one"].id))
        order = ["zero", "one", "four", "two", "three"]
        theirs.relevo("start", "work")
        wait_ran(theirs, "zero", "one")
        began = theirs.items()

        theirs.kill_everything()
        theirs.relevo("up", "--detach")
        wait_until(lambda: theirs.items()["one"].state == "interrupted", 20, "what was cut is marked")
        now = theirs.items()
        for evidence in ("process lost", "session ", "host ", "open since "):
            assert evidence in now["one"].error
        assert list(now) == order
        assert {title: item.position for title, item in now.items()} == {title: item.position for title, item in began.items()}
        assert [item.state for item in now.values()] == ["succeeded", "interrupted", "waiting", "waiting", "waiting"]
        refused = theirs.relevo("start", "work", code=1)
        assert str(now["one"].id) in refused

        (theirs.folder / "let-go").touch()
        theirs.relevo("retry", str(now["one"].id))
        wait_ran(theirs, "zero", "one", "one", "four", "two", "three")
        wait_until(lambda: {item.state for item in theirs.items().values()} == {"succeeded"}, 30, "all of it succeeded")
