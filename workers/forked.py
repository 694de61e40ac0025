"""A child that user code forks ends where it would come out of that code: two processes must not go on with one claim."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, TypeVar

logger = logging.getLogger(__name__)
T = TypeVar("T")


def ends_here(call: Callable[[], T]) -> T:
    """What `call` returns or raises, in this process alone.

    A process that it forked and that comes out of it too, by a return or an exception, ends there: with 0, the code of its SystemExit,
    or 1. It would otherwise record the item's end, wait for the session's lock that its parent holds, and read the pool's next job.
    """
    mine = os.getpid()
    try:
        value = call()
    except BaseException as error:
        if os.getpid() != mine:
            _end(error)
        raise
    if os.getpid() != mine:
        _end(None)
    return value


def _end(error: BaseException | None) -> NoReturn:
    code = 1
    try:
        if isinstance(error, Exception):  # what else there is, is said on purpose: SystemExit, the platform's stop
            logger.error("Process %d, which a body forked, ended with an error.", os.getpid(), exc_info=error)
        code = _code(error)
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # what cannot be written is not worth more
                stream.flush()
    finally:
        os._exit(code)


def _code(error: BaseException | None) -> int:
    if error is None:
        return 0
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1
