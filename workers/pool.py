"""What one pool process holds: its session and its publisher, made after the fork."""

from __future__ import annotations

import contextlib
import os

from billiard.process import current_process
from celery import current_app

from ordering.model import Dispatch
from workers import feeding, process, settings, slate
from workers.publish import Publisher
from workers.session import PoolSession

_session: PoolSession | None = None
_publisher: Publisher | None = None
_pid: int | None = None
worker_name = "worker"  # set in the parent, before the forks


def begin(**_: object) -> None:
    """Called by Celery in each new pool process: a process group of its own, so that a cancel hits it and nothing else, and a session."""
    global _session, _publisher, _pid
    with contextlib.suppress(PermissionError):  # a session leader already leads a group
        os.setpgid(0, 0)
    _pid = os.getpid()
    slate.begin(current_process().index)
    _session = PoolSession(settings.load().require_database(), process.myself(worker_name))
    _publisher = Publisher(current_app._get_current_object())


def is_begun() -> bool:
    """Whether this is a pool process."""
    return _session is not None


def is_forked() -> bool:
    """Whether a body forked this process: what it finds of the pool process is its parent's."""
    return _pid is not None and _pid != os.getpid()


def session() -> PoolSession:
    """This pool process's session."""
    assert _session is not None, "a task of a plan runs in a pool process of `relevo worker`"
    return _session


def publish(dispatches: list[Dispatch]) -> None:
    """Tell the broker what was handed out, and the session's watch that the broker took it."""
    assert _publisher is not None
    session().published.extend(feeding.publish(_publisher, dispatches))
