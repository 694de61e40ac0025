"""Every metric by its name: what it counts and by which labels. No id, error text or worker's name is a label."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How a metric behaves: a gauge goes up and down, a counter only up, a histogram counts into buckets."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Metric:
    """A metric as it is described to Prometheus. The name of a counter ends with `_total` there."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str


UP = Metric("relevo_up", Kind.GAUGE, ("source",), "1 if the source answered at this scrape, else 0; its figures are then left out.")
DEPTH = Metric("relevo_depth", Kind.GAUGE, ("plan",), "Items that are due and wait.")
OLDEST_AGE = Metric("relevo_oldest_age_seconds", Kind.GAUGE, ("plan",), "How long the oldest waiting item has been due; 0 when none is.")
RETRY_RATIO = Metric(
    "relevo_retry_ratio", Kind.GAUGE, ("plan",), "Share of the attempts of the last five minutes that ended with another try to come."
)
DEAD_LETTERS = Metric("relevo_dead_letters", Kind.GAUGE, ("plan",), "Failed and interrupted items that wait for a decision.")
ITEMS = Metric("relevo_items", Kind.GAUGE, ("plan", "state"), "Items that are not settled.")
BLOCKED = Metric("relevo_blocked_seconds", Kind.GAUGE, ("plan",), "How long an undecided item has held up the serial plan; 0 if none does.")
HEAD_AGE = Metric(
    "relevo_head_age_seconds",
    Kind.GAUGE,
    ("plan", "stage"),
    "How long the oldest item that is out has been handed out and not started (dispatched), or has run (running); 0 if none is.",
)
CONCURRENCY = Metric(
    "relevo_concurrency", Kind.GAUGE, ("plan",), "How many items the plan may have out; 1 is a serial plan, more a stream."
)
ATTEMPTS = Metric("relevo_attempts", Kind.COUNTER, ("plan", "task", "outcome"), "Attempts that have ended.")
RETRIES = Metric("relevo_retries", Kind.COUNTER, ("plan",), "Attempts that ended with another try to come by itself.")
WAIT = Metric("relevo_wait_seconds", Kind.HISTOGRAM, ("plan",), "How long items waited from due to started.")
RUN = Metric("relevo_run_seconds", Kind.HISTOGRAM, ("plan", "task"), "How long bodies ran.")
WORKERS = Metric("relevo_workers", Kind.GAUGE, (), "Pool processes that are alive.")
BROKER_MESSAGES = Metric("relevo_broker_messages", Kind.GAUGE, ("queue",), "Messages in the broker, ready or not acknowledged.")

METRICS = (
    UP, DEPTH, OLDEST_AGE, RETRY_RATIO, DEAD_LETTERS, ITEMS, BLOCKED, HEAD_AGE, CONCURRENCY, ATTEMPTS, RETRIES, WAIT, RUN, WORKERS,
    BROKER_MESSAGES,
)  # fmt: skip
