"""Who works, put together as people think of them: a service on a host, with its pool processes and what these run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ordering.workforce import Work, Worker

#: What a worker calls itself: its service, its host, and the process above its pool. Another name is taken as it is.
CALLED = re.compile(r"(?P<service>.+)@(?P<host>[^@/]+)/(?P<parent>\d+)")


@dataclass(frozen=True)
class Process:
    """A pool process; `parent`: the pid of the worker that it belongs to, or nothing where its name does not say."""

    worker: Worker
    parent: str


@dataclass(frozen=True)
class Crew:
    """The pool processes of one service on one host, whether one worker has them or several."""

    service: str
    host: str
    processes: Sequence[Process]

    @property
    def busy(self) -> Sequence[Worker]:
        """Those that run something, the longest at it first."""
        at_work = (each.worker for each in self.processes if each.worker.runs)
        return sorted(at_work, key=lambda each: each.items[0].since)

    @property
    def workers(self) -> int:
        """How many workers they belong to."""
        return len({each.parent for each in self.processes})

    def first(self, most: int) -> Sequence[tuple[Work, int]]:
        """What the first `most` of the busy ones run: an item of each, and how many more it has beside it."""
        return [(each.items[0], each.runs - 1) for each in self.busy[:most]]


def named(worker: str, host: str) -> tuple[str, str]:
    """A worker's service, and the pid of its parent if its name says that."""
    found = CALLED.fullmatch(worker)
    return (found["service"], found["parent"]) if found and found["host"] == host else (worker, "")


def crews(workers: Sequence[Worker]) -> list[Crew]:
    """The processes by service and host, those that are there for longest first."""
    by_name: dict[tuple[str, str], list[Process]] = {}
    for each in workers:
        service, parent = named(each.worker, each.host)
        by_name.setdefault((service, each.host), []).append(Process(each, parent))
    return [Crew(service, host, processes) for (service, host), processes in by_name.items()]
