"""Migrations: the same schema however often and by however many they run, in `relevo` and nowhere else."""

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import Connection, Engine, make_url, text
from sqlalchemy.exc import DBAPIError

from ordering import db, schema
from ordering.errors import DatabaseUnreachable, Invalid, NotMigrated, UnknownSchema
from tests import servers
from tests.ordering.acts import ACTOR, order, plan, put

OBJECTS = """
    select 'column' as kind, table_name || '.' || column_name as name,
        concat_ws(' ', data_type, column_default, is_nullable, identity_generation) as definition
    from information_schema.columns where table_schema = 'relevo'
    union all select 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
    from pg_constraint where connamespace = 'relevo'::regnamespace
    union all select 'index', indexname, indexdef from pg_indexes where schemaname = 'relevo'
    union all select 'sequence', sequence_name, data_type from information_schema.sequences where sequence_schema = 'relevo'
    union all select 'function', proname, pg_get_functiondef(oid) from pg_proc where pronamespace = 'relevo'::regnamespace
    order by 1, 2
"""
OUTSIDE = """
    select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname not in ('relevo', 'information_schema') and n.nspname !~ '^pg_'
    union all select p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname not in ('relevo', 'information_schema') and n.nspname !~ '^pg_'
"""


def objects(url: str) -> list[tuple[str, str, str]]:
    with psycopg.connect(url) as connection:
        return connection.execute(OBJECTS).fetchall()


def test_migrated_twice_is_as_fresh(empty_database_url: str, database_url: str) -> None:
    db.migrate(empty_database_url)
    db.migrate(empty_database_url)
    found = objects(empty_database_url)
    assert found == objects(database_url)
    assert {"item_head", "item_line", "run_open"} <= {name for kind, name, _ in found if kind == "index"}


def test_a_migration_leaves_the_rows_alone(engine: Engine, database_url: str) -> None:
    with engine.begin() as tx:
        plan(tx)
        line = put(tx, 3)
    db.migrate(database_url)
    with engine.begin() as tx:
        assert order(tx) == line


