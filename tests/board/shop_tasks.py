"""The tasks of the shop that the screenshots show: some take their time, some fail as such things do."""

import os
import signal
import time
from typing import Any

from workers import celery


@celery.task(name="ship")
def ship(seconds: float = 0.0, fails: str = "") -> str:
    """Work for a while, then fail with this text or be done."""
    time.sleep(seconds)
    if fails:
        name, _, what = fails.partition(": ")
        raise type(name, (RuntimeError,), {"__module__": "shop"})(what)
    return "done"


@celery.task(name="post_accrual")
def post_accrual() -> None:
    """Lose the process halfway."""
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)


@celery.task(bind=True, name="onboard", max_retries=5)
def onboard(self: Any, account: int) -> str:
    """A workflow: steps whose results are kept, one of which fails at first, and a sleep of a fortnight."""
    created = self.step("create the account", _created, account)
    self.step("charge the first month", _charged, created, self.request.claimed.attempt, retries=3, delay=0.2)
    self.step("send the welcome", time.sleep, 0.4)
    self.sleep("trial", days=14)
    return str(self.step("first invoice", _created, account))


def _created(account: int) -> dict[str, Any]:
    time.sleep(0.6)
    return {"account": account, "currency": "EUR", "plan": "team"}


def _charged(created: dict[str, Any], attempt: int) -> dict[str, Any]:
    time.sleep(0.3)
    if attempt == 1:
        raise ConnectionError("the payment provider closed the connection")
    return {"charge": "ch_8841", "amount": "49.00", **created}


@celery.task(name="mail", on="invoice.issued", plan="mail", max_retries=0)
def mail(data: dict[str, Any]) -> None:
    """Send, or fail as mail does."""
    time.sleep(0.05)
    if data.get("bounces"):
        raise ConnectionRefusedError(f"mx.example.com:25 refused the message {data.get('number', 0)}")
    if data.get("template") == "dunning":
        raise KeyError("due_date")


@celery.task(name="render_report", plan="reports", max_retries=0)
def render_report(customer: int, broken: bool = False) -> None:
    """Render, or find what nobody expected."""
    time.sleep(0.1)
    if broken:
        raise ValueError(f"customer {customer} has no currency")
