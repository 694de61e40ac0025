"""Alembic migrations of the schema `relevo`, forward only."""
