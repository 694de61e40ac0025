"""Run-all and repair-all as commands: what they print, how they wait, and the exit code when something failed."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from app import cli_run, follow
from app.cli_errors import Gone
from ordering import add, clock, db, finish, items, plans, session
from ordering.model import NewItem, State
from tests.app.catalogues import written
from tests.app.commands import Relevo, ok, working
from tests.ordering.acts import ACTOR, BROKEN, DONE, PROCESS, claim, end, feed, lose, run

TWO_PLANS = """
    [plans.first]
    [[plans.first.items]]
    key = "a"
    title = "Ana"
    task = "shell"
    [[plans.first.items]]
    key = "b"
    title = "break"
    task = "shell"
    repair = { task = "shell" }
    [[plans.first.items]]
    key = "c"
    task = "shell"

    [plans.second]
    [[plans.second.items]]
    key = "d"
    task = "shell"
"""


@pytest.fixture
def both(relevo: Relevo, tmp_path: Path) -> Relevo:
    """Commands in a folder whose catalogue has the plans `first`, whose second of three entries fails, and `second`."""
    written(tmp_path, TWO_PLANS)
    return relevo


@pytest.fixture
def worker(engine: Engine) -> Iterator[None]:
    """Somebody who runs what the plans give."""
    with working(engine):
        yield


def states(engine: Engine) -> dict[str, str]:
    with engine.begin() as tx:
        return {row[0]: row[1] for row in tx.execute(text("select coalesce(entry, title), state from relevo.item"))}


def test_every_plan_of_the_catalogue_is_filled_and_started(both: Relevo, engine: Engine) -> None:
    said = ok(both("run-all"))
    assert said == "first: added 3 of 3 entries; run 1 is on.\nsecond: added 1 of 1 entries; run 2 is on.\n"
    assert states(engine) == dict.fromkeys("abcd", "waiting")
    again = ok(both("run-all"))
    assert "first: a is not added: waiting.\n" in again
    assert "first: added 0 of 3 entries; run 1 is on.\n" in again


def test_one_plan_and_its_keys_in_their_order(both: Relevo, engine: Engine) -> None:
    assert "added 2 of 2 entries" in ok(both("run-all", "first", "c", "a"))
    with engine.begin() as tx:
        assert list(tx.execute(text("select entry from relevo.item order by position")).scalars()) == ["c", "a"]


def test_another_catalogue_is_named(both: Relevo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELEVO_CATALOGUE", "relevo.toml")
    (tmp_path / "sub").mkdir()
    written(tmp_path / "sub", '[[plans.other.items]]\nkey = "k"\ntask = "shell"\n')
    assert ok(both("run-all", "--catalogue", "sub/relevo.toml")).startswith("other: added 1 of 1")


@pytest.mark.usefixtures("worker")
def test_waiting_ends_with_0_when_all_went_well(both: Relevo) -> None:
    said = ok(both("run-all", "second", "--wait"))
    assert said.splitlines()[0] == "second: added 1 of 1 entries; run 1 is on."
    assert said.splitlines()[-2].startswith("second 1/1 succeeded   ")
    assert said.splitlines()[-1] == "second: done, 1 of 1."


@pytest.mark.usefixtures("worker")
def test_waiting_ends_with_1_and_names_what_failed_and_a_repair_lets_the_rest_run(both: Relevo, engine: Engine) -> None:
    halted = both("run-all", "--wait")
    assert halted.code == 1
    assert "first 1/3 succeeded   1 Ana\n" in halted.out
    assert "first 2/3 failed      2 break: it broke\n" in halted.out
    assert "second: done, 1 of 1.\n" in halted.out  # the other plan has its end
    assert halted.err == (
        "relevo: Plan 'first' halted at 2 'break' (failed); see `relevo show ITEM`; retry, skip or resolve it, or `relevo repair-all`.\n"
    )
    blocked = both("run-all", "first", "--wait")
    assert (blocked.code, blocked.out) == (1, "")
    assert blocked.err.startswith("relevo: Plan 'first' has unresolved items: 2 'break' (failed)")
    with engine.begin() as tx:  # the repair must not fail as its entry did
        tx.execute(text("update relevo.item set title = 'mended' where id = 2"))
    repaired = ok(both("repair-all", "--wait"))
    assert "first: item 2 is repaired by item 5.\n" in repaired
    assert "second: nothing is unresolved; nothing was changed.\n" in repaired
    assert "1 Ana" not in repaired  # it ended before
    assert repaired.splitlines()[-1] == "first: done, 4 of 4."
    assert ok(both("repair-all", "--wait")).count("nothing was changed") == 2
    assert states(engine) == {"a": "succeeded", "b": "resolved", "Repair: mended": "succeeded", "c": "succeeded", "d": "succeeded"}


@pytest.mark.usefixtures("worker")
def test_a_run_that_drains_with_unresolved_items_is_no_success(both: Relevo, tmp_path: Path) -> None:
    written(tmp_path, TWO_PLANS.replace("[plans.first]", '[plans.first]\n    on_failure = "continue"', 1))
    drained = both("run-all", "first", "--wait")
    assert drained.code == 1
    assert "drained with unresolved items: 2 'break' (failed)" in drained.err


@pytest.mark.usefixtures("worker")
def test_a_stream_is_waited_for_until_nothing_is_left_of_it(both: Relevo, tmp_path: Path) -> None:
    written(tmp_path, TWO_PLANS.replace("[plans.first]", "[plans.first]\n    concurrency = 2\n    max_attempts = 1", 1))
    letters = both("run-all", "first", "--wait")
    assert letters.code == 1
    assert "first 3/3 " in letters.out
    assert "2 'break' (failed)" in letters.err
    again = ok(both("run-all", "first", "a", "--wait"))
    assert again.splitlines()[-1] == "first: done, 1 of 1.", "the dead letter was there before"


def test_a_plan_that_is_not_in_the_catalogue_can_be_repaired(both: Relevo, engine: Engine) -> None:
    with engine.begin() as tx:
        plans.create(tx, "own", actor=ACTOR)
        add.add(tx, "own", NewItem("shell"), actor=ACTOR)
        plans.start(tx, "own", actor=ACTOR)
        end(tx, BROKEN, "own")
    assert ok(both("repair-all", "own")) == "own: item 1 runs again.\n"


def test_a_process_that_may_still_run_an_item_is_waited_for(both: Relevo, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    ok(both("run-all", "second"))
    with engine.begin() as tx:
        lose(tx, run(tx, "second"), closed=False)
    monkeypatch.setattr(cli_run, "LET_GO", 0.0)
    refused = both("repair-all", "second")
    assert refused.refusal() == "Item 1 cannot run again yet: its process 4242 on host may still be running it; try again in some seconds."
    assert refused.code == 1
    assert both("retry", 1).refusal() == refused.refusal()
    monkeypatch.setattr(cli_run, "LET_GO", 30.0)

    def let_go() -> None:
        with engine.begin() as tx:
            tx.execute(text("update relevo.session set closed_at = now(), lost_at = now()"))

    later = threading.Timer(1, let_go)
    later.start()
    try:
        assert ok(both("repair-all", "second")) == "second: item 1 runs again.\n"
    finally:
        later.join()


def test_a_plan_that_nobody_knows_is_refused(both: Relevo) -> None:
    assert both("repair-all", "nobody").refusal().startswith("There is no plan 'nobody'")
    assert both("run-all", "nobody").refusal() == "relevo.toml: there is no plan 'nobody' in this catalogue (it has: first, second)."
    assert both("run-all", "first", "x").refusal().startswith("key: plan 'first' has no entry 'x'")


@pytest.fixture
def follower(engine: Engine) -> follow.Follower:
    """Of a run of the plan `line` with one item."""
    with engine.begin() as tx:
        plans.create(tx, "line", actor=ACTOR)
        add.add(tx, "line", NewItem("shell", title="one"), actor=ACTOR)
        run_id = plans.start(tx, "line", actor=ACTOR).id
        return follow.Follower("line", run_id, clock.now(tx))


def to_the_end(engine: Engine, follower: follow.Follower) -> follow.Look:
    return follow.follow(engine, follower, lambda look: None)


def test_a_paused_run_is_told(engine: Engine, follower: follow.Follower) -> None:
    with engine.begin() as tx:
        plans.pause(tx, "line", actor=ACTOR)
    assert follow.verdict(to_the_end(engine, follower)) == "Plan 'line' was paused; 1 items wait, `relevo start line` lets it go on."


def test_an_interruption_that_is_final_halts_and_one_that_may_pass_is_waited_for(
    engine: Engine, follower: follow.Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine.begin() as tx:
        claimed = run(tx)
        lose(tx, claimed)
        assert follower.look(tx).ended is None
    monkeypatch.setattr(follow, "UNRESOLVED_FOR", 0.2)
    assert "halted at 1 'one' (interrupted)" in str(follow.verdict(to_the_end(engine, follower)))
    monkeypatch.setattr(follow, "UNRESOLVED_FOR", 1000)
    with engine.begin() as tx:
        tx.execute(text("update relevo.dispatch set ended_at = now()"))
        assert follower.look(tx).ended == "halted"


def test_what_started_and_ended_is_told_once(engine: Engine, follower: follow.Follower) -> None:
    def told() -> list[str]:
        with engine.begin() as tx:
            return [item.state for item in follower.look(tx).changed]

    assert told() == []
    with engine.begin() as tx:
        fed = feed(tx)
    assert fed is not None
    assert told() == []
    with engine.begin() as tx:
        claimed = claim(tx, fed)
    assert (told(), told()) == ([State.RUNNING], [])
    with engine.begin() as tx:
        finish.finish(tx, claimed, DONE)
    assert (told(), told()) == ([State.SUCCEEDED], [])


def test_work_that_nobody_takes_up_is_not_waited_for_for_ever(
    engine: Engine, follower: follow.Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "STUCK", 0.1)
    with pytest.raises(Gone, match="Plan 'line': no worker has been there for 0 s"):
        to_the_end(engine, follower)
    with engine.connect() as process:
        session.open_(process, PROCESS)
        process.commit()
        with pytest.raises(Gone, match="no feeder has handed out what is due"):
            to_the_end(engine, follower)


def test_what_is_not_due_yet_is_waited_for(engine: Engine, follower: follow.Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "STUCK", 0.1)
    looks: list[follow.Look] = []

    def on_look(look: follow.Look) -> None:
        looks.append(look)
        if len(looks) == 3:
            with engine.begin() as tx:
                plans.pause(tx, "line", actor=ACTOR)

    with engine.begin() as tx:
        items.postpone(tx, 1, clock.now(tx) + timedelta(hours=1), actor=ACTOR)
    assert follow.follow(engine, follower, on_look).ended == "paused"


def test_a_database_that_stays_away_is_told(engine: Engine, follower: follow.Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "OUTAGE", 0.3)
    nowhere = db.engine("postgresql://x@127.0.0.1:1/x", pooled=False)
    with pytest.raises(Gone, match="Postgres has not answered"):
        to_the_end(nowhere, follower)
