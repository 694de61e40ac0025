"""What emitting adds to a request: the shop's handlers with and without it, in turn, in one run."""

from __future__ import annotations

import random
import statistics
import sys
import time

import httpx

from benchmarks.rig import Rig, wait_for
from ordering import db, subscriptions
from ordering.subscriptions import Subscription

Row = tuple[str, float, str]
WARM, COUNT = 100, 1500
HEARING = 3  # tasks that hear the fact


def emit(rig: Rig) -> list[Row]:
    """One client, one request after the other: an invoice, which emits to three tasks, or a draft, which is the same without.

    Nobody consumes meanwhile: consumers would cost the next request, which is a draft as often as not. So each emit finds its
    plans idle and notifies, which is the dearer case.
    """
    socket = rig.folder / "web.sock"
    socket.unlink(missing_ok=True)
    with rig.database() as (url, engine):
        wanted = [Subscription("invoice.issued", f"hearing-{number}", f"plan-{number}") for number in range(HEARING)]
        db.transact(engine, lambda tx: subscriptions.subscribe_all(tx, wanted, actor="benchmark"))
        command = [sys.executable, "-P", "-m", "uvicorn", "examples.invoices.web:app", "--uds", str(socket), "--log-level", "warning"]
        rig.launch_plain(command, RELEVO_DATABASE_URL=url)
        wait_for(socket.exists, 60)  # made when it listens
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(socket), retries=5), base_url="http://shop", timeout=10) as client:
            customer = _post(client, "/customers", {"name": "Bench", "notify_url": "http://127.0.0.1:1", "card": "4242"})[0]
            took: dict[str, list[float]] = {"/invoices": [], "/drafts": []}
            turns = list(took) * (WARM + COUNT)
            random.Random(1).shuffle(turns)
            for number, path in enumerate(turns):
                took[path].append(_post(client, path, {"customer_id": customer, "number": f"F-{number}", "total": "12.50"})[1])
    emitting, plain = (sorted(took[path][WARM:]) for path in ("/invoices", "/drafts"))
    (p50, p95), (plain_p50, plain_p95) = ((statistics.median(times), times[int(len(times) * 0.95)]) for times in (emitting, plain))
    return [
        ("request that emits, p50", p50, "ms"),
        ("request that emits, p95", p95, "ms"),
        ("the same without, p50", plain_p50, "ms"),
        ("the same without, p95", plain_p95, "ms"),
        ("what emitting adds, p50", p50 - plain_p50, "ms"),
        ("what emitting adds, p95", p95 - plain_p95, "ms"),
        ("request that emits : without, p50", p50 / plain_p50, "x"),
    ]


def _post(client: httpx.Client, path: str, content: dict[str, object]) -> tuple[int, float]:
    """The number that was answered, and after how many ms."""
    start = time.perf_counter()
    answer = client.post(path, json=content)
    took = (time.perf_counter() - start) * 1000
    return int(answer.raise_for_status().json()["id"]), took


ALL = {"emit": emit}
