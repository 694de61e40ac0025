"""Alembic's environment: one connection given by `ordering.db.migrate`, everything in the schema `relevo`."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="alembic_version",
    version_table_schema="relevo",
)
with context.begin_transaction():
    context.run_migrations()
