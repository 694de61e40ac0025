"""The kit of the cases, on servers of the test's own."""

from tests.cases.conftest import own_kit, own_postgres, own_valkey

__all__ = ["own_kit", "own_postgres", "own_valkey"]
