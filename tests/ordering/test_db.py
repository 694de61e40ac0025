"""Which errors of Postgres may pass, and which the values are to blame for."""

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError

from ordering import db


def raised(state: str) -> DBAPIError:
    return DBAPIError("select", None, psycopg.errors.lookup(state)("no"))


@pytest.mark.parametrize("state", ["55P03", "57014", "53100", "25006", "40001", "40P01", "57P01", "08006"])
def test_the_server_s_state_may_pass(state: str) -> None:
    assert db.may_pass(raised(state))


@pytest.mark.parametrize("state", ["22P05", "22021", "23505", "23514", "42703", "54000"])
def test_values_and_statements_do_not(state: str) -> None:
    assert not db.may_pass(raised(state))


def test_neither_does_what_is_no_error_of_postgres() -> None:
    assert not db.may_pass(ValueError("no"))


@pytest.mark.parametrize(("message", "said"), [("", "OperationalError"), (" \n", "OperationalError"), ("one\ntwo", "one")])
def test_of_an_error_one_line_is_said_whatever_the_driver_says(message: str, said: str) -> None:
    assert db.said(DBAPIError("select", None, psycopg.OperationalError(message))) == said
    assert db.said(psycopg.OperationalError(message)) == said
