"""The session of a pool process in the process of a test, with an end to its watch: a pool process watches until it is gone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from workers import process
from workers.session import PoolSession


class _Ended(BaseException):
    """The watch looks for its database no more."""


class _Session(PoolSession):
    def __init__(self, database_url: str) -> None:
        self.over = threading.Event()
        super().__init__(database_url, process.myself("worker"))

    def _watch(self) -> None:
        with suppress(_Ended):
            super()._watch()
        self.over.set()


@contextmanager
def pool_session(database_url: str) -> Iterator[PoolSession]:
    """The session of this process, as that of a pool process."""
    made = _Session(database_url)
    try:
        yield made
    finally:
        with made._lock:
            made._connected = _ended  # type: ignore[method-assign]  # its watch asks here
            made._drop()
        assert made.over.wait(30)


def _ended() -> NoReturn:
    raise _Ended
