"""The one Celery application. Its tasks are items of plans; what would run outside a plan is refused."""

from __future__ import annotations

from typing import Any

from celery import Celery
from celery.backends.base import DisabledBackend

from workers.enqueue import NotSupported
from workers.task import PlanTask

NO_RESULTS = "Results are kept in the item's history, not in a Celery result backend; see `relevo show ITEM`."


class PlanBackend(DisabledBackend):
    """No result backend: a result is a row. The calls that would need one say so."""

    def apply_chord(self, *args: Any, **kwargs: Any) -> Any:
        raise NotSupported("A chord would run outside a plan; put the tasks into one serial plan, in their order.")

    def _is_disabled(self, *args: Any, **kwargs: Any) -> Any:
        raise NotSupported(NO_RESULTS)

    wait_for = get_state = get_result = get_status = get_traceback = get_task_meta_for = get_many = _is_disabled


class PlanCelery(Celery):
    """Celery whose `send_task` adds an item, as `.delay()` does."""

    def send_task(self, name: str, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        task = self.tasks.get(name)
        if not isinstance(task, PlanTask):
            raise NotSupported(f"send_task: {name!r} is no task of a plan here; import its module, or use `relevo add`.")
        return task.apply_async(args, kwargs, **options)


celery = PlanCelery("relevo", task_cls=PlanTask, backend="workers.celeryapp:PlanBackend", set_as_current=True)
celery.conf.update(broker_url="memory://", broker_connection_retry_on_startup=True, task_ignore_result=True)
