"""`select relevo.emit(...)`: for any language, for a role that may do nothing else, whatever stands in its search path."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from ordering import facts, subscriptions
from ordering.db import sqlstate
from ordering.subscriptions import Subscription
from tests.ordering.acts import ACTOR

GRANT = "grant usage on schema relevo to relevo_test_emitter"


@pytest.fixture
def emitter(tx: Connection) -> Connection:
    """A transaction of a role that has what docs/facts.md says it needs, and nothing else; `draw` and `notify` hear `invoice.issued`."""
    for task in ("draw", "notify"):
        subscriptions.subscribe(tx, Subscription("invoice.issued", task, "hearing"), actor=ACTOR)
    tx.execute(text("create role relevo_test_emitter"))
    tx.execute(text(GRANT))
    tx.execute(text("set local role relevo_test_emitter"))
    return tx


def emit(tx: Connection, arguments: str) -> int:
    made: int = tx.execute(text(f"select relevo.emit({arguments})")).scalar_one()
    return made


def as_owner(tx: Connection, statement: str) -> Any:
    tx.execute(text("reset role"))
    return tx.execute(text(statement)).all()


def test_a_role_with_usage_on_the_schema_emits(emitter: Connection) -> None:
    made = emit(emitter, """'invoice.issued', '{"id": 1}', 'key'""")
    assert emit(emitter, """'invoice.issued', '{"id": 1}', 'key'""") == made
    emitter.execute(text("reset role"))
    found = facts.fact(emitter, made)
    assert (found.data, found.key, found.heard, [each.task for each in found.items]) == ({"id": 1}, "key", 2, ["draw", "notify"])


def test_data_and_key_may_be_left_out_and_named(emitter: Connection) -> None:
    for arguments in ("'invoice.issued'", "type => 'invoice.issued', key => 'k'", "'invoice.issued', data => '[1]'"):
        emit(emitter, arguments)
    assert as_owner(emitter, "select data, key from relevo.fact order by id") == [({}, None), ({}, "k"), ([1], None)]


@pytest.mark.parametrize(
    "statement",
    [
        "select * from relevo.fact", "select * from relevo.item", "insert into relevo.fact (type, data, heard) values ('a', '{}', 0)",
        "insert into relevo.subscription (type, task, plan_id) values ('a', 'b', 1)", "select nextval('relevo.stream_position')",
        "delete from relevo.subscription", "create table relevo.mine ()",
    ],
)  # fmt: skip
def test_it_may_do_nothing_else(emitter: Connection, statement: str) -> None:
    with pytest.raises(DBAPIError) as refused:
        emitter.execute(text(statement))
    assert sqlstate(refused.value) == "42501"


def test_without_usage_on_the_schema_it_may_not(tx: Connection) -> None:
    tx.execute(text("create role relevo_test_stranger"))
    tx.execute(text("set local role relevo_test_stranger"))
    with pytest.raises(DBAPIError) as refused:
        emit(tx, "'invoice.issued'")
    assert sqlstate(refused.value) == "42501"


HOSTILE = """
create schema hostile authorization relevo_test_emitter;
set local role relevo_test_emitter;
create table hostile.fact (id bigint, type text, data jsonb, key text, heard integer);
create table hostile.item (plan_id bigint, "position" numeric, task text, args jsonb, title text, fact_id bigint);
create table hostile.subscription (plan_id bigint, task text, type text);
insert into hostile.subscription values (1, 'stolen', 'invoice.issued');
create function hostile.nextval(text) returns bigint language sql as 'select 1 / 0';
create function hostile.nextval(regclass) returns bigint language sql as 'select 1 / 0';
create function hostile.jsonb_build_array(variadic "any") returns jsonb language internal as 'jsonb_build_array';
create function hostile.count(bigint) returns bigint language sql as 'select 1 / 0';
create function hostile.pg_notify(text, text) returns void language sql as 'select 1 / 0';
create function hostile.taken(text, text) returns boolean language plpgsql as
    $$begin raise exception 'the operator of the caller was used, as %', current_user; end$$;
