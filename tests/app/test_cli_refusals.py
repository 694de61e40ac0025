"""What the commands refuse: one sentence on stderr, the documented exit code, and nothing changed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from ordering import add, db, items, plans
from ordering.model import NewItem, State
from tests import servers
from tests.app.commands import Answer, Relevo, ok
from tests.ordering.acts import ACTOR, BROKEN, end, feed


@pytest.fixture(scope="module")
def unchanged(server_url: str, template: str) -> Iterator[Engine]:
    """One database for all wrong calls, since they change nothing: a plan `line` with the items 1, 2 and 3."""
    with servers.database(server_url, template) as url:
        made = db.engine(url)
        with made.begin() as tx:
            plans.create(tx, "line", actor=ACTOR)
            add.add_many(tx, "line", [NewItem("shell") for _ in range(3)], actor=ACTOR)
        yield made
        made.dispose()


@pytest.fixture
def untouched(unchanged: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Relevo:
    """Commands on that database."""
    monkeypatch.setenv("RELEVO_DATABASE_URL", unchanged.url.render_as_string(hide_password=False))
    monkeypatch.setenv("RELEVO_BROKER_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("RELEVO_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Relevo(capsys)


@pytest.mark.parametrize(
    ("call", "code", "sentence"),
    [
        ("plan show nobody", 2, "There is no plan 'nobody'"),
        ("start nobody", 2, "There is no plan 'nobody'"),
        ("pause nobody", 2, "There is no plan 'nobody'"),
        ("add nobody shell", 2, "There is no plan 'nobody'"),
        ("add line nothing", 2, "No worker has offered a task 'nothing'"),
        ("edit 1 --task nothing", 2, "No worker has offered a task 'nothing'"),
        ("show 99", 2, "There is no item 99"),
        ("move 99 --first", 2, "There is no item 99"),
        ("edit 99 --title x", 2, "There is no item 99"),
        ("postpone 99 --for 1s", 2, "There is no item 99"),
        ("cancel 99", 2, "There is no item 99"),
        ("retry 99", 2, "There is no item 99"),
        ("skip 99", 2, "There is no item 99"),
        ("resolve 99 --note x", 2, "There is no item 99"),
        ("retry 1", 2, "Item 1 is waiting, so it cannot be retried"),
        ("move 1 --after 99", 2, "Item 99 cannot be the neighbour of a move: it is not there"),
        ("move 1", 2, "place: is missing"),
        ("move 1 --first --last", 2, "place: is given more than once"),
        ("move 1 --after 2 --before 3", 2, "place: is given more than once"),
        ("move 1 --first --seen x", 2, "--seen: 'x' is neither"),
        ("move x --first", 2, "Invalid value for 'ITEM': 'x' is not an item's number"),
        ("move 0 --first", 2, "Invalid value for 'ITEM': '0' is not an item's number"),
        ("show 99999999999999999999", 2, "Invalid value for 'ITEM'"),
        ("move 1 --after -1", 2, "Invalid value for '--after': '-1' is not an item's number"),
        ("edit 1", 2, "edit: changes nothing"),
        ("edit 1 --args 3", 2, "--args: must be a JSON object"),
        ("edit 1 --max-attempts 0", 2, "Invalid value for '--max-attempts'"),
        ("postpone 1", 2, "time: must be given once"),
        ("postpone 1 --for 1h --until 2030-01-01T00:00Z", 2, "time: must be given once"),
        ("postpone 1 --for never", 2, "--for: 'never' is not a duration"),
        ("postpone 1 --for -1h", 2, "--for: '-1h' is not a duration"),
        ("postpone 1 --until tomorrow", 2, "--until: 'tomorrow' is not a time"),
        ("postpone 1 --until 2030-01-01T00:00", 2, "--until: '2030-01-01T00:00' has no time zone"),
        ("postpone 1 --until 9999-01-01T00:00Z", 2, "until: is more than ten years away"),
        ("add line", 2, "TASK: is missing"),
        ("add line shell {", 2, "ARGS-JSON: is not JSON"),
        ("add line shell 3", 2, "ARGS-JSON: must be a JSON object"),
        ("add line shell {\"a\":NaN}", 2, "args: is not JSON"),
        ("add line shell --delay 1h --not-before 2030-01-01T00:00Z", 2, "--delay: does not go with --not-before"),
        ("add line shell --first --after 1", 2, "place: is given more than once"),
        ("add line shell --after 99", 2, "Item 99 cannot be the neighbour"),
        ("add line shell --on-interrupt maybe", 2, "Invalid value for '--on-interrupt'"),
        ("add line shell --from x", 2, "TASK: does not go with --from"),
        ("add line --from x --title y", 2, "--title: does not go with --from"),
        ("add line --from nowhere", 2, "--from: 'nowhere' cannot be read"),
        ("plan create line", 2, "There is a plan 'line' already"),
        ("plan create Line", 2, "plan: 'Line' is not a plan name"),
        ("plan create x --stop-grace 2d", 2, "stop_grace: is out of range"),
        ("plan create x --concurrency 0", 2, "Invalid value for '--concurrency'"),
        ("plan show line --after x", 2, "cursor: 'x' is none"),
        ("plan show line --limit -1", 2, "Invalid value for '--limit'"),
        ("resolve 1", 2, "Missing option '--note'"),
        ("start line --on-failure stop", 2, "Invalid value for '--on-failure'"),
        ("start line --actor ", 2, "actor: is empty"),
        ("nonsense", 2, "No such command 'nonsense'"),
        ("start line --nonsense", 2, "No such option: --nonsense"),
        ("start", 2, "Missing argument 'PLAN'"),
        ("start line more", 2, "Got unexpected extra argument"),
        ("--nonsense", 2, "No such option: --nonsense"),
        ("run-all", 2, "relevo.toml: there is no such file"),
        ("repair-all", 2, "relevo.toml: there is no such file"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_one_sentence_and_changes_nothing(
    untouched: Relevo, unchanged: Engine, call: str, code: int, sentence: str
) -> None:
    with unchanged.begin() as tx:
        before = tx.execute(text("select count(*) from relevo.event")).scalar_one()
    answer = untouched(*call.split(" "))
    assert answer.refusal().startswith(sentence)
    assert answer.code == code
    with unchanged.begin() as tx:
        assert tx.execute(text("select count(*) from relevo.event")).scalar_one() == before


def test_a_move_next_to_what_is_out_is_refused(line: Relevo, engine: Engine) -> None:
    ok(line("start", "line"))
    with engine.begin() as tx:
        feed(tx)
    assert line("move", 3, "--after", 1).refusal().startswith("Item 1 cannot be the neighbour of a move: it is dispatched")
    assert line("move", 1, "--last").refusal() == "Item 1 is dispatched; only waiting and postponed items move."


def test_a_note_is_needed_and_must_say_something(line: Relevo, engine: Engine) -> None:
    ok(line("start", "line"))
    with engine.begin() as tx:
        end(tx, BROKEN)
    assert line("resolve", 1, "--note", " ").refusal() == "note: is empty; say how it was resolved."
    with engine.begin() as tx:
        assert items.get(tx, 1).state is State.FAILED


def test_a_defect_of_ours_is_told_without_a_traceback(relevo: Relevo, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a\nb")

    monkeypatch.setattr(plans, "pause", broken)
    answer = relevo("pause", "line")
    assert answer.code == 1
    assert answer.refusal().startswith("Relevo has a defect: ZeroDivisionError: a b.")


@pytest.mark.parametrize(
    ("name", "value", "code", "sentence"),
    [
        ("RELEVO_DATABASE_URL", "mysql://x", 2, "RELEVO_DATABASE_URL is not a URL that can be used"),
        ("RELEVO_DATABASE_URL", "postgresql://x@127.0.0.1:1/x", 3, "Postgres is unreachable: "),
        ("RELEVO_LOG", "loud", 2, "RELEVO_LOG is 'loud'"),
        ("RELEVO_PORT", "http", 2, "RELEVO_PORT is 'http'"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_named(relevo: Relevo, monkeypatch: pytest.MonkeyPatch, name: str, value: str, code: int, sentence: str) -> None:
    monkeypatch.setenv(name, value)
    answer = relevo("plan", "list")
    assert answer.refusal().startswith(sentence)
    assert answer.code == code


def test_without_urls_and_without_a_platform_it_says_how_to_start_one(relevo: Relevo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELEVO_DATABASE_URL")
    answer = relevo("plan", "list")
    assert answer.code == 3
    assert "`relevo up --detach` starts it" in answer.refusal()
    assert relevo("down").out == "No platform is up; there was nothing to stop.\n"
    assert relevo("status").code == 3


def test_a_database_without_our_schema_is_prepared_by_migrate(
    relevo: Relevo, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELEVO_DATABASE_URL", empty_database_url)
    answer = relevo("plan", "list")
    assert answer.code == 2
    assert "run `relevo migrate`" in answer.refusal()
    assert relevo("migrate").code == 0
    assert relevo("migrate").code == 0
    assert relevo("plan", "list", "--json") == Answer(0, "", "")
