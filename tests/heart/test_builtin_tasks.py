"""The built-in tasks as items: output while they run, endings, and nothing left of a command that was stopped."""

import random
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import psutil
import pytest

from ordering import items
from ordering.model import NewItem, State
from tests.cases.kit import ACTOR, Kit, wait_until


def shell(kit: Kit, line: str, *command: str, **more: object) -> int:
    return kit.add_many(line, [NewItem("shell", kwargs={"command": list(command), **more})])[0]


def output(kit: Kit, item: int) -> str:
    rows = kit.sql("select head || tail from relevo.output where item_id = :item order by attempt", item=item)
    return "".join(row[0] for row in rows)


def long_nap() -> str:
    """Seconds for which only this test sleeps, on a machine where others may run the same one."""
    return f"{random.randrange(10**6, 10**9)}.25"


def alive_with(word: str) -> list[int]:
    return [process.pid for process in psutil.process_iter(["cmdline"]) if word in (process.info["cmdline"] or [])]


def test_output_is_there_while_the_command_runs(up: Kit, line: str, tmp_path: Path) -> None:
    go = tmp_path / "go"
    item = shell(up, line, "sh", "-c", f"echo early; while [ ! -e {go} ]; do sleep 0.1; done; echo late >&2")
    wait_until(lambda: "early" in output(up, item), 30, "output of a running command")
    assert up.state(item) is State.RUNNING
    go.touch()
    up.wait_state(item, State.SUCCEEDED)
    assert output(up, item) == "early\nlate\n"


def test_a_failing_command_tells_its_code_and_last_lines(up: Kit, line: str) -> None:
    item = up.wait_state(shell(up, line, "sh", "-c", "echo why; exit 7"), State.FAILED)
    assert item.error == "'sh' ended with exit code 7; its last lines:\nwhy"


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"command": "ls -l"}, "command must be a list of strings"),
        ({"command": []}, "command is an empty list"),
        ({"command": ["no-such-program-here"]}, "no-such-program-here"),
        ({"command": ["true"], "cwd": "/no/such/folder"}, "/no/such/folder"),
        ({"command": ["true"], "timeout": -1}, "timeout must be a number of seconds"),
        ({"comand": ["true"]}, "comand"),
    ],
)
def test_a_wrong_command_is_one_sentence(up: Kit, line: str, kwargs: dict[str, object], words: str) -> None:
    item = up.wait_state(up.add_many(line, [NewItem("shell", kwargs=kwargs)])[0], State.FAILED)
    assert item.error is not None
    assert words in item.error
    assert "Traceback" not in item.error


def test_unless_settles_as_skipped(up: Kit, line: str) -> None:
    item = up.wait_state(shell(up, line, "false", unless=["true"]), State.SKIPPED)
    assert "already done" in (item.error or "")
    assert item.attempts == 0


def test_timeout_kills_the_whole_tree(up: Kit, line: str) -> None:
    word = long_nap()
    item = up.wait_state(shell(up, line, "sh", "-c", f"setsid sleep {word} & sleep {word}", timeout=1), State.FAILED)
    assert "after its timeout of 1 s" in (item.error or "")
    wait_until(lambda: not alive_with(word), 20, "the end of the tree")


def test_cancel_stops_the_command_before_the_next_head(up: Kit, line: str) -> None:
    word = long_nap()
    item = shell(up, line, "sh", "-c", f"trap '' TERM; setsid sleep {word} & sleep {word}")
    # The word goes backwards, or whoever looks for it would find itself.
    look = "import psutil, sys; print(any(sys.argv[1][::-1] in (p.info['cmdline'] or []) for p in psutil.process_iter(['cmdline'])))"
    following = shell(up, line, sys.executable, "-c", look, word[::-1])
    wait_until(lambda: len(alive_with(word)) >= 2, 30, "the command")
    with up.tx() as tx:
        assert items.cancel(tx, item, actor=ACTOR).state is State.CANCELLED
    up.wait_state(following, State.SUCCEEDED, seconds=60)
    assert output(up, following) == "False\n"


class Receiver(BaseHTTPRequestHandler):
    keys: list[str]
    answers: list[int]

    def do_POST(self) -> None:
        type(self).keys.append(self.headers["Idempotency-Key"])
        self.send_response(type(self).answers.pop(0))
        self.end_headers()
        self.wfile.write(b"thanks")

    def log_message(self, *_: object) -> None:
        pass


def test_http_sends_the_same_key_on_each_attempt(up: Kit, line: str) -> None:
    Receiver.keys, Receiver.answers = [], [503, 200]
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/hook"
        item = up.add_many(line, [NewItem("http", kwargs={"url": url, "json": {"a": 1}})])[0]
        failed = up.wait_state(item, State.FAILED)
        assert "503" in (failed.error or "")
        up.retry(item)
        assert up.wait_state(item, State.SUCCEEDED).result["status"] == 200
    finally:
        server.shutdown()
        server.server_close()
    assert len(Receiver.keys) == 2
    assert len(set(Receiver.keys)) == 1