create operator hostile.= (leftarg = text, rightarg = text, procedure = hostile.taken);
create operator hostile.!~ (leftarg = text, rightarg = text, procedure = hostile.taken);
create temp table fact as select * from hostile.fact;
create temp table item as select * from hostile.item;
create temp table subscription as select * from hostile.subscription;
set local search_path = hostile, pg_temp, relevo, pg_catalog;
"""


def test_what_stands_in_the_callers_search_path_is_not_used(emitter: Connection) -> None:
    emitter.execute(text("reset role"))
    temporary = "grant temporary on database " + emitter.dialect.identifier_preparer.quote(str(emitter.engine.url.database))
    emitter.execute(text(temporary + " to relevo_test_emitter"))
    for statement in HOSTILE.split(";\n"):
        if "internal" not in statement:  # only a superuser may make such a one
            emitter.execute(text(statement))
    with pytest.raises(DBAPIError, match="operator of the caller"), emitter.begin_nested():
        emitter.exec_driver_sql("select 'a'::text = 'a'::text")
    made = emit(emitter, """'invoice.issued', '{"id": 1}', 'key'""")
    assert emit(emitter, """'invoice.issued', '{"id": 1}', 'key'""") == made
    for name in ("hostile.fact", "hostile.item", "pg_temp.fact", "pg_temp.item"):
        assert emitter.exec_driver_sql(f"select count(*) from {name}").scalar_one() == 0
    emitter.exec_driver_sql("set local search_path = pg_catalog")
    assert as_owner(emitter, "select task, fact_id from relevo.item order by task") == [("draw", made), ("notify", made)]


REFUSED: dict[str, tuple[str, str, str]] = {
    "no type": ("null", "RV400", "type: null is not the name of a fact; use up to"),
    "an empty type": ("''", "RV400", "type: '' is not the name of a fact; use up to"),
    "a line end": (r"E'a\n'", "RV400", "type: 'a\n' is not the name of a fact"),
    "a type with a quote": ("'it''s'", "RV400", "type: 'it''s' is not the name of a fact"),
    "a long type": ("repeat('a', 201)", "RV400", "type: 'aaa"),
    "no data": ("'a', null", "RV400", "data: is missing or longer than 1,000,000 bytes"),
    "10 MB": ("'a', to_jsonb(repeat('x', 10000000))", "RV400", "data: is missing or longer than 1,000,000 bytes"),
    "a long number": ("""'a', '{"a": [1, 1e4300]}'""", "RV400", "data: holds a number of more than 4,300 digits; write it as a text."),
    "a long negative number": ("'a', '-1e4300'", "RV400", "data: holds a number of more than 4,300 digits"),
    "deep nesting": ("'a', (repeat('[', 101) || repeat(']', 101))::jsonb", "RV400", "data: is nested more than 100 levels deep"),
    "an empty key": ("'a', '{}', ''", "RV400", "key: is empty or longer than 500 characters"),
    "a long key": ("'a', '{}', repeat('k', 501)", "RV400", "key: is empty or longer than 500 characters"),
    "a key used otherwise": ("'used', '{}', 'k'", "RV409", "key: k was used for another fact of type used; use another key, or the"),
    "a NUL": (r"""'a', '"\u0000"'""", "22P05", "unsupported Unicode escape sequence"),
    "no JSON": ("'a', '{'", "22P02", "invalid input syntax for type json"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_call_is_refused_with_a_state_that_programs_can_tell(emitter: Connection, name: str) -> None:
    arguments, state, sentence = REFUSED[name]
    emit(emitter, "'used', '1', 'k'")
    with pytest.raises(DBAPIError) as refused, emitter.begin_nested():
        emit(emitter, arguments)
    assert sqlstate(refused.value) == state
    assert refused.value.orig is not None
    assert str(refused.value.orig).startswith(sentence)
    assert as_owner(emitter, "select type from relevo.fact") == [("used",)]


ALLOWED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "the longest number": ("('1' || repeat('0', 4299))::jsonb", lambda data: data == 10**4299),
    "many digits after the point": ("('{\"a\": 0.' || repeat('1', 5000) || '}')::jsonb", lambda data: 0.11 < data["a"] < 0.12),
    "digits as a text": ("to_jsonb(repeat('1', 5000))", lambda data: data == "1" * 5000),
    "the deepest nesting": ("(repeat('[', 100) || repeat(']', 100))::jsonb", lambda data: str(data) == "[" * 100 + "]" * 100),
    "much in one level": ("to_jsonb(array(select array[n, n] from generate_series(1, 5000) n))", lambda data: data[-1] == [5000, 5000]),
    "the JSON null": ("'null'", lambda data: data is None),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_just_allowed_can_be_read_by_a_worker(emitter: Connection, name: str) -> None:
    arguments, as_sent = ALLOWED[name]
    made = emit(emitter, f"'invoice.issued', {arguments}")
    emitter.execute(text("reset role"))
    assert as_sent(facts.fact(emitter, made).data)
    args = emitter.execute(text("select args from relevo.item limit 1")).scalar_one()
    assert as_sent(args[0])
