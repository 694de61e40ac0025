"""Calls that come twice: the second finds the answer of the first, also while the first is being made."""

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import calls
from ordering.calls import Answer
from ordering.errors import CallConflict, Invalid
from tests.ordering.rivals import race

DONE = Answer(201, '{"id": 1}')


def make(tx: Connection) -> Answer | None:
    known = calls.begin(tx, "ci", "key", "digest")
    if known is None:
        calls.end(tx, "ci", "key", DONE)
    return known


def test_the_same_call_again_has_the_first_answer_and_another_is_refused(tx: Connection) -> None:
    assert make(tx) is None
    assert make(tx) == DONE
    with pytest.raises(CallConflict, match="'key' was already used"):
        calls.begin(tx, "ci", "key", "other")
    assert calls.begin(tx, "somebody else", "key", "other") is None
    for key in ("", " ", "nul\0", "x" * 256):
        with pytest.raises(Invalid, match="Idempotency-Key"):
            calls.begin(tx, "ci", key, "digest")


def test_of_two_at_once_the_second_waits_for_the_answer_of_the_first(engine: Engine) -> None:
    assert race(engine, make, make) == DONE


def test_after_a_day_a_key_is_free_and_forgotten(tx: Connection) -> None:
    for key in "abcdefgh":
        calls.begin(tx, "ci", key, "digest")
    tx.execute(text("update relevo.call set at = now() - interval '25 hours'"))
    assert calls.begin(tx, "ci", "h", "other") is None
    calls.begin(tx, "ci", "new", "digest")
    assert set(tx.execute(text("select key from relevo.call")).scalars()) <= {"h", "new"}
