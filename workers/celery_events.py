"""Celery's events (what Flower shows), sent without ever holding the worker up."""

from __future__ import annotations

from typing import Any

from celery.events.dispatcher import EventDispatcher


class PromptDispatcher(EventDispatcher):
    """Tries each event once; what cannot be sent is kept for the next connection, and a heartbeat then asks for one.

    Hook: Celery sends its heartbeat every 2 s from the worker's event loop, with endless retries. While a broker does not
    answer, the loop stands still: no lost connection is noticed, no time limit enforced, no stop obeyed.
    """

    def send(self, type: str, *args: Any, **kwargs: Any) -> Any:
        result = super().send(type, *args, **{**kwargs, "retry": False})
        if type == "worker-heartbeat" and self._outbound_buffer:
            # Raised in a timer of the loop, where Celery takes it as what it is: the connection is lost.
            raise ConnectionResetError("an event could not be sent")
        return result
