"""The commands on plans and items: what they do, what they print."""

from sqlalchemy import Engine, text

from ordering import add, finish
from ordering.model import NewItem
from tests.app.commands import Relevo, objects, ok
from tests.ordering.acts import ACTOR, BROKEN, end, feed, order


def waiting(engine: Engine) -> list[int]:
    with engine.begin() as tx:
        return order(tx)


def fail_the_head(engine: Engine) -> int:
    with engine.begin() as tx:
        return end(tx, BROKEN)


def test_plans_are_created_and_listed(relevo: Relevo) -> None:
    assert ok(relevo("plan", "create", "b", "--title", "Title", "--on-failure", "continue")) == "Created plan b.\n"
    ok(relevo("plan", "create", "a", "--autostart", "--max-attempts", 3, "--stop-grace", "1m", "--on-interrupt", "requeue"))
    header, first, second = ok(relevo("plan", "list")).splitlines()
    assert header.split()[:3] == ["PLAN", "STATUS", "WAITING"]
    assert first.split()[:3] == ["a", "new", "0"]
    assert second.rstrip().endswith("Title")
    a, b = objects(relevo("plan", "list", "--json"))
    assert (a["name"], a["autostart"], a["max_attempts"], a["on_interrupt"]) == ("a", True, 3, "requeue")
    assert (b["on_failure"], b["counts"]["waiting"], b["head"], b["run"]) == ("continue", 0, None, None)


def test_items_are_added_where_one_says(line: Relevo, engine: Engine) -> None:
    assert ok(line("add", "line", "shell")) == "Added item 4 to line.\n"
    ok(line("add", "line", "shell", "--first"))
    ok(line("add", "line", "shell", "--after", 1))
    ok(line("add", "line", "shell", "--before", 3))
    assert waiting(engine) == [5, 1, 6, 2, 7, 3, 4]


def test_the_options_of_an_item_are_kept(line: Relevo, engine: Engine) -> None:
    options = ["--title", "T", "--kind", "audit", "--key", "k", "--on-interrupt", "requeue", "--max-attempts", "7", "--actor", "ana"]
    ((added),) = objects(line("add", "line", "http", '["positional"]', *options, "--not-before", "2030-01-31T10:00:00+01:00", "--json"))
    shown = objects(line("show", added["id"], "--json"))[0]
    item = shown["item"]
    assert (item["title"], item["kind"], item["key"], item["on_interrupt"], item["max_attempts"]) == ("T", "audit", "k", "requeue", 7)
    assert (item["args"], item["kwargs"], item["not_before"]) == (["positional"], {}, "2030-01-31T09:00:00Z")
    assert shown["events"][0]["actor"] == "ana"


def test_a_delay_counts_from_the_databases_now(line: Relevo, engine: Engine) -> None:
    ok(line("add", "line", "shell", "--delay", "1h30m"))
    with engine.begin() as tx:
        late = tx.execute(text("select not_before - created_at from relevo.item where id = 4")).scalar_one()
    assert 5399 < late.total_seconds() <= 5400  # counted from the start of the transaction


def test_the_same_key_and_content_is_the_same_item(line: Relevo) -> None:
    assert ok(line("add", "line", "shell", "--key", "k")) == "Added item 4 to line.\n"
    assert ok(line("add", "line", "shell", "--key", "k")) == "Item 4 of line has this key and content already.\n"
    other = line("add", "line", "shell", "--key", "k", "--title", "other")
    assert (other.code, other.refusal()[:18]) == (2, "key: 'k' was alrea")


def test_an_item_moves_and_the_order_that_was_seen_is_checked(line: Relevo, engine: Engine) -> None:
    ok(line("move", 3, "--first"))
    assert waiting(engine) == [3, 1, 2]
    ok(line("move", 3, "--last", "--seen", 2))
    ok(line("move", 1, "--after", 2, "--seen", 3))
    ok(line("move", 2, "--before", 3, "--seen", 1))
    assert waiting(engine) == [1, 2, 3]
    stale = line("move", 3, "--after", 1, "--seen", "end")
    assert (stale.code, "The order has changed" in stale.refusal()) == (2, True)
    assert waiting(engine) == [1, 2, 3]


def test_an_item_is_edited(line: Relevo) -> None:
    ok(line("edit", 1, "--args", '{"command": ["false"]}', "--title", "new", "--kind", "fix", "--task", "http", "--max-attempts", 2))
    item = objects(line("show", 1, "--json"))[0]["item"]
    assert (item["kwargs"], item["args"], item["title"], item["kind"]) == ({"command": ["false"]}, [], "new", "fix")
    assert (item["task"], item["max_attempts"]) == ("http", 2)


def test_an_item_is_postponed_and_brought_back(line: Relevo, engine: Engine) -> None:
    assert "is postponed until 20" in ok(line("postpone", 1, "--for", "2h", "--reason", "later"))
    assert ok(line("postpone", 2, "--until", "2030-01-31T09:00:00Z")) == "Item 2 is postponed until 2030-01-31T09:00:00Z.\n"
    assert waiting(engine) == [3]
    assert ok(line("postpone", 1, "--for", "0s")) == "Item 1 is back in the line.\n"
    assert waiting(engine) == [1, 3]
    assert "not before 2030-01-31T09:00:00Z" in ok(line("plan", "show", "line"))


