"""Commands that are stopped in the middle, by Ctrl-C and by TERM: all is done or nothing, and nobody sees a traceback."""

import json
import os
import signal
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from ordering import plans
from tests.app.commands import environment
from tests.app.processes import Program, program, until
from tests.ordering import letters
from tests.ordering.acts import ACTOR


@pytest.fixture
def env(database_url: str, tmp_path: Path, engine: Engine) -> dict[str, str]:
    with engine.begin() as tx:
        plans.create(tx, "line", actor=ACTOR)
    return environment(database_url, tmp_path)


def held(engine: Engine) -> bool:
    """Whether a command waits for a lock."""
    with engine.begin() as tx:
        found = """
            select exists (select from pg_stat_activity
                where application_name = 'relevo cli' and wait_event_type = 'Lock' and datname = current_database())
        """
        return bool(tx.execute(text(found)).scalar_one())


def count(engine: Engine, what: str) -> int:
    with engine.begin() as tx:
        found: int = tx.execute(text(f"select count(*) from relevo.{what}")).scalar_one()
        return found


def stopped(running: Program, number: signal.Signals) -> None:
    """Send the signal; the command ends as the documentation says."""
    running.process.send_signal(number)
    code = running.ends(60)
    assert code == (130 if number is signal.SIGINT else -number)
    assert [line for line in running.lines if line] == []


def test_what_waits_for_a_lock_is_stopped_and_nothing_is_done(env: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    many = tmp_path / "many.jsonl"
    many.write_text("".join(json.dumps({"task": "shell", "title": f"{each}"}) + "\n" for each in range(2000)))
    for table, number, arguments in (
        ("item", signal.SIGINT, ["add", "line", "--from", str(many)]),
        ("item", signal.SIGTERM, ["add", "line", "--from", str(many)]),
        ("fact", signal.SIGINT, ["emit", "invoice.issued", "{}"]),
    ):
        with engine.connect() as holder, holder.begin():
            holder.execute(text(f"lock table relevo.{table} in access exclusive mode"))
            with program("-m", "app.cli", *arguments, env=env, cwd=tmp_path) as running:
                until(lambda: held(engine), 30, f"{arguments} waits")
                stopped(running, number)
    assert (count(engine, "item"), count(engine, "fact")) == (0, 0)


def test_lines_that_do_not_end_are_given_up(env: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    fifo = tmp_path / "lines"
    os.mkfifo(fifo)
    with program("-m", "app.cli", "add", "line", "--from", str(fifo), env=env, cwd=tmp_path) as running, fifo.open("w") as lines:
        lines.write('{"task": "shell"}\n')
        lines.flush()  # as `tail -f` would go on
        stopped(running, signal.SIGINT)
    assert count(engine, "item") == 0


def test_of_many_dead_letters_whole_portions_are_decided(env: dict[str, str], engine: Engine, tmp_path: Path) -> None:
    with engine.begin() as tx:
        letters.stream(tx)
        ids = letters.die(tx, ["it broke"] * 1200)
    with engine.connect() as holder, holder.begin():
        holder.execute(text("select from relevo.item where id = :last for update"), {"last": ids[-1]})
        with program("-m", "app.cli", "dead", "retry", "--plan", "mails", env=env, cwd=tmp_path) as running:
            until(lambda: held(engine), 30, "it waits")
            stopped(running, signal.SIGINT)
    assert count(engine, "item where state = 'failed'") == 200


EARLY = """
import os, signal, sys

class Early:
    def find_spec(self, name, *_):
        if name == "app.cli_add":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Early())
from relevo import main
main()
"""


def test_ctrl_c_while_it_is_loaded_ends_it_without_a_word(env: dict[str, str], tmp_path: Path) -> None:
    with program("-c", EARLY, env=env, cwd=tmp_path) as running:
        assert running.ends(60) == -signal.SIGINT
        assert running.lines == []
