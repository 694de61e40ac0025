"""Celery lives here and nowhere else: `from workers import celery` is the one application; `emit` stores a fact, `volatile` calls."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celery import Celery

    from workers.facts import emit as emit
    from workers.volatile_work import volatile as volatile
    from workers.volatile_work import volatile_shutdown as volatile_shutdown

    celery: Celery


def __getattr__(name: str) -> Any:
    # Lazily, so that a command that only needs settings or the database does not load Celery (0.3 s).
    if name == "celery":
        from workers.celeryapp import celery

        return celery
    if name == "emit":
        from workers.facts import emit

        return emit
    if name in ("volatile", "volatile_shutdown"):
        from workers import volatile_work

        return getattr(volatile_work, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