def test_items_are_cancelled_together_or_not_at_all(line: Relevo, engine: Engine) -> None:
    assert line("cancel", 1, 99).code == 2
    assert waiting(engine) == [1, 2, 3]
    assert ok(line("cancel", 1, 3, 1)) == "Cancelled items 1, 3.\n"
    assert waiting(engine) == [2]


def test_a_plan_is_started_and_paused(line: Relevo) -> None:
    assert ok(line("start", "line")) == "Plan line started (run 1, on failure: halt).\n"
    assert ok(line("start", "line", "--on-failure", "continue")) == "Plan line is running (run 1, on failure: continue).\n"
    assert ok(line("pause", "line")) == "Plan line is paused.\n"
    assert line("pause", "line").refusal() == "Plan 'line' is not running, so there is nothing to pause."


def test_a_blocked_plan_is_not_started_and_decisions_free_it(line: Relevo, engine: Engine) -> None:
    ok(line("start", "line", "--on-failure", "continue"))
    failed = [fail_the_head(engine) for _ in range(3)]
    with engine.begin() as tx:
        feed(tx)
    blocked = line("start", "line")
    assert (blocked.code, blocked.refusal()) == (
        1,
        "Plan 'line' has unresolved items: 1 'one' (failed), 2 'two' (failed), 3 'three' (failed); "
        "retry, skip or resolve each of them first.",
    )
    assert ok(line("skip", failed[0], "--note", "obsolete")) == "Skipped item 1.\n"
    assert ok(line("resolve", failed[1], "--note", "by hand")) == "Resolved item 2.\n"
    assert ok(line("retry", failed[2])) == "To run again: item 3.\n"
    ok(line("start", "line"))
    twice = line("retry", failed[2])
    assert (twice.code, twice.refusal()) == (2, "Item 3 is waiting, so it cannot be retried; it is queued already.")


def test_a_plan_is_shown_with_everything_that_matters(line: Relevo, engine: Engine) -> None:
    ok(line("start", "line"))
    fail_the_head(engine)
    ok(line("postpone", 3, "--for", "1h"))
    said = ok(line("plan", "show", "line"))
    assert said.startswith("line: halted (1 waiting, 1 postponed, 1 failed); run 1 (halt) since 20")
    for part in ("Unresolved:", "it broke", "Line:", "two", "Postponed:", "three"):
        assert part in said
    (shown,) = objects(line("plan", "show", "line", "--json"))
    assert [each["id"] for each in shown["unresolved"]] == [1]
    assert shown["plan"]["head"]["id"] == 1
    assert shown["now"].endswith("Z")


def test_a_long_line_is_shown_page_by_page(line: Relevo) -> None:
    first = objects(line("plan", "show", "line", "--limit", 2, "--json"))[0]
    second = objects(line("plan", "show", "line", "--limit", 2, "--after", first["next"], "--json"))[0]
    assert [each["id"] for each in first["line"] + second["line"]] == [1, 2, 3]
    assert second["next"] is None
    assert f"relevo plan show line --after {first['next']}" in ok(line("plan", "show", "line", "--limit", 2))


def test_an_item_is_shown_with_its_attempts_output_and_trail(line: Relevo, engine: Engine) -> None:
    from ordering import attempt
    from tests.ordering.acts import run

    ok(line("start", "line"))
    with engine.begin() as tx:
        claimed = run(tx)
        attempt.write_output(tx, 1, 1, head="first line\n\x1b[31mred\x1b[0m \x1b]0;evil\x07", tail="the end", left_out=9)
    said = ok(line("show", 1))
    assert "Item 1 of plan line: running at the head" in said
    assert "Attempt 1: running" in said
    assert "    first line\n    red \\x1b]0;evil\\x07\n    [9 bytes left out]\n    the end\n" in said
    with engine.begin() as tx:
        finish.finish(tx, claimed, BROKEN)
    said = ok(line("show", 1))
    assert "Attempt 1: failed" in said
    assert "it broke" in said
    assert "Trail:" in said


def test_nothing_that_a_job_wrote_steers_the_terminal(line: Relevo, engine: Engine) -> None:
    with engine.begin() as tx:
        add.add(
            tx,
            "line",
            NewItem("shell", title="\x1b[2J\u202eevil\r\n[bold red]x[/] \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")),
            actor=ACTOR,
        )
    for said in (ok(line("plan", "show", "line")), ok(line("show", 4))):
        assert "\\x1b[2J\\u202eevil [bold red]x[/] 😀" in said
        assert all(char.isprintable() or char == "\n" for char in said)


def test_reconcile_marks_what_has_no_process(line: Relevo, engine: Engine) -> None:
    from tests.ordering.acts import run

    ok(line("start", "line"))
    with engine.begin() as tx:
        run(tx)
    assert ok(line("reconcile")) == "1 lost process was found; what they ran is marked.\n"
    assert objects(line("show", 1, "--json"))[0]["item"]["state"] == "interrupted"
