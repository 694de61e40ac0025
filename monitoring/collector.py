"""The collector: what Prometheus gets at a scrape, made of what Postgres and the broker say at that moment and of nothing kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from monitoring import metrics
from monitoring.figures import Figures
from monitoring.metrics import Kind, Metric
from monitoring.source import Source
from ordering.model import DEFAULT_QUEUE, Outcome
from ordering.signals import Signals
from ordering.tally import BOUNDS, Total

# Seconds for each source; a scrape answers within 5. Postgres first, since it knows the names of the queues.
POSTGRES_WITHIN, BROKER_WITHIN = 2.5, 2.0
LEVELS = [*map(str, BOUNDS), "+Inf"]


class Figured(Collector):
    """Asks its sources at each scrape. Any number of them side by side say the same."""

    def __init__(self, postgres: Callable[[], Figures], broker: Callable[[Sequence[str]], Mapping[str, int]]) -> None:
        self._queues: Sequence[str] = [DEFAULT_QUEUE]  # names, not figures: they are asked for while Postgres is away, too
        self._postgres = Source("postgres", postgres)
        self._broker = Source("broker", lambda: broker(self._queues))

    def describe(self) -> Iterable[Family]:
        """Every metric without figures, for the registry, which would else ask for them."""
        return [MADE[each.kind](each) for each in metrics.METRICS]

    def collect(self) -> Iterator[Family]:
        """The figures of this moment; of a source that does not answer in time only that it does not."""
        figures = self._postgres.ask(POSTGRES_WITHIN)
        if figures is not None:
            self._queues = figures.queues
        messages = self._broker.ask(BROKER_WITHIN)
        up = _gauge(metrics.UP)
        up.add_metric(["postgres"], figures is not None)
        up.add_metric(["broker"], messages is not None)
        if figures is not None:
            up.add_metric(["feeder"], figures.feeding)
            yield from _of_postgres(figures)
        if messages is not None:
            held = _gauge(metrics.BROKER_MESSAGES)
            for queue in sorted(messages):
                held.add_metric([queue], messages[queue])
            yield held
        yield up


def _gauge(metric: Metric) -> GaugeMetricFamily:
    return GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)


def _counter(metric: Metric) -> CounterMetricFamily:
    return CounterMetricFamily(metric.name, metric.help, labels=metric.labels)


def _histogram(metric: Metric) -> HistogramMetricFamily:
    return HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)


MADE: dict[Kind, Callable[[Metric], Family]] = {Kind.GAUGE: _gauge, Kind.COUNTER: _counter, Kind.HISTOGRAM: _histogram}
GAUGES: dict[Metric, Callable[[Signals], float]] = {
    metrics.DEPTH: lambda each: each.depth,
    metrics.OLDEST_AGE: lambda each: each.oldest_age.total_seconds(),
    metrics.RETRY_RATIO: lambda each: each.retry_ratio,
    metrics.DEAD_LETTERS: lambda each: each.dead_letters,
    metrics.BLOCKED: lambda each: each.blocked.total_seconds(),
    metrics.CONCURRENCY: lambda each: each.concurrency,
}


def _of_postgres(figures: Figures) -> Iterator[Family]:
    for metric, value in GAUGES.items():
        made = _gauge(metric)
        for each in figures.signals:
            made.add_metric([each.plan], value(each))
        yield made
    items, head_age = _gauge(metrics.ITEMS), _gauge(metrics.HEAD_AGE)
    for each in figures.signals:
        for state, count in each.items.items():
            items.add_metric([each.plan, state], count)
        head_age.add_metric([each.plan, "dispatched"], each.dispatched_age.total_seconds())
        head_age.add_metric([each.plan, "running"], each.running_age.total_seconds())
    workers = _gauge(metrics.WORKERS)
    workers.add_metric([], figures.workers)
    yield from (items, head_age, workers)
    yield from _totals(figures.totals, [each.plan for each in figures.signals])


def _totals(totals: Sequence[Total], plans: Sequence[str]) -> Iterator[Family]:
    attempts, runs = _counter(metrics.ATTEMPTS), _histogram(metrics.RUN)
    retries, waits, waited = dict.fromkeys(plans, 0), defaultdict[str, list[int]](lambda: [0] * len(LEVELS)), defaultdict[str, float](float)
    for each in totals:
        for outcome, count in ((Outcome.SUCCEEDED, each.succeeded), (Outcome.FAILED, each.failed), (Outcome.INTERRUPTED, each.interrupted)):
            attempts.add_metric([each.plan, each.task, outcome], count)
        runs.add_metric([each.plan, each.task], _cumulated(each.runs), each.run_seconds)
        retries[each.plan] += each.retries
        waits[each.plan] = [so_far + more for so_far, more in zip(waits[each.plan], each.waits, strict=True)]
        waited[each.plan] += each.wait_seconds
    again, wait = _counter(metrics.RETRIES), _histogram(metrics.WAIT)
    for plan in plans:
        again.add_metric([plan], retries[plan])
        wait.add_metric([plan], _cumulated(waits[plan]), waited[plan])
    yield from (attempts, again, wait, runs)


def _cumulated(buckets: Sequence[int]) -> list[tuple[str, float]]:
    so_far, found = 0, []
    for level, count in zip(LEVELS, buckets, strict=True):
        so_far += count
        found.append((level, float(so_far)))
    return found
