"""Commands as processes: what arrives on their streams in any locale, at a pipe, on a terminal, and at Ctrl-C."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine

from ordering import add, plans
from ordering.model import NewItem
from tests.app.catalogues import written
from tests.app.commands import command, environment, working
from tests.app.processes import program, until
from tests.ordering.acts import ACTOR

C_LOCALE = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
ONE = '[[plans.line.items]]\nkey = "k"\ntitle = "One \\U0001F600"\ntask = "shell"\n'


@pytest.fixture
def env(database_url: str, tmp_path: Path) -> dict[str, str]:
    return environment(database_url, tmp_path)


def put(engine: Engine, title: str = "T", count: int = 1) -> None:
    with engine.begin() as tx:
        plans.create(tx, "line", actor=ACTOR)
        add.add_many(tx, "line", [NewItem("shell", title=title) for _ in range(count)], actor=ACTOR)


def test_a_locale_that_knows_no_such_character_gets_escapes(env: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    put(engine, "naïve 😀 " + "x" * 300)
    for call in (
        ["plan", "show", "line"],
        ["show", "1"],
        ["plan", "show", "line", "--json"],
        ["plan", "list"],
        ["--help"],
        ["add", "--help"],
    ):
        done = command(*call, env=env | C_LOCALE, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.isascii()
    assert b"na\\xefve \\U0001f600" in command("show", "1", env=env | C_LOCALE, cwd=tmp_path).stdout


def test_bytes_that_are_no_text_are_refused_and_not_stored(env: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    put(engine)
    for call, named in (
        (["add", "line", "shell", "--title", b"a\xff"], "argument of --title 'a\\xff'"),
        (["add", "line", b"sh\xff"], "argument 'sh\\xff'"),
        (["start", b"a\xff"], "argument 'a\\xff'"),
        (["show", b"\xff"], "argument '\\xff'"),
        (["start", "line", b"--\xff=1"], "argument '--\\xff=1'"),
        ([b"\xe9\xff"], "argument '\\xe9\\xff'"),
        (["emit", "a", b'{"a": "\xff"}'], 'argument \'{"a": "\\xff"}\''),
        (["worker", "--slots", b"\xff"], "argument of --slots '\\xff'"),
    ):
        done = command(*call, env=env, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, b""), call
        assert done.stderr.decode() == f"relevo: The {named} holds bytes that are no text; write it in UTF-8.\n"


def test_items_come_from_the_standard_input(env: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    put(engine)
    done = command("add", "line", "--from", "-", env=env, cwd=tmp_path, stdin=b'{"task": "shell"}\n{"task": "shell"}')
    assert (done.returncode, done.stdout, done.stderr) == (0, b"Added 2 items (2 to 3) to line.\n", b"")


def test_a_reader_that_has_seen_enough_is_no_error(env: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    put(engine, "T" * 200, 5000)
    whole = f"{sys.executable} -m app.cli plan show line --limit 5000 | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", whole], env=env, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"line: new (5000 waiting)")


def test_an_answer_that_cannot_be_written_is_told_and_nobody_there_to_read_is_no_error(
    env: dict[str, str], engine: Engine, tmp_path: Path
) -> None:
    put(engine)

    def called(words: str, to: str, unbuffered: str = "") -> tuple[int, str]:
        line = f'"{sys.executable}" -m app.cli {words} {to}'
        variables = env | {"PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(["bash", "-c", line], env=variables, cwd=tmp_path, capture_output=True, timeout=60, check=False)
        return done.returncode, done.stderr.decode()

    unwritten = (1, "relevo: The answer could not be written: No space left on device; what was changed stays changed.\n")
    for words in ("--help", "--version", "plan list --json", "plan create more"):
        assert called(words, "> /dev/full") == unwritten, words
    assert called("plan list", "> /dev/full", "1") == unwritten
    assert called("plan create more", "> /dev/full") == (2, "relevo: There is a plan 'more' already; choose another name.\n")
    assert called("plan create more", "2> /dev/full") == (2, "")
    for words in ("--help", "plan list"):
        assert called(words, "| true; exit ${PIPESTATUS[0]}", "1") == (0, ""), words
    assert called("show 99", "| true; exit ${PIPESTATUS[0]}")[0] == 2


def test_a_run_is_waited_for_when_nobody_reads_how_it_goes(env: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    written(tmp_path, ONE + ONE.replace('"k"', '"l"').replace("One", "break"))
    whole = f'"{sys.executable}" -m app.cli run-all --wait | head -1; exit ${{PIPESTATUS[0]}}'
    with working(engine):
        done = subprocess.run(["bash", "-c", whole], env=env, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.stdout == b"line: added 2 of 2 entries; run 1 is on.\n"
    assert done.returncode == 1
    assert done.stderr.startswith(b"relevo: Plan 'line' halted at 2 ")


def test_an_output_that_takes_little_at_a_time_gets_everything(env: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    put(engine, "T" * 200, 2000)
    mine, theirs = os.pipe()
    os.set_blocking(theirs, False)
    whole = [sys.executable, "-m", "app.cli", "plan", "show", "line", "--limit", "2000"]
    with subprocess.Popen(whole, env=env, cwd=tmp_path, stdout=theirs) as running, os.fdopen(mine, "rb") as seen:
        os.close(theirs)
        assert seen.read().count(b"T" * 100) == 2000
        assert running.wait(60) == 0


def test_without_a_terminal_nothing_is_cut_and_nothing_is_coloured(env: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    put(engine, "T" * 100)
    done = command("plan", "show", "line", env=env | {"TERM": "xterm-256color", "FORCE_COLOR": ""}, cwd=tmp_path)
    assert b"T" * 100 in done.stdout
    assert b"\x1b" not in done.stdout


def on_a_terminal(arguments: list[str], env: dict[str, str], cwd: Path, end_at: bytes | None = None) -> tuple[int, str]:
    """The exit code of a command on a terminal of 80 columns, and what was seen there; it is told to end once `end_at` was seen."""
    mine, theirs = pty.openpty()
    whole = [sys.executable, "-m", "app.cli", *arguments]
    with subprocess.Popen(
        whole, env=env | {"COLUMNS": "80", "TERM": "xterm"}, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs
    ) as running:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(mine, 65536)
            except OSError:  # what a terminal says when the last one at its other end has left
                break
            if not part:
                break
            seen += part
            if end_at is not None and end_at in seen:
                running.terminate()
                end_at = None
        os.close(mine)
        return running.wait(60), seen.decode()


def test_on_a_terminal_waiting_shows_a_bar(env: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    written(tmp_path, ONE)
    with working(engine):
        code, seen = on_a_terminal(["run-all", "--wait"], env, tmp_path)
    assert code == 0
    assert "1/1" in seen
    assert "succeeded   1 One 😀" in seen
    assert "line: done, 1 of 1." in seen


def test_told_to_end_while_it_draws_a_bar_it_gives_the_cursor_back(env: dict[str, str], tmp_path: Path) -> None:
    written(tmp_path, ONE)
    hidden, shown = "\x1b[?25l", "\x1b[?25h"
    code, seen = on_a_terminal(["run-all", "--wait"], env, tmp_path, end_at=hidden.encode())
    assert code == -signal.SIGTERM
    assert seen.rindex(shown) > seen.rindex(hidden)


def test_on_a_narrow_terminal_a_long_title_is_cut(env: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    put(engine, "Title " + "x" * 300)
    code, seen = on_a_terminal(["plan", "show", "line"], env, tmp_path)
    assert code == 0
    (row,) = [each for each in seen.splitlines() if "Title x" in each]
    assert "waiting" in row
    assert "…" in row
    assert len(row) <= 80


def test_ctrl_c_leaves_what_runs_alone_and_says_so(env: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    written(tmp_path, ONE)
    with program("-m", "app.cli", "run-all", "--wait", env=env | {"PYTHONUNBUFFERED": "1"}, cwd=tmp_path) as waiting:
        waiting.said("run 1 is on")
        until(lambda: looks(engine), 60, "it looks at the run")
        waiting.process.send_signal(signal.SIGINT)
        assert waiting.ends(60) == 130
        assert waiting.lines[-1] == "No longer watched; the plan goes on (`relevo plan list` shows it, `relevo pause PLAN` pauses it)."
    with engine.begin() as tx:
        plans.pause(tx, "line", actor=ACTOR)  # refused if it did not run


def looks(engine: Engine) -> bool:
    """Whether somebody else is connected as a command that reads."""
    from sqlalchemy import text

    with engine.begin() as tx:
        found = "select exists (select from pg_stat_activity where application_name = 'relevo cli' and datname = current_database())"
        return bool(tx.execute(text(found)).scalar_one())


def test_services_are_started_without_our_package_app(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("raise SystemExit('the wrong package')\n")
    for service in ("worker", "feeder"):
        refused = command(service, env=env | {"RELEVO_DATABASE_URL": "postgresql://x@127.0.0.1:1/x"}, cwd=Path(__file__).parents[2])
        assert refused.returncode == 3
        assert b"Postgres is unreachable" in refused.stderr
    helped = command("worker", "--help", env=env, cwd=Path(__file__).parents[2])
    assert helped.returncode == 0
    assert b"--slots" in helped.stdout


def test_the_help_is_there_at_once(env: dict[str, str], tmp_path: Path) -> None:
    seen = "import sys, app.cli; print([name for name in ('sqlalchemy', 'celery', 'pydantic', 'rich') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", seen], env=env, cwd=tmp_path, capture_output=True, timeout=60, check=True)
    assert done.stdout == b"[]\n"


def test_closed_streams_keep_no_command_from_its_work(env: dict[str, str], tmp_path: Path) -> None:
    def called(words: str, closed: str) -> int:
        line = f'"{sys.executable}" -m app.cli {words} {closed}'
        done = subprocess.run(["sh", "-c", line], env=env, cwd=tmp_path, capture_output=True, timeout=60, check=False)
        assert b"Traceback" not in done.stderr
        return done.returncode

    assert called("plan create unheard", ">&- 2>&- <&-") == 0
    assert called("plan create unheard", "2>&-") == 2, "it is there"
    assert called("plan list --json", ">&-") == 0
    assert called("add unheard --from -", "<&-") == 2
