"""No connection crosses a fork: the child closes its copy of the descriptor and says no goodbye on it.

A copy that a forked child kept would hold the session's lock after the pool process died (rule 8), and a goodbye would end
the parent's session.
"""

from __future__ import annotations

import os
from typing import Any
from weakref import WeakSet

from sqlalchemy import Engine, event

_kept: WeakSet[Any] = WeakSet()


def guard(engine: Engine) -> Engine:
    """Watch over every connection that `engine` will open; returns the engine."""
    event.listen(engine, "connect", lambda raw, _record: _kept.add(raw))
    return engine


def _let_go() -> None:
    # The descriptor is replaced, not closed: libpq still holds its number and would write its goodbye into whatever gets it next.
    nothing = os.open(os.devnull, os.O_RDWR)
    for raw in list(_kept):
        if not raw.closed:
            os.dup2(nothing, raw.fileno(), inheritable=False)
    os.close(nothing)
    _kept.clear()


os.register_at_fork(after_in_child=_let_go)