def test_three_processes_at_once_migrate_once(empty_database_url: str, database_url: str) -> None:
    command = [sys.executable, "-c", "import sys; from ordering import db; db.migrate(sys.argv[1])", empty_database_url]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(3)]
    try:
        said = [process.communicate(timeout=50)[0] for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert [(process.returncode, text) for process, text in zip(running, said, strict=True)] == [(0, "")] * 3
    assert objects(empty_database_url) == objects(database_url)


def test_everything_lives_in_the_schema_relevo(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        assert connection.execute(OUTSIDE).fetchall() == []
        assert connection.execute("select version_num from relevo.alembic_version").fetchall()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_text_is_refused_by_its_encoding(server_url: str, encoding: str) -> None:
    with servers.database(server_url, encoding=encoding) as url:
        with pytest.raises(Invalid) as refusal:
            db.migrate(url)
        said = f"RELEVO_DATABASE_URL: names a database whose encoding is {encoding}; create one with encoding 'UTF8'."
        assert str(refusal.value) == said
        refused = db.engine(url, pooled=False)
        with pytest.raises(NotMigrated):
            schema.check_at(refused)


def test_what_the_callers_environment_says_of_sessions_is_not_said_of_ours(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGCLIENTENCODING": "SQL_ASCII", "PGTZ": "Pacific/Chatham", "PGDATESTYLE": "German"}.items():
        monkeypatch.setenv(name, value)
    made = db.engine(database_url)
    try:
        with made.begin() as tx:
            assert plan(tx, "line", title="ü€😀").title == "ü€😀"
            assert tx.execute(text("select now()")).scalar_one().tzname() == "UTC"
    finally:
        made.dispose()


def test_a_users_own_tables_of_the_same_names_are_left_alone(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        for name in ("item", "event", "plan", "alembic_version"):
            connection.execute(f"create table {name} (version_num text)")
            connection.execute(f"insert into {name} values ('mine')")
        db.migrate(empty_database_url)
        for name in ("item", "event", "plan", "alembic_version"):
            assert connection.execute(f"select * from public.{name}").fetchall() == [("mine",)]


def test_a_schema_of_a_newer_release_is_left_alone(engine: Engine, database_url: str) -> None:
    with engine.begin() as tx:
        tx.execute(text("update relevo.alembic_version set version_num = '9999'"))
    with pytest.raises(UnknownSchema, match="a newer Relevo has prepared it"):
        db.migrate(database_url)
    with engine.begin() as tx:
        assert tx.execute(text("select version_num from relevo.alembic_version")).scalar_one() == "9999"


def test_a_server_that_does_not_answer_is_unreachable(database_url: str) -> None:
    for url in ("postgresql://nobody@127.0.0.1:1/relevo", make_url(database_url).set(database="nowhere").render_as_string(False)):
        with pytest.raises(DatabaseUnreachable, match=r"^Postgres is unreachable: "):
            db.migrate(url)


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://localhost/relevo", "redis://localhost"])
def test_what_is_no_url_of_postgres_is_refused_by_name(url: str) -> None:
    with pytest.raises(Invalid, match=r"^RELEVO_DATABASE_URL: ") as refusal:
        db.engine(url)
    assert str(refusal.value).endswith(".")


#: What our sessions say, as Postgres shows it.
OURS = {name: value.replace("\\", "").replace(",", ", ") for name, value in db.SESSION_SETTINGS.items()}


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_any_form_of_the_url_is_accepted(database_url: str, scheme: str) -> None:
    made = db.engine(make_url(database_url).set(drivername=scheme).render_as_string(False))
    with made.connect() as tx:
        assert tx.execute(text("show application_name")).scalar_one() == "relevo"
        said = text("select setting from pg_settings where lower(name) = :name")
        for name, value in OURS.items():
            assert tx.execute(said, {"name": name}).scalar_one() in (value, "0")
    made.dispose()


OTHERWISE = {
    "idle_session_timeout": "1000",
    "default_transaction_isolation": "serializable",
    "datestyle": "SQL, DMY",
    "intervalstyle": "sql_standard",
    "timezone": "Pacific/Chatham",
    "extra_float_digits": "-5",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "jit": "on",
}


def test_what_a_database_says_of_its_sessions_is_not_said_of_ours(database_url: str, engine: Engine) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as admin:
        for name, value in OTHERWISE.items():
            assert OURS[name] != value
            admin.execute(text(f"""alter database "{make_url(database_url).database}" set {name} = '{value}'"""))
    made = db.engine(database_url)
    try:
        with made.begin() as tx:
            for name in OTHERWISE:
                assert tx.execute(text("select current_setting(:name)"), {"name": name}).scalar_one() == OURS[name]
            assert plan(tx, "line").keep == timedelta(days=30)
    finally:
        made.dispose()


def failing(times: int, state: str, answers: list[int]) -> Callable[[Connection], str]:
    def verb(tx: Connection) -> str:
        answers.append(len(answers))
        if len(answers) <= times:
            tx.execute(text(f"do $$ begin raise exception using errcode = '{state}'; end $$"))
        plan(tx, "line", title=ACTOR)
        return "done"

    return verb


@pytest.mark.parametrize("state", sorted(db.RETRIED))
@pytest.mark.parametrize("times", [1, db.TRIES - 1, db.TRIES])
def test_what_postgres_asks_to_be_repeated_is_repeated_a_few_times(engine: Engine, state: str, times: int) -> None:
    tries: list[int] = []
    if times < db.TRIES:
        assert db.transact(engine, failing(times, state, tries)) == "done"
    else:
        with pytest.raises(DBAPIError):
            db.transact(engine, failing(times, state, tries))
    assert len(tries) == min(times + 1, db.TRIES)


def test_any_other_error_is_raised_at_once(engine: Engine) -> None:
    tries: list[int] = []
    with pytest.raises(DBAPIError) as error:
        db.transact(engine, failing(1, "23505", tries))
    assert (len(tries), db.sqlstate(error.value), db.is_disconnect(error.value)) == (1, "23505", False)
