"""The settings of a plan on the command line: how long what is settled stays, and a stream's rate."""

import pytest

from tests.app.commands import Relevo, objects, ok


def shown(relevo: Relevo, plan: str) -> tuple[float, str | None, str]:
    (found,) = objects(relevo("plan", "show", plan, "--json"))
    return found["plan"]["keep"], found["plan"]["rate"], found["plan"]["title"]


def test_keep_and_rate_are_given_edited_and_shown(relevo: Relevo) -> None:
    ok(relevo("plan", "create", "stream", "--concurrency", 4, "--keep", "12h", "--rate", "100/m"))
    assert shown(relevo, "stream") == (43_200, "100/m", "")
    assert "What is settled stays for 12h. At most 100/m are handed out.\n" in ok(relevo("plan", "show", "stream"))
    assert ok(relevo("plan", "edit", "stream", "--rate", "none", "--title", "T")) == "Plan stream is changed.\n"
    assert shown(relevo, "stream") == (43_200, None, "T")
    ok(relevo("plan", "edit", "stream", "--keep", "1d2h3m4s", "--rate", "5/h", "--on-failure", "continue", "--autostart"))
    assert "What is settled stays for 1d2h3m4s. At most 5/h are handed out.\n" in ok(relevo("plan", "show", "stream"))
    (found,) = objects(relevo("plan", "list", "--json"))
    assert (found["on_failure"], found["autostart"], found["title"]) == ("continue", True, "T")
    assert found["concurrency"] == 4
    ok(relevo("plan", "edit", "stream", "--concurrency", 16))
    assert objects(relevo("plan", "list", "--json"))[0]["concurrency"] == 16
    ok(relevo("plan", "edit", "stream", "--no-autostart"))
    assert objects(relevo("plan", "list", "--json"))[0]["autostart"] is False


def test_a_plan_keeps_thirty_days_unless_told(line: Relevo) -> None:
    assert shown(line, "line") == (30 * 86_400, None, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["edit", "line"], "edit: changes nothing; give at least one of title,"),
        (["edit", "line", "--keep", "0s"], "keep: is out of range; use one second to ten years."),
        (["edit", "line", "--keep", "soon"], "--keep: 'soon' is not a duration;"),
        (["edit", "line", "--rate", "1/s"], "rate: is for streams; this plan has one item out at a time"),
        (["edit", "line", "--concurrency", "4"], "concurrency: is 1, since 'line' is a serial plan; create a stream for"),
        (["edit", "line", "--rate", "fast"], "rate: 'fast' is not a rate;"),
        (["edit", "nobody", "--keep", "1d"], "There is no plan 'nobody';"),
        (["create", "p", "--rate", "1/s"], "rate: is for streams;"),
        (["create", "p", "--concurrency", "2", "--rate", "0"], "rate: is out of range;"),
        (["create", "p", "--keep", "5000d"], "--keep: is more than ten years;"),
    ],
)
def test_what_is_wrong_is_one_sentence(line: Relevo, words: list[str], said: str) -> None:
    answer = line("plan", *words)
    assert answer.code == 2
    assert answer.refusal().startswith(said)
