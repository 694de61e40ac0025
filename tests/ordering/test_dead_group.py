"""What counts as one cause: the first line of an error without what differs from one letter to the next."""

import pytest
from sqlalchemy import Connection, text

PATTERN = text("select relevo.error_pattern(:error)")
GROUP = text("select relevo.error_group(:error)")


def pattern(tx: Connection, error: str | None) -> str | None:
    found: str | None = tx.execute(PATTERN, {"error": error}).scalar_one()
    return found


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        ("ValueError: it broke", "ValueError: it broke"),
        ("ValueError: it broke\n\n  File 'a.py', line 7", "ValueError: it broke"),
        ("\n \r\n  late: to say\r\nmore", "late: to say"),
        ("KeyError: 'ops'", 'KeyError: "…"'),
        ("KeyError: 'an\"na'", 'KeyError: "…"'),
        ('Missing "a b" and `c`, «d» and “e”.', 'Missing "…" and "…", "…" and "…".'),
        ("Can't open 'x' since it isn't there", "Can't open \"…\" since it isn't there"),
        ("Left open: 'x and on", 'Left open: "…"'),
        ("Boto3Error: 404 from 10.0.0.7:5432 after 1,5 s", "Boto3Error: # from # after # s"),
        ("app.v2.Refused: card_9fA8b declined", "app.v2.Refused: # declined"),
        ("S3: no", "S3: no"),
        ("no bucket S3 here", "no bucket # here"),
        ("user 3f2504e0-4f89-11d3-9a0c-0305e82c3301 is gone", "user # is gone"),
        ("no mail to ops.b@example.com today", "no mail to # today"),
        ("at 2026-11-29 22:04:13+00:00 the lock [1, 2, 3] was held", "at # the lock [#] was held"),
        ("at 2026-11-29 22:04:13.5 the lock [4] was held", "at # the lock [#] was held"),
        ("exit code -11", "exit code #"),
        ("a\t b   c", "a b c"),
        ("process lost: session 12, host web-1, process 4242, worker celery@web-1, open since 2026-11-29 22:04:13 UTC",
         "process lost: session #, host #, process #, worker # open since # UTC"),
        ("", None),
        (" \n ", None),
        (None, None),
        ("x" * 20_000, "x" * 200),
        ("\n" * 999 + "x", "x"),
        ("Refused: '" + "x" * 20_000, 'Refused: "…"'),
        ("Refused: " + "'x' " * 5_000, ("Refused: " + '"…" ' * 100)[:200]),
        ("\u202eevil\u0007\ufffd", "\u202eevil\u0007\ufffd"),
    ],
)  # fmt: skip
def test_what_differs_is_left_out(tx: Connection, error: str | None, wanted: str | None) -> None:
    assert pattern(tx, error) == wanted


def test_a_group_is_short_and_the_same_for_one_cause(tx: Connection) -> None:
    groups = [tx.execute(GROUP, {"error": error}).scalar_one() for error in ("A: no 1", "A: no 2", "A: yes 2", "", None)]
    assert groups[0] == groups[1] != groups[2]
    assert groups[3] == groups[4]
    assert {len(each) for each in groups} == {12}
